"""From a master's cell to a student's: nbgrader's two markers, read strictly.

A solution stands between the lines `### BEGIN SOLUTION` and `### END SOLUTION`. A line
that only resembles a marker would leave the solution in the student's notebook, so it
is refused.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from nbformat import NotebookNode

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUBS = {
    "code": ("# YOUR CODE HERE", "raise NotImplementedError"),
    "markdown": ("YOUR ANSWER HERE",),
}
_PHRASES = [
    first + second
    for first in ("BEGIN", "END", "START", "STOP")
    for second in ("SOLUTION", "HIDDENTESTS", "MARKSCHEME")
] + ["SOLUTIONBEGIN", "SOLUTIONEND"]
# Markers are written so; `### Begin here` may be a heading.
_SHOUTED = re.compile(r"#\s*(BEGIN|END|SOLUTION)\b")
_WORDS = re.compile("[A-Z]+")


def student_source(cell: NotebookNode, where: str) -> str:
    """The source of a cell with each solution replaced by a stub.

    ValueError, beginning with ``where`` (the file and the cell), unless the markers are
    in order and stand exactly in the cells whose nbgrader metadata say "solution".
    """
    lines, count = [], 0
    for line, place in _places(cell.source, where):
        if place == "begin":
            count += 1
            stubs = STUBS.get(cell.cell_type, ())
            lines += [_indent(line) + stub for stub in stubs]
        elif place == "outside":
            lines.append(line)
    metadata = cell.metadata.get("nbgrader", {})
    answer = cell.cell_type in STUBS and metadata.get("solution")
    if answer and not count:
        raise ValueError(
            f'{where}: its nbgrader metadata say "solution": true, but no line is '
            f"{BEGIN}"
        )
    if count and not answer:
        raise ValueError(
            f"{where}: {BEGIN} in a {cell.cell_type} cell whose nbgrader metadata do "
            'not say "solution": true'
        )
    return "\n".join(lines)


def solution_lines(source: str, where: str) -> list[str]:
    """The lines between markers."""
    return [line for line, place in _places(source, where) if place == "inside"]


def public_lines(source: str, where: str) -> list[str]:
    """The lines that are not between markers."""
    return [line for line, place in _places(source, where) if place == "outside"]


def _places(source: str, where: str) -> Iterator[tuple[str, str]]:
    """Each line with its place: outside, begin, inside or end."""
    opened, indent, filled = 0, "", False
    for number, line in enumerate(source.split("\n"), 1):
        marker = _marker(line, f"{where}, line {number}")
        if marker == BEGIN and opened:
            raise ValueError(f"{where}, line {number}: {BEGIN} inside of a solution")
        if marker == END and not opened:
            raise ValueError(f"{where}, line {number}: {END} without a {BEGIN}")
        if marker == END and not filled:
            raise ValueError(f"{where}, line {opened}: the solution is empty")
        if opened and not filled and line.strip() and _indent(line) != indent:
            raise ValueError(
                f"{where}, line {number}: must be indented as {BEGIN} above it, where "
                "the stub goes"
            )
        if marker == BEGIN:
            opened, indent, filled = number, _indent(line), False
            yield line, "begin"
        elif marker == END:
            opened = 0
            yield line, "end"
        else:
            filled = filled or bool(line.strip())
            yield line, "inside" if opened else "outside"
    if opened:
        raise ValueError(f"{where}, line {opened}: {BEGIN} without an {END}")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _marker(line: str, where: str) -> str | None:
    """The marker that a line is, if any; ValueError if it only resembles one."""
    bare = line.strip(" \t\r")
    if bare in (BEGIN, END):
        return bare
    if _SHOUTED.search(line) or _resembles(line):
        raise ValueError(
            f"{where}: {bare!r} is no marker that is known: only the lines {BEGIN} and "
            f"{END} are"
        )
    return None


def _resembles(line: str) -> bool:
    """Whether a line, its comment or the comment's first words are nearly a marker."""
    words = _WORDS.findall(line.upper())
    comment = _WORDS.findall(line.split("#")[-1].upper()) if "#" in line else []
    return any(
        get_close_matches("".join(some), _PHRASES, 1, cutoff=0.87)
        for some in (words, comment, comment[:2])
    )
