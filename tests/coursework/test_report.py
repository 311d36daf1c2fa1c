"""The whole report of a small course: grades, and which files stand in the end."""

import csv
import re
from pathlib import Path

import matplotlib
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from coursework import exam
from coursework.gradebook import ABSENT, pencil_titles
from coursework.points import csv_text, import_points
from coursework.report import report
from coursework.roster import slug
from tests.coursework.classroom import add_result, make_masters

PARTS = {"alpha": {"proof": 4}, "beta": {}}


@pytest.fixture
def masters(tmp_path):
    return make_masters(tmp_path / "solutions")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "report"


def grades(folder):
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def give(folder, tmp_path, *rows):
    table = tmp_path / "given.csv"
    header = ["student", "exercise", "part", "points", "comment"]
    table.write_text(csv_text([header, *rows]))
    import_points(folder, table, PARTS)


def test_grades_add_up(folder, masters, tmp_path):
    add_result(folder, "1", "alpha", [3, 0])
    add_result(folder, "1", "beta", [2])
    add_result(folder, "2", "alpha", [3, 1])
    give(folder, tmp_path, ["2", "alpha", "proof", "2.5", ""])
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name\n1,Ada\n2,Bo\n")
    notes = report(folder, masters, roster)
    assert [list(row.values()) for row in grades(folder)] == [
        ["1", "Ada", "alpha", "ok", "3", "", "3", "8"],
        ["1", "Ada", "beta", "ok", "2", "0", "2", "2"],
        ["2", "Bo", "alpha", "ok", "4", "2.5", "6.5", "8"],
    ]
    assert notes == ["1 results wait for points of pencil parts"]


def test_every_cell_is_quoted(folder, masters):
    add_result(folder, "1", "beta", [2])
    report(folder, masters)
    for line in (folder / "grades.csv").read_text().splitlines():
        assert re.fullmatch(r'"[^"]*"(,"[^"]*")*', line)


@pytest.mark.parametrize("status", ["timeout", "killed", "memory", "unreadable"])
def test_a_status_stays_even_when_late(folder, masters, status):
    add_result(folder, "1", "beta", [0], status=status, late=True)
    report(folder, masters)
    assert grades(folder)[0]["status"] == status


def test_late_work_is_late(folder, masters):
    add_result(folder, "1", "beta", [2], late=True)
    report(folder, masters)
    assert grades(folder)[0]["status"] == "late"
    assert grades(folder)[0]["total"] == "2"


def test_what_is_missing_waits_for_nothing(folder, masters):
    add_result(folder, "1", "alpha", status="missing")
    notes = report(folder, masters)
    row = grades(folder)[0]
    assert (row["pencil"], row["total"], row["maximum"]) == ("0", "0", "8")
    assert notes == []


def test_work_on_paper_counts(folder, masters, tmp_path):
    add_result(folder, "1", "alpha", status="missing")
    give(folder, tmp_path, ["1", "alpha", "proof", "3", ""])
    canvas = tmp_path / "canvas.csv"
    canvas.write_text("Student,ID,Section\nPoints Possible,,\nAda,1,A\n")
    report(folder, masters, canvas=canvas)
    assert (folder / "canvas.csv").read_text().splitlines()[2] == "Ada,1,A,3"
    assert "<td>3 of 4</td>" in (folder / "feedback" / "1.html").read_text()


def test_a_page_names_the_function_of_a_check(folder, masters):
    add_result(folder, "1", "alpha", [3, 1])
    report(folder, masters)
    page = (folder / "feedback" / "1.html").read_text()
    row = '<th scope="row">f</th><td>3 of 3</td><td>the limit holds: passed</td>'
    assert row in page
    assert '<th scope="row">pencil</th>' in page and "proof" not in page


def test_a_function_that_is_not_there_is_known_by_what_grading_says(folder, masters):
    assert ABSENT in exam._SAID.values()
    check = {"name": "direction", "points": 2, "earned": 0, "hint": "try zero"}
    checks = [check | {"reason": ABSENT}]
    add_result(folder, "1", "beta", checks=checks)
    report(folder, masters)
    page = (folder / "feedback" / "1.html").read_text()
    assert "define f; nothing of this name was found" in page
    assert "try zero" not in page


def test_a_pencil_part_is_called_by_the_heading_above_it(tmp_path):
    def pencil(part):
        about = {"grade": True, "points": 1, "grade_id": part}
        source = "### BEGIN SOLUTION\n# no heading\n### END SOLUTION"
        return new_markdown_cell(source, metadata={"nbgrader": about})

    cells = [
        pencil("first"),
        new_markdown_cell("# Title\n\n## 1. Of $K$ draws\n\n**Pencil.** Prove."),
        pencil("alone"),
        new_markdown_cell("text\n\n## 2. Two\n\n#tag"),
        new_code_cell("# a comment"),
        pencil("one"),
        new_markdown_cell("Without a heading."),
        pencil("two"),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "a.ipynb")
    assert pencil_titles(tmp_path / "a.ipynb") == {
        "first": "pencil",
        "alone": "1. Of $K$ draws (pencil)",
        "one": "2. Two (pencil 1)",
        "two": "2. Two (pencil 2)",
    }


def test_names_cannot_be_formulas(folder, masters, tmp_path):
    add_result(folder, "=1+1", "beta", [2])
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name\n=1+1,@SUM(A1)\n")
    report(folder, masters, roster)
    row = grades(folder)[0]
    assert (row["student"], row["name"]) == ("'=1+1", "'@SUM(A1)")


def test_a_name_with_half_a_character_stops_nothing(folder, masters):
    add_result(folder, "a\ud800", "beta", [0], problem="\udcff")
    report(folder, masters)
    assert grades(folder)[0]["student"] == "a?"


def test_an_exercise_without_a_master_is_named(folder, masters):
    path = add_result(folder, "1", "beta", [2])
    path.write_text(path.read_text().replace('"beta"', '"gamma"'))
    with pytest.raises(ValueError, match="exercise = 'gamma': must be one of alpha"):
        report(folder, masters)
    assert not (folder / "grades.csv").exists()


@pytest.mark.parametrize(
    ("old", "new"), [("direction", "an old check"), ('s": [', 's": [], "gone": [')]
)
def test_a_result_of_other_checks_is_named(folder, masters, old, new):
    path = add_result(folder, "1", "beta", [2])
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match="beta of student '1' was graded by other"):
        report(folder, masters)


def test_each_student_has_a_page_under_a_safe_name(folder, masters):
    add_result(folder, "ada", "beta", [2])
    add_result(folder, "../../x", "beta", [2])
    report(folder, masters)
    pages = {path.name for path in (folder / "feedback").iterdir()}
    assert pages == {"ada.html", f"{slug('../../x')}.html"}


def test_exports_become_imports(folder, masters, tmp_path):
    add_result(folder, "7", "alpha", [3, 1])
    add_result(folder, "7", "beta", [2])
    canvas, beta = tmp_path / "canvas.csv", tmp_path / "Grades-ML-Beta-3.csv"
    canvas.write_text("Student,ID,Section\nPoints Possible,,\nAda,7,A\nBo,8,A\n")
    beta.write_text(
        "Identifier,Full name,Grade,Maximum Grade\nParticipant 7,A. L.,,100.00\n"
    )
    notes = report(folder, masters, canvas=canvas, moodle=[beta])
    text = (folder / "canvas.csv").read_text()
    assert text.splitlines()[2] == "Ada,7,A,4,2"
    assert "Participant 7,A. L.,100,100.00" in (folder / "moodle-beta.csv").read_text()
    assert notes == [
        f"{canvas}: no results for '8'",
        "1 results wait for points of pencil parts",
    ]
    # The first file that knows a name has it.
    assert grades(folder)[0]["name"] == "Ada"


def test_a_roster_names_before_an_export(folder, masters, tmp_path):
    add_result(folder, "7", "beta", [2])
    roster, canvas = tmp_path / "roster.csv", tmp_path / "canvas.csv"
    roster.write_text("id,name\n7,Countess\n")
    canvas.write_text("Student,ID,Section\nPoints Possible,,\nAda,7,A\n")
    report(folder, masters, roster, canvas)
    assert grades(folder)[0]["name"] == "Countess"


def written(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "results" not in path.parts
    }


def test_equal_results_make_equal_bytes(folder, masters, tmp_path):
    other = tmp_path / "other"
    for place, students, seconds in ((folder, "123", 1), (other, "321", 9)):
        for student in students:
            add_result(place, student, "alpha", [3, 0], seconds=seconds)
    report(folder, masters)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "none"}):
        report(other, masters)
    assert written(folder) == written(other)
    first = written(folder)
    report(folder, masters)
    assert written(folder) == first


def test_pages_hold_no_date(folder, masters):
    add_result(folder, "1", "alpha", [3, 0])
    report(folder, masters)
    for page in (folder / "class.html", folder / "feedback" / "1.html"):
        assert not re.search(r"20\d\d-|\b\d\d:\d\d\b", page.read_text())


def test_marks_are_shown_with_their_comments(folder, masters, tmp_path):
    add_result(folder, "1", "alpha", [3, 1])
    give(folder, tmp_path, ["1", "alpha", "proof", "3", "-1 for the sign"])
    report(folder, masters)
    page = (folder / "feedback" / "1.html").read_text()
    assert "<td>3 of 4</td><td>-1 for the sign</td>" in page
