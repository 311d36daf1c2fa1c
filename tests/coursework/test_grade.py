"""Grading from a folder of submissions to a folder of results, in the sandbox."""

import json
import shutil
import stat
import sys
from pathlib import Path

import pytest

from coursework import grade as grading
from coursework import sandbox
from coursework.checks import load_all
from coursework.grade import grade
from coursework.personal import constants_of
from coursework.release import release
from tests.coursework.small_course import (
    earned,
    files,
    hand_in,
    make_masters,
    needs_sandbox,
    results,
)

WRONG = "def half(x):\n    return x / 3"
ANSWERS = {
    "wrong": {"half": WRONG},
    "stuck": {"half": "def half(x):\n    while True:\n        pass"},
    "dead": {"half": "import os\ndef half(x):\n    os._exit(0)"},
    "hungry": {"half": "def half(x):\n    return bytearray(1 << 40)"},
    "vague": {"half": "def half(x):\n    return None"},
    "borrower": {"half": "from genaudit.latent import elbo as half"},
    "odd": {"half": "def half(x):\n    raise ValueError('\\ud800')"},
    "unasked": {"half": "def halve(x):\n    return x / 2"},
}
CELLS = {
    "right": [],
    "endless": ["import os", "while True:\n    pass"],
    "faulty": ["1 / 0", "", "raise ValueError('\\ud800')"],
    "stayed": ["def half(x):\n    return x / 2", "def area():\n    return 9"],
}


@pytest.fixture(scope="module")
def masters(tmp_path_factory):
    return make_masters(tmp_path_factory.mktemp("course") / "solutions")


@pytest.fixture(scope="module")
def submissions(masters, tmp_path_factory):
    """What a class hands in."""
    folder = tmp_path_factory.mktemp("class") / "submissions"
    for student, answers in ANSWERS.items():
        hand_in(folder, student, "halves", **answers)
    for student, cells in CELLS.items():
        hand_in(folder, student, "halves", *cells)
    hand_in(folder, "right", "words")
    hand_in(folder, "wrong", "words", direction="def direction():\n    return 'down'")
    release(masters, folder / "untouched")
    # Their own cells stand above the answers, as they were released, here.
    stub = "def {}:\n    # YOUR CODE HERE\n    raise NotImplementedError"
    left = {"half": stub.format("half(x)"), "area": stub.format("area()")}
    hand_in(folder, "stayed", "halves", *CELLS["stayed"], **left)
    (folder / "broken").mkdir()
    (folder / "broken" / "halves.ipynb").write_text("{")
    (folder / "broken" / "diary.ipynb").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def report(submissions, masters, tmp_path_factory):
    """All of it graded, for a class with one more student."""
    folder = tmp_path_factory.mktemp("report") / "report"
    roster = folder.parent / "roster.csv"
    ids = sorted(path.name for path in submissions.iterdir())
    roster.write_text("\n".join(["id,name", *(f"{one},A" for one in ids), "absent,B"]))
    said = grade(submissions, folder, masters, 2, roster=roster, seconds=3)
    (folder.parent / "said").write_text("\n".join(said))
    return folder


@pytest.fixture
def small(tmp_path):
    """A folder with one student who is right."""
    hand_in(tmp_path / "in", "right", "halves")
    return tmp_path / "in"


@pytest.fixture
def seeded(report, tmp_path):
    """A new report with the seed of the other."""
    folder = tmp_path / "report"
    folder.mkdir()
    shutil.copy(report / "seed", folder)
    return folder


HALF_WRONG = [0, 3]
EXPECTED = {
    ("right", "halves"): ("ok", [2, 3], ""),
    ("right", "words"): ("ok", [1], ""),
    ("wrong", "halves"): ("ok", HALF_WRONG, "the value is not right"),
    ("wrong", "words"): ("ok", [0], "not the right answer"),
    ("untouched", "halves"): ("ok", [0, 0], "still to be written"),
    ("untouched", "words"): ("ok", [0], "still to be written"),
    ("stuck", "halves"): ("timeout", HALF_WRONG, "no answer within the time allowed"),
    ("dead", "halves"): ("killed", HALF_WRONG, "the notebook's process ended"),
    ("hungry", "halves"): ("ok", HALF_WRONG, "it needs too much memory"),
    ("vague", "halves"): (
        "ok",
        HALF_WRONG,
        "it returned something other than numbers, words and lists",
    ),
    ("borrower", "halves"): (
        "ok",
        HALF_WRONG,
        "used what is not part of this exercise: write it yourself",
    ),
    ("odd", "halves"): ("ok", HALF_WRONG, "raised ValueError"),
    ("unasked", "halves"): ("ok", HALF_WRONG, "there is no function of this name"),
    ("endless", "halves"): ("timeout", [2, 3], ""),
    ("faulty", "halves"): ("ok", [2, 3], ""),
    ("stayed", "halves"): ("ok", [2, 3], ""),
    ("broken", "halves"): ("unreadable", [0, 0], "unreadable"),
    ("absent", "halves"): ("missing", [0, 0], "missing"),
    ("absent", "words"): ("missing", [0], "missing"),
}
PROBLEMS = {
    "endless": "code cell 3: no answer within the time allowed",
    "faulty": "code cell 2: ZeroDivisionError: division by zero; "
    "code cell 4: ValueError: \ud800",
    "broken": "not JSON: Expecting property name enclosed in double quotes, in line 1",
}


@needs_sandbox
@pytest.mark.parametrize("key", EXPECTED, ids=" ".join)
def test_everybody_gets_what_they_deserve(report, key):
    result = results(report)[key]
    status, points, reason = EXPECTED[key]
    assert (result["status"], earned(result)) == (status, points)
    assert result["checks"][0]["reason"] == reason
    assert result["problem"] == PROBLEMS.get(key[0], "")


@needs_sandbox
def test_whoever_handed_in_nothing_for_an_exercise_is_missing(report):
    others = set(results(report)) - set(EXPECTED)
    assert others == {(one, "words") for one in {*ANSWERS, *CELLS, "broken"}} - set(
        EXPECTED
    )
    assert {results(report)[key]["status"] for key in others} == {"missing"}


@needs_sandbox
def test_a_result_says_what_a_student_may_know(report):
    result = results(report)["wrong", "halves"]
    assert list(result) == [
        *("student", "exercise", "late", "digest", "status", "problem", "checks")
    ]
    assert result["checks"] == [
        {
            "name": "three numbers cut in two",
            "points": 2,
            "earned": 0,
            "reason": "the value is not right",
            "hint": "Cut it in two.",
        },
        {
            "name": "area for the width of this notebook",
            "points": 3,
            "earned": 3,
            "reason": "",
            "hint": "",
        },
    ]


@needs_sandbox
def test_files_that_are_nobodys_work_are_told(report):
    said = (report.parent / "said").read_text()
    assert said.startswith("broken: 'broken/diary.ipynb': ")


@needs_sandbox
def test_the_seed_is_for_the_instructor_alone(report):
    assert len(bytes.fromhex((report / "seed").read_text())) == 16
    assert stat.S_IMODE((report / "seed").stat().st_mode) == 0o600
    left = {path.name for path in report.iterdir()}
    assert left == {"seed", "results"}
    assert all(name.endswith(".json") for name in files(report))


@needs_sandbox
def test_the_same_submissions_get_the_same_results(
    report, submissions, masters, seeded
):
    """Zipped, and one after the other."""
    most = seeded.parent / "most"
    # A second stuck notebook would show nothing more.
    shutil.copytree(submissions, most, ignore=shutil.ignore_patterns("endless"))
    zipped = shutil.make_archive(str(most), "zip", most)
    roster = report.parent / "roster.csv"
    grade(Path(zipped), seeded, masters, 1, only="halves", roster=roster, seconds=3)
    first, again = files(report), files(seeded)
    assert len(again) == len(ANSWERS) + len(CELLS) + 3  # also untouched, broken, absent
    del again["endless/halves.json"]
    assert again.items() <= first.items()


@needs_sandbox
def test_a_master_that_changed_counts_at_once(small, tmp_path):
    """Also where the process lives on, as it does on a cluster."""
    masters = make_masters(tmp_path / "solutions")
    grade(small, tmp_path / "out", masters, 1)
    assert earned(results(tmp_path / "out")["right", "halves"]) == [2, 3]
    path = masters / "halves.py"
    path.write_text(path.read_text().replace("x / 2", "x / 3.0"))
    grade(small, tmp_path / "out", masters, 1)
    assert earned(results(tmp_path / "out")["right", "halves"]) == [0, 3]


@needs_sandbox
def test_a_process_of_its_own_gives_the_same_results(
    report, submissions, masters, seeded, monkeypatch
):
    monkeypatch.setattr(sandbox, "can_fork", lambda: False)
    some = seeded.parent / "some"
    for student in ("dead", "faulty"):
        shutil.copytree(submissions / student, some / student)
    grade(some, seeded, masters, 2, seconds=3)
    expected = files(report)
    assert files(seeded) == {
        name: expected[name] for name in ("dead/halves.json", "faulty/halves.json")
    }


def test_files_of_ones_own_are_graded_without_a_sandbox(
    small, masters, tmp_path, monkeypatch
):
    monkeypatch.setattr(sandbox, "refusal", lambda: "there is none")
    hand_in(small, "wrong", "halves", half=WRONG)
    grade(small, tmp_path / "out", masters, 2, sealed=False)
    found = results(tmp_path / "out")
    assert earned(found["right", "halves"]) == [2, 3]
    assert earned(found["wrong", "halves"]) == [0, 3]


def test_without_a_sandbox_nothing_is_run(small, masters, tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "refusal", lambda: "there is none")
    monkeypatch.setattr(sandbox, "Sandbox", None)
    with pytest.raises(ValueError, match="no sandbox: there is none") as refused:
        grade(small, tmp_path / "out", masters)
    assert "--no-sandbox is for files of your own" in str(refused.value)
    assert not (tmp_path / "out").exists()


@needs_sandbox
def test_everybody_is_asked_about_their_own_constants(masters, tmp_path):
    key = tmp_path / "course.key"
    key.write_text("0123456789abcdef0123456789abcdef")
    halves = load_all(masters)["halves"]
    width = {
        f"s{number}": constants_of(halves, f"s{number}", key.read_bytes())["width"]
        for number in range(6)
    }
    one, other = next((a, b) for a in width for b in width if width[a] != width[b])
    third = next(student for student in width if student not in (one, other))
    answers = {one: width[one], other: width[one], third: width[third]}
    for student, number in answers.items():
        square = f"def area():\n    return {number} * {number}"
        hand_in(tmp_path / "in", student, "halves", area=square)
    grade(tmp_path / "in", tmp_path / "out", masters, 1, key=key)
    found = results(tmp_path / "out")
    assert earned(found[one, "halves"]) == [2, 3]
    assert earned(found[other, "halves"]) == [2, 0]
    assert earned(found[third, "halves"]) == [2, 3]


@needs_sandbox
def test_an_interrupt_does_not_wait_for_a_stuck_notebook(
    masters, small, tmp_path, monkeypatch
):
    """The second notebook is stuck for ten minutes."""

    def interrupt(path, result):
        raise KeyboardInterrupt

    hand_in(small, "stuck", "halves", **ANSWERS["stuck"])
    monkeypatch.setattr(grading, "_store", interrupt)
    with pytest.raises(KeyboardInterrupt):
        grade(small, tmp_path / "out", masters, 2, seconds=600)
    assert files(tmp_path / "out") == {}
    monkeypatch.undo()
    shutil.rmtree(small / "stuck")
    grade(small, tmp_path / "out", masters, 2, seconds=600)
    assert earned(results(tmp_path / "out")["right", "halves"]) == [2, 3]


# Which notebooks are graded, and which are left alone


@pytest.fixture
def graded(masters, tmp_path, monkeypatch):
    """Grade without running anything: returns the jobs."""
    jobs = []

    def run(job):
        assert json.loads(json.dumps(job)) == job
        jobs.append(job)
        return {key: job[key] for key in ("student", "exercise", "late", "digest")}

    def graded(submissions, **options):
        jobs.clear()
        grade(submissions, tmp_path / "out", masters, **options)
        return {(job["student"], job["exercise"]): job for job in jobs}

    monkeypatch.setattr(sandbox, "refusal", lambda: "")
    monkeypatch.setattr(grading, "run_job", run)
    return graded


def test_what_is_done_is_not_done_again(graded, small):
    hand_in(small, "right", "words")
    hand_in(small, "other", "halves")
    everything = {("right", "halves"), ("right", "words"), ("other", "halves")}
    assert set(graded(small)) == everything
    assert graded(small) == {}
    hand_in(small, "right", "halves", half=WRONG)
    hand_in(small, "new", "words")
    assert set(graded(small)) == {("right", "halves"), ("new", "words")}


def test_what_decides_a_result_makes_it_anew(graded, small):
    first = graded(small)
    assert graded(small, seconds=3) != first != {}
    assert graded(small, seconds=3) == {}
    assert graded(small, seconds=3, sealed=False) != {}


@pytest.mark.parametrize("damage", [b"", b'{"student": "ri', b"[]", b"\xff", b"{}"])
def test_a_damaged_result_is_made_anew(graded, small, tmp_path, damage):
    hand_in(small, "other", "halves")
    graded(small)
    (tmp_path / "out" / "results" / "right" / "halves.json").write_bytes(damage)
    assert set(graded(small)) == {("right", "halves")}
    assert graded(small) == {}


def test_a_report_keeps_its_seed(graded, small, tmp_path):
    first = graded(small)["right", "halves"]["secret"]
    hand_in(small, "other", "halves")
    assert graded(small)["other", "halves"]["secret"] == first
    (tmp_path / "out").rename(tmp_path / "before")
    assert {job["secret"] for job in graded(small).values()} - {first}


def test_one_exercise_alone(graded, small):
    hand_in(small, "right", "words")
    assert set(graded(small, only="words")) == {("right", "words")}
    assert set(graded(small)) == {("right", "halves")}


def test_a_class_list_tells_who_is_missing(graded, small, tmp_path):
    hand_in(small, "guest", "words")
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name\nright,A\nabsent,B\n")
    jobs = graded(small, roster=roster)
    gone = {key for key, job in jobs.items() if job["cells"] is None}
    assert gone == {("absent", "halves"), ("absent", "words"), ("right", "words")}
    assert set(jobs) - gone == {("right", "halves"), ("guest", "words")}
    assert all(not job["problem"] for job in jobs.values())


def test_lateness_is_the_course_systems_word(graded, small, tmp_path):
    notebook = next(small.rglob("*.ipynb"))
    canvas = tmp_path / "canvas"
    canvas.mkdir()
    shutil.copy(notebook, canvas / "doejane_12_34_halves.ipynb")
    shutil.copy(notebook, canvas / "roejo_LATE_56_78_halves.ipynb")
    jobs = graded(canvas)
    late = {student: job["late"] for (student, _), job in jobs.items()}
    assert late == {"12": False, "56": True}


def test_without_a_key_all_have_the_same_constants(graded, small):
    assert graded(small)["right", "halves"]["given"] == {"width": 3}


def test_what_students_could_read_is_refused(graded, small, tmp_path, masters):
    shown = Path(sys.base_prefix) / "share"
    for folders in [(shown, tmp_path), (small, shown / "out")]:
        with pytest.raises(ValueError, match="students' code can read: move it"):
            grade(*folders, masters)
    assert not (shown / "out").exists()


def test_what_is_not_there_is_named(graded, small, tmp_path):
    with pytest.raises(ValueError, match="--only waves: the exercises are halves, wor"):
        graded(small, only="waves")
    with pytest.raises(ValueError, match="elsewhere: there is no such folder or zip"):
        graded(tmp_path / "elsewhere")
    assert not (tmp_path / "out").exists()


def test_a_cluster_needs_its_package(graded, small, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(ValueError, match="pip install distributed"):
        graded(small, scheduler="tcp://127.0.0.1:1")
