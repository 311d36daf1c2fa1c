"""What an audit found, and how it calls code that nobody here has read."""

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from html import escape
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from genaudit.report import print_table

WIDTH = 83  # a printed table fits a column of the book
HEADERS = ("check", "expected", "got", "verdict")
WIDEST = (26, 14, 14)  # of all columns but the last, which takes what is left


class Row(NamedTuple):
    """One line of a report.

    Attributes:
        check: what was compared.
        expected: the right value.
        got: what the audited code gave, or "-".
        verdict: begins with "agrees", "differs", "raised" or "not checked".
    """

    check: str
    expected: str
    got: str
    verdict: str


class Unusable(Exception):
    """What the audited code did cannot be compared; the message is the verdict."""


class Report:
    """A title and rows; prints as a table, and notebooks show it as one.

    Attributes:
        title: what was audited.
        rows: the Rows, in the order of the checks.
    """

    def __init__(self, title: str):
        self.title = title
        self.rows: list[Row] = []

    @property
    def passed(self) -> bool:
        """Whether something agrees, nothing differs and nothing was raised."""
        verdicts = [row.verdict.split(maxsplit=1)[0].strip(":") for row in self.rows]
        return "agrees" in verdicts and set(verdicts) <= {"agrees", "not"}

    def add(self, check: str, expected, got, verdict: str) -> None:
        """Add a row; numbers get four digits."""
        self.rows.append(Row(check, shown(expected), shown(got), verdict))

    def compare(
        self,
        check: str,
        expected,
        got,
        suspects: Mapping[str, Tensor | float] | None = None,
        at: Sequence[str] = (),
        slack: float = 1e-5,
        note: str = "",
    ) -> None:
        """Add a row that says whether two numbers, or two equally long lists, agree.

        Args:
            check: what is compared.
            expected: the right values; a shown one is the first that differs.
            got: the values to judge.
            suspects: what known faults would give, by the words for each fault. NaN in
                one stands for a value that the fault leaves open.
            at: names of the entries.
            slack: largest relative difference of values that agree.
            note: what to say besides "agrees".
        """
        expected, got = _number(expected), _number(got)
        good = close(got, expected, slack).flatten()
        place = 0 if good.all() else int((~good).nonzero()[0])
        verdict = f"agrees: {note}" if note else "agrees"
        if not good.all():
            verdict = "differs" + (f" at {at[place]}" if len(at) else "")
            if got.isnan().any():
                verdict += ": NaN"
            elif name := named(got, suspects or {}, slack):
                verdict += f": {name}"
        pair = torch.stack([expected.flatten()[place], got.flatten()[place]])
        # As good as nothing: its digits would be those of rounding.
        pair = torch.where(pair.abs() < slack / 100, 0.0, pair)
        self.add(check, pair[0], pair[1], verdict)

    @contextmanager
    def trying(self, check: str) -> Iterator[None]:
        """Make a row of what cannot be used, and leave out the rest of the block."""
        try:
            yield
        except Unusable as unusable:
            self.add(check, "-", "-", str(unusable))

    def __str__(self) -> str:
        text = io.StringIO()
        with redirect_stdout(text):
            print_table(*_wrapped(self.rows))
        return f"{self._summary()}\n{text.getvalue()}".rstrip()

    __repr__ = __str__

    def _summary(self) -> str:
        bad = sum(row.verdict.startswith(("differs", "raised")) for row in self.rows)
        unseen = sum(row.verdict.startswith("not") for row in self.rows)
        checks = "1 check" if len(self.rows) == 1 else f"{len(self.rows)} checks"
        parts = [checks, f"{bad or 'none'} differ{'s' if bad < 2 else ''}"]
        parts += [f"{unseen} not checked"] if unseen else []
        return f"{self.title}: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        # The class is the one that notebooks and the book know how to colour.
        head = "".join(f'<th scope="col">{name}</th>' for name in HEADERS)
        body = "\n".join(map(_html, self.rows))
        return (
            '<table class="dataframe">\n'
            f"<caption>{escape(self._summary())}</caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        )


def _html(row: Row) -> str:
    check, expected, got, verdict = map(escape, row)
    if not verdict.startswith("agrees"):
        verdict = f"<strong>{verdict}</strong>"
    # Some notebooks set all cells to the right, which suits numbers alone.
    left = ' style="text-align: left"'
    return (
        f'<tr><th scope="row"{left}>{check}</th>'
        f"<td>{expected}</td><td>{got}</td><td{left}>{verdict}</td></tr>"
    )


def _wrapped(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headers and lines for ``print_table``, so that no line exceeds WIDTH."""
    longest = [max(map(len, column)) for column in zip(HEADERS, *rows)]
    widths = [min(pair) for pair in zip(longest, WIDEST)]
    widths.append(min(longest[-1], WIDTH - sum(widths) - 2 * len(widths)))
    lines = []
    for row in rows:
        cells = [
            textwrap.wrap(cell, width, break_on_hyphens=False)
            for cell, width in zip(row, widths)
        ]
        lines += map(list, zip_longest(*cells, fillvalue=""))
    # Columns but the first are set to the right; words begin on the left all the same.
    for line in lines:
        line[-1] = line[-1].ljust(widths[-1])
    return [*HEADERS[:-1], HEADERS[-1].ljust(widths[-1])], lines


def shown(value) -> str:
    """Words as they are, a number with four digits."""
    if isinstance(value, str):
        return value
    return f"{float(value):.4g}"


def close(a: Tensor, b: Tensor, slack: float = 1e-5) -> Tensor:
    """Where two tensors agree: relatively, or, near zero, within a hundredth of that.

    Equal infinities agree, NaN never does.
    """
    return torch.isclose(a, b, rtol=slack, atol=slack / 100)


def named(got: Tensor, suspects: Mapping, slack: float = 1e-5) -> str | None:
    """The first suspect that would have given these values."""
    for name, value in suspects.items():
        value = _number(value).broadcast_to(got.shape)
        known = ~value.isnan()
        if known.any() and close(got[known], value[known], slack).all():
            return name
    return None


def probe(function: Callable, *arguments, shape: tuple[int, ...] | None = None):
    """Call code of unknown manners; return its numbers as a tensor in their own dtype.

    Each argument is handed over as a copy, since the code may write into it. Unusable
    if the call raises, or returns no numbers, or numbers of another shape (a single
    number may come in any).
    """
    copies = [a.clone() if isinstance(a, Tensor) else a for a in arguments]
    try:
        result = function(*copies)
    except Unusable:
        raise
    except Exception as error:
        raise Unusable(f"raised {_words(error)}") from error
    tensor = as_tensor(result)
    if shape is not None and tensor.shape != shape:
        if tensor.numel() != 1 or torch.Size(shape).numel() != 1:
            raise Unusable(f"differs: shape {tuple(tensor.shape)}, not {shape}")
        tensor = tensor.reshape(shape)
    return tensor


def as_tensor(value) -> Tensor:
    """Numbers of any kind as a tensor; Unusable if they are none."""
    exact = None if hasattr(value, "dtype") else torch.float64
    if isinstance(value, np.ndarray):
        value = value.copy()  # torch reads no array that runs backwards
    try:
        tensor = torch.as_tensor(value, dtype=exact).detach().cpu()
    except Exception as error:
        kind = type(value).__name__
        raise Unusable(f"differs: returned {kind}, which is no number") from error
    if tensor.is_complex() or tensor.dtype == torch.bool or tensor.numel() == 0:
        raise Unusable(f"differs: returned {_kind(tensor)}, which is no real number")
    return tensor


def _number(value) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64)


def _kind(tensor: Tensor) -> str:
    return "nothing" if tensor.numel() == 0 else str(tensor.dtype)


def _words(error: Exception) -> str:
    """An error in one short line that is the same in every run."""
    text = re.sub(r"0x[0-9a-f]+", "0x...", " ".join(str(error).split()))
    text = text.encode("ascii", "backslashreplace").decode()
    name = type(error).__name__
    return textwrap.shorten(f"{name}: {text}" if text else name, 100)
