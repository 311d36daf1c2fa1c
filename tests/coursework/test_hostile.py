"""Hostile and broken submissions, graded as one class among honest ones.

Each must get its status and its points, and nothing may remain of any of them: no
process, no file, no secret in a result.
"""

import json
import os
import socket
import threading
import time
import zipfile
from pathlib import Path

import psutil
import pytest

from coursework import exam, grade, sandbox
from coursework.roster import slug
from tests.coursework.hostile.corpus import GOOD, GROUPS, NAMES, Case
from tests.coursework.hostile.course import make_masters

pytestmark = pytest.mark.skipif(bool(sandbox.refusal()), reason=sandbox.refusal())

NAME = "toy"
WORD = "a-word-that-must-not-be-told"
STUDENTS = {
    f"{group}-{place:02}": case
    for group, cases in GROUPS.items()
    for place, case in enumerate(cases)
}
HONEST = [
    f"{group}-{place}-good"
    for group, cases in GROUPS.items()
    for place in ("", len(cases) // 2, "last")  # as they are sorted
]
SINGLY = [
    student
    for student in STUDENTS
    if student.startswith(("network-00", "writes", "reads", "escapes"))
    and STUDENTS[student].problem == ""  # a probe
]


class World:
    """A grader's machine: masters, submissions, a report, and secrets beside them."""

    def __init__(self, root: Path):
        self.root = root
        self.masters = make_masters(root / "masters", NAME)
        self.canary = root / "canary"
        self.canary.mkdir()
        for name in ("secret.txt", "course.key"):
            (self.canary / name).write_text(f"{WORD} " * 9)
        self.submissions = root / "submissions"
        self.submissions.mkdir()
        self.report = root / "report"
        self.server = socket.create_server(("127.0.0.1", 0))
        self.local = socket.socket(socket.AF_UNIX)
        self.local.bind(f"\0{root}")
        self.local.listen()
        # A file that lies open while students' processes are started.
        self.opened = os.open(self.canary / "secret.txt", os.O_RDWR)
        os.set_inheritable(self.opened, True)

    def close(self) -> None:
        self.server.close()
        self.local.close()
        os.close(self.opened)

    def targets(self) -> dict:
        """What a probe may look for; the word backwards, lest this be what tells it."""
        files = [
            *self.canary.iterdir(),
            *self.masters.iterdir(),
            self.report / "seed",
            self.submissions / f"loops-00_{NAME}.ipynb",
            Path(sandbox.__file__).with_name("checks.py"),
            Path(__file__),
        ]
        folders = [self.canary, self.masters, self.submissions, self.report]
        folders += [Path.cwd() / name for name in ("src", "tests", "solutions", ".git")]
        return {
            "port": self.server.getsockname()[1],
            "socket": f"\0{self.root}",
            "word": WORD[::-1],
            "files": list(map(str, files)),
            "folders": list(map(str, folders)),
        }

    def add(self, front: str, data: bytes) -> None:
        """Hand in a notebook."""
        filled = json.dumps(f"TARGETS = {self.targets()!r}")[1:-1]
        data = data.replace(b"TARGETS = {}", filled.encode())
        (self.submissions / f"{front}_{NAME}.ipynb").write_bytes(data)

    def grade(self, submissions: Path | None = None, **options) -> list[str]:
        return grade.grade(
            submissions or self.submissions,
            self.report,
            self.masters,
            workers=2,
            key=self.canary / "course.key",
            seconds=5,
            **options,
        )

    def result(self, student: str) -> dict:
        path = self.report / "results" / slug(student) / f"{NAME}.json"
        return json.loads(path.read_text())

    def files(self) -> dict[Path, bytes]:
        """All that lies outside the report."""
        return {
            path: path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and not path.is_relative_to(self.report)
        }


def left_over() -> list[psutil.Process]:
    """Processes in one of this grader's sandboxes: they see a folder of its scratch."""
    found = []
    for process in psutil.process_iter():
        try:
            mounts = Path(f"/proc/{process.pid}/mountinfo").read_text()
        except OSError:
            continue
        if f"{grade._scratch().name}/" in mounts:
            found.append(process)
    return found


@pytest.fixture(scope="module", autouse=True)
def _small_limits():
    """Limits that are met soon, and the word in the grader's environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANARY", WORD)
        patch.setattr(exam, "PATIENCE", 3)
        patch.setattr(sandbox, "MEMORY", 800 * 2**20)
        yield


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The world after one batch of everything."""
    world = World(tmp_path_factory.mktemp("world"))
    for student, case in STUDENTS.items():
        world.add(student, case.data)
    for front in [*HONEST, *NAMES]:
        world.add(front, GOOD.data)
    master = world.masters / f"{NAME}.ipynb"
    (world.submissions / f"linked_{NAME}.ipynb").symlink_to(master)
    os.mkfifo(world.submissions / f"piped_{NAME}.ipynb")
    before = world.files()
    assert world.grade() == []
    assert world.files() == before
    yield world
    world.close()


@pytest.fixture(scope="module")
def graded_singly(tmp_path_factory):
    """With a sandbox for each notebook, as where a sandboxed process may not fork."""
    world = World(tmp_path_factory.mktemp("world"))
    for student in SINGLY:
        world.add(student, STUDENTS[student].data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "can_fork", lambda: False)
        world.grade()
    yield world
    world.close()


def earned(result: dict) -> tuple[int, ...]:
    return tuple(check["earned"] for check in result["checks"])


def agrees(result: dict, case: Case) -> bool:
    """Whether a result is what the case must have."""
    return (
        (result["status"], earned(result)) == (case.status, case.earned)
        and case.problem in (None, result["problem"])
        and case.reason in (None, result["checks"][0]["reason"])
    )


def each(students) -> dict:
    """Arguments of parametrize: students, with what they do as the test's name."""
    ids = [f"{student}: {STUDENTS[student].name}" for student in students]
    return {"argnames": "student", "argvalues": list(students), "ids": ids}


@pytest.mark.parametrize(**each(STUDENTS))
def test_it_gets_what_it_deserves(graded, student):
    result = graded.result(student)
    assert agrees(result, STUDENTS[student]), result


@pytest.mark.parametrize(**each(SINGLY))
def test_a_sandbox_of_its_own_holds_it_too(graded_singly, student):
    result = graded_singly.result(student)
    assert agrees(result, STUDENTS[student]), result


@pytest.mark.parametrize("student", HONEST)
def test_honest_ones_among_them_lose_nothing(graded, student):
    assert agrees(graded.result(student), GOOD)


@pytest.mark.parametrize("student", NAMES.values())
def test_a_strange_name_is_a_name(graded, student):
    assert agrees(graded.result(student), GOOD)
    assert graded.result(student)["student"] == student


@pytest.mark.parametrize("student", ["linked", "piped"])
def test_what_is_no_file_is_not_opened(graded, student):
    result = graded.result(student)
    assert (result["status"], earned(result)) == ("unreadable", (0, 0, 0))


def test_a_report_holds_nothing_but_results(graded):
    students = [*STUDENTS, *HONEST, *NAMES.values(), "linked", "piped"]
    expected = {Path("seed"), Path("results")}
    for folder in (Path("results", slug(student)) for student in students):
        expected |= {folder, folder / f"{NAME}.json"}
    found = graded.report.rglob("*")
    assert {path.relative_to(graded.report) for path in found} == expected


def test_results_are_short_and_tell_no_secret(graded):
    secrets = [WORD, (graded.report / "seed").read_text().strip(), "BREACH", "TOLD"]
    for path in graded.report.rglob("*.json"):
        text = path.read_text()
        assert not [secret for secret in secrets if secret in text]
        assert len(text) < 5000


def test_no_process_is_left(graded, graded_singly):
    until = time.monotonic() + 60  # what is killed takes a moment to go
    while left_over() and time.monotonic() < until:
        time.sleep(0.05)
    assert left_over() == []


def test_a_process_that_is_left_would_be_seen(graded):
    with (
        sandbox.Sandbox(grade._package(NAME, ())) as one,
        one.session() as session,
    ):
        session.ask(60, do="run", source="import os, time\nif os.fork() == 0:\n    1")
        assert len(left_over()) >= 4  # bubblewrap's, the parent, its child and theirs


PROBES = [
    "memory of the other kinds",
    "a connection to the grader's machine",
    "other networks than the internet's",
    "reads of all that is secret",
    "the environment",
]


def test_probes_succeed_where_there_is_no_sandbox(world):
    found = {case.name: case for case in STUDENTS.values() if case.name in PROBES}
    for name, case in found.items():
        world.add(name, case.data)
    world.grade(sealed=False)
    said = {name: world.result(name)["problem"] for name in PROBES}
    assert all("BREACH" in text for text in said.values()), said


def test_a_zip_of_traps(world, tmp_path_factory):
    """A download of Canvas's in which some entries are not what they say."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    link = zipfile.ZipInfo(f"link_3_13_{NAME}.ipynb")
    link.external_attr = 0o120777 << 16
    traps = {
        f"../../../climbs_2_12_{NAME}.ipynb": GOOD.data,
        f"{elsewhere}/roots_2_12_{NAME}.ipynb": GOOD.data,
        f"..\\..\\windows_2_12_{NAME}.ipynb": GOOD.data,
        link: str(world.masters / f"{NAME}.ipynb").encode(),
        f"bomb_4_14_{NAME}.ipynb": bytes(100_000_000),
        f"nested_5_15_{NAME}.zip": b"PK\x05\x06" + bytes(18),
    }
    honest = [
        f"first_1_11_{NAME}.ipynb",
        f"two\nlines_6_16_{NAME}.ipynb",
        f"{'long' * 50}_7_17_{NAME}.ipynb",
        f"last_9_19_{NAME}.ipynb",
    ]
    archive = world.submissions / "all.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in (traps | dict.fromkeys(honest, GOOD.data)).items():
            bundle.writestr(name, data)
    before = world.files()
    (note,) = world.grade(archive)
    assert "outside the zip" in note
    results = {student: world.result(student) for student in "1345679"}
    assert {one for one in results if agrees(results[one], GOOD)} == set("1679")
    assert {results[one]["status"] for one in "345"} == {"unreadable"}
    assert len(list(world.report.rglob("*.json"))) == len(results)
    assert world.files() == before
    assert not list(world.root.parent.glob("**/*climbs*"))
    assert not list(elsewhere.iterdir())


@pytest.fixture
def session():
    """The grader's end of two pipes, with the student's ends as ``ends``."""
    hear, replies = os.pipe()
    requests, tell = os.pipe()
    session = sandbox.Session(hear, tell, os.getpid())
    session.ends = requests, replies
    yield session
    for pipe in (hear, replies, requests, tell):
        os.close(pipe)


def answer(requests: int, replies: int) -> None:
    """Take one request in sips, then reply."""
    while os.read(requests, 4096)[-1:] not in (b"", b"\n"):
        time.sleep(0.001)
    os.write(replies, b"{}\n")


def test_a_request_taken_in_sips_does_not_put_off_the_end(session):
    reader = threading.Thread(target=answer, args=session.ends)
    reader.start()
    with pytest.raises(sandbox.Ended, match="within the time"):
        session.ask(0.1, do="run", source="x" * 4_000_000)
    os.set_blocking(session.tell, True)
    os.write(session.tell, b"\n")
    reader.join()


def test_a_pipe_that_was_made_smaller_is_written_to_again(session, monkeypatch):
    write, refused = os.write, []

    def full_at_first(pipe, data):
        if pipe == session.tell and not refused:
            refused.append(data)
            raise BlockingIOError
        return write(pipe, data)

    monkeypatch.setattr(os, "write", full_at_first)
    reader = threading.Thread(target=answer, args=session.ends)
    reader.start()
    assert session.ask(60, do="run", source="") == {}
    assert refused
    reader.join()
