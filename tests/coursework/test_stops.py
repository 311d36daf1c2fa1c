"""The grader is stopped at any moment, and goes on as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from coursework.__main__ import main
from tests.coursework.small_course import (
    files,
    hand_in,
    make_masters,
    needs_sandbox,
    results,
    start,
)
from tests.guards.notebook import ROOT

pytestmark = needs_sandbox

KILLS = 10
NOTEBOOKS = 16
WAIT = 60  # seconds, after which something is broken
WORK = "import time\ntime.sleep(0.15)"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Masters, what a class handed in, and a folder for reports with one seed."""
    folder = tmp_path_factory.mktemp("course")
    make_masters(folder / "solutions")
    for number in range(NOTEBOOKS):
        wrong = {"half": "def half(x):\n    return x / 3"} if number % 3 == 0 else {}
        hand_in(folder / "in", f"s{number:02}", "halves", WORK, **wrong)
    return folder


def graded(course, report, *more):
    """Start to grade the class into a report; temporary files stay beside it."""
    words = ["grade", course / "in", "--to", report, "--masters", course / "solutions"]
    rest = course / "tmp"
    rest.mkdir(exist_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(rest)}
    return start(*words, *more, env=env)


@pytest.fixture(scope="module")
def calm(course):
    """The report of a run that nobody disturbs, and how long it took."""
    began = time.monotonic()
    said = graded(course, course / "calm", "--workers", "2").communicate()
    took = time.monotonic() - began
    assert len(files(course / "calm")) == NOTEBOOKS, said
    return course / "calm", took


def seeded(calm, name):
    """A new report with the same seed."""
    report = calm[0].with_name(name)
    report.mkdir()
    shutil.copy(calm[0] / "seed", report)
    return report


def below(process):
    """All processes that a process started."""
    return psutil.Process(process.pid).children(recursive=True)


def written(report):
    """When each result was written, and that the file is the same one."""
    about = {name: (report / "results" / name).stat() for name in files(report)}
    return {name: (each.st_mtime_ns, each.st_ino) for name, each in about.items()}


def finished(report):
    return {name: text for name, text in files(report).items() if "json" in name}


def test_killed_at_ten_moments_it_loses_and_repeats_nothing(course, calm):
    expected, took = files(calm[0]), calm[1]
    stream = random.Random(6050)
    report, reports, before = seeded(calm, "killed0"), 1, {}
    for number in range(KILLS):
        process = graded(course, report, "--workers", "2")
        moment = took * (number + stream.random()) / KILLS
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGSTOP)
            started = below(process)
            process.kill()
            process.communicate()
            assert not psutil.wait_procs(started, timeout=WAIT)[1]
        found, now = finished(report), written(report)
        assert found.items() <= expected.items()
        assert before.items() <= now.items()
        before = {name: now[name] for name in found}
        if found == expected:
            report, reports, before = seeded(calm, f"killed{reports}"), reports + 1, {}
    done = graded(course, report, "--workers", "2")
    assert done.communicate()[0] == ""
    assert done.returncode == 0
    assert files(report) == expected
    assert before.items() <= written(report).items()


def some_results(report, process, count=1):
    """Wait for the first results of a run that is not over."""
    until = time.monotonic() + WAIT
    while len(finished(report)) < count and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.02)


def test_control_c_says_that_it_goes_on_and_it_does(course, calm):
    report, rest = seeded(calm, "interrupted"), set((course / "tmp").iterdir())
    process = graded(course, report, "--workers", "2")
    some_results(report, process)
    started = below(process)
    assert set((course / "tmp").iterdir()) > rest
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output, errors = process.communicate()
    assert process.returncode == 130
    said = "coursework: stopped; the same command goes on from here"
    assert (output, errors.splitlines()[-1]) == ("", said)
    assert "Traceback" not in errors
    assert not psutil.wait_procs(started, timeout=WAIT)[1]
    assert set((course / "tmp").iterdir()) == rest
    found, before = files(report), written(report)
    assert 0 < len(found) < NOTEBOOKS
    assert found.items() <= files(calm[0]).items()
    graded(course, report, "--workers", "2").communicate()
    assert files(report) == files(calm[0])
    assert before.items() <= written(report).items()


@pytest.fixture
def cluster(tmp_path):
    """A scheduler with two workers of dask.distributed: its address, the workers."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    address = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(address)]
    local = ["--no-dashboard", "--host", "127.0.0.1", "--port", "0"]
    one = ["--no-dashboard", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny"]
    commands = [["scheduler", *local], ["worker", *one], ["worker", *one]]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command, *common],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    try:
        until = time.monotonic() + WAIT
        while not address.exists() and time.monotonic() < until:
            time.sleep(0.05)
        yield json.loads(address.read_text())["address"], processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_cluster_that_loses_a_worker_gives_the_same_results(course, calm, cluster):
    address, (one, other) = cluster
    report = seeded(calm, "cluster")
    process = graded(course, report, "--scheduler", address)
    # Both have begun once each of them has a sandbox.
    until = time.monotonic() + WAIT
    while not (below(one) and below(other)) and time.monotonic() < until:
        time.sleep(0.02)
    some_results(report, process)
    started = below(one)
    assert started
    one.kill()
    one.wait()
    assert len(finished(report)) < NOTEBOOKS
    errors = process.communicate()[1]
    assert process.returncode == 0, errors
    assert files(report) == files(calm[0])
    assert {found["status"] for found in results(report).values()} == {"ok"}
    assert not psutil.wait_procs(started, timeout=WAIT)[1]


def test_a_cluster_that_does_not_answer_is_named(course, calm, capsys):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    import dask

    words = ["grade", course / "in", "--to", seeded(calm, "alone")]
    words += ["--masters", course / "solutions", "--scheduler", "tcp://127.0.0.1:1"]
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert main(list(map(str, words))) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("coursework: ")
    assert "tcp://127.0.0.1:1" in said
