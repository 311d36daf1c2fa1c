"""What counts as good input, at the edges."""

import math

import numpy as np
import pytest
import torch

from genaudit import _check
from tests.strategies import exact


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_probabilities_may_miss_one_by_their_own_rounding(dtype):
    thirds = torch.full((3,), 1 / 3, dtype=dtype)
    assert torch.equal(_check.probabilities("p", thirds), thirds)
    many = torch.linspace(1, 2, 1000).softmax(0).to(dtype)
    _check.probabilities("p", many)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_many_coarse_outcomes_are_no_excuse_for_a_wrong_sum(dtype):
    with pytest.raises(ValueError, match="probabilities must sum to 1"):
        _check.probabilities("p", torch.zeros(64, dtype=dtype))
    with pytest.raises(ValueError, match="probabilities must sum to 1"):
        _check.probabilities("p", torch.full((64,), 1.25 / 64, dtype=dtype))


def test_probabilities_sum_over_the_last_axis():
    _check.probabilities("p", exact([[0.5, 0.5], [0.25, 0.75]]))
    with pytest.raises(ValueError, match=r"p sums to \[1, 0.75\]"):
        _check.probabilities("p", exact([[0.5, 0.5], [0.25, 0.5]]))
    _check.probabilities("p", [1.0])
    with pytest.raises(ValueError):
        _check.probabilities("p", exact([0.5, 0.5 + 1e-12]))


def test_dtypes_of_tensors_and_arrays_are_kept():
    assert _check.finite("x", torch.ones(1).half()).dtype == torch.float16
    assert _check.finite("x", np.float32(1)).dtype == torch.float32
    assert _check.finite("x", np.ones(1)).dtype == torch.float64
    assert _check.finite("x", torch.tensor([1, 2])).dtype == torch.get_default_dtype()


@pytest.mark.parametrize("value", [1, 2.5, [1, 2], [0.1, 0.2]])
def test_python_numbers_become_float64(value):
    tensor = _check.finite("x", value)
    assert tensor.dtype == torch.float64
    assert tensor.tolist() == value


def test_the_edges_of_the_rules():
    assert _check.nonnegative("x", 0.0) == 0
    assert _check.alpha_bar_level(1.0) == 1
    assert _check.between("x", [0.5, 2.5], 0, 3).tolist() == [0.5, 2.5]
    for value in (0.0, 3.0, [1.0, 3.5]):
        with pytest.raises(ValueError, match="strictly between 0 and 3$"):
            _check.between("x", value, 0, 3)
    with pytest.raises(ValueError, match="^x = -inf: every entry must be finite$"):
        _check.positive("x", -math.inf)


def test_points_have_rows_and_columns():
    points = np.ones((3, 1), dtype=np.float32)
    assert torch.equal(_check.points("x", points), torch.from_numpy(points))
    assert _check.points("x", [[0.1, 0.2]]).dtype == torch.float64
    for wrong in [(), (3,), (0, 3), (3, 0), (2, 3, 1)]:
        with pytest.raises(ValueError) as caught:
            _check.points("x", torch.ones(wrong))
        assert str(caught.value) == (
            f"x has shape {wrong}: it must be (N, D), with N and D 1 or more"
        )
    with pytest.raises(ValueError, match="every entry must be finite$"):
        _check.points("x", [[math.nan]])


@pytest.mark.parametrize("value", [1, 3, np.int64(2), np.int32(3)])
def test_whole_numbers_within_the_limits(value):
    _check.whole("k", value, 1, 3)


@pytest.mark.parametrize("value", [0, 4, 2.0, True, "2", None, math.nan])
def test_anything_else_is_not_a_whole_number_within_the_limits(value):
    with pytest.raises(ValueError) as caught:
        _check.whole("k", value, 1, 3)
    assert str(caught.value) == f"k = {value!r}: must be a whole number, 1..3"


def test_long_values_are_cut_short():
    with pytest.raises(ValueError) as caught:
        _check.positive("x", exact([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    assert str(caught.value) == (
        "x = [0, 1, 2, 3, 4, 5, ... (7 entries)]: every entry must be > 0"
    )
    with pytest.raises(ValueError) as caught:
        _check.positive("x", exact([[0.0, 1.0, 2.0], [3.0, 4.0, 1 / 3]]))
    assert "x = [0, 1, 2, 3, 4, 0.333333]:" in str(caught.value)
