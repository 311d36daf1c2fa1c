"""The exercises with their masters, and what a hidden check says to an answer."""

import random
from functools import cache

import nbformat
import pytest
import torch

from coursework.checks import load_all
from coursework.wire import argument, plain
from tests.guards.notebook import ROOT

MASTERS = ROOT / "solutions"
EXERCISES = load_all(MASTERS)


@pytest.fixture(autouse=True)
def double_precision():
    """The masters set float64; other tests in this process shall not feel it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@cache
def cells(name):
    """The cells of a master."""
    return nbformat.read(MASTERS / f"{name}.ipynb", as_version=4).cells


@cache
def code(name):
    """The code cells of a master by id, compiled."""
    sources = {cell.id: cell.source for cell in cells(name) if cell.cell_type == "code"}
    sources["setup"] = sources["setup"].replace("%pip", "pass  #")
    return {at: compile(text, f"{name}, {at}", "exec") for at, text in sources.items()}


@cache
def master(name):
    """What the code cells of a master define."""
    # Half of what a notebook does by default; the setup cell sets float64 itself.
    space = {"__name__": "__main__"}
    for cell in code(name).values():
        exec(cell, space)
    return space


def master_of(name, given):
    """The same with a student's numbers, without the cells that only print."""
    space = {"__name__": "__main__"}
    for at, cell in code(name).items():
        if at == "given":
            space.update(given)
        elif not at.endswith(("-visible", "-table", "-shown")):
            exec(cell, space)
    return space


def verdicts(name, check, function, seed=6050, given=None):
    """What the check says to each call: None where it is satisfied."""
    given = EXERCISES[name].given if given is None else given
    calls = check.inputs(random.Random(f"{seed} {check.name}"), given)
    for number, inputs in enumerate(calls):
        # The CPU's generator: all devices take long.
        torch.default_generator.manual_seed(seed + number)
        arguments = [argument(value) for value in inputs]
        expected = plain(check.reference(given, *arguments))
        yield check.verdict(expected, plain(function(*arguments)))
