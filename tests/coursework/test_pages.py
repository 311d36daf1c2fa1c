"""Pages of feedback: what stands in them, what never does."""

import base64
import re
from html.parser import HTMLParser

import pytest

from coursework.gradebook import ABSENT, Grade, Part
from coursework.pages import class_page, feedback_page
from coursework.points import Mark

SCRIPT = "<script>alert(1)</script>"


def part(mark, maximum=4, name="proof"):
    """A pencil part under the heading 2. Bounds."""
    return Part(name, maximum, mark, "2. Bounds (pencil)")


def grade(**more):
    """A grade with a check passed, a check failed, and a pencil part of 4 points."""
    good = {"name": "shapes fit", "points": 1, "earned": 1, "reason": "", "hint": "no"}
    bad = {"name": "the limit holds", "points": 3, "earned": 0}
    bad |= {"reason": "not right", "hint": "try zero"}
    good["function"], bad["function"] = "shape", "at_limit"
    fields = {"student": "7", "name": "Ada", "exercise": "alpha", "title": "Alpha"}
    fields |= {"status": "ok", "problem": "", "checks": [good, bad]}
    fields |= {"parts": [part(Mark(2.5, "one line is missing"))]}
    return Grade(**(fields | more))


class Reader(HTMLParser):
    """What a browser makes of a page: its tags, and its tables as lists of cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.tables, self.cell = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        self.cell = False

    def handle_data(self, data):
        if self.cell:
            self.tables[-1][-1][-1] += data


def test_a_student_reads_what_passed_and_what_may_help():
    summary, checks, pencil = Reader(feedback_page([grade()])).tables
    assert summary[1:] == [["Alpha", "graded", "3.5 of 8"]]
    assert checks[1:] == [
        ["shape", "1 of 1", "shapes fit: passed"],
        ["at_limit", "0 of 3", "the limit holds: not right\nHint: try zero"],
    ]
    assert pencil[1:] == [["2. Bounds (pencil)", "2.5 of 4", "one line is missing"]]


def test_a_pencil_part_may_wait():
    page = Reader(feedback_page([grade(parts=[part(None)])]))
    says = "1 of 4 by checks; 4 by hand still open"
    assert page.tables[0][1] == ["Alpha", "graded", says]
    assert page.tables[2][1] == ["2. Bounds (pencil)", "– of 4", "not graded yet"]


def test_of_two_pencil_parts_one_may_wait():
    parts = [part(Mark(1.5, "")), part(None, 2, "sketch")]
    says = "1 of 4 by checks; 1.5 of 4 by hand; 2 by hand still open"
    assert Reader(feedback_page([grade(parts=parts)])).tables[0][1][2] == says


def test_a_function_that_is_not_there_is_asked_for_by_name():
    check = grade().checks[1] | {"reason": ABSENT}
    page = Reader(feedback_page([grade(checks=[check])]))
    says = "the limit holds: define at_limit; nothing of this name was found"
    assert page.tables[1][1] == ["at_limit", "0 of 3", says]


def test_a_long_name_breaks_at_its_underscores():
    assert '<th scope="row">at_<wbr>limit</th>' in feedback_page([grade()])


@pytest.mark.parametrize("status", ["ok", "timeout"])
def test_a_problem_of_a_cell_is_said_to_be_one(status):
    problem = "code cell 11: IndexError: no row 9"
    page = feedback_page([grade(status=status, problem=problem)])
    assert (
        "\nIn your notebook this stopped with an error "
        f"(code cells are counted from the top): {problem}\n"
    ) in page


@pytest.mark.parametrize("status", ["missing", "unreadable"])
def test_nobody_learns_of_checks_without_handing_in(status):
    page = feedback_page([grade(status=status, problem="zip in a zip", parts=[])])
    assert "the limit holds" not in page and "try zero" not in page
    assert "zip in a zip" in page and "cell" not in page


@pytest.mark.parametrize("status", ["late", "timeout", "killed", "memory"])
def test_other_statuses_show_the_checks(status):
    page = Reader(feedback_page([grade(status=status)]))
    assert page.tables[0][1][1] == status
    assert len(page.tables[1]) == 3


def test_only_known_fields_of_a_check_are_shown():
    check = grade().checks[1] | {"expected": 0.1234567, "inputs": [7654321]}
    page = feedback_page([grade(checks=[check])])
    assert "1234567" not in page and "7654321" not in page


def hostile(text):
    check = {"name": text, "points": 3, "earned": 0, "reason": text, "hint": text}
    check["function"] = text
    return grade(
        student=text,
        name=text,
        title=text,
        problem=text,
        checks=[check],
        parts=[Part(text, 4, Mark(1, text), text)],
    )


@pytest.mark.parametrize("make", [feedback_page, class_page])
@pytest.mark.parametrize("text", [SCRIPT, '"><img src=x onerror=alert(1)>', r"$\frac$"])
def test_markup_stays_text(make, text):
    def shape(page):
        return [(tag, sorted(attrs)) for tag, attrs in Reader(page).tags]

    page = make([hostile(text)])
    assert text in Reader(page).tables[0][1][0]
    assert shape(page) == shape(make([hostile("plain")]))
    assert "script" not in {tag for tag, _ in Reader(page).tags}


def test_nothing_turns_or_ends_the_text_of_a_page():
    page = feedback_page([grade(problem="a\u202eb\x00c\x1bd\ud800e")])
    assert "a\ufffdb\ufffdc\ufffdd\ufffde" in page


def test_lines_of_a_comment_stay():
    comment = "first\nsecond"
    page = Reader(feedback_page([grade(parts=[part(Mark(1, comment))])]))
    assert page.tables[2][1][2] == comment


def test_the_class_page_names_nobody():
    page = class_page([grade(student="s-7791", name="Lovelace")])
    assert "7791" not in page and "Lovelace" not in page


def test_the_class_page_counts():
    full = grade().checks[0] | {"name": "the limit holds", "points": 3, "earned": 3}
    best = grade(checks=[grade().checks[0], full], parts=[part(Mark(4, ""))])
    grades = [grade(), grade(status="late"), best, grade(status="missing")]
    status, scores, checks = Reader(class_page(grades)).tables
    assert status == [
        ["Exercise", "all", "ok", "late", "missing"],
        ["Alpha", "4", "2", "1", "1"],
    ]
    # 3.5 of 8 twice, 8 of 8 once; who handed nothing in is no score.
    assert [row[1] for row in scores[1:]] == list("0000200001")
    assert scores[5][0] == "40 to 50 %"
    assert checks[1:] == [
        ["shapes fit", "3 of 3", "100 %"],
        ["the limit holds", "1 of 3", "33 %"],
    ]


@pytest.mark.parametrize(("earned", "row"), [(0, 1), (1, 2), (7, 8), (9, 10), (10, 10)])
def test_a_score_on_a_boundary_is_in_the_upper_tenth(earned, row):
    check = {"name": "c", "points": 10, "earned": earned, "reason": "", "hint": ""}
    scores = Reader(class_page([grade(checks=[check], parts=[])])).tables[1]
    assert [place for place, cells in enumerate(scores) if cells[1] == "1"] == [row]


def test_an_exercise_that_nobody_handed_in_has_no_plot():
    page = Reader(class_page([grade(status="missing")]))
    assert len(page.tables) == 1
    assert "img" not in {tag for tag, _ in page.tags}


def test_pictures_are_drawn_inside_the_page_and_told():
    page = Reader(class_page([grade()]))
    pictures = [attrs for tag, attrs in page.tags if tag == "img"]
    assert [attrs["alt"] for attrs in pictures] == [
        "Histogram of 1 scores. Mean 44 %, median 44 %. The table has the counts.",
        "Bars: the share of 1 submissions that pass each check. "
        "The table has the numbers.",
    ]
    for attrs in pictures:
        kind, data = attrs["src"].split(",")
        assert kind == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(data)


@pytest.mark.parametrize("make", [feedback_page, class_page])
def test_a_page_needs_nothing_from_elsewhere(make):
    page = make([grade()])
    assert not re.search(r"https?:|url\(|@import|<link", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("make", [feedback_page, class_page])
def test_a_page_has_the_frame_that_readers_need(make):
    page = Reader(make([grade(), grade(exercise="beta", title="Beta")]))
    tags = [tag for tag, _ in page.tags]
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert [tags.count(tag) for tag in ("title", "h1", "h2", "main")] == [1, 1, 2, 1]
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    assert tags.count("caption") == tags.count("table")
