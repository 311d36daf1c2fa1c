"""Points that a person gives: the pencil parts, by way of a spreadsheet.

The tables that instructors and learning platforms hand in are read here too.
"""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coursework.checks import pencil

Parts = Mapping[str, Mapping[str, float]]
Key = tuple[str, str, str]

COLUMNS = ["student", "exercise", "part", "points", "comment"]
# A spreadsheet computes a cell that begins so, even behind spaces, and in either width.
_COMPUTED = re.compile(r"\s*[=+\-@＝＋－＠]")


@dataclass(frozen=True)
class Mark:
    """What a person gave for one pencil part."""

    points: float
    comment: str


def all_parts(masters: Path) -> Parts:
    """Points of the pencil parts of every master notebook: exercise, part, maximum."""
    return {path.stem: pencil(path) for path in sorted(masters.glob("*.ipynb"))}


def import_points(report_dir: Path, table: Path, parts: Parts) -> int:
    """Take hand-given points from a csv into REPORT/points.csv; return how many.

    The columns student, exercise, part and points are needed, comment is welcome,
    others are ignored, and so is a row with neither points nor comment. A row replaces
    what was given before for the same part. One faulty row, and nothing is imported:
    the ValueError names every fault with its line.
    """
    graded = {(each["student"], each["exercise"]) for each in read_results(report_dir)}
    marks: dict[Key, Mark] = {}
    faults = []
    for line, row in _rows(table):
        if not row["points"] and not row["comment"]:
            continue
        key = (unguarded(row["student"]), row["exercise"], row["part"])
        found = list(_faults(key, row["points"], graded, parts))
        if key in marks:
            found.append("this part of this student was given points before")
        faults += [f"{table}, line {line}: {fault}" for fault in found]
        if not found:
            marks[key] = Mark(number(row["points"]), row["comment"])
    if faults:
        raise ValueError("\n".join(faults))
    _write_marks(report_dir, {**read_marks(report_dir), **marks})
    return len(marks)


def write_template(
    report_dir: Path, table: Path, parts: Parts, names: Mapping[str, str]
) -> int:
    """Write a csv to fill in, a row for each student and pencil part; return how many.

    Points and comments that were given before are in it. A file that exists is never
    overwritten: somebody may have filled it in.
    """
    if table.exists():
        raise ValueError(f"{table} exists already: name a new file for the template")
    marks = read_marks(report_dir)
    rows = []
    for each in read_results(report_dir):
        for part, maximum in parts.get(each["exercise"], {}).items():
            student, exercise = each["student"], each["exercise"]
            mark = marks.get((student, exercise, part))
            given = [decimal(mark.points, 6), mark.comment] if mark else ["", ""]
            about = [guarded(names.get(student, "")), each["status"], decimal(maximum)]
            rows.append([guarded(student), exercise, part, *given, *about])
    header = [*COLUMNS, "name", "status", "maximum"]
    # The mark in front tells a spreadsheet that names are in UTF-8.
    save(table, "\ufeff" + csv_text([header, *rows]))
    return len(rows)


def read_marks(report_dir: Path) -> dict[Key, Mark]:
    """Return what was imported into REPORT/points.csv, if anything."""
    path = report_dir / "points.csv"
    if not path.exists():
        return {}
    return {
        (unguarded(row["student"]), row["exercise"], row["part"]): Mark(
            number(row["points"]), row["comment"]
        )
        for _, row in _rows(path)
    }


def _write_marks(report_dir: Path, marks: Mapping[Key, Mark]) -> None:
    rows = [
        [guarded(student), exercise, part, decimal(mark.points, 6), mark.comment]
        for (student, exercise, part), mark in sorted(marks.items())
    ]
    save(report_dir / "points.csv", csv_text([COLUMNS, *rows]))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table of points as dictionaries, each with the line it begins on."""
    table = read_table(path)
    header = [name.strip().casefold() for name in table[0][1]]
    lacking = [name for name in COLUMNS[:4] if name not in header]
    if lacking:
        raise ValueError(f"{path} has no column {', '.join(lacking)}")
    for line, cells in table[1:]:
        row = {name: cell.strip() for name, cell in zip(header, cells)}
        yield line, {name: row.get(name, "") for name in COLUMNS}


def _faults(key: Key, points: str, graded: set, parts: Parts) -> Iterator[str]:
    """Say what is wrong with a row, one fault at a time."""
    student, exercise, part = key
    maximum = parts.get(exercise, {}).get(part)
    if all(student != known for known, _ in graded):
        yield f"student = {student!r}: has no results"
    elif exercise in parts and (student, exercise) not in graded:
        yield f"exercise = {exercise!r}: not graded for student {student!r}"
    if exercise not in parts:
        yield f"exercise = {exercise!r}: must be one of {', '.join(parts)}"
    elif maximum is None:
        known = ", ".join(parts[exercise]) or "none: it has no pencil part"
        yield f"part = {part!r}: the parts of {exercise} are {known}"
    value = number(points)
    if value is None:
        yield f"points = {points!r}: must be a number"
    elif value < 0 or (maximum is not None and value > maximum):
        top = "" if maximum is None else f" and at most {decimal(maximum)}"
        yield f"points = {points}: must be 0 or more{top}"


def read_results(report_dir: Path) -> list[dict]:
    """What grading left in REPORT/results, by student and exercise."""
    paths = (report_dir / "results").glob("*/*.json")
    results = [_result(path) for path in paths if not path.name.startswith(".")]
    if not results:
        raise ValueError(f"{report_dir} holds no results: grade submissions first")
    return sorted(results, key=lambda each: (each["student"], each["exercise"]))


def _result(path: Path) -> dict:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no result of grading: {error}") from None


def read_table(path: Path) -> list[tuple[int, list[str]]]:
    """Rows of a csv, each with the line that it begins on; blank rows are left out.

    Spreadsheets separate cells by commas, semicolons or tabs: the first line tells.
    Every row is as long as the first.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8: save it as CSV UTF-8") from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows, line = [], 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{path}, line {line}: {error}") from None
    if not rows:
        raise ValueError(f"{path} is empty: a header and rows are needed")
    width = len(rows[0][1])
    return [(line, (cells + [""] * width)[:width]) for line, cells in rows]


def csv_text(rows: Iterable[Sequence[str]], quoting: int = csv.QUOTE_ALL) -> str:
    """Return rows as the text of a csv file."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting).writerows(rows)
    return text.getvalue()


def save(path: Path, text: str) -> None:
    """Write a file as UTF-8: whole, or not at all.

    What UTF-8 cannot hold, such as half a surrogate pair, becomes a question mark.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_bytes(text.encode("utf-8", "replace"))
    half.replace(path)


def guarded(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if _COMPUTED.match(text) else text


def unguarded(text: str) -> str:
    """Return the text that ``guarded`` was given."""
    shown = text.removeprefix("'")
    return shown if guarded(shown) == text else text


def number(text: str) -> float | None:
    """Return what "1.5" or "1,5" says, None where it is no plain number."""
    plain = re.fullmatch(r"-?\d+([.,]\d+)?", text.strip(), re.ASCII)
    return float(text.replace(",", ".")) if plain else None


def decimal(value: float, digits: int = 2) -> str:
    """Return a number with so many decimals at most, and no zeros at its end."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")
