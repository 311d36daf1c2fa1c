"""Each exercise's hidden checks: the master passes them, planted wrong answers do not.

Only the checks are on trial here, so the masters run in this process; the sandbox has
its own tests.
"""

import random

import pytest

from tests.coursework.masters import (
    EXERCISES,
    double_precision,  # noqa: F401 - a fixture that every test here uses
    master,
    verdicts,
)
from tests.guards.notebook import ROOT

CHECKS = [
    pytest.param(name, check, id=f"{name}: {check.name}")
    for name, exercise in EXERCISES.items()
    for check in exercise.checks
]
WRONG = [
    pytest.param(name, check, source, id=f"{name}: {check.name}, {number}")
    for name, exercise in EXERCISES.items()
    for check in exercise.checks
    for number, source in enumerate(check.wrong, 1)
]


@pytest.mark.parametrize(("name", "check"), CHECKS)
@pytest.mark.parametrize("seed", [6050, 6051, 6052])
def test_the_master_is_right(name, check, seed):
    said = verdicts(name, check, master(name)[check.function], seed)
    assert list(said) == [None] * len(check.inputs(random.Random(0), given_of(name)))


@pytest.mark.parametrize(("name", "check", "source"), WRONG)
@pytest.mark.parametrize("seed", [6050, 6051, 6052])
def test_a_wrong_answer_is_rejected(name, check, source, seed):
    space = dict(master(name))
    exec(source, space)
    assert any(verdicts(name, check, space[check.function], seed))


@pytest.mark.parametrize(("name", "check"), CHECKS)
def test_three_wrong_answers_are_planted(name, check):
    assert len(set(check.wrong)) >= 3


def given_of(name):
    return EXERCISES[name].given


@pytest.mark.parametrize("name", EXERCISES)
def test_names_and_points_are_in_order(name):
    checks = EXERCISES[name].checks
    assert len({check.name for check in checks}) == len(checks)
    assert all(check.points >= 1 for check in checks)
    assert (ROOT / f"chapters/{EXERCISES[name].chapter}.ipynb").exists()
