"""What the visible checks of each exercise say to right and to wrong answers.

A slip that they should see is a planted wrong answer of the hidden checks.
"""

import ast
import inspect
import itertools
import random
import re
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from types import ModuleType
from unittest.mock import patch

import pytest
import torch

from coursework.wire import argument
from tests.coursework.masters import (
    EXERCISES,
    cells,
    double_precision,  # noqa: F401 - a fixture that every test here uses
    master,
    master_of,
    verdicts,
)

VISIBLE = {name: import_module(f"genaudit.exercises.{name}") for name in EXERCISES}
SHOWN = {
    name: [each for each, check in vars(room).items() if hasattr(check, "__wrapped__")]
    for name, room in VISIBLE.items()
}
EACH = [(name, function) for name, shown in SHOWN.items() for function in shown]
# Without arguments there is one answer, and most properties would give it away.
FREE = {"own_setting"}  # the student chooses it, within bounds that can be checked
# Slips that no property shows without giving the answer away, by number, and why.
UNSEEN = {
    "aggregate_kl prediction 1 2 3 4": "a forecast is a forecast",
    "aggregate_kl estimator_case 1 2 3 4 5": "words, and the words are the answer",
    "aggregate_kl own_setting 2 4 5": "size and target are the student's own",
    "beta_vae prediction 1 2 3 4": "a forecast is a forecast",
    "forward_jump cosine_betas 4": "a plausible first beta, not that asked for",
    "gan_identity best_judgement 5": "without mass any belief is plausible",
}
LISTED = {
    (name, function, int(number))
    for name, function, *numbers in map(str.split, UNSEEN)
    for number in numbers
}
SLIPS = {
    (name, check.function, number): source
    for name, exercise in EXERCISES.items()
    for check in exercise.checks
    if check.function in SHOWN[name]
    for number, source in enumerate(check.wrong, 1)
}
# All numbers in the hints: of the question, or 0 and 1 of what holds for every answer.
STATED = {
    "aggregate_kl": {"0.01", "1", "2", "6"},
    "beta_vae": {"0"},
    "forward_jump": {"0", "1", "2"},
    "gan_identity": {"1"},
    "gaussian_elbo": {"0", "1"},
}

each_exercise = pytest.mark.parametrize("name", EXERCISES)
each_function = pytest.mark.parametrize(("name", "function"), EACH)


def said(name, function, answer):
    """The line that a visible check prints, without its name."""
    torch.default_generator.manual_seed(6050)
    with redirect_stdout(StringIO()) as printed:
        getattr(VISIBLE[name], function)(answer)
    return printed.getvalue().removeprefix(f"{function}: ")


def numbers(text):
    return set(re.findall(r"\d+(?:\.\d+)?", text))


def alone(name, function):
    """Whether a student's function takes no arguments."""
    return not inspect.signature(master(name)[function]).parameters


def personal(name, check):
    """Whether a hidden check needs the numbers that differ between students."""
    try:
        for inputs in check.inputs(random.Random(6050), {}):
            check.reference({}, *map(argument, inputs))
    except KeyError:
        return True
    return alone(name, check.function)


def students(name):
    """Numbers of students: all there are, or a sample of 200."""
    constants = EXERCISES[name].constants
    every = list(itertools.product(*constants.values()))
    for values in random.Random(6050).sample(every, min(len(every), 200)):
        yield dict(zip(constants, values))


@each_exercise
def test_functions_with_arguments_are_checked_and_the_notebook_does_it(name):
    asked = [check.function for check in EXERCISES[name].checks]
    wanted = [each for each in asked if each in FREE or not alone(name, each)]
    assert SHOWN[name] == wanted
    sources = [cell.source for cell in cells(name) if cell.cell_type == "code"]
    calls = [source for source in sources if source.startswith("visible.")]
    assert calls == [f"visible.{each}({each})" for each in wanted]


@each_function
def test_a_stub_is_still_to_be_written(name, function):
    def stub(*arguments):
        raise NotImplementedError

    assert said(name, function, stub) == "still to be written\n"


@each_exercise
def test_answers_pass_without_the_numbers_that_differ(name):
    space = master(name)
    data = [
        each
        for each, value in space.items()
        if not (callable(value) or isinstance(value, ModuleType) or each[0] == "_")
    ]
    assert data or not EXERCISES[name].constants
    with patch.dict(space):
        for each in data:
            del space[each]
        for check in EXERCISES[name].checks:
            answer = space[check.function]
            if not alone(name, check.function):
                assert said(name, check.function, answer).startswith("passes")
            if not personal(name, check):
                assert set(verdicts(name, check, answer, given={})) == {None}


@each_exercise
def test_each_students_numbers_tell_right_from_wrong(name):
    checks = [check for check in EXERCISES[name].checks if personal(name, check)]
    for given in students(name):
        space = master_of(name, given)
        for check in checks:
            right = space[check.function]
            assert set(verdicts(name, check, right, given=given)) == {None}, given
            if check.function in FREE:
                assert said(name, check.function, right).startswith("passes"), given
                continue  # its slips take long, and are wrong whatever the numbers
            for source in check.wrong:
                exec(source, wrong := dict(space))
                rejected = verdicts(name, check, wrong[check.function], given=given)
                assert any(rejected), (given, source)


@pytest.mark.parametrize(("name", "function", "number"), SLIPS)
def test_a_slip_is_seen_or_listed(name, function, number):
    space = dict(master(name))
    exec(SLIPS[name, function, number], space)
    # Wrong axes may also fail to broadcast; torch's own words are then the hint.
    line = said(name, function, space[function])
    seen = line.startswith(("not yet", "raised RuntimeError"))
    assert seen != ((name, function, number) in LISTED), line


def test_only_planted_slips_are_listed():
    assert LISTED <= set(SLIPS)


@each_exercise
def test_hints_hold_no_number_but_those_of_the_question(name):
    asked = " ".join(
        cell.source
        for cell in cells(name)
        if cell.cell_type == "markdown" and "nbgrader" not in cell.metadata
    )
    found = set()
    for function in SHOWN[name]:
        pairs = getattr(VISIBLE[name], function).__wrapped__(master(name)[function])
        found |= numbers(" ".join(hint for _, hint in pairs))
    assert found == STATED.get(name, set())
    assert found <= numbers(asked) | {"0", "1"}


@each_exercise
def test_hints_are_fixed_words(name):
    nodes = list(ast.walk(ast.parse(inspect.getsource(VISIBLE[name]))))
    # "rule beta" and "rule tilde" are in order: a loop over the words of a question.
    loops = [ast.walk(node.target) for node in nodes if isinstance(node, ast.For)]
    words = {each.id for loop in loops for each in loop if isinstance(each, ast.Name)}
    yields = [node.value for node in nodes if isinstance(node, ast.Yield)]
    assert yields
    for pair in yields:
        hint = pair.elts[1]
        assert isinstance(hint, (ast.Constant, ast.JoinedStr)), ast.unparse(hint)
        used = [part for part in ast.walk(hint) if isinstance(part, ast.FormattedValue)]
        assert {ast.unparse(part.value) for part in used} <= words, ast.unparse(hint)
