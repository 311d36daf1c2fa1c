"""Numbers in sentences are the numbers that the cells print.

A decimal of four significant digits or more has to be the correct rounding of a number
printed in its chapter. Anything shorter can agree by chance, so it names the output it
comes from in `tests/prose.yml`:

    chapter:
      markdown-cell: {"0.12": code-cell, "17": "exempt: why no output has it"}

A code cell of another chapter is written `chapter/cell`. No line is needed for a
number that stands in the chapter's code, a whole number that an output prints, or one
up to 10.

`python -m tests.guards.prose` prints the file with a line for each number that lacks
one. Read what it proposes: several cells can print the same short number, and `?`
stands where none does.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path

import yaml

from .notebook import PAGES, ROOT, Chapter
from .numbers import Number, in_code, in_prose, in_text

LISTED = ROOT / "tests" / "prose.yml"
SMALL = 10
EXEMPT = "exempt: "


@cache
def listed(path: Path = LISTED) -> dict[str, dict[str, dict[str, str]]]:
    """Return the listed bindings: chapter, Markdown cell, number, output cell."""
    return yaml.safe_load(path.read_text(encoding="utf8")) or {}


def bound(chapter: Chapter, bindings: dict | None = None) -> Iterator[str]:
    """Each number in the text is computed, given, listed or small."""
    rows = (listed() if bindings is None else bindings).get(chapter.name, {})
    sources = Sources(chapter)
    for cell in chapter.markdown:
        targets = rows.get(cell.id, {})
        numbers = in_prose(cell.source)
        for number in numbers:
            target = targets.get(number.name)
            if fault := sources.fault(number, target):
                yield f"{cell.id}: {number.name} {fault} (... {number.context} ...)"
        for name in targets.keys() - {number.name for number in numbers}:
            yield f"{cell.id}: the listed {name} is not in its text"
    for gone in rows.keys() - {cell.id for cell in chapter.markdown}:
        yield f"{gone}: listed, but there is no such Markdown cell"


class Sources:
    """Where the numbers of a chapter's text can come from."""

    def __init__(self, chapter: Chapter) -> None:
        """Collect what the chapter prints and what its code holds."""
        self.chapter = chapter
        self.printed = {
            cell: [number.value for number in in_text(text)]
            for cell, text in chapter.printed.items()
        }
        self.given = set().union(*map(in_code, chapter.trees.values()))

    def fault(self, number: Number, target: str | None) -> str | None:
        """Return what is wrong with a number, given the target listed for it."""
        if target is not None:
            return self._listed_fault(number, target)
        if any(map(number.equals, self.given)):
            return None
        everything = [value for values in self.printed.values() for value in values]
        if number.is_decimal and number.significant_digits >= 4:
            if any(map(number.rounds, everything)):
                return None
            return "is not the rounding of a number printed in this chapter"
        if not number.is_decimal and not number.per_cent:
            if abs(number.value) <= SMALL or number.value in everything:
                return None
            return "is in no output and no code of this chapter, and not listed"
        if number.per_cent and number.value in {0, 100}:
            return None
        return "states a result but names no output cell"

    def candidates(self, number: Number) -> list[str]:
        """Return the code cells that print what the number rounds."""
        return [
            cell
            for cell, values in self.printed.items()
            if any(map(number.rounds, values))
        ]

    def _listed_fault(self, number: Number, target: str) -> str | None:
        if target.startswith(EXEMPT):
            return None if target[len(EXEMPT) :].strip() else "is exempt without reason"
        values = self._values(target)
        if values is None:
            return f"is listed with {target}, which is no code cell"
        if any(map(number.rounds, values)):
            return None
        return f"is not the rounding of a number that {target} prints"

    def _values(self, target: str) -> list[Decimal] | None:
        name, _, cell = target.rpartition("/")
        if not name:
            return self.printed.get(cell)
        other = self.chapter.path.with_name(f"{name}.ipynb")
        return Sources(Chapter(other)).printed.get(cell) if other.exists() else None


def propose(chapter: Chapter) -> Iterator[str]:
    """Yield the chapter's lines for the list, with a proposal where one is missing."""
    rows, sources = listed().get(chapter.name, {}), Sources(chapter)
    order = [cell.id for cell in chapter.code]
    nearest, header = 0, f"{chapter.name}:"
    for cell in chapter.cells:
        if cell.cell_type == "code":
            nearest += 1
            continue
        entries = {}
        for number in in_prose(cell.source):
            target = rows.get(cell.id, {}).get(number.name)
            if fault := sources.fault(number, target):
                found = sources.candidates(number)
                around = [*reversed(order[:nearest]), *order[nearest:]]
                ranked = [name for name in around if name in found] or ["?"]
                note = f"# NEW, {fault}: ... {number.context} ..."
                others = f" (or {', '.join(ranked[1:])})" if ranked[1:] else ""
                entries[number.name] = f'"{ranked[0]}"  {note}{others}'
            elif target is not None:
                entries[number.name] = f'"{target}"'
        if entries:
            yield from filter(None, [header, f"  {cell.id}:"])
            header = ""
            yield from (f'    "{name}": {entry}' for name, entry in entries.items())


if __name__ == "__main__":
    for page in PAGES:
        for line in propose(Chapter(page)):
            print(line)
