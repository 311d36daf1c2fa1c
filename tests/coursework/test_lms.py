"""Files for Canvas and Moodle: identities stay exact, grades land in the right cell."""

import csv
import io

import pytest

from coursework.gradebook import Grade, Part
from coursework.lms import canvas_csv, moodle_csv
from coursework.points import Mark

TITLES = {"alpha": "First audit (hard)", "beta": "Beta"}
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Notes,First audit (hard) (5),Essay\n"
    ",,,,,,Manual Posting,\n"
    "    Points Possible,,,,,,20.00,5.00\n"
    '"Lovelace, Ada",1001, s1 ,ada@x.org,"A, B",,3.5,4\n'
    '"O\'Bo, =Bo",1002,s2,bo@x.org,A,,EX,\n'
    '"Student, Test",9999,,,A,,,\n'
)
MOODLE = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,"
    "Grade can be changed,Last modified (submission),Last modified (grade),"
    "Feedback comments\n"
    'Participant 7,"Lovelace, Ada",ada@x.org,Submitted,,100.00,Yes,"Monday, 1 May",-,\n'
    "Participant 8,Bo,bo@x.org,No submission,55.00,100.00,Yes,-,-,kept\n"
)


def grade(student, exercise="alpha", earned=4, **more):
    """A grade with one check of 6 points and one pencil part, given, of 4."""
    check = {"name": "the limit holds", "points": 6, "earned": earned}
    check |= {"reason": "not right", "hint": "try zero"}
    fields = {"name": "", "title": TITLES[exercise], "status": "ok", "problem": ""}
    fields |= {"checks": [check], "parts": [Part("proof", 4, Mark(1, "neat"))]}
    if more.get("status") == "missing":
        fields["parts"] = [Part("proof", 4, None)]
    return Grade(student=student, exercise=exercise, **(fields | more))


@pytest.fixture
def file(tmp_path):
    def write(text, name="export.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def rows(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def test_canvas_gets_identities_as_it_gave_them(file):
    text, _ = canvas_csv(file("\ufeff" + CANVAS), [grade("1001"), grade("1002")])
    assert [row[:5] for row in rows(text)] == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"],
        ["    Points Possible", "", "", "", ""],
        ["Lovelace, Ada", "1001", " s1 ", "ada@x.org", "A, B"],
        ["O'Bo, =Bo", "1002", "s2", "bo@x.org", "A"],
    ]


def test_canvas_keeps_header_and_worth_of_its_assignment(file):
    text, _ = canvas_csv(file(CANVAS), [grade("1001")])
    # 5 of 10 points, where Canvas counts 20.
    assert [row[5:] for row in rows(text)][:3] == [
        ["First audit (hard) (5)"],
        ["20.00"],
        ["10"],
    ]


def test_canvas_makes_a_column_for_a_new_exercise(file):
    grades = [grade("1001"), grade("1001", "beta", 6), grade("1002", "beta", 0)]
    text, _ = canvas_csv(file(CANVAS), grades)
    assert [row[6] for row in rows(text)] == ["Beta", "10", "7", "1"]


@pytest.mark.parametrize(
    ("held", "student", "status", "cell"),
    [
        ("EX", "1001", "ok", "EX"),
        ("N/A", "1001", "ok", "N/A"),
        ("3.5", "1001", "missing", "3.5"),
        ("3.5", "1002", "ok", "3.5"),
        ("3.5", "1001", "late", "10"),
        ("", "1001", "timeout", "10"),
    ],
)
def test_canvas_changes_a_cell_only_for_what_was_handed_in(
    file, held, student, status, cell
):
    export = file(CANVAS.replace(",3.5,", f",{held},"))
    text, _ = canvas_csv(export, [grade(student, status=status)])
    assert rows(text)[2][5] == cell


@pytest.mark.parametrize("worth", ["", "0", "(read only)"])
def test_canvas_without_points_gets_ours(file, worth):
    text, _ = canvas_csv(file(CANVAS.replace("20.00", worth)), [grade("1001")])
    assert [row[5] for row in rows(text)][1:3] == [worth, "5"]


def test_an_empty_cell_has_no_quotes(file):
    text, _ = canvas_csv(file(CANVAS.replace("20.00", "")), [grade("1001")])
    assert text.splitlines()[1] == "    Points Possible,,,,,"


def test_canvas_names_who_has_no_counterpart(file):
    export = file(CANVAS)
    _, notes = canvas_csv(export, [grade("1001"), grade("5"), grade("x\n")])
    assert notes == [
        rf"{export} has no row for '5', 'x\n'",
        f"{export}: no results for '1002'",
    ]


def test_canvas_knows_students_by_login_if_the_results_do(file):
    # The number of one is the login of the other: one column has to serve for all.
    export = CANVAS.replace("bo@x.org", "1001").replace("ada@x.org", "ada")
    grades = [grade("ada", earned=6), grade("1001", earned=0)]
    text, notes = canvas_csv(file(export.replace("EX", "")), grades)
    assert [row[5] for row in rows(text)][2:] == ["14", "2"]
    assert notes == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("Section", "Class", "has no column Section: give a Canvas"),
        ("    Points Possible", "nothing", "has no row Points Possible"),
        ("Essay", '"first audit (hard)"', "has 2 columns First audit"),
    ],
)
def test_another_file_than_canvas_exports_is_refused(file, old, new, rule):
    with pytest.raises(ValueError, match=f"export.csv {rule}"):
        canvas_csv(file(CANVAS.replace(old, new)), [grade("1001")])


def test_an_assignment_is_found_by_its_whole_title_alone(file):
    export = CANVAS.replace("Essay", '"Beta testing (6)"')
    text, _ = canvas_csv(file(export), [grade("1001", "beta")])
    assert rows(text)[0][5] == "Beta"


def test_moodle_gets_its_worksheet_back_with_grades(file):
    exercise, text, notes = moodle_csv(file(MOODLE), [grade("7"), grade("8")])
    assert exercise == "alpha"
    before, after = rows(MOODLE), rows(text)
    assert [row[:4] + row[5:9] for row in after] == [
        row[:4] + row[5:9] for row in before
    ]
    assert [row[4] for row in after] == ["Grade", "50", "50"]
    assert notes == []


def test_moodle_gets_comments_with_the_names_of_checks(file):
    _, text, _ = moodle_csv(file(MOODLE), [grade("7"), grade("8", earned=6)])
    assert [row[9] for row in rows(text)][1:] == [
        "5 of 10 points.<br>Graded.<br>"
        "the limit holds: 4 of 6 points. not right. Hint: try zero<br>"
        "proof: 1 of 4 points. neat",
        "7 of 10 points.<br>Graded.<br>the limit holds: 6 of 6 points<br>"
        "proof: 1 of 4 points. neat",
    ]


def test_moodle_gets_no_markup_of_a_student(file):
    script = "<script>alert(1)</script>"
    _, text, _ = moodle_csv(file(MOODLE), [grade("7", problem=script)])
    assert "&lt;script&gt;" in text and "<script" not in text


@pytest.mark.parametrize("status", ["missing", "ok"])
def test_moodle_rows_without_work_stay_as_they_are(file, status):
    student = {"missing": "8", "ok": "7"}[status]
    _, text, _ = moodle_csv(file(MOODLE), [grade(student, status=status)])
    assert rows(text)[2] == rows(MOODLE)[2]


def test_moodle_names_who_has_no_counterpart(file):
    _, _, notes = moodle_csv(file(MOODLE), [grade("7"), grade("9")])
    assert [note.split("export.csv")[1] for note in notes] == [
        " has no row for '9'",
        ": no results for '8'",
    ]


def test_moodle_speaks_other_languages_in_identities(file):
    sheet = MOODLE.replace("Participant", "Teilnehmer/in")
    _, text, notes = moodle_csv(file(sheet), [grade("7"), grade("8")])
    assert rows(text)[1][0] == "Teilnehmer/in 7" and notes == []


def test_moodle_knows_students_by_address_if_the_results_do(file):
    _, text, _ = moodle_csv(file(MOODLE), [grade("bo@x.org")])
    assert [row[4] for row in rows(text)] == ["Grade", "", "50"]


@pytest.mark.parametrize("top", ["-", "", "0.00", "A"])
def test_moodle_scales_are_refused(file, top):
    with pytest.raises(ValueError, match=f"Maximum Grade = '{top}': must be a number"):
        moodle_csv(file(MOODLE.replace("100.00", top)), [grade("7")])


@pytest.mark.parametrize("name", ["Grades-ML-First audit (hard)-3.csv", "alpha.csv"])
def test_a_worksheet_is_known_by_its_name(file, name):
    grades = [grade("7"), grade("7", "beta")]
    assert moodle_csv(file(MOODLE, name), grades)[0] == "alpha"


@pytest.mark.parametrize("name", ["Grades.csv", "alpha-or-beta.csv"])
def test_a_worksheet_of_no_known_exercise_is_refused(file, name):
    with pytest.raises(ValueError, match="one exercise out of alpha, beta$"):
        moodle_csv(file(MOODLE, name), [grade("7"), grade("7", "beta")])


def test_another_file_than_a_worksheet_is_refused(file):
    with pytest.raises(ValueError, match="no column Maximum Grade: give a Moodle"):
        moodle_csv(file("Identifier,Grade\nParticipant 7,\n"), [grade("7")])
