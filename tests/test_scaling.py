"""Power laws against exact ones, plain sums, polyfit and a search for the minimum."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from genaudit.scaling import (
    DEEPSEEK_D,
    DEEPSEEK_M,
    PowerLaw,
    best_split,
    fit_power_law,
)
from tests.strategies import exact, numbers, seeded

INF, NAN = math.inf, math.nan
units = numbers(1e-3, 1e3)
exponents = numbers(-3, 3)
helps = numbers(0.1, 2)  # powers by which more of something lowers a loss


@st.composite
def places(draw):
    """3 to 12 values of x in any order: three different ones at least, some twice."""
    powers = st.lists(st.integers(-20, 20), min_size=3, max_size=12)
    chosen = draw(powers.filter(lambda chosen: len(set(chosen)) >= 3))
    return draw(units) * 1.5 ** exact(chosen)


@st.composite
def runs(draw):
    """Places and a y at each: a power law times up to a factor e either way."""
    x = draw(places())
    scatter = torch.rand(len(x), generator=seeded(draw(st.integers(0, 999)))).double()
    return x, draw(units) * x ** draw(exponents) * (2 * scatter - 1).exp()


def line_by_sums(x, y):
    """The logarithm of the coefficient, the exponent, and its standard error."""
    u, v = ([math.log(each) for each in values.tolist()] for values in (x, y))
    n = len(u)
    mean_u, mean_v = math.fsum(u) / n, math.fsum(v) / n
    spread = math.fsum((a - mean_u) ** 2 for a in u)
    both = zip(u, v, strict=True)
    slope = math.fsum((a - mean_u) * (b - mean_v) for a, b in both) / spread
    intercept = mean_v - slope * mean_u
    both = zip(u, v, strict=True)
    left = math.fsum((b - intercept - slope * a) ** 2 for a, b in both)
    return intercept, slope, math.sqrt(left / (n - 2) / spread)


@given(units, exponents, places())
def test_an_exact_law_is_found_again(coefficient, exponent, x):
    law = fit_power_law(x, coefficient * x**exponent)
    assert math.isclose(law.coefficient, coefficient, rel_tol=1e-11)
    assert abs(law.exponent - exponent) < 1e-12
    assert law.low == x.min()
    assert law.high == x.max()
    assert law.exponent_error < 1e-10


@given(runs())
def test_a_fit_is_that_of_plain_sums_and_of_polyfit(case):
    x, y = case
    law = fit_power_law(x, y)
    intercept, slope, error = line_by_sums(x, y)
    assert math.isclose(law.coefficient, math.exp(intercept), rel_tol=1e-11)
    assert abs(law.exponent - slope) < 1e-12
    assert math.isclose(law.exponent_error, error, rel_tol=1e-6)
    (slope, intercept), covariance = np.polyfit(x.log(), y.log(), 1, cov=True)
    assert math.isclose(law.coefficient, math.exp(intercept), rel_tol=1e-10)
    assert abs(law.exponent - slope) < 1e-11
    assert math.isclose(covariance[0, 0] ** 0.5, law.exponent_error, rel_tol=1e-6)


@pytest.mark.parametrize(
    "x, offsets, error",
    [
        ([1 / 2, 1, 2], [1, -2, 1], 3**0.5),  # 6 left over, 1 degree, spread 2
        ([1 / 8, 1 / 2, 2, 8], [1, -1, -1, 1], 0.1**0.5),  # 4 left over, 2, spread 20
    ],
)
@pytest.mark.parametrize("exponent", [-2, 0, 0.5, 3])
def test_fits_by_hand(x, offsets, error, exponent):
    """Offsets of log y that add to 0, also when weighted by log x, move no line."""
    y = 5 * exact(x) ** exponent * 2 ** exact(offsets)
    law = fit_power_law(x, y)
    assert isinstance(law, PowerLaw)
    right = 5, exponent, x[0], x[-1], error
    assert law == pytest.approx(right, rel=1e-14, abs=1e-14)
    assert {type(number) for number in law} == {float}


@given(runs(), units, units)
def test_other_units_change_the_coefficient_alone(case, unit_x, unit_y):
    x, y = case
    law, other = fit_power_law(x, y), fit_power_law(x * unit_x, y * unit_y)
    assert abs(other.exponent - law.exponent) < 1e-12
    assert math.isclose(other.exponent_error, law.exponent_error, rel_tol=1e-6)
    coefficient = law.coefficient * unit_y / unit_x**law.exponent
    assert math.isclose(other.coefficient, coefficient, rel_tol=1e-10)
    assert torch.allclose(other(x * unit_x), law(x) * unit_y, rtol=1e-10, atol=0)


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_the_runs_does_not_matter(case, random):
    x, y = case
    order = random.sample(range(len(x)), len(x))
    law, other = fit_power_law(x, y), fit_power_law(x[order], y[order])
    assert other == pytest.approx(law, rel=1e-6, abs=1e-12)
    assert other[2:4] == law[2:4]


@given(runs())
def test_a_fit_answers_at_its_own_runs(case):
    x, y = case
    law = fit_power_law(x, y)
    assert torch.allclose(law(x), law.coefficient * x**law.exponent, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_runs_are_fitted_in_float64(dtype):
    x = torch.logspace(-3, 3, 9).to(dtype)
    y = (x.double() ** 0.7 * torch.rand(9, generator=seeded())).to(dtype)
    assert fit_power_law(x, y) == fit_power_law(x.double(), y.double())


@pytest.mark.usefixtures("usual_dtype")
def test_whole_numbers_and_lists_are_runs_too():
    x, y = [3, 5, 7, 100], [2, 9, 4, 4]
    right = fit_power_law(exact(x), exact(y))
    for kind in (list, tuple, np.array, torch.tensor):
        assert fit_power_law(kind(x), kind(y)) == right
    tenths = [0.1, 0.2, 0.7]
    assert fit_power_law(tenths, tenths)[2:4] == (0.1, 0.7)


@given(units, exponents, numbers(1e-2, 1e2))
def test_a_law_is_its_power(coefficient, exponent, x):
    law = PowerLaw(coefficient, exponent, 1e-2, 1e2)
    assert math.isclose(law(x), coefficient * math.pow(x, exponent), rel_tol=1e-14)


@pytest.mark.usefixtures("usual_dtype")
def test_a_law_keeps_the_shape_and_answers_in_float64():
    law = PowerLaw(2, 0.5, 1, 9)
    for value in (4, 4.0, torch.tensor(4), torch.tensor(4.0).half(), np.float32(4)):
        assert law(value).shape == ()
        assert law(value).dtype == torch.float64
        assert law(value) == 4
    table = [[1, 4, 9], [4, 2, 3]]
    right = exact([[2, 4, 6], [4, 2 * 2**0.5, 2 * 3**0.5]])
    for dtype in (torch.float16, torch.float32, torch.float64, torch.int64):
        found = law(torch.tensor(table, dtype=dtype))
        assert found.dtype == torch.float64
        assert torch.allclose(found, right, rtol=1e-15, atol=0)
    assert torch.equal(law(table), law(np.array(table)))
    assert law(torch.empty(2, 0)).shape == (2, 0)


@given(units, numbers(1, 1e3))
def test_both_ends_belong_to_the_range_and_nothing_beyond(low, factor):
    high = low * factor
    law = PowerLaw(1, 1, low, high)
    assert law([low, high]).tolist() == [low, high]
    for outside in (math.nextafter(low, 0), math.nextafter(high, INF)):
        with pytest.raises(ValueError, match="outside of the fitted range"):
            law(outside)


@pytest.mark.parametrize("outside", [1e16, 9.99e16, 3.01e20, 1e24])
def test_one_of_many_outside_of_the_range_is_named(outside):
    x = torch.logspace(17, 20, 12, dtype=torch.float64).reshape(3, 4)
    assert DEEPSEEK_M(x).shape == (3, 4)
    x[1, 2] = outside
    message = f"x = [{outside:g}]: outside of the fitted range 1e+17 to 3e+20"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        DEEPSEEK_M(x)


def test_an_error_of_the_exponent_is_unknown_unless_given():
    assert math.isnan(PowerLaw(1, 1, 1, 2).exponent_error)
    assert math.isnan(DEEPSEEK_M.exponent_error)


@given(helps, helps, units, units, numbers(-20, 60))
def test_the_best_split_is_where_a_search_ends(a, b, scale_m, scale_d, log_c):
    def log_loss(u):
        """The logarithm has slopes of -a and b far out, where the loss overflows."""
        model, data = math.log(scale_m) - a * u, math.log(scale_d) - b * (log_c - u)
        return np.logaddexp(model, data)

    found = minimize_scalar(log_loss, bounds=(-200, 200), options={"xatol": 1e-9}).x
    best = best_split(a, b, scale_m, scale_d)(math.exp(log_c)).log().item()
    assert abs(best - found) < 1e-4
    assert log_loss(best) < min(log_loss(best - 0.01), log_loss(best + 0.01))


@given(helps, helps, units, units, numbers(-20, 60))
def test_at_the_best_split_the_two_slopes_cancel(a, b, scale_m, scale_d, log_c):
    budget = math.exp(log_c)
    m = best_split(a, b, scale_m, scale_d)(budget).item()
    slopes = a * scale_m * m**-a, b * scale_d * (budget / m) ** -b
    assert math.isclose(*slopes, rel_tol=1e-12)


@given(helps, helps, units, units, units)
def test_model_and_data_can_be_exchanged(a, b, scale_m, scale_d, budget):
    m = best_split(a, b, scale_m, scale_d)
    d = best_split(b, a, scale_d, scale_m)
    assert math.isclose(m(budget) * d(budget), budget, rel_tol=1e-12)
    assert m.exponent == b / (a + b)
    assert abs(m.exponent + d.exponent - 1) < 1e-15


@given(helps, units, units)
def test_equal_powers_split_the_growth_equally(a, scale_m, scale_d):
    law = best_split(a, a, scale_m, scale_d)
    assert law.exponent == 0.5
    coefficient = math.sqrt(scale_m / scale_d) ** (1 / a)
    assert math.isclose(law.coefficient, coefficient, rel_tol=1e-12)
    assert best_split(a, a, scale_m, scale_m)[:2] == (1, 0.5)


def test_a_split_by_hand_for_any_budget():
    """16 / M + 1 / D^3: with M D = C the derivative gives M^4 = 16 C^3 / 3."""
    law = best_split(1, 3, 16, 1)
    for budget in (1e-300, 1.0, 3.0, 1e17, 1e300):
        right = 2 * 3**-0.25 * budget**0.75
        assert math.isclose(law(budget), right, rel_tol=1e-14)
    assert law[2:] == (0, INF, 0)


def test_the_published_laws_share_a_budget_out():
    assert DEEPSEEK_M.exponent + DEEPSEEK_D.exponent == 1
    assert abs(DEEPSEEK_M.coefficient * DEEPSEEK_D.coefficient - 1.00012) < 5e-6
    for law in (DEEPSEEK_M, DEEPSEEK_D):
        assert law[2:4] == (1e17, 3e20)
    budgets = exact([1e17, 1e18, 3e20])
    product = DEEPSEEK_M(budgets) * DEEPSEEK_D(budgets)
    assert torch.allclose(product, 1.00012 * budgets, rtol=1e-5, atol=0)


@pytest.mark.parametrize("law, growth", [(DEEPSEEK_M, 11.18), (DEEPSEEK_D, 8.94)])
@pytest.mark.parametrize("budget", [1e17, 1e18, 3e18])
def test_a_hundredfold_budget(law, growth, budget):
    assert abs(law(100 * budget) / law(budget) - growth) < 5e-3


SHAPE = "it must be (N,), with three different values or more"
ONES = [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: fit_power_law([1, 2], [1, 2]), f"x has shape (2,): {SHAPE}"),
        (lambda: fit_power_law([], []), f"x has shape (0,): {SHAPE}"),
        (lambda: fit_power_law(2.0, 2.0), f"x has shape (): {SHAPE}"),
        (
            lambda: fit_power_law([1, 2, 2, 1], [1, 2, 3, 4]),
            f"x has shape (4,): {SHAPE}",
        ),
        (
            lambda: fit_power_law([[1, 2, 3]], [[1, 2, 3]]),
            f"x has shape (1, 3): {SHAPE}",
        ),
        (
            lambda: fit_power_law([1, 2, 3], [1, 2]),
            "y has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: fit_power_law([1, 2, 3], [[1, 2, 3]]),
            "y has shape (1, 3), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: fit_power_law([0, 1, 2], ONES),
            "x = [0, 1, 2]: every entry must be > 0",
        ),
        (
            lambda: fit_power_law([1, 2, 3], [1, -1, 1]),
            "y = [1, -1, 1]: every entry must be > 0",
        ),
        (
            lambda: fit_power_law([1, INF, 3], ONES),
            "x = [1, inf, 3]: every entry must be finite",
        ),
        (
            lambda: fit_power_law([1, 2, 3], [1, NAN, 1]),
            "y = [1, nan, 1]: every entry must be finite",
        ),
        (
            lambda: PowerLaw(1, 1, 2, 3)([1, 2, 3, 4]),
            "x = [1, 4]: outside of the fitted range 2 to 3",
        ),
        (
            lambda: PowerLaw(1, 1, 1 / 3, 200_000)([[0.25], [1], [1e6]]),
            "x = [0.25, 1e+06]: outside of the fitted range 0.333333 to 200000",
        ),
        (
            lambda: PowerLaw(1, 1, 10, 20)(range(1, 25)),
            "x = [1, 2, 3, 4, 5, 6, ... (13 entries)]: "
            "outside of the fitted range 10 to 20",
        ),
        (lambda: DEEPSEEK_M(0.0), "x = 0: every entry must be > 0"),
        (lambda: DEEPSEEK_D([1e18, -1]), "x = [1e+18, -1]: every entry must be > 0"),
        (lambda: DEEPSEEK_M([NAN, 1]), "x = [nan, 1]: every entry must be finite"),
        (lambda: best_split(1, 1, 1, 1)(INF), "x = inf: every entry must be finite"),
        (lambda: best_split(0, 1, 1, 1), "a = 0: every entry must be > 0"),
        (lambda: best_split(1, -0.5, 1, 1), "b = -0.5: every entry must be > 0"),
        (lambda: best_split(1, 1, INF, 1), "scale_m = inf: every entry must be finite"),
        (lambda: best_split(1, 1, 1, NAN), "scale_d = nan: every entry must be finite"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("scatter", [1e-7, 1e-9])
def test_a_small_scatter_is_not_lost_in_rounding(scatter):
    heights = exact([-3 + scatter, -2 * scatter, 3 + scatter])
    law = fit_power_law([0.5, 1, 2], 2**heights)
    assert math.isclose(law.exponent_error, 3**0.5 * scatter, rel_tol=1e-2)


def test_whole_numbers_keep_their_digits():
    assert DEEPSEEK_M(torch.tensor(10**17)) == DEEPSEEK_M(1e17)
    runs = torch.tensor([2**24 + 1, 2**25, 2**26])
    assert fit_power_law(runs, [1, 2, 3]).low == 2**24 + 1
