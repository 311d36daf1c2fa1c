"""The rows of the ledger, what recomputes each of them, and where the two part."""

import ast
import csv
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import nbformat
import torch

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "tests" / "claims" / "ledger.csv"

Recomputation = Callable[..., object]
RECOMPUTATIONS: dict[str, Recomputation] = {}


class Row(NamedTuple):
    """One claim, as README.md explains it; every field is text."""

    id: str
    source: str
    topic: str
    kind: str
    inputs: str
    quantity: str
    value: str
    tolerance: str
    how: str
    note: str

    @property
    def values(self) -> list[Decimal]:
        """The claimed numbers, exactly as written."""
        return [Decimal(part) for part in self.value.split(";")] if self.value else []

    @property
    def tolerances(self) -> list[Decimal]:
        """One for each value: a single tolerance serves them all."""
        parts = [Decimal(part) for part in self.tolerance.split(";") if part]
        return parts * len(self.values) if len(parts) == 1 else parts

    @property
    def arguments(self) -> dict[str, object]:
        """The inputs by name: decimals as float64 tensors, whole numbers, words."""
        pairs = [part.split("=") for part in self.inputs.split(";") if part]
        return {name.strip(): _argument(text.strip()) for name, text in pairs}

    @property
    def checks(self) -> list[str]:
        """The parts of `how checked`."""
        return self.how.split("; ")


def _argument(text: str) -> object:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    if isinstance(value, int):
        return value
    return torch.tensor(value, dtype=torch.float64)


def read(path: Path = LEDGER) -> list[Row]:
    """The rows of a ledger, in order."""
    with path.open(encoding="utf8", newline="") as file:
        header, *rows = csv.reader(file)
    expected = [name.replace("how", "how checked") for name in Row._fields]
    assert header == expected, f"columns {header}, not {expected}"
    return [Row(*row) for row in rows]


def recomputes(*patterns: str) -> Callable[[Recomputation], Recomputation]:
    """Register a function for the rows whose id matches one of the patterns.

    It gets the row's inputs by name. It returns a number, a tuple of numbers, or a
    dict of these by the last part of the id.
    """

    def register(function: Recomputation) -> Recomputation:
        RECOMPUTATIONS.update(dict.fromkeys(patterns, function))
        return function

    return register


def recomputations(row: Row) -> list[Recomputation]:
    """The functions registered for a row: one, or the ledger is at fault."""
    return [
        function
        for pattern, function in RECOMPUTATIONS.items()
        if fnmatchcase(row.id, pattern)
    ]


def recompute(row: Row) -> list[Decimal]:
    """The row's numbers, computed anew, without rounding."""
    [function] = recomputations(row)
    result = function(**row.arguments)
    if isinstance(result, dict):
        result = result[row.id.rpartition(".")[2]]
    numbers = result if isinstance(result, tuple) else (result,)
    return [Decimal(float(number)) for number in numbers]


def disagreements(row: Row, numbers: Sequence[Decimal]) -> list[str]:
    """Where a row's values are not within its tolerances of the numbers."""
    if len(numbers) != len(row.values):
        return [f"{row.id}: {len(row.values)} values, {len(numbers)} recomputed"]
    return [
        f"{row.id}: the ledger says {value}, recomputed {float(number)!r}, "
        f"not within {tolerance}"
        for value, tolerance, number in zip(
            row.values, row.tolerances, numbers, strict=True
        )
        if not abs(number - value) < tolerance
    ]


def bibliography() -> str:
    """The list of what the book cites, as it is stored."""
    return (ROOT / "chapters" / "references.bib").read_text(encoding="utf8")


def cited_year(key: str) -> int:
    """The year of a bibliography entry."""
    entry = bibliography().split("{" + key + ",")[1].split("\n@")[0]
    return int(re.search(r"year\s*=\s*\{(\d+)\}", entry)[1])


def _outputs(chapter: str, cell_id: str) -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(ROOT / "chapters" / f"{chapter}.ipynb", as_version=4)
    [cell] = [cell for cell in notebook.cells if cell.id == cell_id]
    return cell.outputs


def printed(chapter: str, cell_id: str) -> str:
    """What a stored cell of a chapter printed, and the names of what it showed."""
    texts = []
    for output in _outputs(chapter, cell_id):
        if output.get("name") == "stdout":
            texts.append(output.text)
        elif "data" in output:
            texts.append(f"\n{output.data['text/plain']}\n")
    return "".join(texts)


def printed_numbers(chapter: str, cell_id: str, label: str) -> list[float]:
    """The numbers after the label in the one printed line that begins with it."""
    return numbers_after(label, printed(chapter, cell_id))


def numbers_after(label: str, text: str) -> list[float]:
    """The same for a text: part of what a cell printed."""
    lines = text.splitlines()
    [rest] = [
        line.removeprefix(label) for line in lines if line.startswith(label + " ")
    ]
    found = re.findall(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?", rest)
    return [float(number.replace(",", "")) for number in found]


def readouts(chapter: str, cell_id: str) -> str:
    """What the stored explorer of a cell says at each of its stops, a line each."""
    [html] = [output.data["text/html"] for output in _outputs(chapter, cell_id)]
    stored = re.search(r'<script type="application/json">(.*?)</script>', html)[1]
    return "\n".join(json.loads(stored)["readouts"])
