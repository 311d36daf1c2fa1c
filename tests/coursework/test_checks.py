"""Verdicts, and how exercises are read from their folder."""

import math

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from coursework.checks import Exercise, close, flat, load_all, pencil, same, within
from tests.coursework.small_course import make_masters

NUMBER = "something other than a number"


def entries(expected):
    return f"the number of entries should be {expected}"


MISSHAPEN = [
    (1.0, [1.0, 2.0], "a list or an array where one number was expected"),
    (1.0, [], "a list or an array where one number was expected"),
    ([1.0], 1.0, "one value where several were expected"),
    ([1.0, 2.0], [1.0], entries(2)),
    ([1.0, 2.0], [1.0, 2.0, 3.0], entries(2)),
    ([[1.0, 2.0]], [1.0, 2.0], entries(1)),
    ([[1.0], [2.0]], [[1.0, 2.0], [2.0]], entries(1)),
    (1.0, "1.0", NUMBER),
    (1.0, None, NUMBER),
    (1.0, True, NUMBER),
    (0, False, NUMBER),
    ([1.0, 0.0], [True, False], NUMBER),
    (1.0, {"value": 1.0}, NUMBER),
    (1.0, math.nan, "NaN or infinity"),
    (1.0, math.inf, "NaN or infinity"),
    ([1.0, 2.0], [1.0, -math.inf], "NaN or infinity"),
    (1.0, 10**400, "a number too large to be right"),
]


@pytest.mark.parametrize(
    ("expected", "got", "reason"), MISSHAPEN, ids=range(len(MISSHAPEN))
)
def test_a_wrong_form_is_named(expected, got, reason):
    assert close(1e9, 1e9)(expected, got) == reason
    assert same(expected, got) == reason


@pytest.mark.parametrize("verdict", [close(), same])
def test_a_number_may_come_in_a_list(verdict):
    assert verdict(2.0, [2.0]) is None
    assert verdict([1.0, 2.0], [[1.0], [[2.0]]]) is None
    assert verdict(2.0, [3.0]) is not None
    assert verdict(2.0, [[True]]) == NUMBER


def test_an_estimate_may_come_in_a_list():
    assert within()([1.0, 0.1], [1.2]) is None
    assert within()([1.0, 0.1], [1.6]) is not None


@pytest.mark.parametrize("got", [[1.0, 1.0], "1", True, math.nan, math.inf, 10**309])
def test_an_estimate_must_be_one_number(got):
    assert within()([1.0, math.inf], got) is not None


@pytest.mark.parametrize(
    ("relative", "absolute", "expected", "right", "wrong"),
    [
        (0.0, 0.5, 2.0, [2.5, 1.5, 2], [2.5000001, 1.4999999]),
        (0.25, 0.0, 2.0, [2.5, 1.5], [2.5000001, 1.4999999]),
        (0.25, 0.0, -2.0, [-2.5, -1.5], [-2.5000001, 2.0]),
        # The larger of the two, not their sum.
        (0.25, 0.5, 2.0, [2.5], [2.75]),
        (0.25, 0.0, 0.0, [0.0, -0.0, 0], [5e-324]),
        # A share of the largest number, for all of them.
        (0.25, 0.0, [0.0, 2.0], [[0.5, 2.0], [-0.5, 2.5]], [[0.6, 2.0], [0.0, 2.6]]),
        (0.25, 0.0, [[1.0], [-4.0]], [[[2.0], [-5.0]]], [[[2.1], [-4.0]]]),
    ],
)
def test_close_ends_at_its_tolerance(relative, absolute, expected, right, wrong):
    verdict = close(relative, absolute)
    assert [verdict(expected, got) for got in right] == [None] * len(right)
    said = ["the value is not right"] * len(wrong)
    assert [verdict(expected, got) for got in wrong] == said


def test_close_alone_is_for_rounding():
    assert close()(1.0, 1 + 0.9e-6) is None
    assert close()(1.0, 1 + 1.1e-6) is not None
    assert close()(0.0, 0.9e-9) is None
    assert close()(0.0, 1.1e-9) is not None


def test_no_numbers_where_none_are_expected():
    assert close()([], []) is None


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_close_looks_at_the_distance_alone(expected, off):
    verdict = close(0.0, 1.0)
    right = verdict(expected, expected + off) is None
    assert right == (abs(expected + off - expected) <= 1)


@pytest.mark.parametrize(
    ("got", "right"), [(3.0, True), (1.0, True), (3.0001, False), (0.9999, False)]
)
def test_within_counts_standard_errors(got, right):
    said = None if right else "too far from the exact value to be chance"
    assert within(4)([2.0, 0.25], got) == said


def test_within_five_by_default():
    assert within()([0.0, 1.0], 5.0) is None
    assert within()([0.0, 1.0], 5.0001) is not None


@pytest.mark.parametrize("got", ["up", "UP", " Up\n", "uP "])
def test_words_differ_in_case_and_spaces_alone(got):
    assert same("up", got) is None
    assert same("Up", got) is None


@pytest.mark.parametrize("got", ["down", "u p", "", "upward"])
def test_another_word_is_wrong(got):
    assert same("up", got) == "not the right answer"


@pytest.mark.parametrize("got", [1, None, ["up"], True])
def test_no_word_is_named(got):
    assert same("up", got) == "a word in quotes was expected"


def test_whole_numbers_are_equal_or_not():
    assert same(3, 3) is None
    assert same(3, 3.0) is None
    assert same([1, [2, 3]], [1, [2, 3]]) is None
    assert same(3, 3.0000001) == "not the right answer"
    assert same([1, 2], [2, 1]) == "not the right answer"


def test_flat_keeps_the_order():
    assert flat([[1, [2]], 3, []]) == [1, 2, 3]
    assert flat(4) == [4]


def test_everybody_has_the_first_constants_without_a_key():
    exercise = Exercise("T", "elbo", [], constants={"a": [2, 3], "b": [[0.5], [1.0]]})
    assert exercise.given == {"a": 2, "b": [0.5]}


def test_a_folder_of_exercises(tmp_path):
    exercises = load_all(make_masters(tmp_path / "solutions"))
    assert list(exercises) == ["halves", "words"]
    assert exercises["halves"].title == "Halves and squares"
    assert [check.points for check in exercises["halves"].checks] == [2, 3]


def test_a_folder_without_exercises_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} holds no exercise"):
        load_all(tmp_path)


@pytest.mark.parametrize("source", ["", "exercise = {'title': 'T'}"])
def test_a_file_without_an_exercise_is_named(tmp_path, source):
    (tmp_path / "notes.py").write_text(source)
    with pytest.raises(ValueError, match=r"notes\.py: defines no Exercise"):
        load_all(tmp_path)


def test_pencil_parts_are_graded_markdown(tmp_path):
    def about(**words):
        return {"nbgrader": words}

    proof = about(grade=True, grade_id="proof", points=4, solution=True)
    cells = [
        new_markdown_cell("A question."),
        new_markdown_cell("A proof.", metadata=proof),
        new_markdown_cell("A note.", metadata=about(grade=False, grade_id="note")),
        new_code_cell("1", metadata=about(grade=True, grade_id="code", points=9)),
        new_markdown_cell(
            "A sketch.", metadata=about(grade=True, grade_id="sketch", points=2)
        ),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "a.ipynb")
    assert pencil(tmp_path / "a.ipynb") == {"proof": 4, "sketch": 2}
