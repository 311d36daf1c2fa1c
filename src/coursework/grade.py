"""Grade a folder of submissions: one job a notebook, done once, in any order.

Each job is plain data and returns plain data, so that it may run on another machine.
The result of each is a file; a run that was stopped goes on where it was.
"""

import hashlib
import json
import os
import secrets
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import nbformat
from tqdm import tqdm

from coursework import sandbox
from coursework.checks import Exercise, Given, load, load_all
from coursework.exam import Call, calls_of, examine
from coursework.intake import Submission, find_submissions, read_cells
from coursework.markers import student_source
from coursework.personal import constants_of, read_key
from coursework.roster import read_roster, slug
from coursework.shown import shown_package

SECONDS = 20  # for each cell and each call


def grade(
    submissions: Path,
    report: Path,
    masters: Path,
    workers: int | None = None,
    scheduler: str | None = None,
    only: str | None = None,
    roster: Path | None = None,
    key: Path | None = None,
    sealed: bool = True,
    seconds: float = SECONDS,
) -> list[str]:
    """Grade all that lies in ``submissions``, a folder or a zip, into ``report``.

    Notebooks whose result is still valid are left alone. Returns what to look at: files
    that belong to no exercise or to no student. ValueError without a working sandbox,
    unless ``sealed`` is false, which is for one's own files.

    Args:
        masters: the folder of masters and hidden checks.
        workers: notebooks at a time; as many as there are processors if omitted.
        scheduler: address of a dask.distributed scheduler that runs the jobs instead.
        only: the one exercise to grade.
        roster: the class; whoever handed in nothing is then noted as missing.
        key: the course key of a release with a roster.
        seconds: allowed for each cell and each call.
    """
    if sealed and sandbox.refusal():
        raise ValueError(
            f"no sandbox: {sandbox.refusal()}. Students' code is not run without one; "
            "--no-sandbox is for files of your own"
        )
    exercises = load_all(masters)
    if only and only not in exercises:
        raise ValueError(f"--only {only}: the exercises are {', '.join(exercises)}")
    if not submissions.exists():
        raise ValueError(f"{submissions}: there is no such folder or zip")
    _keep_apart(submissions, report, masters, *filter(None, [roster, key]))
    students = [student.id for student in read_roster(roster)] if roster else []
    titles = {name: exercise.title for name, exercise in exercises.items()}
    common = {
        "secret": _secret(report),
        "masters": str(masters.resolve()),
        "sealed": sealed,
        "seconds": seconds,
    }
    course = read_key(key) if key else None
    with tempfile.TemporaryDirectory(prefix="coursework-") as scratch:
        found = find_submissions(
            submissions, exercises, Path(scratch), students, titles
        )
        known = [one for one in found if one.student and one.exercise in exercises]
        known = [one for one in known if only in (None, one.exercise)]
        jobs = {}
        for one in known:
            exercise = exercises[one.exercise]
            given = (
                constants_of(exercise, one.student, course)
                if course
                else exercise.given
            )
            path = report / "results" / slug(one.student) / f"{one.exercise}.json"
            job = _job(one, given, common)
            if not _valid(path, job["digest"]):
                jobs[path] = job
    _run(jobs, len(known), workers, scheduler)
    strange = [one for one in found if not one.student or one.exercise not in exercises]
    return [f"{one.student or 'nobody'}: {one.problem}" for one in strange]


def _job(one: Submission, given: Given, common: dict) -> dict:
    """A job as plain data; the digest names everything that its result depends on."""
    job = {
        **common,
        "student": one.student,
        "exercise": one.exercise,
        "late": one.late,
        "problem": one.problem,
        "cells": None,
        "given": dict(given),
    }
    if one.path and not one.problem:
        try:
            job["cells"] = read_cells(one.path)
        except ValueError as error:
            job["problem"] = str(error)
    for end in (".py", ".ipynb"):
        hidden = Path(job["masters"], f"{one.exercise}{end}").read_bytes()
        job[f"master{end}"] = hashlib.sha256(hidden).hexdigest()
    job["digest"] = hashlib.sha256(json.dumps(job).encode()).hexdigest()
    return job


def run_job(job: dict) -> dict:
    """Grade one notebook: plain data in, plain data out. Runs on any machine that has
    this package and sees the folder of the masters.
    """
    name = job["exercise"]
    # With its digests, so that a worker that lives on sees when a master changes.
    master = (job["masters"], name, job["master.py"], job["master.ipynb"])
    exercise = _exercise(*master)
    result = {key: job[key] for key in ("student", "exercise", "late", "digest")}
    if job["cells"] is None:
        status = "unreadable" if job["problem"] else "missing"
        reasons = dict.fromkeys((check.name for check in exercise.checks), status)
        return result | _rows(exercise, status, job["problem"], reasons)
    with _preparing:
        stubs = _stubs(*master)
        frozen = (job["secret"], json.dumps(job["given"]))
        calls = {
            check.name: _calls(master, number, *frozen)
            for number, check in enumerate(exercise.checks)
        }
        package = _package(name, tuple(exercise.modules))
    exam = examine(
        lambda: _session(name, package, job["sealed"]),
        job["cells"],
        exercise.checks,
        calls,
        job["seconds"],
        stubs,
    )
    problem = _told(exam.problems)
    return result | _rows(exercise, exam.status, problem, exam.reasons)


def _told(problems: dict[int, str]) -> str:
    """What went wrong in which cells, of many the first few."""
    parts = [f"code cell {number}: {problems[number]}" for number in sorted(problems)]
    rest = [f"and {len(parts) - 5} more"] if len(parts) > 5 else []
    return "; ".join(parts[:5] + rest)


def _rows(exercise: Exercise, status: str, problem: str, reasons: dict) -> dict:
    """The part of a result that says what was earned."""
    checks = [
        {
            "name": check.name,
            "points": check.points,
            "earned": check.points if reasons[check.name] is None else 0,
            "reason": reasons[check.name] or "",
            "hint": check.hint if reasons[check.name] else "",
        }
        for check in exercise.checks
    ]
    return {"status": status, "problem": problem, "checks": checks}


@cache
def _exercise(masters: str, name: str, *digests: str) -> Exercise:
    return load(Path(masters, f"{name}.py"))


@cache
def _stubs(masters: str, name: str, *digests: str) -> frozenset[str]:
    """Sources of the cells that a student has to fill in, as they were released."""
    cells = nbformat.read(Path(masters, f"{name}.ipynb"), as_version=4).cells
    return frozenset(
        student_source(cell, f"{name}, cell {cell.id}").strip()
        for cell in cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader")
    )


@cache
def _calls(master: tuple, number: int, secret: str, given: str) -> list[Call]:
    """Calls and right answers of a check, computed once for all with its constants."""
    check = _exercise(*master).checks[number]
    return calls_of(check, json.loads(given), secret)


_kept = threading.local()  # a thread's sandbox, and the package that it shows
_open: list[sandbox.Sandbox] = []  # those of all threads
_preparing = threading.Lock()


@contextmanager
def _session(name: str, package: Path, sealed: bool) -> Iterator[sandbox.Session]:
    """A fresh process for a notebook, forked off this thread's sandbox if it can be."""
    if not (sealed and sandbox.can_fork()):
        with sandbox.Sandbox(package, fork=False, sealed=sealed) as single:
            with single.session() as session:
                yield session
        return
    with ExitStack() as stack:
        try:
            session = stack.enter_context(_own_sandbox(name, package).session())
        except OSError:
            # A machine that lacks memory may have ended it since the last notebook.
            _kept.package = None
            session = stack.enter_context(_own_sandbox(name, package).session())
        yield session


def _own_sandbox(name: str, package: Path) -> sandbox.Sandbox:
    """This thread's sandbox, a new one if it has none with this package."""
    if getattr(_kept, "package", None) != package:
        if hasattr(_kept, "sandbox"):
            _kept.sandbox.close()
        visible = package / "exercises" / f"{name}.py"
        preload = [f"genaudit.exercises.{name}"] if visible.exists() else []
        _kept.sandbox, _kept.package = sandbox.Sandbox(package, preload), package
        _open.append(_kept.sandbox)
    return _kept.sandbox


@cache
def _package(name: str, modules: tuple[str, ...]) -> Path:
    """A folder with the part of genaudit that an exercise shows."""
    folder = Path(tempfile.mkdtemp(dir=_scratch().name), "genaudit")
    return shown_package(folder, name, modules)


@cache
def _scratch() -> tempfile.TemporaryDirectory:
    """A folder that goes when this process does."""
    return tempfile.TemporaryDirectory(prefix="coursework-")


def _run(jobs: dict[Path, dict], total: int, workers, scheduler: str | None) -> None:
    """Run jobs and store each result as it comes."""
    bar = tqdm(total=total, initial=total - len(jobs), unit="notebook", desc="grading")
    with bar:
        for path, result in _results(jobs, workers, scheduler):
            _store(path, result)
            bar.update()


def _results(jobs: dict[Path, dict], workers, scheduler) -> Iterable[tuple[Path, dict]]:
    # Jobs of one exercise together, so that a thread keeps its sandbox.
    order = sorted(jobs, key=lambda path: (jobs[path]["exercise"], path))
    if scheduler:
        try:
            from dask.distributed import Client
            from dask.distributed import as_completed as as_finished
        except ImportError:
            raise ValueError(
                "--scheduler needs dask.distributed: pip install distributed"
            ) from None
        with Client(scheduler) as client:
            futures = {client.submit(run_job, jobs[path]): path for path in order}
            for future in as_finished(futures):
                yield futures[future], future.result()
        return
    pool = ThreadPoolExecutor(workers or os.cpu_count())
    try:
        futures = {pool.submit(run_job, jobs[path]): path for path in order}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # After Ctrl-C a notebook that is stuck would hold up the end.
        sandbox.stopping.set()
        pool.shutdown(cancel_futures=True)
        sandbox.stopping.clear()
        while _open:
            _open.pop().close()


def _store(path: Path, result: dict) -> None:
    """Write a result so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.replace(path)


def _valid(path: Path, digest: str) -> bool:
    """Whether a result is there, whole, and of the same job."""
    try:
        return json.loads(path.read_text())["digest"] == digest
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _secret(report: Path) -> str:
    """The seed of all hidden inputs of this report, made at its first run."""
    path = report / "seed"
    if not path.exists():
        report.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(secrets.token_hex(16) + "\n")
        part.replace(path)
    return path.read_text().strip()


def _keep_apart(*places: Path) -> None:
    """ValueError for a file or folder that the sandbox would show to students."""
    for place in places:
        for shown in sandbox.mounts():
            if place.resolve().is_relative_to(shown):
                raise ValueError(
                    f"{place} lies in {shown}, which students' code can read: move it"
                )
