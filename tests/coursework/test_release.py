"""Releases: what students get, and that each planted leak stops one."""

import csv
import json
import os
import re

import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
    new_raw_cell,
)

from coursework.checks import load
from coursework.personal import constants_of
from coursework.release import release

KEY = b"0123456789abcdef"
HIDDEN = """
from coursework.checks import Check, Exercise

exercise = Exercise(
    title="A parabola",
    chapter="elbo",
    constants={"a": [1.5, 2.5, -3.5], "b": [0.4321, 1.0], "word": ["größer"]},
    checks=[
        Check(
            "slope at random points",
            2,
            "slope",
            lambda stream, given: [(stream.uniform(-3, given["a"]),)],
            lambda given, x: 2 * given["a"] * x,
            "Which power of x is left over?",
            [],
        ),
        Check(
            "height for own number",
            1,
            "height",
            lambda stream, given: [()],
            lambda given: [given["a"] / 7, [0.125, 0.2345], "downward"],
            "Put your number in.",
            [],
        ),
    ],
)
"""
OTHER = """
from coursework.checks import Exercise

exercise = Exercise(title="Another", chapter="elbo", checks=[])
"""
GIVEN = """\
# The numbers of this notebook: in a course each student may have others.
a = 1.5
b = 0.4321
word = "größer\""""
SLOPE = '''\
def slope(x):
    """Of the parabola."""
    ### BEGIN SOLUTION
    factor = 2.0
    terms = clever_trick(a, x, factor)
    return terms + factor * x * a - 0.98765
    ### END SOLUTION'''
HEIGHT = '''\
def height():
    """At the start."""
    ### BEGIN SOLUTION
    shared = preparation(a, b)
    return shared[0]
    ### END SOLUTION'''
PENCIL = """\
### BEGIN SOLUTION
Only the leading term counts here. Its limit is 1,234.5 or so.

Rubric: 1 point each.
### END SOLUTION"""


def answer(grade=False, **points):
    about = {"grade": grade, "locked": False, "schema_version": 3}
    return {"nbgrader": about | {"solution": True, "task": False} | points}


def code(name, source, *outputs, count=None, **metadata):
    return new_code_cell(
        source,
        id=name,
        outputs=list(outputs),
        execution_count=count,
        metadata=metadata,
    )


def text(name, source, **metadata):
    return new_markdown_cell(source, id=name, metadata=metadata)


def parabola():
    seen = new_output("stream", name="stdout", text="height 8.13579\n")
    picture = new_output("display_data", data={"image/png": "4444/5555"})
    cells = [
        text("title", "# A parabola", deletable=False),
        code("given", GIVEN),
        text("question", "How steep is it?", tags=["wide"]),
        code("slope", SLOPE, **answer()),
        code("show", "shared = preparation(a, b)", seen, picture, count=3, mystnb={}),
        code("height", HEIGHT, **answer()),
        text("pencil", PENCIL, **answer(True, points=2)),
    ]
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
        "authors": [{"name": "Somebody"}],
    }
    return new_notebook(cells=cells, metadata=metadata)


def another():
    return new_notebook(cells=[text("title", "# Another"), code("ask", "print(1)")])


class Course:
    """Masters in a folder, which a test may change before it releases them."""

    def __init__(self, folder):
        self.masters, self.to = folder / "solutions", folder / "out"
        self.roster, self.key = folder / "roster.csv", folder / "course.key"
        self.books = {"parabola": parabola(), "another": another()}
        self.masters.mkdir()
        self.hide("parabola", HIDDEN)
        self.hide("another", OTHER)
        self.key.write_bytes(KEY)
        self.enrol(*map(str, range(10)))

    def hide(self, name, source):
        (self.masters / f"{name}.py").write_text(source, encoding="utf8")

    def enrol(self, *students):
        rows = "".join(f'"{student}",Somebody\n' for student in students)
        self.roster.write_text(f"id,name\n{rows}")

    def cell(self, name, book="parabola"):
        (cell,) = [cell for cell in self.books[book].cells if cell.id == name]
        return cell

    def release(self, personal=False):
        for name, book in self.books.items():
            path = self.masters / f"{name}.ipynb"
            path.write_text(nbformat.v4.writes(book), encoding="utf8")
        more = (self.roster, self.key) if personal else ()
        return release(self.masters, self.to, *more)

    def released(self, place="parabola.ipynb"):
        return nbformat.read(self.to / place, as_version=4)

    def refused(self, **how):
        """The message of a release that fails and leaves nothing."""
        before = set(self.masters.parent.iterdir())
        with pytest.raises(ValueError) as error:
            self.release(**how)
        assert set(self.masters.parent.iterdir()) == before
        return str(error.value)


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


# What students get


def test_a_notebook_for_each_master_and_nothing_else(course):
    written = course.release()
    assert written == [course.to / "another.ipynb", course.to / "parabola.ipynb"]
    assert sorted(course.to.iterdir()) == written


def test_cells_keep_their_order_kind_and_name(course):
    course.release()
    here, there = course.books["parabola"].cells, course.released().cells
    assert [(c.id, c.cell_type) for c in here] == [(c.id, c.cell_type) for c in there]


def test_solutions_are_stubs(course):
    course.release()
    source = {cell.id: cell.source for cell in course.released().cells}
    stub = "    # YOUR CODE HERE\n    raise NotImplementedError"
    assert source["slope"] == f'def slope(x):\n    """Of the parabola."""\n{stub}'
    assert source["pencil"] == "YOUR ANSWER HERE"
    assert source["show"] == "shared = preparation(a, b)"
    assert source["given"] == GIVEN


def test_nothing_is_left_of_a_run(course):
    course.release()
    cells = [cell for cell in course.released().cells if cell.cell_type == "code"]
    assert [(c.outputs, c.execution_count) for c in cells] == [([], None)] * 4


def test_metadata_that_are_known_stay(course):
    course.release()
    book = course.released()
    metadata = {cell.id: cell.metadata for cell in book.cells if cell.metadata}
    assert metadata == {
        "question": {"tags": ["wide"]},
        "slope": answer(),
        "show": {"mystnb": {}},
        "height": answer(),
        "pencil": answer(True, points=2),
    }
    master = course.books["parabola"].metadata
    assert book.metadata == {key: master[key] for key in master if key != "authors"}


def test_a_second_release_is_the_same_byte_for_byte(course):
    first = {path: path.read_bytes() for path in course.release()}
    assert {path: path.read_bytes() for path in course.release()} == first
    course.to = course.to.with_name("elsewhere")
    assert [path.read_bytes() for path in course.release()] == [*first.values()]


def test_a_file_is_readable_and_ends_in_a_new_line(course):
    course.books["another"].cells[0].source = "# \N{GREEK SMALL LETTER ALPHA}"
    path = course.release()[0]
    content = path.read_bytes()
    assert content.endswith(b"}\n")
    assert not content.endswith(b"\n\n")
    assert "\N{GREEK SMALL LETTER ALPHA}".encode() in content
    others_may_read = 0o777 & ~os.umask(0o22)
    os.umask(0o777 & ~others_may_read)
    assert path.stat().st_mode & 0o777 == others_may_read & 0o666


def test_the_draft_is_made_on_the_same_disk(course, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    course.release()


def test_folders_on_the_way_are_made(course):
    course.to = course.to / "of/autumn"
    assert course.release()[0].exists()


def test_a_page_about_the_folder_stays(course):
    course.to.mkdir()
    (course.to / "README.md").write_text("Exercises")
    course.release()
    assert (course.to / "README.md").read_text() == "Exercises"


# A release for each student


def test_each_student_has_a_folder_with_own_constants(course):
    written = course.release(personal=True)
    exercise = load(course.masters / "parabola.py")
    for student in map(str, range(10)):
        given = constants_of(exercise, student, KEY)
        space = {}
        for cell in course.released(f"{student}/parabola.ipynb").cells:
            if cell.id == "given":
                exec(cell.source, space)
        assert {name: space[name] for name in given} == given
    assert len(written) == 21
    assert written == sorted(written)


def test_students_have_different_constants(course):
    course.release(personal=True)
    books = {path.read_bytes() for path in course.to.glob("*/parabola.ipynb")}
    assert len(books) > 3
    assert len({path.read_bytes() for path in course.to.glob("*/another.ipynb")}) == 1


def test_only_the_cell_with_constants_differs_from_the_public_notebook(course):
    course.release()
    public = course.released().cells
    course.to = course.to.with_name("personal")
    course.release(personal=True)
    for number in range(10):
        own = course.released(f"{number}/parabola.ipynb").cells
        differ = [one.id for one, other in zip(public, own) if one != other]
        assert differ in ([], ["given"])


def test_a_listing_says_whose_folder_is_whose(course):
    course.enrol("7", "Jane Doe", "=1+1")
    course.release(personal=True)
    with (course.to / "folders.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["id", "folder"]
    assert [student for student, _ in rows] == ["7", "Jane Doe", "'=1+1"]
    folders = {path.name for path in course.to.iterdir()} - {"folders.csv"}
    assert {folder for _, folder in rows} == folders


def test_a_roster_needs_a_key_and_a_key_a_roster(course):
    course.release()
    for half in ({"roster": course.roster}, {"key": course.key}):
        with pytest.raises(ValueError, match="both a roster and a course key"):
            release(course.masters, course.to, **half)


# Leaks


@pytest.mark.parametrize(
    ("planted", "what"),
    [
        # Solutions
        ("terms = clever_trick(a, x, factor)", "a solution line of parabola"),
        ("# terms=clever_trick(a,\n#  x, factor)", "a solution line"),
        ("Write `terms + factor*x*a - 0.98765`.", "a solution line"),
        ("So: only the *leading*\nOnly the leading term\ncounts here.", "a solution"),
        # Hidden checks
        ("We look at the Slope at\n> random points.", "a check's name of parabola"),
        ("Ask: which power of x is left over?", "a hint of parabola"),
        ("PUT YOUR NUMBER IN.", "a hint of parabola"),
        ("**Rubric:** be kind.", "a rubric line"),
        ("What counts:\n- rubric : be kind.", "a rubric line"),
        # Expected values: of a function without arguments, 1.5 / 7
        ("It is 0.2143.", "an expected value of height"),
        ("It is 0.2142.", "an expected value of height"),
        ("It is -.21429 or 2.", "an expected value of height"),
        ("It is 0.2345.", "an expected value of height"),
        ("It is 2.14285714e-1.", "an expected value of height"),
        ("It is $0.214286$.", "an expected value of height"),
        # in an output and in solutions
        ("It is 8.13579, not less.", "an expected value of cell show"),
        ("It is 8.136.", "an expected value of cell show"),
        ("It is 0.98765 to be exact.", "an expected value of cell slope"),
        ("It is 1234.5 of course.", "an expected value of cell pencil"),
        ("It is 1_234.5 of course.", "an expected value of cell pencil"),
    ],
)
def test_a_leak_in_a_question(course, planted, what):
    course.cell("question").source += f"\n\n{planted}\n"
    said = course.refused()
    assert (
        f"{course.to / 'parabola.ipynb'}: not released, cell question: {what}" in said
    )
    assert planted not in said


@pytest.mark.parametrize("secret", ["slope at random points", "It is 8.13579."])
@pytest.mark.parametrize(
    "plant",
    [
        lambda course, secret: course.cell("slope").update(
            source=course.cell("slope").source.replace("Of the parabola.", secret)
        ),
        lambda course, secret: course.cell("slope").update(
            source=f"{course.cell('slope').source}\n# {secret}"
        ),
        lambda course, secret: course.cell("slope").metadata.update(tags=[secret]),
        lambda course, secret: course.cell("slope").metadata.update(
            mystnb={"image": {"alt": secret}}
        ),
        lambda course, secret: course.cell("slope").metadata.nbgrader.update(
            comment=secret
        ),
    ],
    ids=["docstring", "comment", "tag", "alternative text", "nbgrader"],
)
def test_a_leak_beside_the_text(course, plant, secret):
    plant(course, secret)
    assert "parabola.ipynb: not released, cell slope: " in course.refused()


def test_a_leak_in_the_metadata_of_a_notebook(course):
    kernel = course.books["parabola"].metadata.kernelspec
    kernel.display_name = "slope at random points"
    assert "cell (metadata): a check's name" in course.refused()


def test_a_leak_in_a_raw_cell(course):
    cell = new_raw_cell("slope at random points", id="raw")
    course.books["parabola"].cells.append(cell)
    assert "cell raw: a check's name" in course.refused()


def test_a_leak_in_the_notebook_of_another_exercise(course):
    course.cell("ask", "another").source += "\n# Put your number in."
    assert "another.ipynb: not released, cell ask: a hint" in course.refused()


def test_all_leaks_of_a_notebook_are_named(course):
    course.cell("question").source = "Put your number in. 0.21429? 8.1358?"
    course.cell("title").source = "# slope at random points"
    said = course.refused()
    assert sorted(re.findall(r"cell \w+: an? [\w ']+", said)) == [
        "cell question: a hint of parabola",
        "cell question: an expected value of cell show",
        "cell question: an expected value of height",
        "cell title: a check's name of parabola",
    ]


def test_a_secret_is_recognised_but_not_told(course):
    course.cell("question").source += "terms = clever_trick(a, x, factor) 8.13579"
    said = course.refused()
    assert "terms = cle…" in said
    assert "clever" not in said
    assert "8.…" in said
    assert "8.1" not in said


def test_what_one_student_must_compute_leaks_to_this_one_alone(course):
    course.cell("question").source += " Perhaps 0.3571 high?"
    course.release()
    course.to = course.to.with_name("personal")
    exercise = load(course.masters / "parabola.py")
    theirs = [
        student
        for student in map(str, range(10))
        if constants_of(exercise, student, KEY)["a"] == 2.5
    ]
    said = course.refused(personal=True)
    assert f"{course.to / theirs[0] / 'parabola.ipynb'}: not released" in said
    course.enrol(*({*map(str, range(10))} - {*theirs}))
    course.release(personal=True)


@pytest.mark.parametrize(
    "planted",
    [
        "A slope, at points that are random.",  # words of a name, not the name
        "It is 0.214.",  # three digits
        "It is 0.125, or 0.12500.",  # of a reference, but short
        "It is 0.2144, 0.2141, 0.2346 or 0.2344.",  # no rounding of a value
        "The names x8.136 and v3.8.136",  # no numbers
        "It is 0.4321.",  # a constant that is given
        "It is 4444 or 5555.",  # from the letters of a picture
        "`factor = 2.0`",  # too short
        "`clever_trick(a, x, factor)`",  # a call without the formula
        "shared = preparation(a, b)",  # stands in another, public cell
        "return shared[0]",
        "See the rubric.",
        "downward",
    ],
)
def test_no_leak(course, planted):
    course.cell("question").source += f"\n\n{planted}"
    course.release()


@pytest.mark.parametrize(
    "line", ["abc == bc(def(gh))", "y = a*b-c+de", "return abcd*ef-g"]
)
def test_what_is_long_enough_to_be_an_answer(course, line):
    course.cell("height").source = HEIGHT.replace("return shared[0]", line)
    course.cell("question").source += f" ({line.removeprefix('y = ')})"
    assert "cell question: a solution line" in course.refused()


@pytest.mark.parametrize(
    "line", ["ab == bc(def(gh))", "y = a*b-c+d", "return abcdef*gh"]
)
def test_what_is_too_short_to_be_an_answer(course, line):
    course.cell("height").source = HEIGHT.replace("return shared[0]", line)
    course.cell("question").source += f" ({line.removeprefix('y = ')})"
    course.release()


def test_a_check_without_a_hint_leaks_none(course):
    course.hide("parabola", HIDDEN.replace("Put your number in.", ""))
    course.release()


def test_a_model_answer_may_quote_the_constants(course):
    course.cell("pencil").source = PENCIL.replace("1,234.5", "0.4321")
    course.cell("question").source += " With b = 0.4321."
    course.release()


def test_constants_may_be_near_a_number_of_an_answer(course):
    course.cell("pencil").source = PENCIL.replace("1,234.5", "0.43214")
    course.release()


def test_a_number_that_code_needs_on_both_sides(course):
    course.cell("show").source += "\nx = grid(0.98765)"
    course.release()


@pytest.mark.parametrize("source", ["# 0.98765", "x = 1  # 0.98765", "x = 8.13579"])
def test_a_number_in_code_that_is_an_answer(course, source):
    course.cell("show").source += f"\n{source}"
    assert "cell show: an expected value" in course.refused()


@pytest.mark.parametrize("line", ["# {}", "x = 1  # {}", "{}"])
def test_a_formula_in_code(course, line):
    formula = "y = terms + factor * x * a - 0.98765"
    course.cell("show").source += f"\n{line.format(formula)}"
    assert "cell show: a solution line of parabola, cell slope" in course.refused()


def test_an_earlier_release_outlives_a_failed_one(course):
    before = {path: path.read_bytes() for path in course.release()}
    course.cell("title").source = "# A new title"
    course.cell("question").source = "Put your number in."
    course.refused()
    assert {path: path.read_bytes() for path in course.to.iterdir()} == before


# Masters and folders that are not in order


def test_a_fault_of_a_marker_names_file_and_cell(course):
    course.cell("slope").source = SLOPE.replace("### END", "## END")
    path = course.masters / "parabola.ipynb"
    assert course.refused().startswith(f"{path}, cell slope, line 7: ")


def test_a_master_without_hidden_checks(course):
    course.books["third"] = another()
    assert "third.ipynb: has no hidden checks in third.py" in course.refused()


def test_hidden_checks_without_a_master(course):
    course.hide("third", OTHER)
    assert "third.ipynb: No such file" in course.refused()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw.update(nbformat_minor=4), "not a notebook of format 4.5"),
        (lambda raw: raw.update(nbformat=3), "not a notebook of format 4.5"),
        (lambda raw: raw["cells"][1].pop("id"), "not a notebook of format 4.5"),
        (lambda raw: raw.pop("cells"), "not a notebook of format 4.5"),
        (lambda raw: raw["cells"][2].update(id="slope"), "cell slope: cell ids must"),
        (
            lambda raw: raw["cells"][0].update(attachments={"a": {"image/png": "aa"}}),
            "cell title: attachments are not released",
        ),
    ],
)
def test_a_master_that_is_no_proper_notebook(course, change, said):
    course.release()
    raw = json.loads((course.masters / "parabola.ipynb").read_text())
    change(raw)
    (course.masters / "parabola.ipynb").write_text(json.dumps(raw))
    with pytest.raises(ValueError, match=f"parabola.ipynb.*{said}"):
        release(course.masters, course.to)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]", b""])
def test_a_master_that_is_no_notebook_at_all(course, content):
    course.release()
    (course.masters / "parabola.ipynb").write_bytes(content)
    with pytest.raises(ValueError, match=r"parabola.ipynb: not (JSON|a notebook)"):
        release(course.masters, course.to)


@pytest.mark.parametrize(
    "source",
    [
        GIVEN.replace("1.5", "2.5"),
        GIVEN.replace("1.5", "1.50"),
        GIVEN.replace("a = 1.5\n", ""),
        GIVEN.replace("each", "every"),
        GIVEN + "\n",
        GIVEN + "\nc = 1",
    ],
)
def test_constants_that_are_not_as_release_writes_them(course, source):
    course.cell("given").source = source
    said = course.refused()
    assert "parabola.ipynb, cell given: must be the code '# The numbers" in said


def test_constants_without_their_cell(course):
    course.cell("given").id = "numbers"
    assert "cell given: must be the code" in course.refused()


def test_constants_in_a_cell_of_text(course):
    course.books["parabola"].cells[1] = text("given", GIVEN)
    assert "cell given: must be the code" in course.refused()


def test_a_cell_for_constants_that_do_not_exist(course):
    course.cell("ask", "another").id = "given"
    assert "another.ipynb, cell given: must not exist" in course.refused()


@pytest.mark.parametrize("place", ["", "for-students"])
def test_a_release_into_the_masters(course, place):
    course.to = course.masters / place
    assert "which is never released" in course.refused()


def test_a_release_around_the_masters(course):
    course.to = course.masters.parent
    assert "no file of this release" in course.refused()


@pytest.mark.parametrize("name", ["notes.txt", "old/parabola.ipynb", "a/README.md"])
def test_a_folder_that_holds_something_else(course, name):
    path = course.to / name
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert f"{path}: no file of this release" in course.refused()


def test_a_personal_release_over_a_public_one(course):
    course.release()
    said = course.refused(personal=True)
    assert re.search(r"(parabola|another).ipynb: no file of this release", said)


def test_a_release_into_a_file(course):
    course.to.write_text("")
    assert "out: must be a folder" in course.refused()
