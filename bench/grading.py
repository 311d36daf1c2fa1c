"""Submissions a minute: this grader, sandbox included, beside nbgrader's autograde.

    python bench/grading.py --nbgrader .venv/nbgrader/bin/nbgrader
    python bench/grading.py --nbgrader ... --copies 10     short, on a busy machine

Both grade copies of one notebook, the master of the Gaussian ELBO as a student might
have filled it in, and put the same calls to its functions; README.md says what the
numbers mean.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from coursework import exam, grade, sandbox
from coursework.checks import load

ROOT = Path(__file__).resolve().parent.parent
MASTERS = ROOT / "solutions"
NAME = "gaussian_elbo"
KERNEL = "bench"
TEST = """
import torch
for arguments, expected in {calls}:
    arguments = [torch.tensor(a) if isinstance(a, list) else a for a in arguments]
    got = {function}(*arguments)
    got = [float(g) for g in got] if isinstance(got, (tuple, list)) else float(got)
    near = torch.isclose(torch.tensor(got), torch.tensor(expected), rtol=3e-3)
    assert near.reshape(-1, near.shape[-1] if near.ndim else 1).all(-1).any()
"""


def master() -> nbformat.NotebookNode:
    """The filled-in notebook, without markers."""
    notebook = nbformat.read(MASTERS / f"{NAME}.ipynb", as_version=4)
    for cell in notebook.cells:
        lines = cell.source.split("\n")
        cell.source = "\n".join(line for line in lines if "SOLUTION" not in line)
    return notebook


def ours(folder: Path, copies: int, workers: int, forked: bool) -> float:
    """Seconds that coursework.grade takes for so many copies."""
    submissions = folder / "ours"
    submissions.mkdir(exist_ok=True)
    for number in range(copies):
        nbformat.write(master(), submissions / f"s{number:03d}_{NAME}.ipynb")
    tried = sandbox.can_fork
    if not forked:
        sandbox.can_fork = lambda: False
    report = folder / f"report-{forked}"
    start = time.perf_counter()
    grade.grade(submissions, report, MASTERS, workers=workers)
    seconds = time.perf_counter() - start
    sandbox.can_fork = tried
    results = [json.loads(path.read_text()) for path in report.glob("results/*/*")]
    full = all(check["earned"] for one in results for check in one["checks"])
    assert len(results) == copies and full, "not every copy got its points"
    return seconds


def theirs(folder: Path, copies: int, program: str) -> float:
    """Seconds that nbgrader's autograde takes for the same copies."""
    course = folder / "course"
    source = course / "source" / "hw"
    source.mkdir(parents=True)
    notebook = with_tests()
    nbformat.write(notebook, source / f"{NAME}.ipynb")
    environment = os.environ | {
        "JUPYTER_PATH": str(kernel(folder)),
        "PATH": f"{Path(program).resolve().parent}:{os.environ['PATH']}",  # alembic
    }

    def run(*words: str) -> None:
        done = subprocess.run(
            [program, *words, f"--CourseDirectory.root={course}"],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]

    run("generate_assignment", "hw", "--create")
    answers = {cell.id: cell.source for cell in master().cells}
    release = nbformat.read(course / "release" / "hw" / f"{NAME}.ipynb", 4)
    for cell in release.cells:
        cell.source = answers.get(cell.id, cell.source)
    for number in range(copies):
        place = course / "submitted" / f"s{number:03d}" / "hw"
        place.mkdir(parents=True)
        nbformat.write(release, place / f"{NAME}.ipynb")
    start = time.perf_counter()
    run("autograde", "hw")
    seconds = time.perf_counter() - start
    graded = list(course.glob(f"autograded/*/hw/{NAME}.ipynb"))
    assert len(graded) == copies, f"{len(graded)} of {copies} were graded"
    assert not any('"error"' in path.read_text() for path in graded), "a test failed"
    return seconds


def with_tests() -> nbformat.NotebookNode:
    """The master with a cell of tests for each hidden check, as nbgrader has them."""
    exercise = load(MASTERS / f"{NAME}.py")
    notebook = nbformat.read(MASTERS / f"{NAME}.ipynb", as_version=4)
    notebook.metadata.kernelspec = {"name": KERNEL, "display_name": KERNEL}
    for number, check in enumerate(exercise.checks):
        calls = [
            (call.arguments, call.expected)
            for call in exam.calls_of(check, exercise.given, "bench")
        ]
        cell = new_code_cell(TEST.format(calls=calls, function=check.function))
        cell.metadata["nbgrader"] = {
            "grade": True,
            "grade_id": f"test-{number}",
            "locked": True,
            "points": check.points,
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
        notebook.cells.append(cell)
    return new_notebook(cells=notebook.cells, metadata=notebook.metadata)


def kernel(folder: Path) -> Path:
    """A Jupyter path with a kernel that is this Python, which has torch."""
    place = folder / "jupyter" / "kernels" / KERNEL
    place.mkdir(parents=True)
    words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"argv": words, "display_name": KERNEL, "language": "python"}
    (place / "kernel.json").write_text(json.dumps(about))
    return folder / "jupyter"


def main() -> None:
    """Run both sides and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nbgrader", help="the nbgrader program, in any environment")
    parser.add_argument("--copies", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides = {
            "forked from an imported parent": lambda: ours(
                folder, given.copies, given.workers, True
            ),
            "a fresh process each": lambda: ours(
                folder, given.copies, given.workers, False
            ),
        }
        if given.nbgrader:
            sides["nbgrader autograde"] = lambda: theirs(
                folder, given.copies, given.nbgrader
            )
        print(f"{given.copies} copies, {given.workers} workers")
        for side, run in sides.items():
            seconds = run()
            rate = 60 * given.copies / seconds
            print(f"{side:32s} {seconds:7.1f} s  {rate:7.1f} a minute", flush=True)


if __name__ == "__main__":
    main()
