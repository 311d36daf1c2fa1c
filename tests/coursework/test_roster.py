"""The roster in three forms, and folder names for any identity."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coursework.roster import Student, read_roster, slug

CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Homework (12)
,,,,,Manual Posting
    Points Possible,,,,,15
"Doe, Jane",101,s1,jane,M1,
"Roe, Rik",102,s2,rik,M1,3
"Student, Test",103,,f00,M1,
Test Student,104,,f01,M1,
"""
MOODLE = """\
Identifier,Full name,Email address,Status,Grade
Participant 101,Jane Doe,jane@example.org,No submission,
Teilnehmer/in 102,Rik Roe,,Submitted,3
"""


@pytest.fixture
def table(tmp_path):
    def write(text, encoding="utf8"):
        path = tmp_path / "roster.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_a_plain_table(table):
    assert read_roster(table("id,name,email\n7,Ann,a@b.c\n\nx y, Bo ,\n")) == [
        Student("7", "Ann", "a@b.c"),
        Student("x y", "Bo", ""),
    ]


def test_a_plain_table_as_spreadsheets_save_it(table):
    text = "ID;Name\r\n7;Ann\r\n"
    assert read_roster(table(text, "utf-8-sig")) == [Student("7", "Ann", "")]


def test_a_canvas_gradebook(table):
    assert read_roster(table(CANVAS)) == [
        Student("101", "Doe, Jane"),
        Student("102", "Roe, Rik"),
    ]


def test_a_moodle_worksheet(table):
    assert read_roster(table(MOODLE)) == [
        Student("101", "Jane Doe", "jane@example.org"),
        Student("102", "Rik Roe", ""),
    ]


def test_a_moodle_worksheet_that_hides_names(table):
    text = "Identifier,Status\nParticipant 101,Submitted\n"
    assert read_roster(table(text)) == [Student("101", "", "")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,name\n", "holds no student"),
        ("number,name\n1,Ann\n", "line 2: the columns must be id,name"),
        ("id,mail\n1,a@b.c\n", "line 2: the columns must be id,name"),
        ("id,name\n1,Ann\n,Bo\n", "line 3: every student needs an id"),
        ("id,name\n1,Ann\n2,Bo\n 1,Cy\n", "line 4: the id '1' stands in line 2"),
        ("Identifier\nParticipant\n", "line 2: every student needs an id"),
        (CANVAS.replace("102", ""), "line 5: every student needs an id"),
    ],
)
def test_a_table_that_is_no_roster(table, text, said):
    with pytest.raises(ValueError, match=f"roster.csv.*{re.escape(said)}"):
        read_roster(table(text))


def test_a_roster_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="roster.csv"):
        read_roster(tmp_path / "roster.csv")


@pytest.mark.parametrize("student", ["12345", "a", "jane-doe_2", "x" * 40])
def test_a_plain_identity_is_its_own_folder(student):
    assert slug(student) == student


@pytest.mark.parametrize(
    ("student", "stem"),
    [
        ("Jane Doe", "jane-doe"),
        ("jane.doe@example.org", "jane-doe-example-org"),
        ("../../etc", "etc"),
        ("con", "con"),
        ("lpt1", "lpt1"),
        ("-rf", "rf"),
        ("_x", "x"),
        ("", "student"),
        ("\N{GREEK SMALL LETTER ALPHA}", "student"),
        ("7\n", "7"),
        ("x" * 41, "x" * 40),
        ("ann-0123456789abcdef", "ann-0123456789abcdef"),
    ],
)
def test_any_other_identity_is_told_apart_by_a_hash(student, stem):
    assert re.fullmatch(re.escape(stem) + "-[0-9a-f]{16}", slug(student))


ANY = st.text(st.characters(), max_size=60)


@given(ANY)
@example("\ud800")
def test_a_folder_name_is_safe_and_short(student):
    assert re.fullmatch("[a-z0-9][a-z0-9_-]{0,56}", slug(student))


@given(ANY, ANY)
@example("ann", "Ann")
@example("Jose\N{COMBINING ACUTE ACCENT}", "Jos\N{LATIN SMALL LETTER E WITH ACUTE}")
@example("a b", "a-b")
@example("x" * 41, "x" * 42)
def test_two_identities_have_two_folders(one, other):
    assert (slug(one) == slug(other)) == (one == other)


def test_nobody_can_be_named_like_the_folder_of_another():
    assert slug(slug("Jane Doe")) != slug("Jane Doe")
