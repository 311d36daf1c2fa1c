"""Exact evidence: the identity for any q, brute-force integrals, other libraries."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import logsumexp
from torch.distributions import Normal, kl_divergence

from genaudit.latent import FiniteModel, GaussianModel, multi_sample_bound
from tests.strategies import distributions, exact, numbers, variances, vectors

TWO_CODES = FiniteModel([0.5, 0.5], [0.6, 0.2])


@st.composite
def finite_cases(draw):
    prior, q = draw(distributions(2, zeros=True))
    likelihood = draw(vectors(len(prior), 0.01, 2))
    return FiniteModel(prior, likelihood), q


@given(finite_cases())
def test_evidence_is_elbo_plus_gap_for_any_q(case):
    model, q = case
    terms, evidence = model.elbo_terms(q), model.log_evidence()
    if (q[model.prior == 0] > 0).any():
        assert terms.elbo == -math.inf
        assert terms.gap == math.inf
    else:
        assert abs(terms.elbo + terms.gap - evidence) < 1e-13
    assert terms.elbo <= evidence + 1e-13
    assert terms.elbo == terms.reconstruction - terms.kl


@given(finite_cases())
def test_the_bound_touches_at_the_posterior(case):
    model, _ = case
    terms = model.elbo_terms(model.posterior())
    assert abs(terms.elbo - model.log_evidence()) < 1e-13
    assert abs(terms.gap) < 1e-14


@given(finite_cases())
def test_finite_evidence_and_posterior_by_bayes_rule(case):
    model, _ = case
    joint = model.prior * model.likelihood
    assert torch.allclose(model.posterior(), joint / joint.sum(), atol=1e-15)
    some = model.prior > 0
    logs = logsumexp(model.likelihood[some].log(), b=model.prior[some])
    assert abs(model.log_evidence() - logs) < 1e-14


def test_two_codes_by_hand():
    terms = TWO_CODES.elbo_terms([0.9, 0.1])
    assert abs(TWO_CODES.log_evidence() - math.log(0.4)) < 1e-15
    assert torch.allclose(TWO_CODES.posterior(), exact([0.75, 0.25]), rtol=1e-14)
    reconstruction = 0.9 * math.log(0.6) + 0.1 * math.log(0.2)
    kl = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
    gap = 0.9 * math.log(0.9 / 0.75) + 0.1 * math.log(0.1 / 0.25)
    assert torch.allclose(exact(list(terms)), exact([reconstruction, kl, gap]))


def test_the_best_reconstruction_has_not_the_best_bound():
    q = exact([[1.0, 0.0], [0.9, 0.1], [0.75, 0.25], [0.5, 0.5]])
    terms = TWO_CODES.elbo_terms(q)
    assert terms.reconstruction.argmax() == 0
    assert terms.elbo.argmax() == 2
    assert terms.gap.shape == (4,)


def test_a_code_that_cannot_make_the_point_has_no_bound():
    model = FiniteModel([0.5, 0.5], [0.6, 0.0])
    terms = model.elbo_terms([0.5, 0.5])
    assert (terms.reconstruction, terms.elbo) == (-math.inf, -math.inf)
    assert terms.gap == math.inf
    assert model.posterior().tolist() == [1, 0]
    certain = model.elbo_terms([1.0, 0.0])
    assert abs(certain.elbo - math.log(0.3)) < 1e-15
    assert certain.gap == 0


def test_codes_without_prior_mass_change_nothing():
    model = FiniteModel([0.5, 0.5, 0.0], [0.6, 0.2, 0.9])
    assert abs(model.log_evidence() - TWO_CODES.log_evidence()) < 1e-15
    assert model.posterior()[2] == 0
    assert abs(model.elbo_terms([0.9, 0.1, 0.0]).gap - 0.0724603279271) < 1e-12


def test_tiny_evidence_is_not_zero_evidence():
    model = FiniteModel(exact([1.0, 1e-200]), exact([0.0, 1e-200]))
    assert abs(model.log_evidence() + 400 * math.log(10)) < 1e-11


@given(numbers(-4, 4), variances, numbers(-3, 3), variances)
def test_gaussian_evidence_is_elbo_plus_gap_for_any_q(x, noise, mean, variance):
    model = GaussianModel(exact(noise))
    terms = model.elbo_terms(exact(x), exact(mean), exact(variance))
    evidence = model.log_evidence(exact(x))
    assert abs(terms.elbo + terms.gap - evidence) < 1e-11
    assert terms.elbo <= evidence + 1e-12
    best = model.elbo_terms(exact(x), *model.posterior(exact(x)))
    assert abs(best.elbo - evidence) < 1e-12
    assert abs(best.gap) < 1e-14


@given(numbers(-4, 4), variances)
def test_gaussian_posterior_by_conditioning_the_joint(x, noise):
    joint = np.array([[1, 1], [1, 1 + noise]])  # of (z, x)
    slope = joint[0, 1] / joint[1, 1]
    mean, variance = GaussianModel(exact(noise)).posterior(exact(x))
    assert abs(mean - slope * x) < 1e-13
    assert abs(variance - (joint[0, 0] - slope * joint[1, 0])) < 1e-13
    evidence = stats.multivariate_normal(np.zeros(2), joint).logpdf([mean, x])
    evidence -= stats.norm(mean, variance.sqrt()).logpdf(mean)
    assert abs(GaussianModel(exact(noise)).log_evidence(exact(x)) - evidence) < 1e-11


@given(numbers(-2, 2), numbers(0.2, 2), numbers(-2, 2), numbers(0.2, 2))
def test_gaussian_terms_by_quadrature(x, noise, mean, variance):
    model = GaussianModel(exact(noise))
    terms = model.elbo_terms(exact(x), exact(mean), exact(variance))
    q, sd = stats.norm(mean, math.sqrt(variance)), math.sqrt(noise)

    def area(function):
        return integrate.quad(function, -15, 15, epsabs=1e-11, limit=200)[0]

    evidence = area(lambda z: stats.norm.pdf(z) * stats.norm.pdf(x, z, sd))
    assert abs(model.log_evidence(exact(x)) - math.log(evidence)) < 1e-8
    reconstruction = area(lambda z: q.pdf(z) * stats.norm.logpdf(x, z, sd))
    assert abs(terms.reconstruction - reconstruction) < 1e-8
    theirs = Normal(exact(mean), exact(variance).sqrt())
    assert abs(terms.kl - kl_divergence(theirs, Normal(0.0, 1.0))) < 1e-12


NODES, NODE_WEIGHTS = map(exact, np.polynomial.hermite_e.hermegauss(40))
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


@given(numbers(-2, 2), numbers(0.2, 2), numbers(-2, 2), numbers(0.2, 2))
def test_log_weights_average_to_the_bound(x, noise, mean, variance):
    model = GaussianModel(exact(noise))
    arguments = exact(x), exact(mean), exact(variance)
    weights = model.log_weights(*arguments, NODES)
    # A log weight is quadratic in the noise, so the rule is exact.
    assert abs(NODE_WEIGHTS @ weights - model.elbo_terms(*arguments).elbo) < 1e-11


def test_a_log_weight_is_joint_over_code_density_at_its_draw():
    x, mean, variance, noise = 1.3, 0.2, 0.6, 1.5
    z, sd = mean + math.sqrt(variance) * noise, math.sqrt(variance)
    right = stats.norm.logpdf(z) + stats.norm.logpdf(x, z, 0.5)
    right -= stats.norm.logpdf(z, mean, sd)
    weight = GaussianModel(exact(0.25)).log_weights(x, mean, variance, exact(noise))
    assert abs(weight - right) < 1e-13


def test_log_weights_are_constant_at_the_posterior():
    model, x = GaussianModel(exact(0.25)), exact(1.3)
    weights = model.log_weights(x, *model.posterior(x), exact([-2.0, 0.0, 3.0]))
    assert torch.allclose(weights, model.log_evidence(x))


def test_two_draws_bound_tighter_than_one_and_need_their_log_two():
    model, x, q = GaussianModel(exact(0.5)), exact(1.0), (exact(0.2), exact(0.6))
    bound = model.elbo_terms(x, *q).elbo
    pairs = torch.stack(torch.meshgrid(NODES, NODES, indexing="ij"), -1)
    summed = model.log_weights(x, *q, pairs).logsumexp(-1)
    without_log_two = NODE_WEIGHTS @ summed @ NODE_WEIGHTS
    assert bound < without_log_two - math.log(2) < model.log_evidence(x)
    assert without_log_two > model.log_evidence(x)


def log_weights(model, q):
    """log p(x, z) - log q(z); NaN or infinite where q = 0."""
    return model.prior.log() + model.likelihood.log() - q.log()


@given(distributions(1, zeros=True), st.integers(1, 4), st.data())
def test_more_draws_by_every_tuple_of_draws(drawn, count, data):
    (q,) = drawn
    weights = data.draw(vectors(len(q), -6, 3))
    tuples = torch.cartesian_prod(*[torch.arange(len(q))] * count).reshape(-1, count)
    means = weights[tuples].logsumexp(1) - math.log(count)
    right = q[tuples].prod(1) @ means
    assert abs(multi_sample_bound(q, weights, count) - right) < 1e-13


@given(finite_cases())
def test_more_draws_rise_from_the_bound_towards_the_evidence(case):
    model, q = case
    weights = log_weights(model, q)
    bounds = [multi_sample_bound(q, weights, n) for n in (1, 2, 3, 10, 10**3, 10**9)]
    elbo = model.elbo_terms(q).elbo
    assert bounds[0] == elbo or abs(bounds[0] - elbo) < 1e-13
    assert all(less <= more + 1e-13 for less, more in zip(bounds, bounds[1:]))
    assert bounds[-1] <= model.log_evidence() + 1e-13
    if elbo > -math.inf:  # the limit counts only what q can draw
        covered = (model.prior * model.likelihood)[q > 0].sum()
        assert abs(bounds[-1] - covered.log()) < 1e-6


@given(finite_cases())
def test_draws_from_the_posterior_leave_nothing_to_gain(case):
    model, _ = case
    posterior = model.posterior()
    weights = log_weights(model, posterior)
    for count in (1, 2, 10**4):
        bound = multi_sample_bound(posterior, weights, count)
        assert abs(bound - model.log_evidence()) < 1e-13


@pytest.mark.parametrize("count", [10**3, 10**4, 10**6, 10**9])
def test_many_draws_miss_by_half_the_relative_variance_over_their_number(count):
    """The expansion of the logarithm of a mean, to its second order in 1 / count."""
    model, q = FiniteModel([0.3, 0.2, 0.5], [0.6, 0.2, 0.1]), exact([0.2, 0.3, 0.5])
    weights = log_weights(model, q)
    error = weights.exp() / model.log_evidence().exp() - 1
    variance, third = (q @ error**power for power in (2, 3))
    second = third / 3 - 0.75 * variance**2
    right = -variance / (2 * count) + second / count**2
    missed = multi_sample_bound(q, weights, count) - model.log_evidence()
    assert abs(missed - right) < 5 / count**3 + 1e-14
    assert abs(count * missed + variance / 2) < 2 / count + 1e-14 * count


def test_many_rows_at_once():
    q = exact([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]).expand(4, 2, 3)
    weights = torch.linspace(-40, 3, 24, dtype=torch.float64).reshape(4, 2, 3)
    bounds = multi_sample_bound(q, weights, 3)
    assert bounds.shape == (4, 2)
    for row in range(4):
        for column in range(2):
            alone = multi_sample_bound(q[row, column], weights[row, column], 3)
            assert abs(bounds[row, column] - alone) < 1e-13
    assert torch.allclose(bounds[:, 1], weights[:, 1, 0], rtol=1e-14)


def test_a_far_row_takes_no_digits_from_its_neighbour():
    q, near = exact([0.3, 0.7]), exact([0.1, -0.4])
    both = multi_sample_bound(q.expand(2, 2), torch.stack([near + 1e5, near]), 3)
    assert abs(both[1] - multi_sample_bound(q, near, 3)) < 1e-14


def test_a_draw_without_weight_costs_everything_and_one_never_drawn_nothing():
    rows = exact([[0.5, 0.5, 0.0]] * 5)
    weights = exact(
        [
            [0.0, -math.inf, 1.0],
            [-math.inf, -math.inf, 1.0],
            [1.0, 1.0, -math.inf],
            [1.0, 1.0, math.inf],
            [1.0, 1.0, math.nan],
        ]
    )
    for count in (1, 7, 10**9):
        bounds = multi_sample_bound(rows, weights, count)
        assert bounds[:2].tolist() == [-math.inf, -math.inf]
        assert torch.allclose(bounds[2:], torch.ones(3).double(), rtol=1e-14)


def test_weights_far_apart_and_far_from_one():
    for level in (-3e4, 0.0, 3e4):
        weights = level + exact([0.0, -1e4])
        one = multi_sample_bound([0.5, 0.5], weights, 1)
        two = multi_sample_bound([0.5, 0.5], weights, 2)
        assert abs(one - (level - 5e3)) < 1e-10
        assert abs(two - (level - 2.5e3 - math.log(2) / 2)) < 1e-10
    rare = multi_sample_bound(exact([1.0, 1e-300]), exact([0.0, 500.0]), 10**9)
    assert abs(rare - 1e-300 * 1e9 * (500 - 9 * math.log(10))) < 1e-14


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("count", [1, 3, 10**9])
def test_many_draws_in_coarse_numbers(dtype, count):
    q = exact([0.2, 0.3, 0.5]).to(dtype)  # its sum misses one by its rounding
    weights = exact([-1.0, 2.0, 0.3]).to(dtype)
    bound = multi_sample_bound(q, weights, count)
    assert bound.dtype == dtype
    fine, mixed = q.double() / q.double().sum(), weights.double()
    right = multi_sample_bound(fine, mixed, count)
    assert abs(bound - right) <= torch.finfo(dtype).eps * right
    assert abs(multi_sample_bound(q, mixed, count) - right) < 1e-14


def test_observations_and_codes_broadcast():
    model = GaussianModel(0.5)
    terms = model.elbo_terms(exact([0.0, 1.0, 2.0]), exact([[0.0], [1.0]]), 0.5)
    assert terms.elbo.shape == terms.gap.shape == (2, 3)
    single = model.elbo_terms(exact(2.0), exact(1.0), exact(0.5))
    assert torch.allclose(terms.elbo[1, 2], single.elbo, rtol=1e-15)
    assert model.posterior(exact([1.0, 2.0]))[1].shape == (2,)
    noise_levels = GaussianModel(exact([0.5, 2.0]))
    assert torch.allclose(noise_levels.posterior(1.0)[1], exact([1 / 3, 2 / 3]))


def test_a_far_observation_keeps_a_finite_evidence():
    evidence = GaussianModel(exact(0.25)).log_evidence(exact(40.0))
    assert abs(evidence - stats.norm.logpdf(40, 0, math.sqrt(1.25))) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtype_is_kept(dtype):
    half = torch.tensor([0.5, 0.5], dtype=dtype)
    finite = FiniteModel(half, torch.tensor([0.5, 0.25], dtype=dtype))
    one, quarter = torch.tensor([[1.0], [0.25]], dtype=dtype)
    gaussian = GaussianModel(quarter)
    close = 8 * torch.finfo(dtype).eps
    for value, right in [
        (finite.log_evidence(), math.log(0.375)),
        (finite.elbo_terms(half).elbo, math.log(math.sqrt(0.125))),
        (gaussian.log_evidence(one), -0.4 - math.log(2.5 * math.pi) / 2),
        (gaussian.posterior(one)[1], 0.2),
        (gaussian.elbo_terms(one, one, quarter).kl, 0.125 + math.log(2)),
    ]:
        assert value.dtype == dtype
        assert abs(value - right) < close


def test_python_numbers_are_not_rounded_to_float32():
    model = GaussianModel(0.3)
    evidence = stats.norm.logpdf(1.1, 0, math.sqrt(1.3))
    assert abs(model.log_evidence(1.1) - evidence) < 1e-15
    assert abs(model.log_evidence(exact(1.1)) - evidence) < 1e-15


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: FiniteModel([0.5, 0.6], [0.6, 0.2]),
            "prior sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: FiniteModel([[0.5, 0.5]], [[0.6, 0.2]]),
            "prior has shape (1, 2): it must be (K,)",
        ),
        (
            lambda: FiniteModel([0.5, 0.5], [0.6, -0.2]),
            "likelihood = [0.6, -0.2]: every entry must be >= 0",
        ),
        (
            lambda: FiniteModel([0.5, 0.5], [0.6]),
            "likelihood has shape (1,), prior has shape (2,): the shapes must be equal",
        ),
        (
            lambda: FiniteModel([1.0, 0.0], [0.0, 0.2]),
            "likelihood = [0, 0.2] is zero wherever the prior has mass: p(x) = 0",
        ),
        (
            lambda: TWO_CODES.elbo_terms([0.5, 0.2, 0.3]),
            "q has shape (3,): its last axis must be K = 2",
        ),
        (
            lambda: TWO_CODES.elbo_terms([0.5, 0.2]),
            "q sums to 0.7: probabilities must sum to 1",
        ),
        (
            lambda: GaussianModel(0.0),
            "noise_variance = 0: every entry must be > 0",
        ),
        (
            lambda: GaussianModel(1.0).log_evidence(math.nan),
            "x = nan: every entry must be finite",
        ),
        (
            lambda: GaussianModel(1.0).posterior(math.inf),
            "x = inf: every entry must be finite",
        ),
        (
            lambda: GaussianModel(1.0).elbo_terms(math.nan, 0.0, 1.0),
            "x = nan: every entry must be finite",
        ),
        (
            lambda: GaussianModel(1.0).elbo_terms(0.0, math.nan, 1.0),
            "q_mean = nan: every entry must be finite",
        ),
        (
            lambda: GaussianModel(1.0).elbo_terms(0.0, 0.0, -1.0),
            "q_variance = -1: every entry must be > 0",
        ),
        (
            lambda: GaussianModel(1.0).log_weights(math.nan, 0.0, 1.0, torch.zeros(1)),
            "x = nan: every entry must be finite",
        ),
        (
            lambda: GaussianModel(1.0).log_weights(0.0, math.nan, 1.0, torch.zeros(1)),
            "q_mean = nan: every entry must be finite",
        ),
        (
            lambda: GaussianModel(1.0).log_weights(0.0, 0.0, 0.0, torch.zeros(1)),
            "q_variance = 0: every entry must be > 0",
        ),
        (
            lambda: GaussianModel(1.0).log_weights(0.0, 0.0, 1.0, exact([math.nan])),
            "noise = [nan]: every entry must be finite",
        ),
        (
            lambda: multi_sample_bound([0.5, 0.6], exact([0.0, 0.0]), 2),
            "q sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: multi_sample_bound([0.5, 0.5], exact([0.0]), 2),
            "log_weights has shape (1,), q has shape (2,): the shapes must be equal",
        ),
        (
            lambda: multi_sample_bound([0.5, 0.5], exact([0.0, 0.0]), 0),
            "samples = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: multi_sample_bound([0.5, 0.5], exact([0.0, math.inf]), 2),
            "log_weights = [0, inf]: entries must be finite or -inf where q > 0",
        ),
        (
            lambda: multi_sample_bound([0.5, 0.5], exact([math.nan, 0.0]), 2),
            "log_weights = [nan, 0]: entries must be finite or -inf where q > 0",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
