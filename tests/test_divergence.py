"""Divergences and the game: laws for any input, other libraries, small known faults."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.spatial.distance import jensenshannon
from torch.distributions import Categorical, Normal, kl_divergence

from genaudit.divergence import (
    gan_optimal_value,
    gan_value,
    jsd_finite,
    kl_finite,
    kl_gaussian,
    optimal_discriminator,
)
from tests.strategies import distributions, exact, numbers, variances, vectors

NAN = float("nan")


def total_variation(p, q):
    return (p - q).abs().sum() / 2


@given(distributions(2, zeros=True))
def test_kl_is_at_least_pinskers_bound_so_zero_only_at_equality(pair):
    p, q = pair
    assert kl_finite(p, q) >= 2 * total_variation(p, q) ** 2 - 1e-14
    assert abs(kl_finite(p, p)) < 1e-15


@given(distributions(2))
def test_kl_agrees_with_scipy_and_torch(pair):
    p, q = pair
    assert abs(kl_finite(p, q) - stats.entropy(p, q)) < 1e-13
    assert abs(kl_finite(p, q) - kl_divergence(Categorical(p), Categorical(q))) < 1e-13


def test_kl_counts_no_outcome_without_mass_and_is_infinite_beyond_the_support():
    some, all_ = exact([0.5, 0.5, 0.0]), exact([0.25, 0.25, 0.5])
    assert abs(kl_finite(some, all_) - math.log(2)) < 1e-15
    assert kl_finite(all_, some) == math.inf
    assert kl_finite(some, some) == 0


@given(distributions(2, zeros=True))
def test_jsd_is_symmetric_and_between_zero_and_log_two(pair):
    p, q = pair
    value = jsd_finite(p, q)
    assert total_variation(p, q) ** 2 / 2 - 1e-14 <= value <= math.log(2) + 1e-15
    assert value >= 0 == jsd_finite(p, p)
    assert abs(value - jsd_finite(q, p)) < 1e-15


@given(distributions(2, zeros=True))
def test_jsd_is_the_square_of_scipys_distance(pair):
    p, q = pair
    assert abs(jsd_finite(p, q) - jensenshannon(p, q) ** 2) < 1e-12


def test_jsd_with_an_outcome_without_mass():
    p, q = [0.3, 0.3, 0.4], [0.5, 0.5, 0.0]
    assert abs(jsd_finite(p, q) - 0.163897) < 5e-7
    assert abs(jsd_finite(p, q).sqrt() - 0.404841) < 5e-7
    assert abs(jsd_finite([0.5, 0.5, 0.0], [0.0, 0.0, 1.0]) - math.log(2)) < 1e-15


@given(distributions(2, zeros=True))
def test_value_of_the_best_discriminator_is_the_identity(pair):
    p, q = pair
    value = gan_value(p, q, optimal_discriminator(p, q))
    assert abs(value - gan_optimal_value(p, q)) < 1e-13
    assert abs(value - (2 * jsd_finite(p, q) - math.log(4))) < 1e-13


@given(distributions(2, zeros=True), st.data())
def test_no_other_discriminator_does_better(pair, data):
    p, q = pair
    other = data.draw(vectors(len(p), 0.01, 0.99))
    best = optimal_discriminator(p, q)
    loss = gan_value(p, q, best) - gan_value(p, q, other)
    # Pinsker for one coin per outcome: off by d, it costs 2 d^2 of the outcome's mass.
    apart = torch.where(p + q == 0, 0, (best - other) ** 2)
    assert loss >= 2 * ((p + q) * apart).sum() - 1e-13


def test_an_outcome_that_nobody_makes_leaves_the_discriminator_undefined():
    p, q = exact([0.2, 0.8, 0.0]), exact([0.6, 0.4, 0.0])
    best = optimal_discriminator(p, q)
    assert best.isnan().tolist() == [False, False, True]
    assert torch.allclose(best[:2], exact([0.25, 2 / 3]))
    anything = exact([0.25, 2 / 3, 7.0])
    assert gan_value(p, q, best) == gan_value(p, q, anything) < 0


def test_game_values_by_hand():
    p, q = [0.25, 0.75], [0.75, 0.25]
    expected = 0.25 * math.log(0.9) + 0.75 * math.log(0.2)
    expected += 0.75 * math.log(0.1) + 0.25 * math.log(0.8)
    assert abs(gan_value(p, q, [0.9, 0.2]) - expected) < 1e-14
    assert abs(gan_optimal_value(p, p) + math.log(4)) < 1e-15
    assert abs(gan_optimal_value([1.0, 0.0], [0.0, 1.0])) < 1e-15
    assert gan_value([1.0, 0.0], [0.0, 1.0], [1.0, 0.0]) == 0
    assert gan_value([1.0, 0.0], [0.0, 1.0], [0.0, 0.5]) == -math.inf


def test_a_discriminator_keeps_its_digits_beside_coarser_masses():
    p, q = torch.tensor([0.5, 0.5]), exact([0.25, 0.75])
    value = gan_value(p, q, exact([0.3, 0.6]))
    by_hand = 0.5 * math.log(0.18) + 0.25 * math.log(0.7) + 0.75 * math.log(0.4)
    assert abs(value - by_hand) < 1e-15


def test_rows_of_a_batch_are_separate():
    p, q = exact([[0.2, 0.8], [0.5, 0.5]]), exact([[0.6, 0.4], [0.1, 0.9]])
    d = exact([[0.3, 0.4], [0.5, 0.7]])
    for one in (kl_finite, jsd_finite, gan_optimal_value):
        assert one(p, q).tolist() == [one(p[0], q[0]), one(p[1], q[1])]
    assert gan_value(p, q, d).tolist() == [
        gan_value(p[0], q[0], d[0]),
        gan_value(p[1], q[1], d[1]),
    ]
    assert optimal_discriminator(p, q).shape == (2, 2)


@given(vectors(2), variances, variances)
def test_gaussian_kl_agrees_with_torch(means, variance, other_variance):
    mean, other_mean = means
    ours = kl_gaussian(mean, exact(variance), other_mean, exact(other_variance))
    theirs = kl_divergence(
        Normal(mean, math.sqrt(variance)), Normal(other_mean, math.sqrt(other_variance))
    )
    assert abs(ours - theirs) < 1e-11 * (1 + theirs)


@given(numbers(-2, 2), variances)
def test_gaussian_kl_agrees_with_quadrature(mean, variance):
    code, prior = stats.norm(mean, math.sqrt(variance)), stats.norm()
    area, _ = integrate.quad(
        lambda z: code.pdf(z) * (code.logpdf(z) - prior.logpdf(z)),
        *code.interval(1 - 1e-15),
        epsabs=1e-11,
    )
    assert abs(kl_gaussian(mean, variance) - area) < 1e-9


@given(numbers(-2, 2), variances)
def test_gaussian_kl_is_zero_only_at_equality(mean, variance):
    here = kl_gaussian(exact(mean), exact(variance))
    # ratio - 1 - log(ratio) is at least (sqrt(ratio) - 1)^2.
    assert here >= mean**2 / 2 + (math.sqrt(variance) - 1) ** 2 / 2 - 1e-14
    assert abs(kl_gaussian(mean, variance, mean, variance)) < 1e-15


def test_gaussian_kl_takes_variances_and_stays_per_coordinate():
    log_variance = exact([math.log(4), 0.0])
    kl = kl_gaussian(exact([0.0, 1.0]), log_variance.exp())
    assert torch.allclose(kl, exact([1.5 - math.log(2), 0.5]))
    by_rows = kl_gaussian(torch.zeros(4, 1), torch.ones(3))
    assert by_rows.shape == (4, 3)


def test_gaussian_kl_of_widely_different_scales_is_finite():
    kl = kl_gaussian(0.0, torch.tensor(1e-30), 0.0, torch.tensor(1e20))
    assert abs(kl - (50 * math.log(10) - 1) / 2) < 1e-4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_masses_give_coarse_but_right_answers(dtype):
    p = torch.tensor([0.25, 0.25, 0.5], dtype=dtype)
    q = torch.tensor([0.5, 0.5, 0.0], dtype=dtype)
    d = torch.tensor([0.375, 0.375, 0.5], dtype=dtype)
    values = jsd_finite(p, q), kl_finite(q, p), gan_value(p, q, d)
    p, q, d = p.double(), q.double(), d.double()
    right = jsd_finite(p, q), kl_finite(q, p), gan_value(p, q, d)
    for value, expected in zip(values, right, strict=True):
        assert value.dtype == dtype
        assert abs(value - expected) < 2 * torch.finfo(dtype).eps


def test_python_numbers_are_not_rounded_to_float32():
    p, q = [0.3, 0.7], [0.6, 0.4]
    assert abs(kl_finite(p, q) - stats.entropy(p, q)) < 1e-15
    assert abs(kl_gaussian(0.3, 1.0) - 0.045) < 1e-15
    assert kl_finite(np.array(p), np.array(q)).dtype == torch.float64


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: kl_finite([0.5, 0.6], [0.5, 0.5]),
            "p sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: jsd_finite([0.5, 0.5], [0.9, 0.2]),
            "q sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: optimal_discriminator([1.5, -0.5], [0.5, 0.5]),
            "p = [1.5, -0.5]: every entry must be >= 0",
        ),
        (
            lambda: gan_optimal_value([NAN, 0.5], [0.5, 0.5]),
            "p = [nan, 0.5]: every entry must be finite",
        ),
        (
            lambda: kl_finite([0.5, 0.5], [0.2, 0.3, 0.5]),
            "p has shape (2,), q has shape (3,): the shapes must be equal",
        ),
        (
            lambda: kl_finite(1.0, 1.0),
            "p = 1: needs at least one outcome",
        ),
        (
            lambda: kl_finite(torch.zeros(2, 0), torch.zeros(2, 0)),
            "p = []: needs at least one outcome",
        ),
        (
            lambda: gan_value([0.5, 0.5], [0.5, 0.5], [0.5, 1.25]),
            "discriminator = [0.5, 1.25]: entries must lie in [0, 1]",
        ),
        (
            lambda: gan_value([0.5, 0.5], [0.5, 0.5], [NAN, 0.5]),
            "discriminator = [nan, 0.5]: entries must lie in [0, 1]",
        ),
        (
            lambda: gan_value([0.5, 0.5], [0.5, 0.5], [-0.5, 0.5]),
            "discriminator = [-0.5, 0.5]: entries must lie in [0, 1]",
        ),
        (
            lambda: gan_value([0.5, 0.5], [0.5, 0.5], [0.5]),
            "discriminator has shape (1,), p has shape (2,): the shapes must be equal",
        ),
        (lambda: kl_gaussian(NAN, 1.0), "mean = nan: every entry must be finite"),
        (lambda: kl_gaussian(0.0, 0.0), "variance = 0: every entry must be > 0"),
        (
            lambda: kl_gaussian(0.0, 1.0, math.inf),
            "other_mean = inf: every entry must be finite",
        ),
        (
            lambda: kl_gaussian(0.0, 1.0, 0.0, [1.0, -2.0]),
            "other_variance = [1, -2]: every entry must be > 0",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
