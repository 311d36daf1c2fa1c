"""The figure with a slider: its forms, its texts, its refusals, its re-run."""

import base64
import io
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from PIL import Image

from genaudit.explore import explore

WIDGET = "application/vnd.jupyter.widget-view+json"


def line(value, choice="up"):
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    axes.plot([0, 1], [0, value if choice == "up" else -value])
    return figure, f"{choice} to {value:.2f}"


def explorer(draw=line, values=(0, 0.5, 1), **options):
    return explore(draw, values, **{"label": "slope", "alt": "a line", **options})


def parts(html):
    """Tags with their attributes, and the data that the script reads."""
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append((tag, dict(attrs)))
    parser.feed(html)
    data = re.search(r'<script type="application/json">(.*?)</script>', html, re.S)
    return tags, json.loads(data[1])


def only(tags, name):
    (found,) = [attributes for tag, attributes in tags if tag == name]
    return found


def test_three_forms_show_the_start_frame():
    shown = explorer(start=0.5)
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", WIDGET}
    tags, data = parts(bundle["text/html"])
    picture = only(tags, "img")
    assert picture["src"] == data["pictures"][1]
    assert (picture["width"], picture["height"]) == ("640", "360")
    assert picture["alt"] == "a line"
    webp = base64.b64decode(picture["src"].split(",")[1])
    png = base64.b64decode(bundle["image/png"])
    pixels = [np.asarray(Image.open(io.BytesIO(b)).convert("RGB")) for b in (webp, png)]
    assert np.array_equal(*pixels)
    assert data["readouts"][1] + "</output>" in bundle["text/html"]
    assert bundle[WIDGET]["model_id"]


def test_page_is_whole_and_operable():
    shown = explorer(choices=["up", "down"], choice_label="way")
    html = shown._repr_mimebundle_()["text/html"]
    tags, data = parts(html)
    *radios, slider = [attributes for tag, attributes in tags if tag == "input"]
    assert slider["type"] == "range" and slider["max"] == "2"
    assert slider["aria-valuetext"] == "0"
    assert [radio["value"] for radio in radios] == ["0", "1"]
    assert ["checked" in radio for radio in radios] == [True, False]
    assert html.count("<label") == 3 and "<legend" in html
    assert only(tags, "output")["aria-live"] == "polite"
    assert len(set(data["pictures"])) == 5  # at slope 0 both ways look alike
    assert data["readouts"][:3] == ["up to 0.00", "up to 0.50", "up to 1.00"]
    assert data["readouts"][3:] == ["down to 0.00", "down to 0.50", "down to 1.00"]
    assert "http" not in re.sub(r"base64,[^\"]+", "", html)


def test_script_is_small():
    tags, _ = parts(explorer()._repr_mimebundle_()["text/html"])
    assert len(only(tags, "form")["oninput"]) < 1000


def test_thirty_ordinary_frames_fit_the_budget():
    def curves(shift):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        x = np.linspace(-4, 4, 400)
        axes.fill_between(x, np.exp(-((x - shift) ** 2) / 2), alpha=0.3)
        axes.plot(x, np.exp(-((x + shift) ** 2)), label="model")
        axes.set(xlabel="x", ylabel="density", title="two densities")
        axes.legend()
        return figure, f"shift {shift:.1f}"

    shown = explorer(curves, np.linspace(-2, 2, 30))
    assert len(shown._repr_mimebundle_()["text/html"]) < 400_000


def test_heat_map_keeps_its_colours():
    field = np.linspace(0, 1, 200)[:, None] * np.linspace(0, 1, 300)

    def heat(power):
        figure = plt.figure(figsize=(3, 2))
        figure.add_axes((0, 0, 1, 1)).imshow(field**power, aspect="auto")
        return figure, "smooth"

    _, data = parts(explorer(heat, [1.0, 2.0])._repr_mimebundle_()["text/html"])
    webp = base64.b64decode(data["pictures"][0].split(",")[1])
    found = np.asarray(Image.open(io.BytesIO(webp)).convert("RGB")).astype(int)
    expected = plt.get_cmap()(field)[..., :3] * 255
    assert np.abs(found - expected).mean() < 4


def test_frames_keep_one_size_under_any_style():
    with plt.rc_context({"savefig.bbox": "tight", "savefig.dpi": 300}):
        _, data = parts(explorer()._repr_mimebundle_()["text/html"])
    webps = [base64.b64decode(uri.split(",")[1]) for uri in data["pictures"]]
    assert {Image.open(io.BytesIO(webp)).size for webp in webps} == {(640, 360)}


def test_texts_are_escaped():
    def odd(value):
        return line(value)[0], '</script><b>"&'

    shown = explorer(odd, label="<i>", alt='"&', choices=None)
    html = shown._repr_mimebundle_()["text/html"]
    assert "<i>" not in html and html.count("</script>") == 1
    tags, data = parts(html)
    assert only(tags, "img")["alt"] == '"&'
    assert data["readouts"][0] == '</script><b>"&'
    assert unescape(re.search(r"<output[^>]*>(.*?)</output>", html)[1]) == odd(0)[1]


def identity(shown):
    return re.search(r'id="([^"]+)"', shown._repr_mimebundle_()["text/html"])[1]


def test_identity_comes_from_the_texts_alone():
    def thicker(value):
        figure, readout = line(value)
        figure.axes[0].lines[0].set_linewidth(9)
        return figure, readout

    same = identity(explorer())
    assert same == identity(explorer()) == identity(explorer(thicker))
    others = [
        explorer(label="gradient"),
        explorer(alt="another line"),
        explorer(values=(0, 0.5, 2)),
        explorer(lambda value: (line(value)[0], "other")),
        explorer(choices=["up"], choice_label="way"),
    ]
    assert len({same, *map(identity, others)}) == 6


def test_no_address_in_repr_and_no_figure_left_open():
    before = plt.get_fignums()
    assert repr(explorer()) == "Explorer('slope', 3 pictures)"
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    "values", [np.linspace(0, 1, 3), torch.linspace(0, 1, 3), range(3), [0.0, 0.5, 1.0]]
)
def test_values_of_any_sequence(values):
    shown = explorer(values=values, start=1)
    assert ">1</b>" in shown._repr_mimebundle_()["text/html"]


def test_start_forgives_rounding():
    assert explorer(values=np.arange(11) * 0.1, start=0.3)._first == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"values": [1]}, r"values must hold at least two numbers, got \[1\]"),
        ({"values": [0, float("nan")]}, "values must be finite numbers, got nan"),
        ({"values": ["a", 1]}, "values must be finite numbers, got 'a'"),
        ({"start": 0.4}, r"start must be one of values \[0, 0.5, 1\], got 0.4"),
        ({"label": " "}, "label must be a text that is not empty, got ' '"),
        ({"alt": ""}, "alt must be a text that is not empty, got ''"),
        ({"choices": [], "choice_label": "way"}, "choices must hold at least one"),
        ({"choices": ["up", ""], "choice_label": "way"}, "choices must be a text"),
        ({"choices": ["up"]}, "choice_label must be a text"),
        ({"choice_label": "way"}, "choices must hold at least one text, got None"),
        ({"draw": lambda _: line(1)[0]}, "draw must return a matplotlib figure and a"),
        ({"draw": lambda _: (line(1)[0], 3)}, "draw must return .* for 0"),
        ({"draw": lambda _: ("figure", "text")}, "draw must return .* for 0"),
        (
            {"draw": lambda *_: None, "choices": ["up"], "choice_label": "way"},
            "draw must return a matplotlib figure and a text, got None for 0, 'up'",
        ),
    ],
)
def test_bad_input(change, words):
    with pytest.raises(ValueError, match=words):
        explorer(**change)
    plt.close("all")


def live(shown):
    """The widgets behind the live form: radio buttons, if any, slider and view."""
    from ipywidgets.widgets import widget

    model = shown._repr_mimebundle_()[WIDGET]["model_id"]
    # The second is where ipywidgets 7 keeps them.
    models = getattr(widget, "_instances", None) or widget.Widget.widgets
    return models[model].children


def test_live_form_draws_again():
    scale = 1
    drawn = []

    def draw(value, choice):
        drawn.append((value, choice))
        return line(scale * value, choice)

    shown = explorer(draw, choices=["up", "down"], choice_label="way")
    radio, slider, view = live(shown)
    assert "up to 0.00" in view.value
    drawn.clear()
    scale = 10  # a change in the kernel shows at the next move
    slider.value = 2
    assert "up to 10.00" in view.value
    radio.value = 1
    assert "down to 10.00" in view.value and 'alt="a line"' in view.value
    assert drawn == [(1, "up"), (1, "down")]


def test_other_forms_do_without_ipywidgets(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert set(explorer()._repr_mimebundle_()) == {"text/html", "image/png"}


SOURCE = """
import matplotlib.pyplot as plt
from genaudit.explore import explore
def draw(value):
    figure, axes = plt.subplots()
    axes.plot([0, value])
    return figure, f"ends at {value:.3f}"
explore(draw, [1, 2], label="end", alt="a line")
"""


@pytest.fixture(scope="module")
def stored():
    """A notebook as the book stores it, with pictures of another machine."""
    cells = [nbformat.v4.new_code_cell(SOURCE, id="slider")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, store_widget_state=False).execute()
    del notebook.cells[0].metadata["execution"]
    (output,) = notebook.cells[0].outputs
    del output.data[WIDGET]
    html = output.data["text/html"]
    output.data["text/html"] = re.sub('base64,[^"]{40}', "base64," + "A" * 40, html)
    assert output.data["text/html"] != html
    return notebook


def rerun(notebook, folder):
    nbformat.write(notebook, folder / "page.ipynb")
    sanitize = Path(__file__).with_name("sanitize.cfg")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    options = ["--nbval", "--nbval-current-env", f"--nbval-sanitize-with={sanitize}"]
    run = [*command, *options, f"--rootdir={folder}", "page.ipynb"]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True)


def test_strict_rerun_passes(stored, tmp_path):
    result = rerun(stored, tmp_path)
    assert result.returncode == 0, result.stdout


def test_strict_rerun_sees_a_changed_readout(stored, tmp_path):
    text = nbformat.writes(stored).replace("ends at 2.000", "ends at 2.001")
    result = rerun(nbformat.reads(text, as_version=4), tmp_path)
    assert result.returncode == 1 and "2.001" in result.stdout
