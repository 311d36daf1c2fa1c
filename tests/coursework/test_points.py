"""Hand-given points: what is taken in, and that nothing wrong ever is."""

import csv
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coursework.points import (
    Mark,
    all_parts,
    csv_text,
    decimal,
    guarded,
    import_points,
    number,
    read_marks,
    read_results,
    read_table,
    save,
    unguarded,
    write_template,
)
from tests.coursework.classroom import add_result, make_masters

PARTS = {"alpha": {"proof": 4, "sketch": 2}, "beta": {}}
HEADER = "student,exercise,part,points,comment\n"


@pytest.fixture
def graded(tmp_path):
    report = tmp_path / "report"
    for student in ("ada", "bob", "=cmd"):
        add_result(report, student, "alpha", [3, 1])
    add_result(report, "ada", "beta", [0])
    return report


@pytest.fixture
def table(tmp_path):
    def write(text, name="given.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return write


def faults(graded, table, text):
    """Messages of the import, without the name of the file."""
    with pytest.raises(ValueError) as caught:
        import_points(graded, table(text), PARTS)
    return [line.split("given.csv, ")[1] for line in str(caught.value).splitlines()]


def test_points_arrive(graded, table):
    text = HEADER + "ada,alpha,proof,4,well argued\nbob,alpha,sketch,0.5,\n"
    assert import_points(graded, table(text + "bob,alpha,proof,0,\n"), PARTS) == 3
    assert read_marks(graded) == {
        ("ada", "alpha", "proof"): Mark(4, "well argued"),
        ("bob", "alpha", "sketch"): Mark(0.5, ""),
        ("bob", "alpha", "proof"): Mark(0, ""),
    }


def test_a_second_import_replaces_its_rows_and_no_others(graded, table):
    first = HEADER + "ada,alpha,proof,4,well\nbob,alpha,proof,1,thin\n"
    import_points(graded, table(first), PARTS)
    import_points(graded, table(HEADER + "bob,alpha,proof,3,better\n"), PARTS)
    once = (graded / "points.csv").read_bytes()
    import_points(graded, table(HEADER + "bob,alpha,proof,3,better\n"), PARTS)
    assert (graded / "points.csv").read_bytes() == once
    assert read_marks(graded) == {
        ("ada", "alpha", "proof"): Mark(4, "well"),
        ("bob", "alpha", "proof"): Mark(3, "better"),
    }


def test_rows_that_nobody_filled_in_take_nothing_away(graded, table):
    import_points(graded, table(HEADER + "ada,alpha,proof,4,\n"), PARTS)
    assert import_points(graded, table(HEADER + "ada,alpha,proof,,\n"), PARTS) == 0
    assert read_marks(graded) == {("ada", "alpha", "proof"): Mark(4, "")}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("eve,alpha,proof,1,", "student = 'eve': has no results"),
        ("bob,beta,proof,1,", "exercise = 'beta': not graded for student 'bob'"),
        ("ada,gamma,proof,1,", "exercise = 'gamma': must be one of alpha, beta"),
        ("ada,alpha,prof,1,", "part = 'prof': the parts of alpha are proof, sketch"),
        ("ada,beta,x,1,", "part = 'x': the parts of beta are none: it has no pencil"),
        ("ada,alpha,proof,4.5,", "points = 4.5: must be 0 or more and at most 4"),
        ("ada,alpha,proof,-1,", "points = -1: must be 0 or more and at most 4"),
        ("ada,alpha,proof,four,", "points = 'four': must be a number"),
        ("ada,alpha,proof,nan,", "points = 'nan': must be a number"),
        ("ada,alpha,proof,1e0,", "points = '1e0': must be a number"),
        ("ada,alpha,proof,,see me", "points = '': must be a number"),
    ],
)
def test_a_faulty_row_is_refused(graded, table, row, fault):
    import_points(graded, table(HEADER + "ada,alpha,sketch,1,\n"), PARTS)
    before = (graded / "points.csv").read_bytes()
    found = faults(graded, table, HEADER + "bob,alpha,proof,2,\n" + row + "\n")
    assert any(line.startswith(f"line 3: {fault}") for line in found)
    assert (graded / "points.csv").read_bytes() == before


def test_all_faults_are_named_at_once_with_their_lines(graded, table):
    text = HEADER + (
        'ada,alpha,proof,4,"two\nlines"\n'
        "eve,gamma,proof,-1,\n"
        "ada,alpha,proof,5,\n"
        "\n"
        "bob,alpha,proof,x,\n"
    )
    assert faults(graded, table, text) == [
        "line 4: student = 'eve': has no results",
        "line 4: exercise = 'gamma': must be one of alpha, beta",
        "line 4: points = -1: must be 0 or more",
        "line 5: points = 5: must be 0 or more and at most 4",
        "line 5: this part of this student was given points before",
        "line 7: points = 'x': must be a number",
    ]


def test_what_a_european_spreadsheet_writes_is_read(graded, table):
    text = "\ufeffPoints;Student;Part;Exercise;Remark\r\n2,5;ada;proof;alpha;x\r\n"
    import_points(graded, table(text), PARTS)
    assert read_marks(graded) == {("ada", "alpha", "proof"): Mark(2.5, "")}


@pytest.mark.parametrize(
    ("text", "encoding", "rule"),
    [
        ("student,exercise,points\nada,alpha,1\n", "utf-8", "has no column part"),
        ("", "utf-8", "is empty"),
        (HEADER + "zoë,alpha,proof,1,\n", "latin-1", "is not UTF-8"),
        (HEADER + "ada,alpha,proof,1," + "x" * 200_000, "utf-8", "line 2: field"),
    ],
)
def test_a_file_that_is_no_table_of_points_is_named(
    graded, table, text, encoding, rule
):
    with pytest.raises(ValueError, match=f"given.csv.*{rule}"):
        import_points(graded, table(text, encoding=encoding), PARTS)
    assert not (graded / "points.csv").exists()


def test_a_file_that_is_missing_is_named(graded, tmp_path):
    with pytest.raises(ValueError, match="gone.csv cannot be read: No such file"):
        import_points(graded, tmp_path / "gone.csv", PARTS)


def test_points_need_results(tmp_path, table):
    with pytest.raises(ValueError, match="holds no results: grade"):
        import_points(tmp_path, table(HEADER), PARTS)


def test_a_torn_result_is_named(graded):
    path = add_result(graded, "cy", "alpha")
    path.write_text("{")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is no result"):
        read_results(graded)


def test_half_written_results_are_not_read(graded):
    path = add_result(graded, "cy", "alpha")
    path.rename(path.with_name(".alpha.json"))
    assert "cy" not in {result["student"] for result in read_results(graded)}


def test_the_template_comes_back(graded, tmp_path):
    import_points(graded, _filled(tmp_path, graded, {"ada": "4"}), PARTS)
    assert read_marks(graded) == {("ada", "alpha", "proof"): Mark(4, "")}
    table = tmp_path / "again.csv"
    assert write_template(graded, table, PARTS, {"ada": "+Ada"}) == 6
    # Without the mark in front a spreadsheet spoils names.
    assert table.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(table.open(encoding="utf-8-sig")))
    asked = [(row["student"], row["part"], row["maximum"]) for row in rows]
    assert asked == [
        ("'=cmd", "proof", "4"),
        ("'=cmd", "sketch", "2"),
        ("ada", "proof", "4"),
        ("ada", "sketch", "2"),
        ("bob", "proof", "4"),
        ("bob", "sketch", "2"),
    ]
    assert [row["points"] for row in rows] == ["", "", "4", "", "", ""]
    assert {row["name"] for row in rows} == {"'+Ada", ""}


def test_a_guarded_student_comes_back_as_himself(graded, tmp_path):
    import_points(graded, _filled(tmp_path, graded, {"'=cmd": "1"}), PARTS)
    assert read_marks(graded) == {("=cmd", "alpha", "proof"): Mark(1, "")}
    assert '"=cmd"' not in (graded / "points.csv").read_text()


def _filled(tmp_path, graded, points):
    """The template with points for the proofs of some students."""
    table = tmp_path / "template.csv"
    write_template(graded, table, PARTS, {})
    header, *rows = [cells for _, cells in read_table(table)]
    for row in rows:
        if row[2] == "proof":
            row[3] = points.get(row[0], "")
    save(table, csv_text([header, *rows]))
    return table


def test_a_template_is_never_written_over(graded, tmp_path):
    table = tmp_path / "template.csv"
    table.write_text("an evening's work")
    with pytest.raises(ValueError, match="template.csv exists already"):
        write_template(graded, table, PARTS, {})
    assert table.read_text() == "an evening's work"


def test_parts_are_those_of_the_masters(tmp_path):
    masters = make_masters(tmp_path / "solutions")
    assert all_parts(masters) == {"alpha": {"proof": 4}, "beta": {}}


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    save(path, "old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save(path, "new")
    assert path.read_text() == "old"


def test_a_table_begins_each_row_on_its_line(table):
    text = 'a;b\n"1\n2";3;4\n\n;\n5\n'
    assert read_table(table(text)) == [
        (1, ["a", "b"]),
        (2, ["1\n2", "3"]),
        (6, ["5", ""]),
    ]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\t=", "\r@", "＝", "－"])
def test_no_cell_is_a_formula(start):
    cell = f"{start}1+1"
    assert guarded(cell) == f"'{cell}"
    assert unguarded(guarded(cell)) == cell


@pytest.mark.parametrize("plain", ["ada", "'t Hooft", "a=b", "", "Zoë", "3-4"])
def test_other_cells_stay_as_they_are(plain):
    assert guarded(plain) == unguarded(plain) == plain


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), (" 2.5 ", 2.5), ("0,25", 0.25), ("-3", -3), ("007", 7)]
    + [(text, None) for text in ("", "1,000.00", "inf", "1_0", "٣", "1.", ".5", "0x1")],
)
def test_only_plain_numbers_are_numbers(text, value):
    assert number(text) == value


@given(st.integers(0, 10_000), st.integers(0, 2))
def test_a_decimal_reads_back(digits, places):
    value = digits / 10**places
    text = decimal(value)
    assert number(text) == value
    assert not re.search(r"\.\d*0$|\.$", text)
