"""Schedules: coefficients against brute force, both published ones, long products."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genaudit.schedule import Schedule, cosine_schedule, linear_schedule
from tests.strategies import exact, schedules


@given(schedules())
def test_coefficients_follow_from_the_betas(schedule):
    t = schedule.timesteps
    assert t.tolist() == list(range(1, len(schedule) + 1))
    beta = schedule.beta(t).numpy()
    kept = np.cumprod(1 - beta)
    for ours, right in [
        (schedule.alpha(t), 1 - beta),
        (schedule.alpha_bar(t), kept),
        (schedule.log_alpha_bar(t), np.log(kept)),
        (schedule.signal(t) ** 2, kept),
        (schedule.noise(t) ** 2, 1 - kept),
        (schedule.snr(t), kept / (1 - kept)),
    ]:
        np.testing.assert_allclose(ours, right, rtol=1e-12)


def test_the_clean_data_is_step_zero():
    schedule = linear_schedule(10)
    at_zero = [schedule.alpha_bar(0), schedule.signal(0)]
    assert at_zero == [1, 1]
    assert [schedule.log_alpha_bar(0), schedule.noise(0)] == [0, 0]
    assert schedule.snr(0) == math.inf


@given(schedules(shortest=2), st.data())
def test_posterior_by_conditioning_the_joint(schedule, data):
    """Regress x_{t-1} on x_0 and x_t, all three linear in independent unit draws."""
    t = data.draw(st.integers(2, len(schedule)))
    draws = np.zeros((t + 1, t + 1))
    draws[0, 0] = 1
    for step in range(1, t + 1):
        beta = schedule.beta(step).item()
        draws[step] = math.sqrt(1 - beta) * draws[step - 1]
        draws[step, step] = math.sqrt(beta)
    covariance = draws @ draws.T
    ends = np.ix_([0, t], [0, t])
    weights = np.linalg.solve(covariance[ends], covariance[[0, t], t - 1])
    left = covariance[t - 1, t - 1] - weights @ covariance[[0, t], t - 1]
    weight_x0, weight_xt, variance = schedule.posterior(t)
    np.testing.assert_allclose([weight_x0, weight_xt], weights, atol=1e-10)
    assert abs(variance - left) < 1e-10
    assert variance == schedule.beta_tilde(t)


@given(schedules())
def test_posterior_variance_is_below_beta_and_zero_at_the_end(schedule):
    t = schedule.timesteps
    assert (schedule.beta_tilde(t) <= schedule.beta(t) * (1 + 1e-15)).all()
    assert (schedule.beta_tilde(t[1:]) > 0).all()
    assert [value.item() for value in schedule.posterior(1)] == [1, 0, 0]


@given(schedules(longest=12), st.data())
def test_a_stride_jumps_by_ratios_of_alpha_bar(schedule, data):
    steps = data.draw(st.integers(1, len(schedule)))
    visited = [round(k * len(schedule) / steps) for k in range(steps + 1)]
    levels = schedule.alpha_bar(torch.tensor(visited))
    strided = schedule.strided(steps)
    assert len(strided) == steps
    t = strided.timesteps
    assert torch.allclose(strided.beta(t), 1 - levels[1:] / levels[:-1], atol=1e-13)
    assert torch.allclose(strided.alpha_bar(t), levels[1:], rtol=1e-12)
    assert torch.allclose(strided.alpha_bar(steps), schedule.alpha_bar(len(schedule)))


def test_a_stride_of_every_step_is_the_schedule():
    schedule = linear_schedule(50)
    every = schedule.strided(50)
    t = schedule.timesteps
    assert torch.allclose(every.beta(t), schedule.beta(t), rtol=1e-11)


@pytest.mark.parametrize("spacing", ["trailing", "leading"])
@given(st.integers(1, 60), st.data())
def test_visits_go_down_in_even_strides(spacing, length, data):
    steps = data.draw(st.integers(1, length))
    visits = linear_schedule(length).visits(steps, spacing)
    assert visits.shape == (steps,)
    assert visits.dtype == torch.int64
    stops = torch.cat([visits, torch.zeros(1).long()])
    stride = length // steps
    if spacing == "trailing":
        assert stops[0] == length
        assert set((-stops.diff()).tolist()) <= {stride, stride + 1}
    else:
        assert stops[-2] == 1
        assert set((-visits.diff()).tolist()) <= {stride}


def test_visits_by_hand():
    schedule = linear_schedule(10)
    assert schedule.visits(4).tolist() == [10, 8, 5, 2]
    assert schedule.visits(4, "leading").tolist() == [7, 5, 3, 1]
    assert schedule.visits(3, "leading").tolist() == [7, 4, 1]
    assert schedule.visits(1, "leading").tolist() == [1]
    for spacing in ("trailing", "leading"):
        assert schedule.visits(10, spacing).tolist() == list(range(10, 0, -1))


def test_a_jump_over_several_steps_is_not_the_last_beta():
    schedule = linear_schedule(1000)
    jump = schedule.strided(10).beta(10)
    ratio = schedule.alpha_bar(1000) / schedule.alpha_bar(900)
    assert abs(jump - (1 - ratio)) < 1e-14
    assert jump > 0.8 > 30 * schedule.beta(1000)


def test_linear_schedule_of_a_thousand_steps():
    schedule = linear_schedule()
    assert len(schedule) == 1000
    assert [schedule.beta(1), schedule.beta(1000)] == [1e-4, 0.02]
    step = (0.02 - 1e-4) / 999
    assert abs(schedule.beta(500) - (1e-4 + 499 * step)) < 1e-17
    assert abs(schedule.alpha_bar(500) - 0.0785872428818) < 1e-13
    assert abs(schedule.alpha_bar(1000) - 4.03582976538e-05) < 1e-16
    assert schedule.first_below(0.5) == 260
    assert schedule.alpha_bar(259) >= 0.5 > schedule.alpha_bar(260)


def test_linear_schedule_of_one_step():
    assert linear_schedule(1, 0.25, 0.5).beta(1) == 0.25


def test_cosine_schedule_follows_its_squared_cosine():
    schedule, t = cosine_schedule(), np.arange(1000)
    f = np.cos(np.pi / 2 * (t / 1000 + 0.008) / 1.008) ** 2
    np.testing.assert_allclose(schedule.alpha_bar(torch.tensor(t)), f / f[0], rtol=1e-9)
    assert abs(schedule.alpha_bar(500) - 0.493843590441) < 1e-12
    assert schedule.beta(1000) == 0.999
    assert len(schedule) == 1000
    end = math.log(f[999] / f[0]) + math.log(0.001)
    assert abs(schedule.log_alpha_bar(1000) - end) < 1e-9


def test_cosine_schedule_with_its_own_numbers():
    schedule = cosine_schedule(4, offset=0.0, largest=0.75)
    assert torch.allclose(schedule.alpha_bar(2), exact(0.5))
    assert schedule.beta(4) == 0.75
    assert schedule.beta(torch.tensor([1, 2, 3])).max() < 0.75


def test_first_below_takes_the_first():
    schedule = Schedule([0.5, 0.5, 0.5])
    assert [schedule.first_below(level) for level in (0.75, 0.5, 0.2)] == [1, 2, 3]


def test_a_timestep_may_be_a_number_or_any_integer_tensor():
    schedule = linear_schedule(200)
    t = torch.tensor([[1, 5, 100], [7, 7, 120]])
    one_by_one = exact([[schedule.beta(int(each)) for each in row] for row in t])
    assert torch.equal(schedule.beta(t), one_by_one)
    assert schedule.beta(3).shape == ()
    for coefficient in schedule.posterior(t):
        assert coefficient.shape == (2, 3)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        narrow = t.to(dtype)
        assert torch.equal(schedule.beta(narrow), one_by_one)
        assert torch.equal(schedule.alpha_bar(narrow - 1), schedule.alpha_bar(t - 1))
        assert torch.equal(schedule.beta_tilde(narrow), schedule.beta_tilde(t))
    assert torch.equal(schedule.beta(t.numpy()), one_by_one)
    assert torch.equal(schedule.beta(t.tolist()), one_by_one)
    assert schedule.beta(torch.empty(0, dtype=torch.long)).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_betas_are_widened(dtype):
    beta = torch.tensor([1e-4, 1e-4, 0.02], dtype=dtype)
    schedule = Schedule(beta)
    assert schedule.beta(1).dtype == schedule.alpha_bar(1).dtype == torch.float32
    assert 0.99989 < schedule.alpha(1) < 1
    assert schedule.posterior(torch.tensor([1, 2, 3]))[2].dtype == torch.float32
    assert abs(schedule.alpha_bar(2) - 0.9998) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_betas_dtype_is_everyones(dtype):
    schedule = Schedule(torch.linspace(1e-4, 0.1, 100, dtype=dtype))
    t = schedule.timesteps
    for coefficient in (schedule.alpha(t), schedule.noise(t), *schedule.posterior(t)):
        assert coefficient.dtype == dtype
        assert coefficient.isfinite().all()
    assert schedule.strided(10).beta(1).dtype == dtype
    assert schedule.log_alpha_bar(t).dtype == torch.float64


def test_betas_given_as_python_numbers_are_not_rounded_to_float32():
    assert Schedule([0.1, 0.2]).beta(1) == 0.1
    assert Schedule(np.array([0.1, 0.2])).alpha_bar(1) == 0.9


def test_logs_survive_products_that_underflow():
    schedule = Schedule(torch.full((100_000,), 0.01, dtype=torch.float64))
    assert schedule.alpha_bar(100_000) < 1e-320
    logarithm = 100_000 * math.log(0.99)
    assert abs(schedule.log_alpha_bar(100_000) - logarithm) < 1e-8
    coarse = Schedule(torch.full((100_000,), 0.01, dtype=torch.float32))
    assert abs(coarse.log_alpha_bar(100_000) - logarithm) < 1e-4
    assert schedule.strided(1000).log_alpha_bar(1000).isclose(exact(logarithm))
    assert schedule.posterior(100_000)[2].isfinite()


def test_float32_ends_where_float64_does_but_for_its_digits():
    fine = linear_schedule(100, 1e-4, 0.1)
    coarse = Schedule(fine.beta(fine.timesteps).float())
    assert abs(coarse.alpha_bar(100) - 0.005618760828) < 5e-13
    assert abs(fine.alpha_bar(100) - 0.005618761019) < 5e-13


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: Schedule([0.1, 1.0]),
            "beta = [0.1, 1]: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: Schedule([0.0, 0.5]),
            "beta = [0, 0.5]: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: Schedule([math.nan]),
            "beta = [nan]: every entry must be finite",
        ),
        (
            lambda: Schedule(0.1),
            "beta has shape (): it must be (T,) with T >= 1",
        ),
        (
            lambda: Schedule([[0.1]]),
            "beta has shape (1, 1): it must be (T,) with T >= 1",
        ),
        (
            lambda: Schedule([]),
            "beta has shape (0,): it must be (T,) with T >= 1",
        ),
        (
            lambda: Schedule(torch.tensor([0.1, 1e-9], dtype=torch.float32)),
            "beta = 1e-09: 1 - beta rounds to 1 in torch.float32",
        ),
        (
            lambda: linear_schedule(0),
            "steps = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: linear_schedule(10, 0.1, 1.5),
            "beta = [0.1, 0.255556, 0.411111, 0.566667, 0.722222, 0.877778, "
            "... (10 entries)]: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: cosine_schedule(2.0),
            "steps = 2.0: must be a whole number, 1 or more",
        ),
        (
            lambda: cosine_schedule(10, offset=-0.1),
            "offset = -0.1: every entry must be >= 0",
        ),
        (
            lambda: cosine_schedule(3, largest=1.5),
            "largest = 1.5: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: linear_schedule(10).first_below(1.0),
            "level = 1: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: Schedule([0.5, 0.5]).first_below(0.25),
            "level = 0.25: alpha-bar ends at 0.25, not under it",
        ),
        (
            lambda: linear_schedule(10).strided(0),
            "steps = 0: must be a whole number, 1..10",
        ),
        (
            lambda: linear_schedule(10).strided(11),
            "steps = 11: must be a whole number, 1..10",
        ),
        (
            lambda: linear_schedule(10).visits(0),
            "steps = 0: must be a whole number, 1..10",
        ),
        (
            lambda: linear_schedule(10).visits(11, "leading"),
            "steps = 11: must be a whole number, 1..10",
        ),
        (
            lambda: linear_schedule(10).visits(5, "linspace"),
            "spacing = 'linspace': must be one of trailing, leading",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


EVERY_STEP = ["beta", "alpha", "posterior", "beta_tilde"]
ZERO_TOO = ["alpha_bar", "log_alpha_bar", "signal", "noise", "snr"]


@pytest.mark.parametrize("name", EVERY_STEP + ZERO_TOO)
def test_a_timestep_out_of_range_is_named(name):
    coefficient = getattr(linear_schedule(10), name)
    first = 1 if name in EVERY_STEP else 0
    for t, worst in [
        (first - 1, first - 1),
        (11, 11),
        (torch.tensor([first, 12, 3]), 12),
        (torch.tensor([10, first - 2]), first - 2),
    ]:
        message = f"t = {worst}: timesteps run from {first} to 10"
        with pytest.raises(ValueError, match=f"^{message}$"):
            coefficient(t)
    coefficient(torch.tensor([first, 10]))
    for t in (3.0, 2.5, True, torch.tensor([1.0]), 1j):
        with pytest.raises(ValueError) as caught:
            coefficient(t)
        assert str(caught.value) == f"t = {t!r}: a timestep must be a whole number"
