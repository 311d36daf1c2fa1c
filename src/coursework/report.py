"""Everything that is made of the results: tables, files to import, pages."""

from collections.abc import Sequence
from pathlib import Path

from coursework.checks import load_all
from coursework.gradebook import Grade, collect, grouped, pencil_titles
from coursework.lms import canvas_csv, moodle_csv
from coursework.pages import class_page, feedback_page
from coursework.points import all_parts, csv_text, decimal, guarded, save
from coursework.roster import read_roster, slug


def report(
    report_dir: Path,
    masters: Path,
    roster: Path | None = None,
    canvas: Path | None = None,
    moodle: Sequence[Path] = (),
) -> list[str]:
    """Write tables, import files and pages into REPORT; return what to look at.

    Names come from the roster, else from the exports. ``canvas`` is a gradebook export,
    ``moodle`` one grading worksheet for each exercise.
    """
    people = [path for path in (roster, canvas, *moodle) if path]
    names = {
        each.id: each.name for path in reversed(people) for each in read_roster(path)
    }
    parts = all_parts(masters)
    titles = {name: pencil_titles(masters / f"{name}.ipynb") for name in parts}
    grades = collect(report_dir, load_all(masters), parts, titles, names)
    files, notes = {"grades.csv": _grades_csv(grades)}, []
    if canvas:
        files["canvas.csv"], found = canvas_csv(canvas, grades)
        notes += found
    for sheet in moodle:
        exercise, text, found = moodle_csv(sheet, grades)
        files[f"moodle-{exercise}.csv"] = text
        notes += found
    for student, mine in grouped(grades, "student").items():
        files[f"feedback/{slug(student)}.html"] = feedback_page(mine)
    files["class.html"] = class_page(grades)
    for name, text in files.items():
        save(report_dir / name, text)
    waiting = sum(grade.waiting for grade in grades)
    if waiting:
        notes.append(f"{waiting} results wait for points of pencil parts")
    return notes


def _grades_csv(grades: Sequence[Grade]) -> str:
    header = ["student", "name", "exercise", "status"]
    header += ["automatic", "pencil", "total", "maximum"]
    rows = [
        [
            guarded(grade.student),
            guarded(grade.name),
            grade.exercise,
            grade.status,
            decimal(grade.automatic),
            "" if grade.pencil is None else decimal(grade.pencil),
            decimal(grade.total),
            decimal(grade.maximum),
        ]
        for grade in grades
    ]
    return csv_text([header, *rows])
