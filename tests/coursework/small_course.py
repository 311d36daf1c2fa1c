"""A small course that is graded in earnest: two exercises, and notebooks for them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from coursework import sandbox
from coursework.release import given_source
from tests.guards.notebook import ROOT

needs_sandbox = pytest.mark.skipif(
    bool(sandbox.refusal()), reason=f"no sandbox on this machine: {sandbox.refusal()}"
)

CHECKS = {
    "halves": '''
"""Hidden checks of halves."""

from coursework.checks import Check, Exercise


def three(stream, given):
    return [(stream.uniform(1, 2),) for _ in range(3)]


def once(stream, given):
    return [()]


exercise = Exercise(
    title="Halves and squares",
    chapter="elbo",
    constants={"width": [3, 5, 7, 9, 11, 13, 17, 19]},
    checks=[
        Check("three numbers cut in two", 2, "half", three,
              lambda given, x: x / 2, "Cut it in two.", []),
        Check("area for the width of this notebook", 3, "area", once,
              lambda given: given["width"] ** 2, "Width times height.", []),
    ],
)
''',
    "words": '''
"""Hidden checks of words."""

from coursework.checks import Check, Exercise, same


def once(stream, given):
    return [()]


exercise = Exercise(
    title="Words",
    chapter="gan",
    checks=[
        Check("the way it goes", 1, "direction", once,
              lambda given: "up", "Look again.", [], same),
    ],
)
''',
}
ANSWERS = {
    "halves": {
        "half": "def half(x):\n    return x / 2",
        "area": "def area():\n    return width**2",
    },
    "words": {"direction": 'def direction():\n    return "up"'},
}
WIDTH = 3  # of everybody without a course key
FULL = {"halves": 5, "words": 1}
PROOF = 4  # points of the pencil part of halves


def make_masters(folder: Path) -> Path:
    """Write NAME.py and NAME.ipynb of both exercises, fit to be released."""
    folder.mkdir(parents=True)
    for name, source in CHECKS.items():
        (folder / f"{name}.py").write_text(source)
        cells = [new_markdown_cell(f"# {name.title()}", id="title")]
        if name == "halves":
            given = given_source({"width": WIDTH})
            cells.append(new_code_cell(given, id="given"))
        cells += [_answer(*answer) for answer in ANSWERS[name].items()]
        if name == "halves":
            cells.append(_proof())
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    return folder


def _answer(function: str, source: str):
    head, body = source.split("\n")
    lines = [head, "    ### BEGIN SOLUTION", body, "    ### END SOLUTION"]
    about = {"grade_id": function, "grade": False, "solution": True}
    return new_code_cell("\n".join(lines), id=function, metadata={"nbgrader": about})


def _proof():
    lines = ["### BEGIN SOLUTION", "Both triangles are equally large.", "Rubric: 4"]
    about = {"grade_id": "proof", "grade": True, "solution": True, "points": PROOF}
    source = "\n".join([*lines, "### END SOLUTION"])
    return new_markdown_cell(source, id="proof", metadata={"nbgrader": about})


def hand_in(folder: Path, student: str, name: str, *cells: str, **answers: str) -> Path:
    """Write STUDENT/NAME.ipynb: these cells, then the right answers or those given."""
    sources = [f"width = {WIDTH}", *cells, *(ANSWERS[name] | answers).values()]
    book = new_notebook(cells=list(map(new_code_cell, sources)))
    path = folder / student / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)
    return path


def results(report: Path) -> dict[tuple[str, str], dict]:
    """What a report holds, by student and exercise."""
    found = map(json.loads, map(Path.read_text, (report / "results").rglob("*.json")))
    return {(one["student"], one["exercise"]): one for one in found}


def earned(result: dict) -> list[int]:
    """Points of each check."""
    return [check["earned"] for check in result["checks"]]


def files(report: Path) -> dict[str, bytes]:
    """All that lies in the folder of results, byte by byte."""
    folder = report / "results"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def start(*words, **options) -> subprocess.Popen:
    """Start ``python -m coursework`` as the leader of a group of processes."""
    return subprocess.Popen(
        [sys.executable, "-m", "coursework", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **{"env": {**os.environ, "OMP_NUM_THREADS": "1"}, **options},
    )
