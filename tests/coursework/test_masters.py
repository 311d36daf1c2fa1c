"""The book's own masters: released as they are stored, graded with full points."""

import shutil

import pytest

from coursework.grade import grade
from coursework.release import release
from tests.coursework.masters import EXERCISES, MASTERS
from tests.coursework.small_course import earned, needs_sandbox, results
from tests.guards.notebook import ROOT


def test_the_exercises_are_those_that_a_release_makes_now(tmp_path):
    fresh = {path.name: path.read_text() for path in release(MASTERS, tmp_path)}
    stored = {path.name: path.read_text() for path in ROOT.glob("exercises/*.ipynb")}
    assert fresh == stored, "python -m coursework release --to exercises"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Every master, and every notebook as students get it, graded in one batch."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "in" / "master").mkdir(parents=True)
    for name in EXERCISES:
        shutil.copy(MASTERS / f"{name}.ipynb", folder / "in" / "master")
    release(MASTERS, folder / "in" / "untouched")
    grade(folder / "in", folder / "out", MASTERS, 1)
    return results(folder / "out")


@needs_sandbox
@pytest.mark.parametrize("name", EXERCISES)
def test_a_master_gets_all_automatic_points(book, name):
    result = book["master", name]
    assert (result["status"], result["problem"]) == ("ok", "")
    assert {check["name"]: check["reason"] for check in result["checks"]} == {
        check["name"]: "" for check in result["checks"]
    }
    assert earned(result) == [check["points"] for check in result["checks"]]


@needs_sandbox
@pytest.mark.parametrize("name", EXERCISES)
def test_an_untouched_notebook_gets_none_and_does_not_crash(book, name):
    result = book["untouched", name]
    assert (result["status"], result["problem"]) == ("ok", "")
    assert {check["reason"] for check in result["checks"]} == {"still to be written"}
    assert sum(earned(result)) == 0
