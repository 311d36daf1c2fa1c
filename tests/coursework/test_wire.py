"""What passes between the grader and a student's process."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coursework.wire import LONGEST, argument, dumps, plain

VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    st.lists,
    max_leaves=8,
)


@given(VALUES)
def test_plain_values_arrive_as_they_are(value):
    assert plain(value) == value
    assert json.loads(dumps({"value": plain(value)})) == {"value": value}


@given(VALUES)
def test_a_message_is_one_line_of_ascii(value):
    line = dumps({"value": value})
    assert line.isascii()
    assert line.find(b"\n") == len(line) - 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.tensor(2.5), 2.5),
        (torch.tensor([1.0, 2.0], requires_grad=True), [1.0, 2.0]),
        (torch.tensor([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
        (torch.tensor([True]), [True]),
        (torch.empty(0), []),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.arange(3), [0, 1, 2]),
        ((torch.tensor(1.0), np.array([2.0]), (3, "four")), [1.0, [2.0], [3, "four"]]),
        (-(2**LONGEST) + 1, -(2**LONGEST) + 1),
    ],
    ids=range(11),
)
def test_tensors_arrays_and_tuples_become_lists(value, expected):
    found = plain(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == expected


def test_nan_stays_nan():
    (found,) = plain(torch.tensor([math.nan]))
    assert math.isnan(found)
    assert math.isnan(json.loads(dumps({"value": found}))["value"])


@pytest.mark.parametrize(
    "value",
    [
        None,
        1j,
        torch.tensor(1j),
        np.array([1j]),
        np.array([None]),
        {"a": 1},
        {1.0},
        b"1",
        range(3),
        print,
        [1.0, None],
        torch.nn.Linear(1, 1),
        # No float comes near, and of much longer ones JSON makes an error.
        2**LONGEST,
        -(2**LONGEST),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError):
        plain(value)


def test_a_list_in_itself_is_refused():
    value = [1.0]
    value.append(value)
    with pytest.raises(RecursionError):
        plain(value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1.0, 2.0], torch.float64),
        ([1, 2.5], torch.float64),
        ([[1, 2], [3, 4]], torch.int64),
        ([True, False], torch.bool),
        ([], torch.float64),
    ],
)
def test_a_list_of_numbers_arrives_as_a_tensor(value, dtype, usual_dtype):
    tensor = argument(value)
    assert tensor.dtype == dtype
    assert tensor.tolist() == value


@pytest.mark.parametrize("value", [3, 0.1, True, "word", ["two", "words"], ["", ""]])
def test_words_and_numbers_arrive_as_they_are(value):
    assert argument(value) is value


def test_no_digit_is_lost_on_the_way(usual_dtype):
    value = [0.1, 1 / 3, 1e-300, 5e-324]
    assert argument(json.loads(dumps({"value": value}))["value"]).tolist() == value
