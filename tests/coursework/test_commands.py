"""The commands, as an instructor types them."""

import csv
import os
import re
import shlex
import zipfile
from pathlib import Path

import nbformat
import pytest

from coursework.__main__ import main, parser
from coursework.roster import slug
from tests.coursework.small_course import (
    ANSWERS,
    FULL,
    PROOF,
    hand_in,
    make_masters,
    needs_sandbox,
    start,
)

COMMANDS = ["release", "grade", "points", "report"]


@pytest.fixture(scope="module")
def masters(tmp_path_factory):
    return make_masters(tmp_path_factory.mktemp("course") / "solutions")


@pytest.fixture
def typed(masters, capsys):
    """Runs a command in this process: its exit code, output and errors."""

    def typed(command, *words):
        given = [command, "--masters", str(masters), *map(str, words)]
        code = main(given)
        return code, *capsys.readouterr()

    return typed


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_that_can_be_typed(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"usage: python -m coursework {command} ")
    (example,) = re.findall(r"Example: python -m coursework ([^,]+)", shown)
    words = shlex.split(example)
    assert words[0] == command
    parser().parse_args(words)


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert re.findall(r"^    (\w+)", shown, re.MULTILINE) == COMMANDS


def test_python_finds_the_commands():
    process = start("--help")
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert "release" in output


@pytest.fixture
def place(tmp_path):
    """A folder with a roster, a key, a submission and no report."""
    hand_in(tmp_path / "in", "right", "halves")
    (tmp_path / "roster.csv").write_text("id,name\nright,A\n")
    (tmp_path / "twice.csv").write_text("id,name\nright,A\nright,B\n")
    (tmp_path / "course.key").write_text("0123456789abcdef")
    (tmp_path / "short.key").write_text("0123")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "bad.zip").write_text("no zip")
    (tmp_path / "empty").mkdir()
    return tmp_path


FAULTS = {
    "release --to full": "full/notes.txt: no file of this release",
    "release --to out --roster roster.csv": "needs both a roster and a course key",
    "release --to out --key course.key": "needs both a roster and a course key",
    "release --to out --roster no.csv --key course.key": "no.csv cannot be read",
    "release --to out --roster twice.csv --key course.key": "twice.csv, line 3: the id",
    "release --to out --roster roster.csv --key no.key": "no.key: No such file",
    "release --to out --roster roster.csv --key short.key": "short.key: 4 bytes",
    "release --to out --masters empty": "empty holds no exercise",
    "grade nowhere --to out": "nowhere: there is no such folder or zip",
    "grade bad.zip --to out": "bad.zip: neither a folder nor a readable zip",
    "grade in --to out --only waves": "--only waves: the exercises are halves, words",
    "grade in --to out --key short.key": "short.key: 4 bytes",
    "grade in --to out --roster twice.csv": "twice.csv, line 3: the id",
    "grade in --to out --masters empty": "empty holds no exercise",
    "points empty": "name either a table to import or a --template to write",
    "points empty roster.csv --template new.csv": "name either a table to import",
    "points empty --template new.csv": "empty holds no results",
    "points empty no.csv": "empty holds no results",
    "report empty": "empty holds no results",
    "report nowhere": "nowhere holds no results",
}


@pytest.mark.parametrize("line", FAULTS)
def test_a_fault_is_one_line_and_exit_code_two(line, typed, place, monkeypatch):
    monkeypatch.chdir(place)
    before = {path for path in place.rglob("*") if path.name != "seed"}
    command, *words = line.split()
    # No student's code is run before the fault is found.
    safe = ["--no-sandbox"] if command == "grade" else []
    code, output, errors = typed(command, *words, *safe)
    assert (code, output) == (2, "")
    assert errors.startswith("coursework: ")
    assert errors.endswith("\n") and errors.count("\n") == 1
    assert FAULTS[line] in errors
    left = {path for path in place.rglob("*") if path.name != "seed"}
    assert left - before <= {place / "out"}


@pytest.mark.parametrize(
    "line", ["", "grades", "grade in", "release", "grade in --to out --workers two"]
)
def test_what_cannot_be_read_shows_the_usage(line, capsys):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m coursework")


def test_without_bubblewrap_grading_is_refused(place, masters):
    words = ["grade", place / "in", "--to", place / "out", "--masters", masters]
    process = start(*words, env={**os.environ, "PATH": str(place)})
    output, errors = process.communicate()
    assert (process.returncode, output) == (2, "")
    assert errors.count("\n") == 1
    assert errors.startswith(
        "coursework: no sandbox: bubblewrap is missing: apt-get in"
    )
    assert "--no-sandbox is for files of your own" in errors
    assert not (place / "out").exists()


def test_files_of_ones_own_can_be_graded_without(place, masters):
    words = ["grade", place / "in", "--to", place / "out", "--masters", masters]
    env = {**os.environ, "PATH": str(place)}
    process = start(*words, "--no-sandbox", env=env)
    errors = process.communicate()[1]
    assert process.returncode == 0, errors
    assert (place / "out" / "results" / "right" / "halves.json").exists()


def test_an_interrupt_is_told(typed, place, monkeypatch):
    def interrupt(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr("coursework.report.report", interrupt)
    code, output, errors = typed("report", place)
    assert (code, output) == (130, "")
    assert errors == "coursework: stopped; the same command goes on from here\n"


# From the masters to a file that Canvas imports

# What Canvas exports: a class of four, one test student, a column that is not ours.
GRADEBOOK = """\
Student,ID,SIS User ID,SIS Login ID,Section,Halves and squares (77),Essay (78)
    Points Possible,,,,,9,10
"Lovelace, Ada",101,,ada,One,,8
"Bohr, Niels",102,,niels,One,,7
"Curie, Marie",103,,marie,One,,6
"Noether, Emmy",104,,emmy,One,,5
"Student, Test",999,,test,One,,
"""


def filled(path: Path, **instead: str) -> str:
    """A released notebook with the masters' answers, or with others."""
    book = nbformat.read(path, as_version=4)
    answers = ANSWERS[path.stem] | instead
    for cell in book.cells:
        cell.source = answers.get(cell.id, cell.source)
        if cell.id == "proof":
            cell.source = "The triangles are equal."
    return nbformat.writes(book)


def download(handout: Path, folder: Path) -> Path:
    """What Canvas packs: Ada is right, Niels is wrong and late, Marie copied Ada."""
    ada, niels, marie = (handout / student for student in ("101", "102", "103"))
    wrong = "def half(x):\n    return x - 1"
    entries = {
        "lovelaceada_101_9001_halves.ipynb": filled(ada / "halves.ipynb", half=wrong),
        "lovelaceada_101_9007_halves-1.ipynb": filled(ada / "halves.ipynb"),
        "lovelaceada_101_9002_words.ipynb": filled(ada / "words.ipynb"),
        "bohrniels_LATE_102_9003_halves.ipynb": filled(
            niels / "halves.ipynb", half=wrong
        ),
        "bohrniels_102_9004_words.ipynb": (niels / "words.ipynb").read_text(),
        "curiemarie_103_9005_halves.ipynb": filled(ada / "halves.ipynb"),
        "curiemarie_103_9006_words.ipynb": filled(marie / "words.ipynb"),
    }
    with zipfile.ZipFile(folder / "submissions.zip", "w") as bundle:
        for name, text in entries.items():
            bundle.writestr(name, text)
    return folder / "submissions.zip"


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@needs_sandbox
def test_five_commands_from_masters_to_canvas(typed, tmp_path):
    gradebook, key = tmp_path / "gradebook.csv", tmp_path / "course.key"
    gradebook.write_text(GRADEBOOK)
    key.write_text("a key for this course alone, long enough")
    people = ["--roster", gradebook, "--key", key]

    code, output, errors = typed("release", *people, "--to", tmp_path / "handout")
    assert (code, output, errors) == (0, f"9 files in {tmp_path / 'handout'}\n", "")
    assert [slug(student) for student in ("101", "102")] == ["101", "102"]
    width = {student: width_of(tmp_path, student) for student in ("101", "103")}
    assert width["101"] != width["103"]  # or Marie could copy

    submissions = download(tmp_path / "handout", tmp_path)
    report = tmp_path / "report"
    code, output, _ = typed(
        "grade", submissions, "--to", report, *people, "--workers", 1
    )
    assert (code, output) == (0, "")

    table = tmp_path / "table.csv"
    roster = ["--roster", gradebook]
    code, output, _ = typed("points", report, "--template", table, *roster)
    assert (code, output) == (0, f"4 rows to fill in, in {table}\n")
    fill_in(table, {"101": "4", "102": "2.5", "103": "1"})
    assert typed("points", report, table)[:2] == (0, "3 rows imported\n")

    code, output, _ = typed("report", report, "--canvas", gradebook)
    assert code == 0
    assert output.endswith(f"written to {report}: open class.html\n")

    totals = {
        (row["student"], row["exercise"]): [row["status"], row["total"]]
        for row in rows(report / "grades.csv")
    }
    assert totals == {
        ("101", "halves"): ["ok", "9"],
        ("101", "words"): ["ok", "1"],
        ("102", "halves"): ["late", "5.5"],
        ("102", "words"): ["ok", "0"],
        # Half is right, the area is that of Ada's number.
        ("103", "halves"): ["ok", "3"],
        ("103", "words"): ["ok", "1"],
        ("104", "halves"): ["missing", "0"],
        ("104", "words"): ["missing", "0"],
    }
    assert FULL == {"halves": 5, "words": 1} and PROOF == 4
    with (report / "canvas.csv").open(newline="") as file:
        table = list(csv.reader(file))
    names = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert table == [
        [*names, "Halves and squares (77)", "Words"],
        ["    Points Possible", "", "", "", "", "9", "1"],
        ["Lovelace, Ada", "101", "", "ada", "One", "9", "1"],
        ["Bohr, Niels", "102", "", "niels", "One", "5.5", "0"],
        ["Curie, Marie", "103", "", "marie", "One", "3", "1"],
        ["Noether, Emmy", "104", "", "emmy", "One", "", ""],
    ]
    pages = {path.stem for path in (report / "feedback").glob("*.html")}
    assert pages == {"101", "102", "103", "104"}
    assert "Lovelace, Ada" in (report / "feedback" / "101.html").read_text()
    assert (report / "class.html").exists()


def width_of(folder, student):
    book = nbformat.read(folder / "handout" / student / "halves.ipynb", as_version=4)
    (given,) = [cell.source for cell in book.cells if cell.id == "given"]
    return int(given.partition("width = ")[2])


def fill_in(table, points):
    found = rows(table)
    for row in found:
        row["points"] = points.get(row["student"], "")
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)
