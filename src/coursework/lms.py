"""Grades as Canvas and Moodle import them, made from what they export.

Both take an empty or changed cell for a change of the grade. So a student who handed
nothing in, or of whom there is no result, keeps what the export holds.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from coursework.gradebook import STATUSES, Grade, advice, grouped
from coursework.points import csv_text, decimal, number, read_table
from coursework.roster import read_roster

Row = list[str]
_CANVAS_IDENTITIES = ["ID", "SIS User ID", "SIS Login ID"]
_MOODLE_IDENTITIES = ["Identifier", "Email address", "ID number", "Username"]
# Canvas: excused, and not assigned to this student.
_CANVAS_KEEPS = ("EX", "N/A")


def canvas_csv(export: Path, grades: Sequence[Grade]) -> tuple[str, list[str]]:
    """Return canvas.csv for a gradebook export, and notes on who has no counterpart.

    An assignment that bears the exercise's title keeps its column's header and its
    Points Possible, to which the points are scaled; else Canvas will make a new one.
    """
    header, rows = _read(export, ["ID", "Section"], "a Canvas gradebook export")
    possible = [row for row in rows if row[0].strip() == "Points Possible"]
    if not possible:
        raise ValueError(f"{export} has no row Points Possible: export it from Canvas")
    known = {student.id for student in read_roster(export)}
    people = [row for row in rows if row[header.index("ID")].strip() in known]
    keys = _identities(header, people, _CANVAS_IDENTITIES, grades)
    # Canvas takes whatever follows Section for assignments.
    width = header.index("Section") + 1
    rows = [header, possible[0], *people]
    table = [row[:width] for row in rows]
    for mine in grouped(grades, "exercise").values():
        place = _assignment(export, header, mine[0].title)
        held = [row[place] if place else "" for row in rows]
        standing = {grade.student: grade for grade in mine}
        column = _canvas_column(held, mine[0], [standing.get(key) for key in keys])
        for row, cell in zip(table, column):
            row.append(cell)
    # An empty cell in quotes would count as a value.
    return csv_text(table, csv.QUOTE_MINIMAL), _strangers(export, keys, grades)


def _canvas_column(held: Row, one: Grade, grades: Iterable[Grade | None]) -> Row:
    """A column from what the export holds: header, Points Possible, students."""
    header, worth, *cells = held
    if not header:
        header, worth = one.title, decimal(one.maximum)
    scale = (number(worth) or one.maximum) / one.maximum
    return [
        header,
        worth,
        *(_canvas_cell(grade, cell, scale) for grade, cell in zip(grades, cells)),
    ]


def _canvas_cell(grade: Grade | None, held: str, scale: float) -> str:
    if grade is None or not grade.handed_in or held.strip() in _CANVAS_KEEPS:
        return held
    return decimal(grade.total * scale)


def _assignment(export: Path, header: Row, title: str) -> int | None:
    """Place of the column "title (12345)", or "title", if there is one."""
    pattern = re.compile(re.escape(title) + r"\s*(\(\d+\))?", re.IGNORECASE)
    names = enumerate(header)
    places = [place for place, name in names if pattern.fullmatch(name.strip())]
    if len(places) > 1:
        raise ValueError(f"{export} has {len(places)} columns {title}: leave one")
    return places[0] if places else None


def moodle_csv(sheet: Path, grades: Sequence[Grade]) -> tuple[str, str, list[str]]:
    """Return an exercise's name, its worksheet filled in, and notes as for Canvas.

    Points are scaled to the worksheet's Maximum Grade. Moodle reads comments as HTML.
    """
    needed = ["Identifier", "Grade", "Maximum Grade"]
    header, rows = _read(sheet, needed, "a Moodle grading worksheet")
    exercise = _exercise_of(sheet, grades)
    grades = [grade for grade in grades if grade.exercise == exercise]
    standing = {grade.student: grade for grade in grades}
    keys = _identities(header, rows, _MOODLE_IDENTITIES, grades)
    for key, row in zip(keys, rows):
        grade = standing.get(key)
        if grade is None or not grade.handed_in:
            continue
        top = row[header.index("Maximum Grade")]
        if not number(top):
            raise ValueError(f"{sheet}: Maximum Grade = {top!r}: must be a number > 0")
        scale = number(top) / grade.maximum
        row[header.index("Grade")] = decimal(grade.total * scale)
        if "Feedback comments" in header:
            row[header.index("Feedback comments")] = _comments(grade)
    text = csv_text([header, *rows], csv.QUOTE_MINIMAL)
    return exercise, text, _strangers(sheet, keys, grades)


def _comments(grade: Grade) -> str:
    """What the feedback page says, in one cell."""
    lines = [f"{decimal(grade.total)} of {decimal(grade.maximum)} points."]
    lines += [STATUSES[grade.status], grade.problem]
    for check in grade.shown_checks:
        line = f"{check['name']}: {check['earned']} of {check['points']} points"
        lines.append(". ".join([line, *advice(check)]))
    for part in grade.parts:
        line = f"{part.name}: {part.earned} of {decimal(part.maximum)} points. "
        lines.append(line + part.comment)
    return "<br>".join(escape(line.strip()) for line in lines if line)


def _exercise_of(sheet: Path, grades: Iterable[Grade]) -> str:
    """Name of the exercise whose title or name is in the worksheet's file name."""
    titles = {grade.exercise: grade.title for grade in grades}
    if len(titles) == 1:
        return next(iter(titles))
    called = _letters(sheet.stem)
    found = [
        name
        for name, title in titles.items()
        if _letters(title) in called or _letters(name) in called
    ]
    if len(found) != 1:
        raise ValueError(
            f"{sheet}: its file name must hold the name of one exercise out of "
            f"{', '.join(sorted(titles))}"
        )
    return found[0]


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _read(path: Path, needed: Sequence[str], what: str) -> tuple[Row, list[Row]]:
    header, *rows = [cells for _, cells in read_table(path)]
    lacking = [name for name in needed if name not in header]
    if lacking:
        raise ValueError(f"{path} has no column {', '.join(lacking)}: give {what}")
    return header, rows


def _identities(
    header: Row, rows: Sequence[Row], names: Sequence[str], grades: Iterable[Grade]
) -> list[str]:
    """Each row's identity, by the column that knows most students of the results.

    One column for all: a login of one student may be the number of another.
    """
    students = {grade.student for grade in grades}
    columns = [
        [_key(name, row[header.index(name)]) for row in rows]
        for name in names
        if name in header
    ]
    return max(columns, key=lambda keys: len(students & set(keys)))


def _key(column: str, cell: str) -> str:
    """An identity as results have it; Moodle's is "Participant 123" in any language."""
    cell = cell.strip()
    return re.search(r"\d*$", cell)[0] if column == "Identifier" else cell


def _strangers(path: Path, keys: Iterable[str], grades: Iterable[Grade]) -> list[str]:
    """Say who is only in the results and who is only in the file."""
    known, students = set(keys), {grade.student for grade in grades}
    notes = []
    if students - known:
        notes.append(f"{path} has no row for {_listed(students - known)}")
    if known - students:
        notes.append(f"{path}: no results for {_listed(known - students)}")
    return notes


def _listed(students: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(students)))
