"""One step each: laws for any schedule, round trips, and small known faults."""

import cmath
import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genaudit.process import (
    clean_from_noise,
    clean_from_velocity,
    ddim_step,
    ddpm_mean,
    ddpm_step,
    forward_jump,
    forward_step,
    guided_noise,
    langevin_step,
    noise_from_clean,
    noise_from_score,
    noise_from_velocity,
    scale_from_extra,
    score_from_noise,
    velocity,
)
from genaudit.schedule import Schedule, linear_schedule
from tests.strategies import exact, levels, numbers, schedules, vectors

ONE, ZERO = exact([1.0]), exact([0.0])
STEPS = linear_schedule(100, 1e-4, 0.1)


@st.composite
def places(draw, first: int = 1):
    """A schedule and one of its timesteps."""
    schedule = draw(schedules(shortest=2))
    return schedule, draw(st.integers(first, len(schedule)))


@st.composite
def descents(draw):
    """A schedule, one of its timesteps and a lower one, 0 included."""
    schedule, t = draw(places())
    return schedule, t, draw(st.integers(0, t - 1))


@given(places(), vectors(3), st.data())
def test_a_jump_is_all_the_steps_at_once(place, x0, data):
    schedule, t = place
    x, gathered = x0, torch.zeros(3).double()
    for step in range(1, t + 1):
        noise = data.draw(vectors(3, -2, 2))
        x = forward_step(schedule, x, step, noise)
        gathered = forward_step(schedule, gathered, step, noise)
    jump = forward_jump(schedule, x0, t, gathered / schedule.noise(t))
    assert torch.allclose(x, jump, atol=1e-12)


@given(places())
def test_steps_and_jump_add_the_same_variance(place):
    schedule, t = place
    total = 0.0
    for loud in range(1, t + 1):
        x = ZERO
        for step in range(1, t + 1):
            x = forward_step(schedule, x, step, ONE if step == loud else ZERO)
        total += x.square().item()
    assert abs(total - forward_jump(schedule, ZERO, t, ONE).square().item()) < 1e-13
    assert abs(total - (1 - schedule.alpha_bar(t))) < 1e-13


def test_a_step_by_hand():
    schedule = Schedule([0.36, 0.19])
    step = forward_step(schedule, exact([2.0]), 1, exact([-0.5]))
    assert abs(step - (0.8 * 2 - 0.6 * 0.5)) < 1e-15
    jump = forward_jump(schedule, exact([2.0]), 2, exact([-0.5]))
    assert abs(jump - (0.72 * 2 - math.sqrt(1 - 0.72**2) * 0.5)) < 1e-15


def test_the_jump_weighs_noise_by_a_standard_deviation():
    schedule = Schedule([0.25])
    assert forward_jump(schedule, ZERO, 1, ONE) ** 2 == 0.25
    assert abs(forward_jump(schedule, ONE, 1, ZERO) ** 2 - 0.75) < 1e-15
    assert forward_jump(schedule, ONE, 0, ONE) == 1


@given(places(), vectors(4), vectors(4))
def test_reverse_mean_is_the_posterior_mean_at_the_clean_guess(place, x, guess):
    schedule, t = place
    clean = clean_from_noise(x, schedule.alpha_bar(t), guess)
    weight_x0, weight_xt, _ = schedule.posterior(t)
    mean = ddpm_mean(schedule, x, t, guess)
    assert torch.allclose(mean, weight_x0 * clean + weight_xt * x, atol=1e-10)


@given(places(), vectors(4), vectors(4))
def test_reverse_mean_is_a_step_along_the_score(place, x, guess):
    schedule, t = place
    score = score_from_noise(schedule.alpha_bar(t), guess)
    along = (x + schedule.beta(t) * score) / schedule.alpha(t).sqrt()
    assert torch.allclose(ddpm_mean(schedule, x, t, guess), along, atol=1e-11)


@given(places(first=2), vectors(3), vectors(3), vectors(3))
def test_a_reverse_step_adds_the_variance_it_names(place, x, guess, noise):
    schedule, t = place
    mean = ddpm_mean(schedule, x, t, guess)
    for variance, added in {
        "beta": schedule.beta(t),
        "beta_tilde": schedule.beta_tilde(t),
        "none": exact(0.0),
    }.items():
        step = ddpm_step(schedule, x, t, guess, noise, variance)
        assert torch.allclose(step, mean + added.sqrt() * noise, atol=1e-13)
    default = ddpm_step(schedule, x, t, guess, noise)
    assert torch.equal(
        default, ddpm_step(schedule, x, t, guess, noise, variance="beta_tilde")
    )


@pytest.mark.parametrize("variance", ["beta", "beta_tilde", "none"])
def test_the_last_step_adds_no_noise(variance):
    schedule = Schedule([0.0151, 0.1])  # sd 0.12288, if it were added
    last = ddpm_step(schedule, ZERO, 1, ZERO, ONE, variance)
    assert last == 0
    t = torch.tensor([1, 2])
    both = ddpm_step(schedule, exact([0, 0]), t, exact([0, 0]), exact([1, 1]), variance)
    assert both[0] == 0
    assert (both[1] == 0) == (variance == "none")


def test_a_reverse_step_by_hand():
    schedule = Schedule([0.1, 0.1, 0.1])
    x, guess, z = exact([1.2]), exact([0.5]), exact([-0.3])
    mean = ddpm_mean(schedule, x, 3, guess)
    assert abs(mean - 1.1636682742) < 1e-10
    step = ddpm_step(schedule, x, 3, guess, z, "beta")
    assert abs(step - 1.06879994439) < 1e-11


def final_variance(schedule, variance, guess_step=lambda t: t):
    """Variance of x_0 from x_T ~ N(0, 1), the guess exact for N(0, 1) data."""
    total = 1.0
    for t in range(len(schedule), 0, -1):
        exact_guess = schedule.noise(guess_step(t)).reshape(1)
        slope = ddpm_step(schedule, ONE, t, exact_guess, ZERO, variance)
        added = ddpm_step(schedule, ZERO, t, ZERO, ONE, variance)
        total = total * slope.item() ** 2 + added.item() ** 2
    return total


def test_unit_data_comes_back_with_noise_and_collapses_without():
    schedule = linear_schedule(1000)
    assert abs(final_variance(schedule, "beta") - 0.9999) < 1e-12
    assert abs(final_variance(schedule, "beta_tilde") - 0.991067376353) < 1e-11
    collapsed = final_variance(schedule, "none")
    assert abs(collapsed - schedule.alpha_bar(1000)) < 1e-16


def test_a_guess_made_one_step_off_shows_in_the_variance():
    schedule = linear_schedule(100, 1e-4, 0.1)
    right = final_variance(schedule, "beta")
    shifted = final_variance(schedule, "beta", lambda t: min(t + 1, 100))
    assert abs(right - 0.9999) < 1e-12
    assert abs(shifted - right) > 0.01


def test_exact_noise_leaves_nothing_behind():
    """Forward and reverse tables agree: a known start is found from any level."""
    clean = exact([1.5])
    for t in (1, 2, 50, 100):
        x = forward_jump(STEPS, clean, t, exact([-0.7]))
        for step in range(t, 0, -1):
            noise = noise_from_clean(x, STEPS.alpha_bar(step), clean)
            x = ddpm_step(STEPS, x, step, noise, ZERO)
        assert abs(x - clean) < 1e-13


@given(descents(), vectors(3), vectors(3))
def test_a_ddim_step_is_exact_for_one_datum(descent, x0, noise):
    schedule, t, previous = descent
    x = forward_jump(schedule, x0, t, noise)
    step = ddim_step(schedule, x, t, previous, noise)
    right = forward_jump(schedule, x0, previous, noise)
    assert torch.allclose(step, right, atol=1e-11)


@given(places(), vectors(3), vectors(3), numbers(0.01, 1))
def test_a_ddim_step_to_zero_is_the_clean_guess(place, x, guess, eta):
    schedule, t = place
    clean = clean_from_noise(x, schedule.alpha_bar(t), guess)
    assert torch.equal(ddim_step(schedule, x, t, 0, guess), clean)
    fresh = torch.full_like(x, 1e6)
    assert torch.equal(ddim_step(schedule, x, t, 0, guess, fresh, eta), clean)


@given(places(), vectors(3), vectors(3), vectors(3))
def test_eta_one_is_ddpm(place, x, guess, fresh):
    schedule, t = place
    step = ddim_step(schedule, x, t, t - 1, guess, fresh, eta=1.0)
    assert torch.allclose(step, ddpm_step(schedule, x, t, guess, fresh), atol=1e-10)


@given(schedules(longest=12), vectors(3), vectors(3), vectors(3), st.data())
def test_eta_one_is_ddpm_over_every_jump(schedule, x, guess, fresh, data):
    steps = data.draw(st.integers(1, len(schedule)))
    strided, stops = schedule.strided(steps), [*schedule.visits(steps).tolist(), 0]
    for k, t, previous in zip(range(steps, 0, -1), stops, stops[1:]):
        step = ddim_step(schedule, x, t, previous, guess, fresh, eta=1.0)
        right = ddpm_step(strided, x, k, guess, fresh)
        assert torch.allclose(step, right, atol=1e-8)


@given(descents(), numbers(0, 1))
def test_eta_moves_variance_from_the_guess_to_fresh_noise(descent, eta):
    """For a datum at zero the two parts of the step make up 1 - alpha-bar."""
    schedule, t, previous = descent
    x = forward_jump(schedule, ZERO, t, ONE)
    kept = ddim_step(schedule, x, t, previous, ONE, ZERO, eta).square()
    added = ddim_step(schedule, ZERO, t, previous, ZERO, ONE, eta).square()
    level = schedule.alpha_bar(previous)
    assert abs(kept + added - (1 - level)) < 1e-12
    # Posterior precision: that of x_previous given x_0, and of x_t given x_previous.
    ratio = schedule.alpha_bar(t) / level
    posterior = 1 / (1 / (1 - level) + ratio / (1 - ratio))
    assert abs(added - eta**2 * posterior) < 1e-12


def test_a_ddim_step_by_hand():
    schedule = Schedule([0.1, 1 - 0.64 / 0.9])
    x, guess = exact([1.9]), exact([0.5])
    assert abs(ddim_step(schedule, x, 2, 0, guess) - 2) < 1e-14
    step = ddim_step(schedule, x, 2, 1, guess)
    assert abs(step - 2.05548047911) < 1e-11
    assert torch.equal(step, ddim_step(schedule, x, 2, 1, guess, eta=0.0))
    assert torch.equal(step, ddim_step(schedule, x, 2, 1, guess, ONE))


def test_nothing_left_for_the_guess_is_not_the_root_of_a_rounding_error():
    """After the first step 1 - abar - spread^2 comes out as -1e-31."""
    schedule = Schedule([4.548488498787319e-16, 0.9526076003868508])
    step = ddim_step(schedule, ZERO, 2, 1, ONE, ZERO, 1.0)
    assert abs(step - clean_from_noise(ZERO, schedule.alpha_bar(2), ONE)) < 1e-12


@given(vectors(3), vectors(3), numbers(-2, 8))
def test_guidance_is_a_line_through_both_guesses(unconditional, conditional, scale):
    def guided(scale):
        return guided_noise(unconditional, conditional, scale)

    assert torch.equal(guided(0), unconditional)
    assert torch.allclose(guided(1), conditional, atol=1e-14)
    halfway = (guided(scale) + guided(2 - scale)) / 2
    assert torch.allclose(halfway, conditional, atol=1e-13)
    weights = (1 + scale) * conditional - scale * unconditional
    assert torch.allclose(guided(scale_from_extra(scale)), weights, atol=1e-13)


def test_guidance_by_hand():
    assert abs(guided_noise(exact([0.2]), exact([0.5]), 3) - 1.1) < 1e-15
    assert abs(guided_noise(exact([0.4]), exact([0.1]), 2) + 0.2) < 1e-15
    assert scale_from_extra(0) == 1


@given(numbers(0.01, 1.9))
def test_langevin_steps_settle_at_their_own_variance(step_size):
    slope = langevin_step(ONE, -ONE, step_size, ZERO).item()
    added = langevin_step(ZERO, ZERO, step_size, ONE).item() ** 2
    assert abs(slope - (1 - step_size)) < 1e-15
    fixed = added / (1 - slope**2)
    assert abs(fixed - 2 / (2 - step_size)) < 1e-12


def test_a_langevin_step_by_hand():
    assert abs(langevin_step(exact([3]), exact([-3]), 0.1, ZERO) - 2.7) < 1e-15
    step = langevin_step(exact([-2]), exact([2]), 0.25, exact([0.4]))
    assert abs(step + 1.21715728753) < 1e-11


@given(levels, vectors(4), vectors(4))
def test_conversions_are_round_trips(level, x, noise):
    clean = clean_from_noise(x, level, noise)
    rebuilt = math.sqrt(level) * clean + math.sqrt(1 - level) * noise
    assert torch.allclose(rebuilt, x, atol=1e-12)
    assert torch.allclose(noise_from_clean(x, level, clean), noise, atol=1e-10)
    score = score_from_noise(level, noise)
    assert torch.allclose(noise_from_score(level, score), noise, atol=1e-12)
    # Tweedie: the same clean guess from the score.
    tweedie = (x + (1 - level) * score) / math.sqrt(level)
    assert torch.allclose(clean, tweedie, atol=1e-10)


@given(levels, vectors(4), vectors(4))
def test_velocity_turns_the_plane_of_clean_and_noise(level, noise, clean):
    turn = cmath.exp(-1j * math.acos(math.sqrt(level)))
    turned = torch.complex(clean, noise) * turn
    x = math.sqrt(level) * clean + math.sqrt(1 - level) * noise
    v = velocity(level, noise, clean)
    assert torch.allclose(turned, torch.complex(x, v), atol=1e-13)
    assert torch.allclose(noise_from_velocity(x, level, v), noise, atol=1e-13)
    assert torch.allclose(clean_from_velocity(x, level, v), clean, atol=1e-13)


@given(levels, vectors(4), vectors(4))
def test_velocity_agrees_with_the_other_targets(level, x, noise):
    """Any guess of the noise implies a clean guess: v carries both, for any x."""
    clean = clean_from_noise(x, level, noise)
    v = velocity(level, noise, clean)
    assert torch.allclose(noise_from_velocity(x, level, v), noise, atol=1e-10)
    assert torch.allclose(clean_from_velocity(x, level, v), clean, atol=1e-10)


def test_clean_data_needs_no_conversion():
    clean, other = exact([0.3]), exact([9.0])
    assert clean_from_noise(clean, 1.0, other) == 0.3
    assert clean_from_velocity(clean, 1.0, other) == 0.3
    assert noise_from_velocity(clean, 1.0, other) == 9
    assert velocity(1.0, other, clean) == 9


NOISE = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(1)).double()
POINTS = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(2)).double()


@pytest.mark.parametrize("step", [forward_step, forward_jump, ddpm_mean])
def test_one_timestep_for_each_example(step):
    t = torch.tensor([1, 2, 50, 100])
    batched = step(STEPS, POINTS, t, NOISE)
    for index, each in enumerate(t.tolist()):
        alone = step(STEPS, POINTS[index], each, NOISE[index])
        assert torch.allclose(batched[index], alone, rtol=1e-14)
    shared = step(STEPS, POINTS, torch.tensor([7]), NOISE)
    assert torch.equal(shared, step(STEPS, POINTS, 7, NOISE))
    single = step(STEPS, exact(0.5), 7, exact(0.25))
    assert single.shape == ()
    assert torch.equal(single[None], step(STEPS, exact([0.5]), 7, exact([0.25])))


def test_one_timestep_for_each_example_of_a_reverse_step():
    t = torch.tensor([1, 2, 50, 100])
    batched = ddpm_step(STEPS, POINTS, t, NOISE, POINTS, "beta")
    for index, each in enumerate(t.tolist()):
        alone = (POINTS[index], each, NOISE[index], POINTS[index])
        step = ddpm_step(STEPS, *alone, "beta")
        assert torch.allclose(batched[index], step, rtol=1e-14)


def test_one_jump_for_each_example_of_a_ddim_step():
    t, previous = torch.tensor([1, 7, 50, 100]), torch.tensor([0, 6, 0, 20])
    batched = ddim_step(STEPS, POINTS, t, previous, NOISE, POINTS.flip(0), 0.7)
    for index, (high, low) in enumerate(zip(t.tolist(), previous.tolist())):
        parts = (part[index] for part in (NOISE, POINTS.flip(0)))
        alone = ddim_step(STEPS, POINTS[index], high, low, *parts, 0.7)
        assert torch.allclose(batched[index], alone, rtol=1e-14)
    to_the_end = ddim_step(STEPS, POINTS, t, 0, NOISE)
    assert torch.allclose(
        to_the_end, clean_from_noise(POINTS, STEPS.alpha_bar(t)[:, None, None], NOISE)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_points_keep_their_dtype(dtype):
    x, noise = POINTS.to(dtype), NOISE.to(dtype)
    t, level = torch.tensor([1, 2, 50, 100]), STEPS.alpha_bar(50)
    spread = level.expand(4, 2, 3)
    tolerance = 8 * torch.finfo(dtype).eps
    for coarse, fine in [
        (forward_step(STEPS, x, t, noise), forward_step(STEPS, POINTS, t, NOISE)),
        (forward_jump(STEPS, x, t, noise), forward_jump(STEPS, POINTS, t, NOISE)),
        (ddpm_step(STEPS, x, 9, x, noise), ddpm_step(STEPS, POINTS, 9, POINTS, NOISE)),
        (
            ddim_step(STEPS, x, t, 0 * t, noise, x, 0.5),
            ddim_step(STEPS, POINTS, t, 0, NOISE, POINTS, 0.5),
        ),
        (
            ddim_step(STEPS, x, 50, 20, noise, x, 0.5),
            ddim_step(STEPS, POINTS, 50, 20, NOISE, POINTS, 0.5),
        ),
        (guided_noise(x, noise, 3.1), guided_noise(POINTS, NOISE, 3.1)),
        (langevin_step(x, x, 0.1, noise), langevin_step(POINTS, POINTS, 0.1, NOISE)),
        (clean_from_noise(x, level, noise), clean_from_noise(POINTS, level, NOISE)),
        (clean_from_noise(x, spread, noise), clean_from_noise(POINTS, level, NOISE)),
        (noise_from_clean(x, spread, noise), noise_from_clean(POINTS, level, NOISE)),
        (score_from_noise(spread, noise), score_from_noise(level, NOISE)),
        (noise_from_score(spread, noise), noise_from_score(level, NOISE)),
        (velocity(spread, noise, x), velocity(level, NOISE, POINTS)),
        (noise_from_velocity(x, spread, x), noise_from_velocity(POINTS, level, POINTS)),
        (clean_from_velocity(x, spread, x), clean_from_velocity(POINTS, level, POINTS)),
    ]:
        assert coarse.dtype == dtype
        assert torch.allclose(coarse.double(), fine, atol=tolerance, rtol=tolerance)


def test_a_single_number_keeps_its_dtype():
    x = torch.tensor(0.5, dtype=torch.float32)
    level = exact(0.36)
    for value in (
        forward_jump(STEPS, x, 9, x),
        ddim_step(STEPS, x, 9, 4, x, x, 0.5),
        guided_noise(x, x, 2.0),
        guided_noise(x, x, exact(2.0)),
        velocity(level, x, x),
        noise_from_velocity(x, level, x),
        clean_from_velocity(x, level, x),
        langevin_step(x, x, 0.1, x),
        clean_from_noise(x, level, x),
        noise_from_clean(x, level, x),
        score_from_noise(level, x),
        noise_from_score(level, x),
    ):
        assert value.dtype == torch.float32


def test_half_precision_points_feel_the_first_small_steps():
    """1 - alpha-bar_1 = 1e-4 is lost in float16 unless it is taken before rounding."""
    x, noise = torch.zeros(1).half(), torch.ones(1).half()
    assert abs(forward_jump(STEPS, x, 1, noise) - 0.01) < 1e-5
    level = exact(0.9999)
    for found, right in [
        (clean_from_noise(x, level, noise), -0.01),
        (clean_from_velocity(x, level, noise), -0.01),
        (noise_from_velocity(noise, level, x), 0.01),
        (velocity(level, x, noise), -0.01),
        (ddim_step(STEPS, x, 1, 0, noise), -0.01),
        (ddim_step(STEPS, x, 100, 1, x, noise, 1.0), 0.01),
    ]:
        assert abs(found - right) < 1e-5


def test_python_numbers_are_not_rounded_to_float32():
    x = exact([1.0])
    assert abs(langevin_step(x, x, 0.1, ZERO) - 1.1) < 1e-15
    assert abs(clean_from_noise(x, 0.36, ZERO) - 1 / 0.6) < 1e-15
    assert abs(noise_from_clean(x, 0.36, ZERO) - 1.25) < 1e-15
    assert abs(score_from_noise(0.36, x) + 1.25) < 1e-15
    assert abs(noise_from_score(0.36, x) + 0.8) < 1e-15
    assert abs(velocity(0.36, x, x) + 0.2) < 1e-15
    assert abs(noise_from_velocity(x, 0.36, x) - 1.4) < 1e-15
    assert abs(clean_from_velocity(x, 0.36, x) + 0.2) < 1e-15
    assert abs(guided_noise(ZERO, x, 1.1) - 1.1) < 1e-15


def test_whole_numbers_are_not_silently_erased():
    """Pixels often come as integers: a weight cast to their dtype would be zero."""
    pixels, noise = torch.tensor([0, 200]), torch.tensor([0.5, -0.5])
    jump = forward_jump(STEPS, pixels, 50, noise)
    right = forward_jump(STEPS, pixels.to(noise.dtype), 50, noise)
    assert torch.equal(jump, right)


X3, X2 = exact([0.0, 1.0, 2.0]), exact([0.0, 1.0])
BAD = exact([0.0, math.nan, 2.0])


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: forward_step(STEPS, X3, 1, X2),
            "noise has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: forward_jump(STEPS, X3, 1, X2),
            "noise has shape (2,), x0 has shape (3,): the shapes must be equal",
        ),
        (
            lambda: ddpm_mean(STEPS, X3, 1, X2),
            "predicted_noise has shape (2,), x has shape (3,): "
            "the shapes must be equal",
        ),
        (
            lambda: ddpm_step(STEPS, X3, 1, X2, X3),
            "predicted_noise has shape (2,), x has shape (3,): "
            "the shapes must be equal",
        ),
        (
            lambda: ddpm_step(STEPS, X3, 1, X3, X2),
            "noise has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: ddpm_step(STEPS, X3, 1, X3, X3, "fixed_small"),
            "variance = 'fixed_small': must be one of beta, beta_tilde, none",
        ),
        (
            lambda: forward_step(STEPS, X3, 0, X3),
            "t = 0: timesteps run from 1 to 100",
        ),
        (
            lambda: ddpm_step(STEPS, X3, 101, X3, X3),
            "t = 101: timesteps run from 1 to 100",
        ),
        (
            lambda: forward_jump(STEPS, X3, 2.5, X3),
            "t = 2.5: a timestep must be a whole number",
        ),
        (
            lambda: forward_jump(STEPS, X3, torch.tensor([1, 2]), X3),
            "t has shape (2,) for a batch of shape (3,): "
            "t must be one number or have shape (B,)",
        ),
        (
            lambda: ddpm_mean(STEPS, X3, torch.tensor([[1], [2], [3]]), X3),
            "t has shape (3, 1) for a batch of shape (3,): "
            "t must be one number or have shape (B,)",
        ),
        (
            lambda: forward_jump(STEPS, exact(1.0), torch.tensor([1]), exact(1.0)),
            "t has shape (1,) for a batch of shape (): "
            "t must be one number or have shape (B,)",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 5, X3),
            "previous = 5: must be below t = 5",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 6, X3),
            "previous = 6: must be below t = 5",
        ),
        (
            lambda: ddim_step(STEPS, X3, 0, 0, X3),
            "previous = 0: must be below t = 0",
        ),
        (
            lambda: ddim_step(STEPS, X3, torch.tensor([2, 3, 4]), 3, X3),
            "previous = 3: must be below t = tensor([2, 3, 4])",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, torch.tensor([4, 5, 0]), X3),
            "previous = tensor([4, 5, 0]): must be below t = 5",
        ),
        (
            lambda: ddim_step(STEPS, X3, 1, -1, X3),
            "t = -1: timesteps run from 0 to 100",
        ),
        (
            lambda: ddim_step(STEPS, X3, 101, 1, X3),
            "t = 101: timesteps run from 0 to 100",
        ),
        (
            lambda: ddim_step(STEPS, X3, torch.tensor([4, 5]), 0, X3),
            "t has shape (2,) for a batch of shape (3,): "
            "t must be one number or have shape (B,)",
        ),
        (
            lambda: ddim_step(
                STEPS, X3, torch.tensor([4, 5, 6]), torch.tensor([0, 1]), X3
            ),
            "t has shape (2,) for a batch of shape (3,): "
            "t must be one number or have shape (B,)",
        ),
        (
            lambda: ddim_step(Schedule([0.9] * 400), X3, 400, 0, X3),
            "alpha_bar = 0: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X3, X3, 1.5),
            "eta = 1.5: must lie in [0, 1]",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X3, X3, -0.5),
            "eta = -0.5: must lie in [0, 1]",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X3, X3, math.nan),
            "eta = nan: must lie in [0, 1]",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X3, eta=0.5),
            "noise = None: eta = 0.5 needs fresh noise",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X3, X2, 0.5),
            "noise has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X2),
            "predicted_noise has shape (2,), x has shape (3,): "
            "the shapes must be equal",
        ),
        (
            lambda: guided_noise(X3, X2, 2.0),
            "conditional has shape (2,), unconditional has shape (3,): "
            "the shapes must be equal",
        ),
        (
            lambda: guided_noise(X3, X3, math.inf),
            "scale = inf: every entry must be finite",
        ),
        (
            lambda: langevin_step(X3, X3, 0.0, X3),
            "step_size = 0: every entry must be > 0",
        ),
        (
            lambda: langevin_step(X3, X2, 0.1, X3),
            "score has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: langevin_step(X3, X3, 0.1, X2),
            "noise has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: clean_from_noise(X3, 0.5, X2),
            "noise has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: clean_from_noise(X3, 0.0, X3),
            "alpha_bar = 0: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: clean_from_noise(X3, 1.5, X3),
            "alpha_bar = 1.5: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: noise_from_clean(X3, 0.5, X2),
            "clean has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: noise_from_clean(X3, 1.0, X3),
            "alpha_bar = 1: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: score_from_noise(1.0, X3),
            "alpha_bar = 1: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: noise_from_score(0.0, X3),
            "alpha_bar = 0: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: velocity(0.0, X3, X3),
            "alpha_bar = 0: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: noise_from_velocity(X3, 1.5, X3),
            "alpha_bar = 1.5: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: clean_from_velocity(X3, -0.5, X3),
            "alpha_bar = -0.5: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: velocity(0.5, X3, X2),
            "clean has shape (2,), noise has shape (3,): the shapes must be equal",
        ),
        (
            lambda: noise_from_velocity(X3, 0.5, X2),
            "v has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: clean_from_velocity(X3, 0.5, X2),
            "v has shape (2,), x has shape (3,): the shapes must be equal",
        ),
        (
            lambda: forward_step(STEPS, BAD, 1, X3),
            "x = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: forward_jump(STEPS, BAD, 1, X3),
            "x0 = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: ddpm_step(STEPS, X3, 1, BAD, X3),
            "predicted_noise = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: ddpm_step(STEPS, X3, 1, X3, BAD),
            "noise = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: ddim_step(STEPS, BAD, 5, 4, X3),
            "x = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, BAD),
            "predicted_noise = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: ddim_step(STEPS, X3, 5, 4, X3, BAD, 0.5),
            "noise = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: guided_noise(BAD, X3, 2.0),
            "unconditional = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: guided_noise(X3, BAD, 2.0),
            "conditional = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: velocity(0.5, BAD, X3),
            "noise = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: velocity(0.5, X3, BAD),
            "clean = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: noise_from_velocity(BAD, 0.5, X3),
            "x = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: clean_from_velocity(X3, 0.5, BAD),
            "v = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: langevin_step(X3, BAD, 0.1, X3),
            "score = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: clean_from_noise(BAD, 0.5, X3),
            "x = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: noise_from_clean(X3, 0.5, BAD),
            "clean = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: score_from_noise(0.5, BAD),
            "noise = [0, nan, 2]: every entry must be finite",
        ),
        (
            lambda: noise_from_score(0.5, BAD),
            "score = [0, nan, 2]: every entry must be finite",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
