"""Mixtures: score by autograd, noising by quadrature, other libraries, far tails."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import logsumexp
from torch.distributions import (
    Categorical,
    Independent,
    MixtureSameFamily,
    Normal,
)

from genaudit.mixture import GaussianMixture
from genaudit.process import clean_from_noise, score_from_noise
from tests.strategies import exact, levels, mixtures, numbers, vectors

TWO = GaussianMixture(exact([0.3, 0.7]), exact([-2.0, 2.0]), exact([0.25, 0.5]))


def as_torch(mixture):
    spread = mixture.variance.sqrt()[:, None].expand_as(mixture.means)
    parts = Independent(Normal(mixture.means, spread), 1)
    return MixtureSameFamily(Categorical(mixture.weights), parts)


@given(mixtures(2), vectors(6))
def test_density_and_moments_agree_with_torch(mixture, points):
    x, theirs = points.reshape(3, 2), as_torch(mixture)
    assert torch.allclose(mixture.log_density(x), theirs.log_prob(x), rtol=1e-12)
    mean, variance = mixture.moments()
    assert torch.allclose(mean, theirs.mean, atol=1e-13)
    assert torch.allclose(variance, theirs.variance, atol=1e-12)


@given(mixtures(2), levels | st.just(1.0), vectors(6))
def test_score_is_the_gradient_of_the_log_density(mixture, level, points):
    x = points.reshape(3, 2).requires_grad_()
    (slope,) = torch.autograd.grad(mixture.log_density(x, level).sum(), x)
    assert torch.allclose(mixture.score(x.detach(), level), slope, atol=1e-11)


@given(mixtures(), numbers(0.05, 0.95), numbers(-4, 4))
def test_noised_density_and_means_by_quadrature(mixture, level, x):
    """Integrate over the clean point: density, then E[x_0 | x] and E[eps | x]."""
    clean = torch.linspace(-15, 15, 60_001).double()
    conditional = Normal(math.sqrt(level) * clean, math.sqrt(1 - level))
    joint = as_torch(mixture).log_prob(clean[:, None]) + conditional.log_prob(exact(x))
    joint = joint.exp()
    density = torch.trapezoid(joint, clean)
    clean_mean = torch.trapezoid(joint * clean, clean) / density
    point = exact([x])
    assert abs(mixture.log_density(point, level) - density.log()) < 1e-9
    assert abs(mixture.clean_mean(point, level) - clean_mean) < 1e-8
    noise_mean = (x - math.sqrt(level) * clean_mean) / math.sqrt(1 - level)
    assert abs(mixture.noise_mean(point, level) - noise_mean) < 1e-7


@given(mixtures(2), levels, vectors(6))
def test_noise_mean_clean_mean_and_score_say_the_same(mixture, level, points):
    x = points.reshape(3, 2)
    noise = mixture.noise_mean(x, level)
    clean = clean_from_noise(x, level, noise)
    assert torch.allclose(mixture.clean_mean(x, level), clean, atol=1e-10)
    score = score_from_noise(level, noise)
    assert torch.allclose(mixture.score(x, level), score, atol=1e-10)


@given(mixtures(2), levels, vectors(6))
def test_responsibilities_are_bayes_rule(mixture, level, points):
    x = points.reshape(3, 2)
    share = mixture.responsibilities(x, level)
    assert torch.allclose(share.sum(-1), exact(1.0))
    spread = (level * mixture.variance + 1 - level).sqrt()
    at = Normal(math.sqrt(level) * mixture.means, spread[:, None])
    each = at.log_prob(x[:, None, :]).sum(-1).exp() * mixture.weights
    assert torch.allclose(share, each / each.sum(-1, keepdim=True), atol=1e-12)


@given(mixtures(), numbers(-6, 6), numbers(0.1, 6))
def test_mass_agrees_with_scipy(mixture, low, width):
    spread = mixture.variance.sqrt().numpy()
    law = stats.norm(mixture.means[:, 0].numpy(), spread)
    right = mixture.weights.numpy() @ (law.cdf(low + width) - law.cdf(low))
    assert abs(mixture.mass(low, low + width) - right) < 1e-14
    assert abs(mixture.mass(-math.inf, math.inf) - 1) < 1e-14


def test_mass_keeps_its_digits_in_both_tails():
    mixture = GaussianMixture(exact([1.0]), exact([0.0]), exact(1.0))
    right = stats.norm.sf(10) - stats.norm.sf(11)
    assert abs(mixture.mass(10, 11) / right - 1) < 1e-12
    skew = GaussianMixture(exact([0.5, 0.5]), exact([0.0, 40.0]), exact(1.0))
    assert abs(skew.mass(10, 11) / (right / 2) - 1) < 1e-12
    assert mixture.mass(-11, -10) == mixture.mass(10, 11)
    assert abs(mixture.mass(10, math.inf) / stats.norm.sf(10) - 1) < 1e-12
    assert abs(mixture.mass(-math.inf, -10) / stats.norm.sf(10) - 1) < 1e-12
    central = GaussianMixture([0.5, 0.5], [-2.0, 2.0], 0.25).mass(-1, 1)
    assert abs(central - 0.0227501309616) < 1e-13


def test_far_tails_are_finite_and_right():
    x = exact([[40.0], [-40.0]])
    parts = [
        stats.norm.logpdf(x, mean, math.sqrt(variance)) + math.log(weight)
        for weight, mean, variance in [(0.3, -2.0, 0.25), (0.7, 2.0, 0.5)]
    ]
    right = exact(logsumexp(parts, axis=0)[:, 0])
    assert torch.allclose(TWO.log_density(x), right, rtol=1e-13)
    # The wider component owns both tails, the nearer one neither.
    assert TWO.responsibilities(x).argmax(-1).tolist() == [1, 1]
    assert torch.allclose(TWO.score(x), -(x - 2) / 0.5, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_points_keep_their_dtype_and_stay_right(dtype):
    close = {"atol": 8 * torch.finfo(dtype).eps, "rtol": 8 * torch.finfo(dtype).eps}
    fine = exact([[-2.5], [0.25], [40.0]])
    narrow = GaussianMixture(exact([0.5, 0.5]), exact([-2.0, 2.0]), exact(0.01))
    x = fine.to(dtype)
    for mixture in (TWO, narrow):
        for name in ("score", "noise_mean", "clean_mean", "responsibilities"):
            value, right = (getattr(mixture, name)(each, 0.5) for each in (x, fine))
            assert value.dtype == dtype
            assert torch.allclose(value.double(), right, **close)
        value = mixture.log_density(x, 0.5)
        assert value.dtype == dtype
        assert torch.allclose(value.double(), mixture.log_density(fine, 0.5), **close)
        assert mixture.score(x).isfinite().all()


def test_the_first_small_noise_level_is_not_lost_in_half_precision():
    noise = TWO.noise_mean(exact([[2.5]]).half(), exact(0.9999))
    right = TWO.noise_mean(exact([[2.5]]), 0.9999)
    assert abs(noise - right) < 1e-4


def test_one_level_for_each_point():
    x, several = exact([[-2.0], [0.5], [3.0]]), exact([0.1, 0.5, 0.9])
    for name in ("log_density", "score", "noise_mean", "clean_mean"):
        function = getattr(TWO, name)
        rows = [function(x[i], several[i]) for i in range(3)]
        assert torch.allclose(function(x, several), torch.stack(rows), rtol=1e-13)
    grid = x[None].expand(2, 3, 1)
    assert TWO.log_density(grid, exact([[0.5], [0.9]])).shape == (2, 3)
    assert TWO.responsibilities(grid, exact([[0.5], [0.9]])).shape == (2, 3, 2)
    assert TWO.score(x[0]).shape == (1,)


def test_clean_data_is_level_one():
    x = exact([[0.5]])
    assert TWO.log_density(x) == TWO.log_density(x, 1.0)
    assert TWO.clean_mean(x, 1.0) == x
    assert TWO.score(x) == TWO.score(x, 1)


def test_two_components_by_hand():
    """Centres 0.8 times the means, variance 0.64 v + 0.36."""
    mixture = GaussianMixture([0.5, 0.5], [-2.0, 2.0], 0.25)
    share = mixture.responsibilities(exact([0.0]), 0.64)
    assert share.tolist() == [0.5, 0.5]
    right = stats.norm.logpdf(0, 1.6, math.sqrt(0.52))
    assert abs(mixture.log_density(exact([0.0]), 0.64) - right) < 1e-14
    assert mixture.score(exact([0.0]), 0.64) == 0


def test_a_component_without_weight_changes_nothing():
    x = exact([[-2.5], [0.25], [40.0]])
    three = GaussianMixture(
        exact([0.3, 0.7, 0.0]), exact([-2.0, 2.0, 40.0]), exact([0.25, 0.5, 1.0])
    )
    for name in ("log_density", "score", "clean_mean"):
        ours, right = getattr(three, name)(x, 0.9), getattr(TWO, name)(x, 0.9)
        assert torch.equal(ours, right)
    drawn = three.sample(1000, torch.Generator().manual_seed(3))
    assert drawn.max() < 20


def test_round_gaussians_agree_with_scipy_in_three_dimensions():
    mean = [0.5, -1.0, 2.0]
    mixture = GaussianMixture(exact([1.0]), exact([mean]), exact(0.3))
    x = np.array([[0.1, 0.2, 0.3], [4.0, -2.0, 1.0]])
    theirs = stats.multivariate_normal(mean, 0.3 * np.eye(3)).logpdf(x)
    np.testing.assert_allclose(mixture.log_density(exact(x.tolist())), theirs)
    noisy = stats.multivariate_normal(
        np.sqrt(0.4) * np.array(mean), (0.4 * 0.3 + 0.6) * np.eye(3)
    )
    ours = mixture.log_density(exact(x.tolist()), 0.4)
    np.testing.assert_allclose(ours, noisy.logpdf(x))


def test_samples_have_the_mixtures_moments_and_masses():
    count = 40_000
    x = TWO.sample(count, torch.Generator().manual_seed(7))
    assert (x.shape, x.dtype) == ((count, 1), torch.float64)
    mean, variance = (moment.item() for moment in TWO.moments())
    assert abs(x.mean() - mean) < 4 * math.sqrt(variance / count)
    fourth = integrate.quad(
        lambda z: (z - mean) ** 4 * TWO.log_density(exact([z])).exp().item(), -9, 9
    )[0]
    assert abs(x.var() - variance) < 4 * math.sqrt((fourth - variance**2) / count)
    for low, high in [(-9, -2), (-2, 0), (0, 2), (2, 9)]:
        share, right = ((x > low) & (x < high)).double().mean(), TWO.mass(low, high)
        assert abs(share - right) < 4 * math.sqrt(right * (1 - right) / count)


def test_samples_in_the_plane_are_round():
    mixture = GaussianMixture(exact([1.0]), exact([[3.0, -1.0]]), exact([4.0]))
    x = mixture.sample(40_000, torch.Generator().manual_seed(8))
    assert x.shape == (40_000, 2)
    covariance = torch.cov(x.T)
    assert torch.allclose(covariance, 4 * torch.eye(2).double(), atol=0.12)


def test_a_sample_is_a_component_and_then_its_noise():
    generator = torch.Generator().manual_seed(9)
    index = torch.multinomial(TWO.weights, 20, True, generator=generator)
    noise = torch.randn(20, 1, generator=generator, dtype=torch.float64)
    right = TWO.means[index] + TWO.variance[index][:, None].sqrt() * noise
    before = torch.get_rng_state()
    assert torch.equal(TWO.sample(20, torch.Generator().manual_seed(9)), right)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_seed_repeats_its_samples():
    first, again = (TWO.sample(5, torch.Generator().manual_seed(1)) for _ in range(2))
    other = TWO.sample(5, torch.Generator().manual_seed(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert TWO.sample(1, torch.Generator()).shape == (1, 1)


@pytest.mark.parametrize("fine", ["weights", "means", "variance"])
def test_parts_of_different_dtypes_take_the_finest(fine):
    parts = {"weights": [0.25, 0.75], "means": [-2.0, 2.0], "variance": [0.25, 0.5]}
    coarse = {name: torch.tensor(part).float() for name, part in parts.items()}
    right = GaussianMixture(*(exact(part) for part in parts.values()))
    mixture = GaussianMixture(**(coarse | {fine: exact(parts[fine])}))
    for name in parts:
        assert getattr(mixture, name).dtype == torch.float64
    assert [*mixture.moments()] == [*right.moments()]
    assert mixture.sample(3, torch.Generator()).dtype == torch.float64
    assert mixture.mass(0, 9) == right.mass(0, 9)


def test_python_numbers_are_not_rounded_to_float32():
    x = exact([0.7])
    rough = GaussianMixture([0.3, 0.7], [-2.0, 2.0], 0.3)
    right = GaussianMixture(exact([0.3, 0.7]), exact([-2.0, 2.0]), exact(0.3))
    assert abs(rough.log_density(x) - right.log_density(x)) < 1e-15
    for name in ("score", "noise_mean", "clean_mean"):
        function = getattr(right, name)
        assert abs(function(x, 0.3) - function(x, exact(0.3))) < 1e-15


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: GaussianMixture([0.5, 0.6], [0.0, 1.0], 1.0),
            "weights sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: GaussianMixture([1.5, -0.5], [0.0, 1.0], 1.0),
            "weights = [1.5, -0.5]: every entry must be >= 0",
        ),
        (
            lambda: GaussianMixture([1.0], [math.nan], 1.0),
            "means = [nan]: every entry must be finite",
        ),
        (
            lambda: GaussianMixture([1.0], [0.0], 0.0),
            "variance = 0: every entry must be > 0",
        ),
        (
            lambda: GaussianMixture([0.5, 0.5], [0.0, 1.0, 2.0], 1.0),
            "weights have shape (2,), means (3,): they must be (K,) and (K, D)",
        ),
        (
            lambda: GaussianMixture([1.0], 0.0, 1.0),
            "weights have shape (1,), means (): they must be (K,) and (K, D)",
        ),
        (
            lambda: GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0]),
            "variance has shape (1,): it must be one number or (K,) = (2,)",
        ),
        (
            lambda: TWO.log_density(exact([0.0, 1.0])),
            "x has shape (2,): the last axis must be D = 1",
        ),
        (
            lambda: TWO.score(exact(0.0)),
            "x has shape (): the last axis must be D = 1",
        ),
        (
            lambda: TWO.log_density([math.nan]),
            "x = [nan]: every entry must be finite",
        ),
        (
            lambda: TWO.score([math.nan]),
            "x = [nan]: every entry must be finite",
        ),
        (
            lambda: TWO.responsibilities([math.nan]),
            "x = [nan]: every entry must be finite",
        ),
        (
            lambda: TWO.noise_mean([math.inf], 0.5),
            "x = [inf]: every entry must be finite",
        ),
        (
            lambda: TWO.clean_mean([math.inf], 0.5),
            "x = [inf]: every entry must be finite",
        ),
        (
            lambda: TWO.log_density([0.0], 0.0),
            "alpha_bar = 0: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: TWO.clean_mean([0.0], 1.01),
            "alpha_bar = 1.01: every entry must satisfy 0 < alpha_bar <= 1",
        ),
        (
            lambda: TWO.noise_mean([0.0], 1.0),
            "alpha_bar = 1: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: GaussianMixture([1.0], [[0.0, 0.0]], 1.0).mass(0, 1),
            "D = 2: mass needs D = 1",
        ),
        (lambda: TWO.mass(1, 1), "low = 1, high = 1: low must be below high"),
        (lambda: TWO.mass(math.nan, 1), "low = nan, high = 1: low must be below high"),
        (
            lambda: TWO.sample(0, torch.Generator()),
            "count = 0: must be a whole number, 1 or more",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
