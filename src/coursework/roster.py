"""Who takes part: the roster, and a folder name for each identity."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from coursework.points import read_table

_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_HASHED = re.compile(r".*-[0-9a-f]{16}")
# Windows keeps these names for devices.
_DEVICES = re.compile(r"con|prn|aux|nul|com\d|lpt\d")


@dataclass(frozen=True)
class Student:
    """One row of a roster; ``id`` is what a submission's name is matched with."""

    id: str
    name: str
    email: str = ""


def read_roster(path: Path) -> list[Student]:
    """The students of a roster, in its order.

    It may be a table with the columns id, name and perhaps email, a gradebook exported
    from Canvas, or a grading worksheet from Moodle. ValueError if it is none of them,
    or if an identity is missing or stands twice.
    """
    (_, header), *rows = read_table(path)
    columns = [column.strip().lower() for column in header]
    students, seen = [], {}
    for line, cells in rows:
        row = dict(zip(columns, map(str.strip, cells)))
        student = _student(row, f"{path}, line {line}")
        if student is None:
            continue
        if student.id in seen:
            raise ValueError(
                f"{path}, line {line}: the id {student.id!r} stands in line "
                f"{seen[student.id]} already; ids must differ"
            )
        seen[student.id] = line
        students.append(student)
    if not students:
        raise ValueError(f"{path}: holds no student")
    return students


def slug(student_id: str) -> str:
    """A folder name for any identity: short, safe on every system, and its own.

    Small letters, digits, - and _ stay as they are; anything else is replaced, and a
    hash of the identity keeps two of them apart.
    """
    unchanged = _SAFE.fullmatch(student_id) and not _DEVICES.fullmatch(student_id)
    # One that looks hashed could otherwise be chosen to meet another's folder.
    if unchanged and not _HASHED.fullmatch(student_id):
        return student_id
    digest = hashlib.sha256(student_id.encode("utf8", "surrogatepass")).hexdigest()
    stem = re.sub("[^a-z0-9]+", "-", student_id.lower()).strip("-")[:40]
    return f"{stem or 'student'}-{digest[:16]}"


def _student(row: dict[str, str], where: str) -> Student | None:
    """The student of a row; None for the rows that Canvas adds."""
    if {"student", "id", "section"} <= row.keys():
        name, student = row["student"], row["id"]
        if name in ("", "Points Possible", "Student, Test", "Test Student"):
            return None
        email = ""
    elif "identifier" in row:
        # "Participant 123", whose first word is in the site's language.
        student = re.search(r"\d*$", row["identifier"])[0]
        name, email = row.get("full name", ""), row.get("email address", "")
    elif {"id", "name"} <= row.keys():
        student, name, email = row["id"], row["name"], row.get("email", "")
    else:
        raise ValueError(
            f"{where}: the columns must be id,name[,email], or those of a Canvas "
            "gradebook (Student, ID, Section) or a Moodle worksheet (Identifier)"
        )
    if not student:
        raise ValueError(f"{where}: every student needs an id")
    return Student(student, name, email)
