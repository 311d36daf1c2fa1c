"""What a hidden check is: data, with a function that makes inputs and one that answers.

Only the instructor's machine sees this. A student's process receives the inputs of one
call at a time and returns plain numbers, words and lists; the comparison is made here.
"""

import importlib.util
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from coursework.wire import Value

Given = Mapping[str, Value]
Verdict = Callable[[Value, Value], str | None]


def close(relative: float = 1e-6, absolute: float = 1e-9) -> Verdict:
    """Numbers, alone or in lists, that agree: |got - expected| <= either tolerance.

    The relative tolerance is a share of the largest expected number, so that a zero
    among large numbers may be off by their rounding. Returns a verdict: a function of
    the expected and the received value that says what is wrong, or None.
    """

    def verdict(expected: Value, got: Value) -> str | None:
        reason = misshapen(expected, got)
        if reason:
            return reason
        want, have = flat(expected), flat(got)
        slack = max(absolute, relative * max(map(abs, want), default=0))
        near = all(abs(a - b) <= slack for a, b in zip(want, have))
        return None if near else "the value is not right"

    return verdict


def within(errors: float = 5) -> Verdict:
    """An estimate by sampling: at most so many standard errors from the exact value.

    The reference returns [exact value, standard error of a right answer]. With 5 a
    right answer fails once in almost two million.
    """

    def verdict(expected: Value, got: Value) -> str | None:
        exact, error = expected
        reason = misshapen(exact, got)
        if reason:
            return reason
        near = abs(flat(got)[0] - exact) <= errors * error
        return None if near else "too far from the exact value to be chance"

    return verdict


def same(expected: Value, got: Value) -> str | None:
    """A verdict for words and whole numbers: equal, but for case and outer spaces."""
    if isinstance(expected, str):
        if not isinstance(got, str):
            return "a word in quotes was expected"
        equal = got.strip().casefold() == expected.casefold()
    else:
        reason = misshapen(expected, got)
        if reason:
            return reason
        equal = flat(got) == flat(expected)
    return None if equal else "not the right answer"


def misshapen(expected: Value, got: Value) -> str | None:
    """Say how ``got`` differs from ``expected`` in form, if it does.

    A number may come alone in a list, as a tensor of shape (1,) does.
    """
    if isinstance(expected, list):
        if not isinstance(got, list):
            return "one value where several were expected"
        if len(got) != len(expected):
            # Not the number that came: it could tell the input.
            return f"the number of entries should be {len(expected)}"
        return next(filter(None, map(misshapen, expected, got)), None)
    while isinstance(got, list) and len(got) == 1:
        (got,) = got
    if isinstance(got, list):
        return "a list or an array where one number was expected"
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return "something other than a number"
    try:
        return None if math.isfinite(got) else "NaN or infinity"
    except OverflowError:
        return "a number too large to be right"


def flat(value: Value) -> list[float]:
    """All numbers of nested lists, in order."""
    if isinstance(value, list):
        return [number for entry in value for number in flat(entry)]
    return [value]


@dataclass(frozen=True)
class Check:
    """One hidden check.

    Args:
        name: a short phrase that stands on the feedback page, and nowhere in what
            students get before.
        points: whole, 1 or more; all are given or none.
        function: the student's function that is called.
        inputs: of a seeded ``random.Random`` and the student's constants, the list of
            calls, each a tuple of numbers, words and lists. A list arrives as a tensor.
        reference: of the constants and then the arguments, the right answer.
        hint: what helps without giving the answer away.
        verdict: of the expected and the received value, what is wrong, or None.
        wrong: Python sources of wrong answers, three or more, that it must reject.
    """

    name: str
    points: int
    function: str
    inputs: Callable[[random.Random, Given], Sequence[tuple]]
    reference: Callable
    hint: str
    wrong: Sequence[str]
    verdict: Verdict = field(default_factory=close)


@dataclass(frozen=True)
class Exercise:
    """The hidden side of an exercise: solutions/NAME.py makes one, named ``exercise``.

    Args:
        title: as on the notebook's first line.
        chapter: name of the chapter that it belongs to.
        checks: the hidden checks, in the order of the notebook.
        modules: rooms of genaudit that a student may import, such as "schedule".
        constants: for each name the values that a student may be given; without a
            course key everybody has the first.
    """

    title: str
    chapter: str
    checks: Sequence[Check]
    modules: Sequence[str] = ()
    constants: Mapping[str, Sequence[Value]] = field(default_factory=dict)

    @property
    def given(self) -> Given:
        """The constants of the public notebook."""
        return {name: values[0] for name, values in self.constants.items()}


def load(path: Path) -> Exercise:
    """Return the exercise that a file, solutions/NAME.py, defines, else ValueError."""
    spec = importlib.util.spec_from_file_location(f"solution_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not isinstance(getattr(module, "exercise", None), Exercise):
        raise ValueError(f"{path}: defines no Exercise with the name exercise")
    return module.exercise


def load_all(folder: Path) -> dict[str, Exercise]:
    """Return the exercises of a folder by name; ValueError if there is none."""
    paths = sorted(folder.glob("*.py"))
    if not paths:
        raise ValueError(f"{folder} holds no exercise (NAME.py and NAME.ipynb)")
    return {path.stem: load(path) for path in paths}


def pencil(master: Path) -> dict[str, int]:
    """Points of the pencil parts of a master notebook, by grade_id."""
    parts = {}
    for cell in nbformat.read(master, as_version=4).cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and about.get("grade"):
            parts[about["grade_id"]] = about["points"]
    return parts
