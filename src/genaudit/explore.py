"""A figure with a slider that works in a static page, a live kernel and in print.

A notebook output can carry several forms of one object, and each reader takes the one
it understands. All three forms here come from one function from a value to a figure:

- ``text/html``: a native range input with every picture inlined, for the rendered book
  and for a notebook opened without a kernel, from disk and without a network;
- ``application/vnd.jupyter.widget-view+json``: ipywidgets that draw again in Python
  while a kernel lives;
- ``image/png``: the first picture, for print.
"""

import base64
import hashlib
import html
import io
import json
import math
from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

# Keeps JupyterLab from moving to another cell when an arrow key moves a control.
_OWN_KEYS = 'data-lm-suppress-shortcuts="true"'

_DPI = 100  # 640 pixels for a figure of 6.4 inches, about the width of a text column

# The handler starts from the form it sits on. It looks nothing up by id, so it goes on
# working where a notebook shows one output in two places.
_HANDLER = """
const d = this.data ??= JSON.parse(this.querySelector('script').textContent),
  e = this.elements, i = +e.stop.value,
  k = i + d.stops.length * (e.choice ? +e.choice.value : 0);
e.stop.setAttribute('aria-valuetext', d.stops[i]);
this.querySelector('b').textContent = d.stops[i];
this.querySelector('img').src = d.pictures[k];
e.readout.value = d.readouts[k];
"""


def explore(
    draw: Callable[..., tuple[Figure, str]],
    values: Sequence[float],
    *,
    label: str,
    alt: str,
    start: float | None = None,
    choices: Sequence[str] | None = None,
    choice_label: str | None = None,
) -> "Explorer":
    """Draw a figure at every stop of a slider and show them as one.

    Args:
        draw: ``draw(value)``, or ``draw(value, choice)`` where there are choices,
            returns a matplotlib figure and a readout: one sentence with the numbers to
            notice at this stop. It stands below the picture and is announced by screen
            readers.
        values: the stops of the slider, finite numbers.
        label: what the slider moves, in plain text.
        alt: what the picture shows whatever the stop, for readers who cannot see it.
        start: the stop shown first, one of ``values``; the first of them by default.
        choices: up to about four settings, shown as radio buttons, the first one
            chosen at first.
        choice_label: what the radio buttons choose; goes with ``choices``.

    Returns:
        An object that shows itself as the last line of a cell.

    Raises:
        ValueError: ``values`` holds fewer than two numbers or one that is not finite,
            ``start`` is not a stop, a text is empty, ``choices`` is empty or comes
            without ``choice_label`` or the other way round, or ``draw`` returns
            anything but a figure and a text.
    """
    stops = [value.item() if hasattr(value, "item") else value for value in values]
    if len(stops) < 2:
        raise ValueError(f"values must hold at least two numbers, got {stops!r}")
    for stop in stops:
        if not isinstance(stop, int | float) or not math.isfinite(stop):
            raise ValueError(f"values must be finite numbers, got {stop!r}")
    _require_text("label", label)
    _require_text("alt", alt)
    if choices is not None or choice_label is not None:
        if not choices:
            raise ValueError(f"choices must hold at least one text, got {choices!r}")
        _require_text("choice_label", choice_label)
        for choice in choices:
            _require_text("choices", choice)
    first = _position(stops, stops[0] if start is None else start)
    return Explorer(draw, stops, first, label, alt, list(choices or []), choice_label)


def _require_text(name: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name} must be a text that is not empty, got {text!r}")


def _position(stops: list[float], start: float) -> int:
    """Where ``start`` stands among the stops, forgiving the rounding of a grid."""
    for index, stop in enumerate(stops):
        if math.isclose(stop, start, rel_tol=1e-9, abs_tol=1e-12):
            return index
    raise ValueError(f"start must be one of values {stops}, got {start!r}")


class Explorer:
    """The pictures of one slider, in the three forms; made by ``explore``."""

    def __init__(
        self,
        draw: Callable[..., tuple[Figure, str]],
        stops: list[float],
        first: int,
        label: str,
        alt: str,
        choices: list[str],
        choice_label: str | None,
    ) -> None:
        """Draw every picture; the arguments are checked by ``explore``."""
        self._draw, self._values, self._first = draw, stops, first
        self._stops = [f"{stop:g}" for stop in stops]
        self._label, self._alt = label, alt
        self._choices, self._choice_label = choices, choice_label
        frames = [
            self._frame(stop, choice)
            for choice in range(max(1, len(choices)))
            for stop in range(len(stops))
        ]
        self._pictures, self._readouts = map(list, zip(*frames, strict=True))

    def __repr__(self) -> str:
        """Say what it is without an address, which no stored output could keep."""
        return f"Explorer({self._label!r}, {len(self._pictures)} pictures)"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, object]:
        picture = io.BytesIO()
        Image.open(io.BytesIO(self._pictures[self._first])).save(picture, "png")
        return {
            "text/html": self._html(),
            "image/png": base64.b64encode(picture.getvalue()).decode(),
        } | self._widget()

    def _frame(self, stop: int, choice: int) -> tuple[bytes, str]:
        """The picture and the readout of one setting, drawn now."""
        setting = [self._values[stop], *self._choices[choice : choice + 1]]
        drawn = self._draw(*setting)
        match drawn:
            case (Figure() as figure, str(readout)):
                picture = _webp(figure)
                plt.close(figure)  # else the notebook shows it a second time
                return picture, readout
        raise ValueError(
            f"draw must return a matplotlib figure and a text, got {drawn!r} "
            f"for {', '.join(map(repr, setting))}"
        )

    def _html(self) -> str:
        """The form for pages without a kernel."""
        texts = [self._label, self._alt, self._stops, self._choices, self._readouts]
        name = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:8]
        data = json.dumps(
            {
                "stops": self._stops,
                "readouts": self._readouts,
                "pictures": [_data_uri(picture) for picture in self._pictures],
            }
        ).replace("<", r"\u003c")  # a "</script>" in a readout must not end the data
        return (
            f'<form class="explorer" id="explorer-{name}" autocomplete="off"'
            f' onsubmit="return false" oninput="{html.escape(_HANDLER)}">'
            f"{self._radio_buttons()}{self._slider()}"
            f"{self._view(self._pictures[self._first], self._readouts[self._first])}"
            f'<script type="application/json">{data}</script></form>'
        )

    def _slider(self) -> str:
        stop = self._stops[self._first]
        return (
            '<div style="display:flex;gap:.75em;align-items:center;max-width:40em">'
            '<label style="display:flex;gap:.75em;align-items:center;flex:1">'
            f"<span>{html.escape(self._label)}</span>"
            f'<input type="range" name="stop" min="0" step="1" {_OWN_KEYS}'
            f' max="{len(self._stops) - 1}" value="{self._first}"'
            f' aria-valuetext="{stop}" style="flex:1;min-width:6em;height:1.75em">'
            f'</label><b aria-hidden="true" style="min-width:4ch">{stop}</b></div>'
        )

    def _radio_buttons(self) -> str:
        if not self._choices:
            return ""
        buttons = "".join(
            '<label style="display:inline-block;margin-right:1em;line-height:1.75">'
            f'<input type="radio" name="choice" value="{index}" {_OWN_KEYS}'
            f"{' checked' if index == 0 else ''}> {html.escape(choice)}</label>"
            for index, choice in enumerate(self._choices)
        )
        return (
            '<fieldset style="border:0;margin:0;padding:0;min-width:0">'
            '<legend style="float:left;padding:0;margin:0 1em 0 0;font-size:inherit;'
            f'width:auto;line-height:1.75">{html.escape(self._choice_label)}</legend>'
            f"{buttons}</fieldset>"
        )

    def _view(self, picture: bytes, readout: str) -> str:
        """The picture with its readout below, in the page and in the widget."""
        width, height = Image.open(io.BytesIO(picture)).size
        return (
            f'<img src="{_data_uri(picture)}" alt="{html.escape(self._alt)}"'
            f' width="{width}" height="{height}"'
            ' style="display:block;max-width:100%;height:auto;background:#fff">'
            '<output name="readout" aria-live="polite" style="display:block">'
            f"{html.escape(readout)}</output>"
        )

    def _widget(self) -> dict[str, object]:
        """The form for a live kernel, which calls ``draw`` again at every move."""
        try:
            import ipywidgets
        except ImportError:
            return {}
        slider = ipywidgets.SelectionSlider(
            options=[(text, index) for index, text in enumerate(self._stops)],
            value=self._first,
            description=self._label,
            style={"description_width": "initial"},
            layout={"width": "auto", "max_width": "40em"},
        )
        radio = ipywidgets.RadioButtons(
            options=[(text, index) for index, text in enumerate(self._choices or [""])],
            description=self._choice_label or "",
            style={"description_width": "initial"},
        )
        view = ipywidgets.HTML(
            self._view(self._pictures[self._first], self._readouts[self._first])
        )

        def redraw(change: object) -> None:
            view.value = self._view(*self._frame(slider.value, radio.value))

        slider.observe(redraw, "value")
        radio.observe(redraw, "value")
        shown = [radio, slider, view] if self._choices else [slider, view]
        box = ipywidgets.VBox(shown)
        return {
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": box.model_id,
            }
        }


def _webp(figure: Figure) -> bytes:
    """The smaller of two encodings: few colours kept exactly, or many roughly.

    Lines and text come out smaller and sharper from a palette, heat maps and clouds
    from the lossy codec.
    """
    with plt.rc_context({"savefig.bbox": None}):  # every frame keeps the same size
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=_DPI, facecolor="white")
    picture = Image.open(drawn).convert("RGB")
    palette, lossy = io.BytesIO(), io.BytesIO()
    few = picture.quantize(128, dither=Image.Dither.NONE).convert("RGB")
    few.save(palette, "webp", lossless=True)
    picture.save(lossy, "webp", quality=80)
    return min(palette.getvalue(), lossy.getvalue(), key=len)


def _data_uri(picture: bytes) -> str:
    return f"data:image/webp;base64,{base64.b64encode(picture).decode()}"
