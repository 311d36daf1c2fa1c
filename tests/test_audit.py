"""Audits pass what is right, and name what is wrong.

Of each fault a row is asked for by its check, and its verdict is compared word by word:
an audit that merely fails would not tell anybody what to mend.
"""

import doctest
import importlib
import math
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy, mse_loss

from genaudit import audit, divergence, metrics, process
from genaudit.audit import Report
from genaudit.sampler import ddim_sample, ddpm_sample
from genaudit.schedule import Schedule, cosine_schedule, linear_schedule
from tests.strategies import exact, schedules, seeded

LONG, SHORT = linear_schedule(), linear_schedule(100, 1e-4, 0.1)
SD_TAKEN = "looks like the standard deviation where the variance belongs"
VARIANCE_TAKEN = "looks like the variance where the standard deviation belongs"
MISSING = "looks like one beta too many"


def betas(schedule=SHORT):
    return schedule.beta(schedule.timesteps)


def levels(schedule=SHORT):
    return schedule.alpha_bar(schedule.timesteps)


def verdict(report, check):
    (found,) = [row.verdict for row in report.rows if row.check == check]
    return found


def kl(mean, log_variance):
    return (mean.square() + log_variance.exp() - 1 - log_variance) / 2


def elbo(x, rebuilt, mean, log_variance):
    error = (x - rebuilt).square().sum(1) / (2 * 0.0625)
    return (error + divergence.kl_gaussian(mean, log_variance.exp()).sum(1)).mean()


def ours(schedule):
    """Reports on the package's own functions for one schedule."""
    beta, level = betas(schedule), levels(schedule)
    step = partial(process.ddpm_step, schedule)
    return [
        audit.forward_jump(partial(process.forward_jump, schedule), level),
        audit.reverse_step(step, beta),
        audit.reverse_step(partial(step, variance="beta"), beta, "beta"),
        audit.ddim_step(partial(process.ddim_step, schedule), level),
        audit.sampler(lambda net, x: ddim_sample(net, schedule, x), level),
        audit.sampler(lambda net, x: ddpm_sample(net, schedule, x, seeded()), level),
    ]


@pytest.mark.parametrize("schedule", [LONG, SHORT, cosine_schedule(100)])
def test_the_package_passes_on_usual_schedules(schedule):
    reports = [audit.noise_schedule(betas(schedule), levels(schedule))]
    for report in reports + ours(schedule):
        assert report.passed, report


@given(schedules())
def test_the_package_passes_on_any_schedule(schedule):
    for report in ours(schedule):
        assert report.passed, report


@pytest.mark.parametrize(
    ("audited", "code"),
    [
        (audit.guidance, process.guided_noise),
        (audit.vae_loss, elbo),
        (audit.reparameterization, lambda m, v, e: m + (v / 2).exp() * e),
        (audit.kl_gaussian, divergence.kl_gaussian),
        (audit.multi_sample_bound, lambda w: w.logsumexp(0) - math.log(len(w))),
        (audit.discriminator_value, divergence.gan_value),
        (audit.jensen_shannon, divergence.jsd_finite),
        (audit.jensen_shannon, lambda p, q: jensenshannon(p, q) ** 2),
        (
            audit.wasserstein,
            lambda p, q: wasserstein_distance(range(len(p)), range(len(q)), p, q),
        ),
        (audit.pass_at_k, metrics.pass_at_k),
        (audit.perplexity, metrics.perplexity),
        (
            audit.bits_per_dimension,
            lambda logs, size: metrics.bits_per_dimension(logs, size, 1 / 256),
        ),
        (audit.coverage, metrics.coverage),
        (audit.masked_loss, lambda costs, mask, t: costs[mask].sum() / t),
    ],
)
def test_what_is_right_passes(audited, code):
    report = audited(code)
    assert report.passed, report


# Arrays of a schedule.


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ("belongs to t - 1", torch.cat([exact([1 - 1e-9]), levels()[:-1]])),
        ("belongs to t + 1", torch.cat([levels()[1:], exact([1e-4])])),
        (MISSING, levels() * (1 - betas()[0])),
        ("looks like the alphas, not their product", 1 - betas()),
        ("looks like alpha_t to the power t", (1 - betas()) ** SHORT.timesteps),
        (
            "looks like alpha_t to the power t + 1",
            (1 - betas()) ** (SHORT.timesteps + 1),
        ),
        ("looks like its square root", levels().sqrt()),
        ("looks like 1 - alpha_bar", 1 - levels()),
        ("looks like 1 - the sum of the betas", 1 - betas().cumsum(0)),
    ],
)
def test_tables_that_are_no_product(words, level):
    report = audit.noise_schedule(betas(), level)
    assert verdict(report, "alpha_bar is the product").endswith(f": {words}")
    assert not report.passed


def test_a_table_that_begins_with_the_clean_level():
    with_clean = torch.cat([exact([1.0]), levels()])
    for level in (with_clean, with_clean[:-1]):
        report = audit.noise_schedule(betas(), level)
        words = "differs: entry 0 is the clean level, so entry t is step t"
        assert verdict(report, "alpha_bar, entry 0") == words
        assert verdict(report, "alpha_bar is the product") == "agrees"


def test_orders_and_ranges_of_a_schedule():
    turned = audit.noise_schedule(betas().flip(0))
    assert verdict(turned, "beta, order") == "differs: looks reversed"
    bumpy = audit.noise_schedule(exact([0.1, 0.6, 0.3, 0.999]))
    assert verdict(bumpy, "beta, order").startswith("agrees: falls in places")
    assert bumpy.passed
    for wrong in (0.0, -0.1, 1.0):
        report = audit.noise_schedule(exact([wrong, 0.5, 0.999]))
        assert verdict(report, "beta, range") == "differs"
    rising = audit.noise_schedule(alpha_bar=levels().flip(0))
    assert verdict(rising, "alpha_bar, order") == "differs"
    assert verdict(audit.noise_schedule(alpha_bar=[1.2, 0.1]), "alpha_bar, range") == (
        "differs"
    )


def test_how_much_signal_is_left():
    weak = audit.noise_schedule(LONG.beta(range(1, 501)))
    words = "differs: x_T holds 28 % of x_0, no pure noise"
    assert verdict(weak, "alpha_bar_T") == words
    whole = audit.noise_schedule(betas(LONG))
    assert verdict(whole, "alpha_bar_T") == "agrees: x_T holds 0.64 % of x_0"


def test_a_last_level_that_no_guess_of_the_noise_survives():
    words = "differs: a guess of the noise cannot give x_0 here, a velocity can"
    for last in (1e-12, 0.0):
        report = audit.noise_schedule(alpha_bar=exact([0.9, 0.5, last]))
        assert verdict(report, "float32 error of x_0 at T") == words
        assert not report.passed


def test_a_product_that_float32_cannot_hold():
    report = audit.noise_schedule(exact([0.9] * 60))  # 1e-60
    words = "differs: build the table in float64"
    assert verdict(report, "product in float32, drift") == words
    empty = audit.noise_schedule(exact([1e-9, 0.9, 0.9999]))  # 1 - beta rounds to 1
    assert verdict(empty, "product in float32, drift") == "agrees"


def test_the_first_step_is_exact_only_if_both_tables_begin_together():
    report = audit.noise_schedule(betas(), levels() * (1 - betas()[0]))
    assert verdict(report, "alpha_bar_1 is 1 - beta_1") == "differs"
    assert verdict(report, "weight of x_0 at t = 1") == "differs"
    still = audit.noise_schedule(exact([0.0, 0.5, 0.999]))
    assert verdict(still, "weight of x_0 at t = 1") == "differs: NaN"


def test_schedules_that_are_no_lists_of_numbers_are_rows():
    for beta, words in [
        (torch.rand(3, 2), "differs: beta has shape (3, 2), not (T,)"),
        ([0.1, math.nan], "differs: beta holds nan"),
        ("linear", "differs: returned str, which is no number"),
        ([], "differs: returned nothing, which is no real number"),
        ([0.1, None], "differs: returned list, which is no number"),
    ]:
        report = audit.noise_schedule(beta)
        assert [row.verdict for row in report.rows] == [words]
    bare = audit.noise_schedule(alpha_bar=[1.0]).rows[-1]
    assert bare.verdict == "differs: alpha_bar holds no step"
    longer = audit.noise_schedule(betas(), levels()[:-5])
    words = "differs: 100 betas, 95 steps of alpha_bar"
    assert verdict(longer, "alpha_bar is the product") == words
    one = audit.noise_schedule(alpha_bar=levels())
    words = "not checked: needs both arrays"
    assert verdict(one, "alpha_bar is the product") == words
    with pytest.raises(ValueError, match="at least one must be given"):
        audit.noise_schedule()


def test_arrays_of_numpy_even_backwards():
    beta = np.linspace(0.1, 1e-4, 100)[::-1]
    assert audit.noise_schedule(beta, np.cumprod(1 - beta)).passed


# The jump.


def jump(x0, t, noise, signal=None, spread=None, table=None):
    """A jump with other weights, by functions of alpha-bar."""
    level = (SHORT.alpha_bar if table is None else table)(t)
    level = level.reshape(-1, *[1] * (x0.ndim - 1)).to(x0.dtype)
    signal = (signal or torch.sqrt)(level)
    return signal * x0 + (spread or (lambda a: (1 - a).sqrt()))(level) * noise


@pytest.mark.parametrize(
    ("check", "words", "fault"),
    [
        ("weight of the noise", SD_TAKEN, dict(spread=lambda a: (1 - a) ** 0.25)),
        ("weight of the noise", VARIANCE_TAKEN, dict(spread=lambda a: 1 - a)),
        ("weight of x_0", "the square root is missing", dict(signal=lambda a: a)),
        (
            "weight of x_0",
            "the two weights are exchanged",
            dict(signal=lambda a: (1 - a).sqrt(), spread=torch.sqrt),
        ),
        (
            "weight of x_0",
            "belongs to t - 1",
            dict(table=lambda t: SHORT.alpha_bar(t - 1)),
        ),
        (
            "weight of the noise",
            "belongs to t - 1",
            dict(table=lambda t: levels()[t - 2]),  # t = 1 wraps around
        ),
        (
            "weight of the noise",
            "belongs to t + 1",
            dict(table=lambda t: SHORT.alpha_bar((t + 1).clamp(max=100))),
        ),
        (
            "weight of the noise",
            MISSING,
            dict(table=lambda t: SHORT.alpha_bar(t) * (1 - betas()[0])),
        ),
    ],
)
def test_jumps_with_wrong_weights(check, words, fault):
    assert audit.forward_jump(jump, levels()).passed
    report = audit.forward_jump(partial(jump, **fault), levels())
    assert verdict(report, check).endswith(f": {words}")


def test_a_jump_with_an_index_that_runs_over_the_end():
    report = audit.forward_jump(partial(jump, table=lambda t: levels()[t]), levels())
    assert verdict(report, "weight of x_0").endswith(": belongs to t + 1")
    raised = verdict(report, "weight of x_0, t = T")
    assert raised.startswith("raised IndexError: index 100 is out of bounds")


def test_a_jump_that_broadcasts_in_silence():
    def silent(x0, t, noise):
        level = SHORT.alpha_bar(t)
        return level.sqrt() * x0 + (1 - level).sqrt() * noise

    report = audit.forward_jump(silent, levels())
    for layout in ("(B, D)", "(B, C, H, W)"):
        words = "t runs along the last axis, a silent broadcast"
        assert verdict(report, f"{layout}, last size B").endswith(f": {words}")


def test_a_jump_for_vectors_alone():
    def columns(x0, t, noise):
        level = SHORT.alpha_bar(t)[:, None]
        return level.sqrt() * x0 + (1 - level).sqrt() * noise

    report = audit.forward_jump(columns, levels())
    assert verdict(report, "(B, D), last size B") == "agrees"
    assert verdict(report, "(B, C, H, W), last size B").startswith(
        "raised RuntimeError"
    )


def test_a_jump_that_widens():
    report = audit.forward_jump(lambda *all: jump(*all).double(), levels())
    assert [row.verdict for row in report.rows if row.verdict != "agrees"] == [
        "differs: comes back as float64"
    ]


# Reverse steps.


def reverse(x, t, guess, noise, mean=process.ddpm_mean, spread=None, last=0):
    """A step of variance beta, for planting faults."""
    fresh = SHORT.beta(t).sqrt() if spread is None else spread(t)
    return mean(SHORT, x, t, guess) + (fresh if t > last else 0) * noise


def sign_mean(schedule, x, t, guess):
    return process.ddpm_mean(schedule, x, t, -guess)


def undivided_mean(schedule, x, t, guess):
    return process.ddpm_mean(schedule, x, t, guess) * schedule.alpha(t).sqrt()


def rootless_mean(schedule, x, t, guess):
    return process.ddpm_mean(schedule, x, t, guess) / schedule.alpha(t).sqrt()


def shifted_mean(shift):
    def mean(schedule, x, t, guess):
        moved = min(max(t + shift, 1), len(schedule))
        return process.ddpm_mean(schedule, x, moved, guess)

    return mean


@pytest.mark.parametrize(
    ("check", "words", "fault"),
    [
        ("SD of fresh noise, t = 1", "fresh noise of beta_1 at the last step", {}),
        ("weight of the guess", "the sign is wrong", dict(mean=sign_mean)),
        (
            "weight of x",
            "leaves out the division by sqrt(alpha_t)",
            dict(mean=undivided_mean),
        ),
        *[
            (
                f"weight of {of}",
                "divides by alpha_t, its root is missing",
                dict(mean=rootless_mean),
            )
            for of in ("x", "the guess")
        ],
        ("weight of the guess", "belongs to t - 1", dict(mean=shifted_mean(-1))),
        ("weight of the guess", "belongs to t + 1", dict(mean=shifted_mean(1))),
        (
            "SD of fresh noise, t > 1",
            "the variance is beta_tilde",
            dict(spread=lambda t: SHORT.beta_tilde(t).sqrt()),
        ),
        ("SD of fresh noise, t > 1", VARIANCE_TAKEN, dict(spread=SHORT.beta)),
        (
            "SD of fresh noise, t > 1",
            SD_TAKEN,
            dict(spread=lambda t: SHORT.beta(t) ** 0.25),
        ),
        (
            "SD of fresh noise, t > 1",
            "no fresh noise, the mean alone",
            dict(spread=lambda t: 0.0),
        ),
    ],
)
def test_reverse_steps_with_faults(check, words, fault):
    right = partial(reverse, last=1)
    assert audit.reverse_step(right, betas(), "beta").passed
    report = audit.reverse_step(partial(reverse, **fault), betas(), "beta")
    assert verdict(report, check).endswith(f": {words}")


def test_noise_at_the_last_step_shows_on_a_point_alone():
    def noisy(x, t, guess, noise):
        mean = process.ddpm_mean(LONG, x, t, guess)
        return mean + LONG.beta(t).sqrt() * noise

    report = audit.reverse_step(noisy, betas(LONG), "beta")
    assert verdict(report, "final variance, a point") == "differs"
    assert verdict(report, "final variance, N(0, 1)") == "agrees"
    assert [row[1:3] for row in report.rows[-2:]] == [("0", "0.0001"), ("0.9999", "1")]


def test_a_stride_with_the_beta_of_one_step():
    strides = LONG.strided(10)

    def short(x, t, guess, noise):
        beta = LONG.beta(100 * t)
        mean = (x - beta / strides.noise(t) * guess) / (1 - beta).sqrt()
        return mean + (beta.sqrt() * noise if t > 1 else 0)

    report = audit.reverse_step(short, betas(strides), "beta")
    words = "looks like the beta of a shorter step"
    assert verdict(report, "weight of x").endswith(f": {words}")
    assert verdict(report, "weight of the guess").endswith(f": {words}")
    assert report.rows[-2][1:3] == ("0", "0.9336")


def test_a_step_that_clips():
    def clipped(x, t, guess, noise):
        clean = process.clean_from_noise(x, SHORT.alpha_bar(t), guess).clamp(-1, 1)
        weight_x0, weight_xt, variance = SHORT.posterior(t)
        return weight_x0 * clean + weight_xt * x + variance.sqrt() * noise

    report = audit.reverse_step(clipped, betas())
    words = "differs at t = 1: clips the clean guess to [-1, 1], which no equation asks"
    assert verdict(report, "linear, large x") == f"{words} for"
    assert verdict(report, "weight of x") == "agrees"
    words = "not checked: the step is not linear"
    assert verdict(report, "final variance, a point") == words


def test_a_reverse_step_with_an_index_that_runs_over_the_end():
    table = betas()

    def late(x, t, guess, noise):
        later = Schedule(table).beta(torch.tensor([t + 1]))  # raises at T
        mean = shifted_mean(1)(SHORT, x, t, guess)
        return mean + (later.sqrt() * noise if t > 1 else 0)

    report = audit.reverse_step(late, betas(), "beta")
    assert verdict(report, "step at t = T").startswith("raised ValueError: t = 101")
    assert verdict(report, "weight of the guess").endswith(": belongs to t + 1")
    assert verdict(report, "SD of fresh noise, t > 1").endswith(": belongs to t + 1")
    words = "not checked: the step at T is missing"
    assert verdict(report, "final variance, N(0, 1)") == words


def test_a_reverse_step_that_fails_on_the_way():
    def until(x, t, guess, noise):
        return process.ddpm_step(SHORT, x, t, guess, noise) if t < 5 else None

    report = audit.reverse_step(until, betas())
    words = "differs: returned NoneType, which is no number (t = 5)"
    assert [row.verdict for row in report.rows] == [words]


# DDIM.


def ddim(x, t, s, guess, noise, eta, to=lambda s: s, power=lambda eta: eta):
    return process.ddim_step(SHORT, x, t, to(s), guess, noise, power(eta))


def test_ddim_steps_that_end_at_level_one():
    report = audit.ddim_step(partial(ddim, to=lambda s: max(s, 1)), levels(), [100, 50])
    assert (
        verdict(report, "last jump, onto 0.7") == "differs: goes to level 1, not to 0"
    )
    assert verdict(report, "eta 0, weights, s > 0") == "agrees"
    assert verdict(report, "eta 1, noise, last jump") == "differs"


def test_ddim_steps_to_other_levels_than_the_table_says():
    visits = [100, 60, 20]
    report = audit.ddim_step(partial(ddim, to=lambda s: s and s + 7), levels(), visits)
    words = "differs at 100 to 60: goes to level 67, the table says 60"
    assert verdict(report, "eta 0, weights, s > 0") == words
    assert verdict(report, "last jump, onto 0.7") == "agrees"


def test_ddim_steps_with_all_indices_off_by_one():
    def early(x, t, s, guess, noise, eta):
        return process.ddim_step(SHORT, x, t - 1, max(s - 1, 0), guess, noise, eta)

    report = audit.ddim_step(early, levels(), [100, 60, 20])
    assert verdict(report, "eta 0, weights, s > 0").endswith(": belongs to t - 1")


def test_ddim_that_reads_the_last_entry_for_the_clean_level():
    def last_entry(x, t, s, guess, noise, eta):
        if s:
            return ddim(x, t, s, guess, noise, eta)
        clean = process.clean_from_noise(x, SHORT.alpha_bar(t), guess)
        return SHORT.signal(100) * clean + SHORT.noise(100) * guess

    report = audit.ddim_step(last_entry, levels(), [100, 60, 20])
    words = "differs: takes alpha_bar_T, the last entry, for alpha_bar_0"
    assert verdict(report, "last jump, onto 0.7") == words


def test_reverse_step_that_looks_one_up_at_the_end_alone():
    """The usual cut of a variance that would be 0: at t = 1 it takes the one of 2."""

    def cut(x, t, guess, noise):
        mean = process.ddpm_mean(SHORT, x, t, guess)
        return mean + SHORT.beta_tilde(max(t, 2)).sqrt() * noise

    report = audit.reverse_step(cut, betas())
    words = "differs: fresh noise of step 2 at the last step"
    assert verdict(report, "SD of fresh noise, t = 1") == words
    assert verdict(report, "SD of fresh noise, t > 1") == "agrees"


@pytest.mark.parametrize(
    ("words", "power"),
    [
        ("eta stands on the variance, not squared", math.sqrt),
        ("eta is squared on the standard deviation", lambda eta: eta**2),
        ("eta has no effect", lambda eta: 0.0),
    ],
)
def test_what_eta_means(words, power):
    report = audit.ddim_step(partial(ddim, power=power), levels())
    assert verdict(report, "eta 0.5, SD of noise").endswith(f": {words}")
    assert verdict(report, "eta 0, weights, s > 0") == "agrees"


def test_ddim_that_forgets_to_turn_down_the_guess():
    def forgets(x, t, s, guess, noise, eta):
        right = ddim(x, t, s, guess, noise, eta)
        return (
            right
            + ddim(x, t, s, guess, 0 * noise, 0)
            - ddim(x, t, s, guess, 0 * noise, eta)
        )

    report = audit.ddim_step(forgets, levels())
    words = "sigma^2 is not taken off"
    assert verdict(report, "eta 0.5, weight of guess").endswith(f": {words}")
    assert verdict(report, "eta 1, SD of noise") == "agrees"


@pytest.mark.parametrize(
    ("words", "fits"), [("", False), (", and makes the noise fit", True)]
)
def test_ddim_that_clips(words, fits):
    def clips(x, t, s, guess, noise, eta):
        level, low = SHORT.alpha_bar(t), SHORT.alpha_bar(s)
        clean = process.clean_from_noise(x, level, guess).clamp(-1, 1)
        if fits:
            guess = process.noise_from_clean(x, level, clean)
        sigma = eta * ((1 - low) / (1 - level) * (1 - level / low)).sqrt()
        rest = (1 - low - sigma**2).sqrt()
        return low.sqrt() * clean + rest * guess + sigma * noise

    report = audit.ddim_step(clips, levels())
    start = "differs at 100 to 90: clips the clean guess to [-1, 1], which no equation"
    assert verdict(report, "linear, large x") == f"{start} asks for{words}"
    assert verdict(report, "last jump, onto 0.7") == "agrees"


def test_a_table_of_visits_that_cannot_be():
    for visits, words in [
        ([101, 50], "the timesteps go from 101 to 50, not within 1..100"),
        ([50, 0], "the timesteps go from 50 to 0, not within 1..100"),
        ([50.5, 1], "the timesteps go from 50.5 to 1, not within 1..100"),
        ([1, 50], "the timesteps do not fall"),
    ]:
        report = audit.ddim_step(ddim, levels(), visits)
        assert [row.verdict for row in report.rows] == [f"differs: {words}"]


# Loops.


def ddpm_loop(network, x, told=lambda t: t, noisy_end=False):
    for t in range(100, 0, -1):
        guess, noise = network(x, told(t)), torch.randn_like(x)
        x = process.ddpm_mean(SHORT, x, t, guess)
        x = x + (SHORT.beta(t).sqrt() * noise if noisy_end or t > 1 else 0)
    return x


def ddim_loop(network, x, visits=(100, 75, 50, 25, 0), told=lambda t: t):
    for t, s in zip(visits, visits[1:]):
        x = process.ddim_step(SHORT, x, t, s, network(x, told(t)))
    return x


def short_loop(network, x):
    for t in range(1000, 0, -100):
        beta = LONG.beta(t)
        x = (x - beta / LONG.noise(t) * network(x, t)) / (1 - beta).sqrt()
        x = x + (beta.sqrt() * torch.randn_like(x) if t > 100 else 0)
    return x


@pytest.mark.parametrize(
    ("words", "loop", "schedule"),
    [
        (
            "network told t = 2, then a step from 1 to 0",
            partial(ddpm_loop, told=lambda t: min(t + 1, 100)),
            SHORT,
        ),
        (
            "looks like fresh noise at the last step",
            partial(ddpm_loop, noisy_end=True),
            SHORT,
        ),
        (
            "the last jump goes to level 1, not to 0",
            partial(ddim_loop, visits=(100, 50, 1)),
            SHORT,
        ),
        ("most of the noise is still there", short_loop, LONG),
    ],
)
def test_loops_that_miss_the_point(words, loop, schedule):
    report = audit.sampler(loop, levels(schedule))
    assert verdict(report, "distance from the point") == f"differs: {words}"


def test_loops_that_do_not():
    for loop, words in [
        (ddpm_loop, "not checked: the loop draws noise"),
        (
            lambda net, x: ddpm_sample(net, SHORT, x, seeded()),
            "not checked: the loop draws noise",
        ),
        (ddim_loop, "agrees"),
        (partial(ddim_loop, visits=(100, 0)), "not checked: one call alone"),
    ]:
        report = audit.sampler(loop, levels())
        assert report.passed
        assert verdict(report, "noise in x, call to call") == words


def test_a_loop_that_tells_another_level_than_that_of_x():
    """It lands on the point all the same, since its last step is right."""
    told = {100: 100, 75: 71, 50: 50, 25: 25}
    report = audit.sampler(partial(ddim_loop, told=told.get), levels())
    words = "differs at t = 71: there x is at level 75"
    assert verdict(report, "noise in x, call to call") == words
    assert verdict(report, "distance from the point") == "agrees"


def test_loops_that_begin_or_go_elsewhere():
    late = audit.sampler(partial(ddim_loop, visits=(90, 40, 0)), levels())
    words = "differs: pure noise is taken for level 90"
    assert verdict(late, "first t of the network") == words

    def back(network, x):
        network(x, 100), network(x, 50)
        return ddim_loop(network, x)

    assert verdict(audit.sampler(back, levels()), "order of its t") == "differs"
    for t in (0, 101, 0.5):
        report = audit.sampler(partial(ddim_loop, told=lambda _, t=t: t), levels())
        words = f"differs: network told t = {t:g}, not in 1..T"
        assert [row.verdict for row in report.rows] == [words]
    lazy = audit.sampler(lambda network, x: 0 * x + 0.7, levels())
    words = "differs: the network was never asked"
    assert [row.verdict for row in lazy.rows] == [words]


def test_a_loop_that_tells_every_example_its_level():
    def batched(network, x):
        return ddim_loop(lambda x, t: network(x, torch.full((len(x),), t)), x)

    assert audit.sampler(batched, levels()).passed


# Guidance.


@pytest.mark.parametrize(
    ("note", "combine"),
    [
        ("scale 1", process.guided_noise),
        ("scale 1", lambda u, c, s: s * c + (1 - s) * u),
        ("extra weight 0", lambda u, c, s: (1 + s) * c - s * u),
    ],
)
def test_both_conventions_of_guidance_pass_and_are_named(note, combine):
    report = audit.guidance(combine)
    assert report.passed
    words = f"agrees: {note} is the conditional guess"
    assert verdict(report, "no guidance") == words


@pytest.mark.parametrize(
    ("check", "words", "combine"),
    [
        (
            "equal guesses stay",
            "the sign of the unconditional guess is wrong",
            lambda u, c, s: s * c + (s - 1) * u,
        ),
        (
            "guesses 1, 2; scale 2",
            "the sign of the unconditional guess is wrong",
            lambda u, c, s: (1 + s) * c + s * u,
        ),
        (
            "straight line in scale",
            "the sign of the unconditional guess is wrong",
            lambda u, c, s: (1 + s) * c + s * u,
        ),
        (
            "straight line in scale",
            "the two guesses are exchanged",
            lambda u, c, s: c + s * (u - c),
        ),
        ("guesses twice as large", None, lambda u, c, s: u + s * (c - u) ** 3),
        ("straight line in scale", None, lambda u, c, s: u + s**2 * (c - u)),
        ("no guidance", None, lambda u, c, s: u + s / 2 * (c - u)),
    ],
)
def test_guidance_with_faults(check, words, combine):
    found = verdict(audit.guidance(combine), check)
    assert found.endswith(f": {words}") if words else found.startswith("differs")


# Latent variables.


@pytest.mark.parametrize(
    ("argument", "to_variance"),
    [
        ("variance", lambda v: v),
        ("SD", torch.square),
        ("log-variance", torch.exp),
        ("log SD", lambda v: (2 * v).exp()),
    ],
)
@pytest.mark.parametrize(
    ("entries", "batch", "reduce"),
    [
        ("left open", "left open", lambda kl: kl),
        ("sum", "left open", lambda kl: kl.sum(1)),
        ("sum", "mean", lambda kl: kl.sum(1).mean()),
        ("sum", "sum", torch.sum),
        ("mean", "left open", lambda kl: kl.mean(1)),
        ("mean", "mean", torch.mean),
        ("mean", "sum", lambda kl: kl.mean(1).sum()),
    ],
)
def test_what_a_kl_takes_and_how_it_is_reduced(
    argument, to_variance, entries, batch, reduce
):
    report = audit.kl_gaussian(
        lambda m, s: reduce(divergence.kl_gaussian(m, to_variance(s)))
    )
    assert verdict(report, "second argument") == f"agrees: the {argument}"
    assert [row.got for row in report.rows[2:4]] == [entries, batch]
    assert report.passed == (entries != "mean")
    if entries == "mean":
        words = "differs: a mean over the entries where their sum belongs"
        assert verdict(report, "over the entries") == words


def test_the_kl_of_torch():
    standard = Normal(0.0, 1.0)
    report = audit.kl_gaussian(lambda m, s: kl_divergence(Normal(m, s), standard))
    assert report.passed
    assert verdict(report, "second argument") == "agrees: the SD"
    turned = audit.kl_gaussian(lambda m, s: kl_divergence(standard, Normal(m, s)))
    assert verdict(turned, "direction") == "differs: from N(0, 1)"
    assert verdict(turned, "variance 1e-8") == "agrees"


@pytest.mark.parametrize(
    ("words", "factor"),
    [
        ("bits, which are nats / ln 2", 1 / math.log(2)),
        ("the factor 1/2 is missing", 2),
        ("the factor 1/2 stands twice", 0.5),
        ("the sign is wrong", -1),
    ],
)
def test_the_unit_of_a_kl(words, factor):
    report = audit.kl_gaussian(lambda m, v: factor * divergence.kl_gaussian(m, v))
    assert verdict(report, "unit") == f"differs: {words}"


def test_a_kl_of_no_known_form():
    report = audit.kl_gaussian(lambda m, v: kl(m, v) + 1)
    words = "differs: no known form, whatever the second argument"
    assert verdict(report, "value") == words
    clamped = audit.kl_gaussian(
        lambda m, v: divergence.kl_gaussian(m, v.clamp(min=1e-6))
    )
    assert verdict(clamped, "variance 1e-8") == "differs"


@pytest.mark.parametrize(
    ("words", "spread"),
    [
        ("the log-variance is exponentiated without the half", torch.exp),
        ("the log-variance is taken for the standard deviation", lambda v: v),
        ("the half is taken twice", lambda v: (v / 4).exp()),
        ("the sign of the log-variance is wrong", lambda v: (-v / 2).exp()),
    ],
)
def test_draws_of_another_width(words, spread):
    report = audit.reparameterization(lambda m, v, e: m + spread(v) * e)
    assert verdict(report, "standard deviation") == f"differs: {words}"


def squares(x, rebuilt, reduce=lambda e: e.sum(1).mean()):
    return reduce((x - rebuilt).square())


@pytest.mark.parametrize(
    ("beta", "variance", "loss"),
    [
        (392, "0.5", lambda x, r, m, v: mse_loss(r, x) + kl(m, v).mean()),
        (392, "1", lambda x, r, m, v: mse_loss(r, x) / 2 + kl(m, v).mean()),
        (0.5, "0.5", lambda x, r, m, v: squares(x, r) + kl(m, v).mean()),
        (784, "0.5", lambda x, r, m, v: mse_loss(r, x) + kl(m, v).sum(1).mean()),
        (4, "0.125", lambda x, r, m, v: 4 * squares(x, r) + 4 * kl(m, v).sum(1).mean()),
        (
            3136,
            None,
            lambda x, r, m, v: binary_cross_entropy(r, x) / 4 + kl(m, v).sum() / len(x),
        ),
    ],
)
def test_the_beta_that_a_loss_trains(beta, variance, loss):
    report = audit.vae_loss(loss)
    words = f"differs: the KL weighs {beta} times its share"
    assert verdict(report, "beta") == words
    if variance:
        assert report.rows[-2].got == variance


def test_the_beta_depends_on_the_sizes():
    def loss(x, r, m, v):
        return mse_loss(r, x) + kl(m, v).mean()

    assert audit.vae_loss(loss, pixels=64, codes=16).rows[-1].got == "4"


@pytest.mark.parametrize("reduce", [torch.sum, lambda e: e.sum(1).mean(), lambda e: e])
def test_losses_that_are_the_elbo(reduce):
    def loss(x, r, m, v):
        return squares(x, r, reduce).sum() + reduce(kl(m, v)).sum()

    def crossed(x, r, m, v):
        error = binary_cross_entropy(r, x, reduction="none")
        return reduce(error).sum() + reduce(kl(m, v)).sum()

    for each in (loss, crossed):
        report = audit.vae_loss(each)
        assert report.passed, report
        assert verdict(report, "beta") == "agrees: the ELBO"


def test_batches_that_are_reduced_in_two_ways():
    report = audit.vae_loss(lambda x, r, m, v: squares(x, r) + kl(m, v).sum())
    assert verdict(report, "KL over batch") == "differs: sum where the mean belongs"
    words = "differs: the KL weighs B times its share, for B examples"
    assert verdict(report, "beta") == words


@pytest.mark.parametrize(
    ("check", "words", "loss"),
    [
        (
            "KL of an entry",
            "log-variance taken for log SD",
            lambda x, r, m, v: squares(x, r) + kl(m, 2 * v).sum(1).mean(),
        ),
        (
            "KL of an entry",
            "log-variance with a wrong sign",
            lambda x, r, m, v: squares(x, r) + kl(m, -v).sum(1).mean(),
        ),
        (
            "KL of an entry",
            "from N(0, I)",
            lambda x, r, m, v: (
                squares(x, r)
                + divergence.kl_gaussian(0.0, 1.0, m, v.exp()).sum(1).mean()
            ),
        ),
        ("KL of an entry", "unknown", lambda x, r, m, v: squares(x, r) + (v**4).sum()),
        (
            "error of a pixel",
            "no likelihood we know",
            lambda x, r, m, v: (x - r).abs().sum(1).mean() + kl(m, v).sum(1).mean(),
        ),
        (
            "their sum, nothing else",
            None,
            lambda x, r, m, v: squares(x, r) * (1 + m.square().sum()) + kl(m, v).sum(),
        ),
        (
            "beta",
            "the KL weighs -1 times its share",
            lambda x, r, m, v: squares(x, r) - kl(m, v).sum(1).mean(),
        ),
        (
            "beta",
            "the sign is that of the bound, not of a loss",
            lambda *all: -elbo(*all),
        ),
        (
            "beta",
            "the sign is that of the bound, not of a loss",
            lambda x, r, m, v: (
                -binary_cross_entropy(r, x, reduction="sum") - kl(m, v).sum()
            ),
        ),
        (
            "error over batch",
            "neither a sum nor a mean",
            lambda x, r, m, v: (
                squares(x, r, torch.sum) * len(x) ** 2 + kl(m, v).sum() * len(x) ** 2
            ),
        ),
    ],
)
def test_losses_with_faults(check, words, loss):
    report = audit.vae_loss(loss)
    found = verdict(report, check)
    assert found == f"differs: {words}" if words else found.startswith("differs")
    assert not report.passed


@pytest.mark.parametrize(
    ("words", "bound"),
    [
        ("the mean of the logs, which is the ELBO for any K", torch.mean),
        ("log K is forgotten", lambda logs: logs.logsumexp(0)),
        ("the largest weight alone", torch.max),
        ("the mean weight without its log", lambda logs: logs.exp().mean()),
    ],
)
def test_bounds_from_several_draws(words, bound):
    report = audit.multi_sample_bound(bound)
    assert verdict(report, "weights 1 and 3") == f"differs: {words}"


def test_a_bound_whose_weights_underflow():
    report = audit.multi_sample_bound(lambda logs: logs.exp().mean().log())
    assert verdict(report, "weights 1 and 3") == "agrees"
    assert verdict(report, "weights e^-2000") == "differs: the weights underflow"


# Scores.


def naive_value(p, q, d):
    return (p * d.log() + q * (1 - d).log()).sum()


def naive_jsd(p, q):
    middle = (p + q) / 2
    return (p * (p / middle).log() + q * (q / middle).log()).sum() / 2


def strict_coverage(real, made, k):
    radius = torch.cdist(real, real).sort().values[:, k, None]
    return (torch.cdist(real, made) < radius).any(1).double().mean()


def zeros_counted(logs, mask):
    return (-torch.where(mask, logs, 0.0).mean()).exp()


def by_text(logs, mask):
    rows = [row[here] for row, here in zip(logs, mask)]
    return (-torch.stack([row.mean() for row in rows]).mean()).exp()


def kept(formula):
    return lambda logs, mask: formula(logs[mask])


@pytest.mark.parametrize(
    ("audited", "code", "check", "words"),
    [
        (audit.discriminator_value, naive_value, "zero masses, D of 0 and 1", "NaN"),
        (
            audit.discriminator_value,
            lambda *all: -divergence.gan_value(*all),
            "any D",
            "the sign is wrong, as in a loss",
        ),
        (
            audit.discriminator_value,
            lambda *all: divergence.gan_value(*all) / 2,
            "D = 1/2: -log 4",
            "half of it, a mean over both sums",
        ),
        (
            audit.discriminator_value,
            lambda p, q, d: -naive_value(p, q, d) / 2,
            "any D",
            "minus half of it, a mean cross-entropy",
        ),
        (
            audit.discriminator_value,
            lambda p, q, d: naive_value(q, p, d),
            "any D",
            "data and generator are exchanged",
        ),
        (
            audit.discriminator_value,
            lambda p, q, d: (p * d.log() + q * d.log()).sum(),
            "any D",
            "log D for the generator, not log(1 - D)",
        ),
        (
            audit.discriminator_value,
            lambda p, q, d: divergence.gan_value(p, q, d) / math.log(2),
            "any D",
            "in bits",
        ),
        (audit.jensen_shannon, naive_jsd, "a zero mass", "NaN"),
        (
            audit.jensen_shannon,
            jensenshannon,
            "a zero mass",
            "the distance, which is the square root",
        ),
        (
            audit.jensen_shannon,
            partial(jensenshannon, base=2),
            "a zero mass",
            "the distance, which is the square root, in bits",
        ),
        (
            audit.jensen_shannon,
            lambda p, q: jensenshannon(p, q, base=2) ** 2,
            "all masses above 0",
            "in bits",
        ),
        (
            audit.jensen_shannon,
            lambda p, q: 2 * divergence.jsd_finite(p, q),
            "no outcome in common",
            "the half is missing",
        ),
        (
            audit.jensen_shannon,
            lambda p, q: (
                divergence.kl_finite(p, q) / 2 + divergence.kl_finite(q, p) / 2
            ),
            "all masses above 0",
            "half the sum of both KL, without the mixture",
        ),
        (
            audit.jensen_shannon,
            lambda p, q: divergence.kl_finite(p, (p + q) / 2),
            "all masses above 0",
            "one KL to the mixture",
        ),
        (
            audit.wasserstein,
            wasserstein_distance,
            "two places",
            "reads the masses as places of samples",
        ),
        (
            audit.wasserstein,
            lambda p, q: (p - q).abs().sum() / 2,
            "three places",
            "total variation, blind to how far",
        ),
        (
            audit.wasserstein,
            lambda p, q: (p - q).abs().sum(),
            "three places",
            "twice the total variation",
        ),
        (
            audit.wasserstein,
            lambda p, q: (p - q).cumsum(0).abs().mean(),
            "two places",
            "divided by the number of places",
        ),
        (
            audit.pass_at_k,
            lambda n, c, k: 1 - (1 - c / n) ** k,
            "n 4, c 1, k 4",
            "1 - (1 - c/n)^k, drawn with replacement",
        ),
        (
            audit.pass_at_k,
            lambda n, c, k: c / n,
            "n 10, c 3, k 2",
            "c/n, as for k = 1",
        ),
        (
            audit.pass_at_k,
            lambda n, c, k: math.comb(n - c, k) / math.comb(n, k),
            "c = 0",
            "the complement, no attempt passes",
        ),
        (
            audit.perplexity,
            lambda logs, mask: (-logs.mean()).exp(),
            "two texts with padding",
            "the padding counts",
        ),
        (
            audit.perplexity,
            by_text,
            "two texts with padding",
            "each text is averaged first",
        ),
        (
            audit.perplexity,
            zeros_counted,
            "two texts with padding",
            "padding is 0, and its places are divided by",
        ),
        (
            audit.perplexity,
            lambda logs, mask: (-(logs * mask).sum() / mask.sum()).exp(),
            "padding is NaN",
            "NaN",
        ),
        (
            audit.perplexity,
            kept(lambda logs: -logs.mean()),
            "one text",
            "its logarithm, nats for each token",
        ),
        (
            audit.perplexity,
            kept(lambda logs: 2 ** -logs.mean()),
            "one text",
            "2 to the power of nats",
        ),
        (
            audit.perplexity,
            kept(lambda logs: (-logs.mean() / math.log(2)).exp()),
            "one text",
            "e to the power of bits",
        ),
        (
            audit.perplexity,
            kept(lambda logs: 1 / logs.exp().mean()),
            "one text",
            "one over the mean probability",
        ),
        (
            audit.perplexity,
            kept(lambda logs: (-logs.sum()).exp()),
            "one text",
            "the sum of the logs, not their mean",
        ),
        (
            audit.perplexity,
            kept(lambda logs: (-logs.exp().log().mean()).exp()),
            "a token of log p -800",
            "a probability underflows to 0",
        ),
        (
            audit.bits_per_dimension,
            lambda logs, d: -logs / d / math.log(2) + 7,
            "uniform density",
            "the constant 7 of data in [-1, 1]",
        ),
        (
            audit.bits_per_dimension,
            lambda logs, d: -logs / d / math.log(2),
            "log density 6, 4 numbers",
            "the bin width is left out",
        ),
        (
            audit.bits_per_dimension,
            lambda logs, d: -logs / math.log(2) + 8,
            "log density 6, 4 numbers",
            "not divided by the dimensions",
        ),
        (
            audit.bits_per_dimension,
            lambda logs, d: logs / d / math.log(2) + 8,
            "log density 6, 4 numbers",
            "the sign of the density is wrong",
        ),
        (
            audit.coverage,
            strict_coverage,
            "each point twice, itself",
            "the border of a ball is left out",
        ),
        (
            audit.coverage,
            metrics.precision,
            "four points, k = 1",
            "the roles are exchanged: precision",
        ),
        (
            audit.coverage,
            lambda real, made, k: metrics.coverage(real, made, k - 1 or 1),
            "four points, k = 2",
            "a point is its own first neighbour",
        ),
        (
            audit.masked_loss,
            lambda costs, mask, t: costs[mask].sum(),
            "one mask, t = 0.25",
            "the weight 1/t is missing",
        ),
        (
            audit.masked_loss,
            lambda costs, mask, t: costs[mask].sum(),
            "mean, laws 00 and 11: ln 2",
            "below the entropy, which no bound can be",
        ),
        (
            audit.masked_loss,
            lambda costs, mask, t: costs[mask].mean() / t,
            "one mask, t = 0.25",
            "a mean over the masked places, over t",
        ),
        (
            audit.masked_loss,
            lambda costs, mask, t: costs.sum() / t,
            "one mask, t = 0.25",
            "the visible places count",
        ),
    ],
)
def test_scores_with_faults(audited, code, check, words):
    report = audited(code)
    assert verdict(report, check) == f"differs: {words}"
    assert not report.passed


def test_more_attempts_than_were_made_are_refused():
    def product(n, c, k):
        left = np.arange(n - c + 1, n + 1)
        return 1.0 if n - c < k else 1 - np.prod(1 - k / left)

    report = audit.pass_at_k(product)
    assert verdict(report, "k > n") == "differs: a number that means nothing"
    assert len([row for row in report.rows if row.verdict != "agrees"]) == 1

    def refuses(n, c, k):
        return math.nan if k > n else product(n, c, k)

    assert audit.pass_at_k(refuses).passed
    missing = audit.pass_at_k(lambda n, c, k: None if k > n else product(n, c, k))
    assert not missing.passed


# Manners of other people's code.

CALLABLES = {
    "forward_jump": lambda f: audit.forward_jump(f, levels()),
    "reverse_step": lambda f: audit.reverse_step(f, betas()),
    "ddim_step": lambda f: audit.ddim_step(f, levels()),
    "sampler": lambda f: audit.sampler(f, levels()),
    "guidance": audit.guidance,
    "vae_loss": audit.vae_loss,
    "reparameterization": audit.reparameterization,
    "kl_gaussian": audit.kl_gaussian,
    "multi_sample_bound": audit.multi_sample_bound,
    "discriminator_value": audit.discriminator_value,
    "jensen_shannon": audit.jensen_shannon,
    "wasserstein": audit.wasserstein,
    "pass_at_k": audit.pass_at_k,
    "perplexity": audit.perplexity,
    "bits_per_dimension": audit.bits_per_dimension,
    "coverage": audit.coverage,
    "masked_loss": audit.masked_loss,
}


def raises(*arguments):
    raise RuntimeError(f"<b>no</b>\n{object()} " + "long " * 60 + "\u2028")


def reads_nan(*arguments):
    return next((a * math.nan for a in arguments if torch.is_tensor(a)), math.nan)


BAD = {
    "raises": raises,
    "takes nothing": lambda: 1.0,
    "NaN of the right shape": reads_nan,
    "a single NaN": lambda *_: math.nan,
    "infinity": lambda *_: torch.tensor(-math.inf),
    "another shape": lambda *_: torch.ones(7, 5),
    "nothing": lambda *_: None,
    "an empty list": lambda *_: [],
    "words": lambda *_: "1.0",
    "a pair": lambda *_: (torch.ones(2), None),
    "complex numbers": lambda *_: torch.ones(()) * 1j,
    "truth values": lambda *_: torch.tensor(True),
    "objects of numpy": lambda *_: np.array([None]),
    "a float": lambda *_: 0.25,
}


def test_every_audit_of_a_callable_is_tried():
    others = {"Report", "Row", "noise_schedule"}
    assert set(CALLABLES) == set(audit.__all__) - others


def test_every_report_says_what_it_is_about():
    titles = {name: report(raises).title for name, report in CALLABLES.items()}
    assert titles == {
        "forward_jump": "Forward jump",
        "reverse_step": "Reverse step, variance beta_tilde",
        "ddim_step": "DDIM step",
        "sampler": "Sampling loop",
        "guidance": "Guidance",
        "vae_loss": "Loss of a VAE",
        "reparameterization": "Draw of a code",
        "kl_gaussian": "KL to the standard normal",
        "multi_sample_bound": "Bound from several draws",
        "discriminator_value": "Value of the game",
        "jensen_shannon": "Jensen-Shannon divergence",
        "wasserstein": "Wasserstein-1 of two histograms",
        "pass_at_k": "pass@k",
        "perplexity": "Perplexity",
        "bits_per_dimension": "Bits per dimension, data in [0, 1]",
        "coverage": "Coverage",
        "masked_loss": "Loss over masked places",
    }
    assert audit.noise_schedule([0.1]).title == "Noise schedule"


@pytest.mark.parametrize("manner", BAD)
@pytest.mark.parametrize("name", CALLABLES)
def test_bad_manners_are_rows(name, manner):
    report = CALLABLES[name](BAD[manner])
    assert report.rows and not report.passed
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 83 and str(report).isascii()
    words = ("agrees", "differs", "raised ", "not checked: ")
    assert all(row.verdict.startswith(words) for row in report.rows)
    assert str(report) == str(CALLABLES[name](BAD[manner]))


def test_what_was_raised_is_told_in_one_short_line():
    report = audit.multi_sample_bound(raises)
    found = report.rows[0].verdict
    assert found.startswith("raised RuntimeError: <b>no</b> <object object at 0x...>")
    assert found.endswith("[...]") and len(found) < 110


def test_what_was_raised_may_have_no_words():
    def bare(*_):
        raise ValueError

    assert audit.multi_sample_bound(bare).rows[0].verdict == "raised ValueError"


def test_callers_that_interrupt_are_not_held_up():
    def interrupts(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit.guidance(interrupts)


def numpy_jump(x0, t, noise):
    table = np.cumprod(1 - np.linspace(1e-4, 0.1, 100))
    level = table[t.numpy() - 1].reshape(-1, *[1] * (x0.ndim - 1))
    level = level.astype(x0.numpy().dtype)
    return np.sqrt(level) * x0.numpy() + np.sqrt(1 - level) * noise.numpy()


def numpy_step(x, t, guess, noise):
    return process.ddpm_step(SHORT, x, t, guess, noise).numpy()[::-1][::-1]


def nested_lists(x, t, guess, noise):
    return process.ddpm_step(SHORT, x, t, guess, noise).tolist()


def in_place(x, t, guess, noise):
    result = process.ddpm_step(SHORT, x, t, guess, noise)
    return x.zero_().add_(result)


def learning(x, t, guess, noise):
    weight = torch.ones(1, requires_grad=True)
    return weight * process.ddpm_step(SHORT, x, t, guess, noise)


def narrow(x, t, guess, noise):
    inputs = (each.float() for each in (x, guess, noise))
    x, guess, noise = inputs
    return process.ddpm_step(SHORT, x, t, guess, noise)


@pytest.mark.parametrize("step", [numpy_step, nested_lists, in_place, learning, narrow])
def test_other_kinds_of_numbers_are_fine(step):
    assert audit.reverse_step(step, betas()).passed


def test_arrays_and_floats_of_numpy_are_fine():
    assert audit.forward_jump(numpy_jump, levels()).passed
    assert audit.forward_jump(numpy_jump, levels().numpy()).passed
    bound = audit.multi_sample_bound(
        lambda w: np.logaddexp.reduce(w.numpy()) - np.log(len(w))
    )
    assert bound.passed


def test_tables_in_float32_pass():
    beta = torch.linspace(1e-4, 0.02, 1000, dtype=torch.float32)
    level = torch.cumprod(1 - beta, 0)

    def step(x, t, guess, noise):
        now = level[t - 1]
        before = level[t - 2] if t > 1 else torch.tensor(1.0)
        clean = (x - (1 - now).sqrt() * guess) / now.sqrt()
        mean = (
            before.sqrt() * beta[t - 1] * clean
            + (1 - beta[t - 1]).sqrt() * (1 - before) * x
        )
        spread = ((1 - before) / (1 - now) * beta[t - 1]).sqrt()
        return mean / (1 - now) + spread * noise

    assert audit.noise_schedule(beta, level).passed
    report = audit.reverse_step(step, beta)
    assert report.passed, report


def test_reference_tables_are_checked_by_message():
    for bad, words in [
        ([[0.9], [0.5]], "must be"),
        ([1.0, 0.5], "it must fall from below 1"),
        ([0.5, 0.9], "it must fall from below 1"),
        ([0.5, -0.1], "it must fall from below 1"),
        ([0.5, math.nan], "must be finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            audit.forward_jump(jump, bad)
    with pytest.raises(ValueError, match="every entry must be > 0"):
        audit.ddim_step(ddim, [0.5, 0.0])
    with pytest.raises(ValueError, match="must be one of beta, beta_tilde"):
        audit.reverse_step(reverse, betas(), "learned")
    with pytest.raises(ValueError, match="codes = 0"):
        audit.vae_loss(elbo, codes=0)


def test_no_audit_depends_on_the_default_dtype_or_moves_the_global_draws(usual_dtype):
    torch.manual_seed(1)
    reports = [str(report) for report in ours(SHORT)]
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1))
    torch.set_default_dtype(
        torch.float64 if usual_dtype == torch.float32 else torch.float32
    )
    assert reports == [str(report) for report in ours(SHORT)]


# The report itself.


def test_what_passes():
    report = Report("Nothing")
    assert not report.passed
    report.add("a", 1, 1, "not checked: why")
    assert not report.passed
    report.add("b", 1, 1, "agrees: in a way")
    assert report.passed
    report.add("c", 1, 2, "differs")
    assert not report.passed
    other = Report("Raised")
    other.add("a", 1, 1, "agrees")
    other.add("b", "-", "-", "raised ValueError: no")
    assert not other.passed


def test_a_report_prints_as_a_table():
    report = Report("Two things")
    report.compare("a third", exact([1 / 3, 1]), exact([1 / 3, 1]))
    report.compare("a root", 2.0, 4.0, {"its square": 4.0, "another": 4.0})
    report.add("much", "to be wrapped in its cell", "-", "not checked: " + "word " * 12)
    assert str(report) == repr(report)
    assert str(report).splitlines() == [
        "Two things: 3 checks, 1 differs, 1 not checked",
        "check         expected     got  verdict",
        "-------  -------------  ------  " + 50 * "-",
        "a third         0.3333  0.3333  agrees",
        "a root               2       4  differs: its square",
        "much     to be wrapped       -  "
        "not checked: word word word word word word word",
        "           in its cell          word word word word word",
    ]


def test_a_comparison_names_the_first_entry_that_differs():
    report = Report("Entries")
    right, places = exact([1.0, 2.0, 3.0]), ["t = 1", "t = 2", "t = 3"]
    report.compare("a", right, exact([1.0, 2.5, 3.5]), at=places)
    report.compare("b", right, exact([1.0, 2.0, math.nan]), at=places)
    open_end = exact([math.nan, 2.5, 3.5])
    report.compare("c", right, exact([9.0, 2.5, 3.5]), {"shifted": open_end}, places)
    report.compare("d", right, exact([9.0, 2.5, 3.5]), {"open": right * math.nan})
    report.compare("e", 0.0, 1e-9, note="as good as nothing")
    report.compare("f", math.inf, math.inf)
    report.compare("g", 1.0, 1.0001, slack=1e-3)
    report.compare("h", 1.0, 1.001)
    assert [row[1:] for row in report.rows] == [
        ("2", "2.5", "differs at t = 2"),
        ("3", "nan", "differs at t = 3: NaN"),
        ("1", "9", "differs at t = 1: shifted"),
        ("1", "9", "differs"),
        ("0", "0", "agrees: as good as nothing"),
        ("inf", "inf", "agrees"),
        ("1", "1", "agrees"),
        ("1", "1.001", "differs"),
    ]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_a_report_shows_as_an_accessible_table():
    report = audit.guidance(process.guided_noise)
    shown = Tags(report._repr_html_())
    names = [tag for tag, _ in shown.tags]
    assert names[:3] == ["table", "caption", "thead"]
    scopes = [attrs["scope"] for tag, attrs in shown.tags if tag == "th"]
    assert scopes == ["col"] * 4 + ["row"] * len(report.rows)
    # Neither paper nor ink of its own, so that light and dark pages both suit.
    assert "color" not in report._repr_html_()
    assert "strong" not in names


def test_markup_in_a_report_is_only_text():
    evil = '<script>alert("1 & 2")</script>'
    report = Report(evil)
    report.add(evil, evil, evil, f"raised ValueError: {evil}")
    shown = Tags(report._repr_html_())
    assert "script" not in [tag for tag, _ in shown.tags]
    assert "strong" in [tag for tag, _ in shown.tags]
    assert "".join(shown.text).count(evil) == 5


def test_the_examples_run_with_what_their_page_imports():
    page = Path(__file__).parents[1] / "chapters" / "api" / "audit.md"
    names = {}
    exec(page.read_text().split("```python")[1].split("```")[0], names)
    for name in ("forward", "steps", "sampling", "latent", "scores"):
        module = importlib.import_module(f"genaudit.audit._{name}")
        result = doctest.testmod(module, globs=dict(names))
        assert result.attempted and not result.failed


# Libraries that others use.


def test_the_schedulers_of_diffusers():
    diffusers = pytest.importorskip(
        "diffusers", reason="audits diffusers, an optional package: not installed"
    )
    theirs = diffusers.DDIMScheduler(clip_sample=False, set_alpha_to_one=False)
    theirs.set_timesteps(10)

    def step(x, t, s, guess, noise, eta):
        return theirs.step(guess, t - 1, x, eta, variance_noise=noise).prev_sample

    report = audit.ddim_step(step, theirs.alphas_cumprod, theirs.timesteps + 1)
    bad = [row for row in report.rows if row.verdict != "agrees"]
    assert [row.verdict for row in bad] == ["differs: goes to level 1, not to 0"]


def test_the_perplexity_of_torchmetrics():
    text = pytest.importorskip(
        "torchmetrics.text", reason="audits torchmetrics, an optional package"
    )

    def theirs(logs, mask):
        logits = torch.stack([logs, torch.log1p(-logs.exp())], -1)
        return text.Perplexity(ignore_index=-100)(logits, torch.where(mask, 0, -100))

    report = audit.perplexity(theirs)
    bad = [row for row in report.rows if row.verdict != "agrees"]
    assert [row.verdict for row in bad] == ["differs: a probability underflows to 0"]
