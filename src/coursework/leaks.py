"""Search student notebooks for what they must not hold.

Removing solutions is one thing, and looking afterwards whether they are gone another:
an answer may also stand in a question, in a comment or in a cell's metadata.
"""

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from nbformat import NotebookNode

from coursework.checks import Exercise, Given, flat
from coursework.exam import calls_of
from coursework.markers import public_lines, solution_lines

# Shorter lines, such as `total = 0`, are nobody's secret.
LONG_LINE, LONG_TERM, DIGITS = 16, 8, 4
_ASSIGNED = re.compile(r"(?:return\b|[\w\s,.]+?[-+*/]?=(?!=))\s*(.+)")
_OPERATOR = re.compile(r"(?<=[\w)\]])\s*[-+*/@][-+*/@\s]*(?=[\w(])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_RUBRIC = re.compile(r"^\W*rubric\s*:", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:[eE][+-]?[0-9]+)?"
)

Phrases = dict[str, str]
Numbers = dict[Decimal, str]


def phrases(
    masters: Mapping[str, NotebookNode], exercises: Mapping[str, Exercise]
) -> Phrases:
    """What may stand in no student notebook, squeezed, with a name that hides it."""
    found, used = {}, set()
    for name, master in masters.items():
        for cell in master.cells:
            where = f"{name}, cell {cell.id}"
            used |= set(map(squeezed, _public_code(cell)))
            for line in solution_lines(cell.source, where):
                for piece in _pieces(line):
                    found[squeezed(piece)] = f"a solution line of {where}: {cut(piece)}"
    secret = {text: what for text, what in found.items() if text not in used}
    for name, exercise in exercises.items():
        for check in exercise.checks:
            secret[squeezed(check.name)] = (
                f"a check's name of {name}: {cut(check.name)}"
            )
            secret[squeezed(check.hint)] = f"a hint of {name}: {cut(check.hint)}"
    secret.pop("", None)
    return secret


def printed_numbers(master: NotebookNode, exercise: Exercise) -> Numbers:
    """Numbers of four digits or more in a master's outputs and solutions.

    The constants that students are given are no secret, nor is a number that code
    needs inside and outside of solutions.
    """
    given = set(_decimals([list(values) for values in exercise.constants.values()]))
    code = [line for cell in master.cells for line in _public_code(cell)]
    found = {}
    for cell in master.cells:
        inside = _long_numbers("\n".join(solution_lines(cell.source, cell.id)))
        if cell.cell_type == "code":
            inside -= _long_numbers("\n".join(code))
        shown = _long_numbers("\n".join(_texts(cell.get("outputs", []))))
        for number in (inside | shown) - given:
            found[number] = f"an expected value of cell {cell.id}"
    return found


def expected_numbers(exercise: Exercise, given: Given) -> Numbers:
    """What the functions without arguments return for these constants."""
    found = {}
    for check in exercise.checks:
        if all(check.inputs(random.Random(0), given)):
            continue
        for call in calls_of(check, given, "release"):
            for number in _decimals(call.expected):
                if _significant(number) >= DIGITS:
                    found[number] = f"an expected value of {check.function}"
    return found


def leaks(notebook: NotebookNode, secret: Phrases, numbers: Numbers) -> Iterator[str]:
    """Say for each secret in a student notebook in which cell it stands."""
    texts = {cell.id: "\n".join(_texts(cell)) for cell in notebook.cells}
    texts["(metadata)"] = "\n".join(_texts(notebook.metadata))
    tight = {place: squeezed(text) for place, text in texts.items()}
    # Nearly always nothing is found, and one search does for all cells.
    whole = "\0".join(tight.values())
    for phrase, what in secret.items():
        if phrase in whole:
            yield from (f"cell {at}: {what}" for at in tight if phrase in tight[at])
    for place, text in texts.items():
        if _RUBRIC.search(text):
            yield f"cell {place}: a rubric line"
        for number in _long_numbers(text) if place != "given" else ():
            for value, what in numbers.items():
                if _same(number, value):
                    yield f"cell {place}: {what}: {cut(str(number))}"


def squeezed(text: str) -> str:
    """A text without what changes when it is wrapped, quoted or made a comment."""
    return re.sub(r"[\s#>`]+", "", text).casefold()


def cut(secret: str) -> str:
    """So much of a secret as its owner needs to recognise it."""
    return secret.strip()[: min(12, len(secret.strip()) // 3)] + "…"


def _public_code(cell: NotebookNode) -> list[str]:
    """Lines of code that students get: a solution may have some in common with them."""
    code = public_lines(cell.source, cell.id) if cell.cell_type == "code" else []
    return [line.split("#")[0] for line in code]


def _pieces(line: str) -> Iterator[str]:
    """What can be secret in a line: its sentences, and the right side of a formula."""
    for sentence in _SENTENCE_END.split(line.strip()):
        if len(squeezed(sentence)) >= LONG_LINE:
            yield sentence
    term = _ASSIGNED.fullmatch(line.strip())
    # A bare call or name is not yet an answer.
    if term and len(_OPERATOR.findall(term[1])) > 1:
        if len(squeezed(term[1])) >= LONG_TERM:
            yield term[1]


def _texts(node) -> Iterator[str]:
    """All strings in nested lists and dictionaries."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if not key.startswith("image/"):
                yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _long_numbers(text: str) -> set[Decimal]:
    """The numbers in a text that have four significant digits or more."""
    found = [Decimal(match[0].replace(",", "")) for match in _NUMBER.finditer(text)]
    return {number for number in found if _significant(number) >= DIGITS}


def _decimals(value) -> Iterable[Decimal]:
    """The sizes of all finite numbers in a value, as short as they can be written."""
    for entry in flat(value):
        number = isinstance(entry, (int, float)) and not isinstance(entry, bool)
        if number and math.isfinite(entry):
            yield abs(Decimal(repr(entry))).normalize()


def _significant(number: Decimal) -> int:
    return len(number.normalize().as_tuple().digits)


def _same(one: Decimal, other: Decimal) -> bool:
    """Whether they differ by less than one in the last place of the shorter."""
    places = [number.as_tuple().exponent for number in (one, other)]
    return abs(one - other) < Decimal(1).scaleb(max(places))
