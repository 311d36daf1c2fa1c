"""Claims about slopes of a random draw: along its path, or through its density."""

from collections.abc import Callable

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import seeded, uniform

LOSSES = (
    lambda z: (z - 2) ** 2,
    torch.sin,
    lambda z: torch.exp(z / 2),
    torch.tanh,
)
STOPS = torch.linspace(-12, 12, 4801, dtype=torch.float64)
STANDARD = torch.distributions.Normal(STOPS.new_tensor(0.0), 1.0)


def average(values: Tensor) -> Tensor:
    """Expectation of a function of standard normal noise, known at the stops."""
    return torch.trapezoid(values * STANDARD.log_prob(STOPS).exp(), STOPS)


def slopes(result: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Derivatives of one number, by backpropagation."""
    return torch.autograd.grad(result, inputs)


def variable(*numbers: Tensor) -> tuple[Tensor, ...]:
    """Copies that derivatives can be taken with respect to."""
    return tuple(number.clone().requires_grad_() for number in numbers)


@recomputes("rep.z", "rep.dz*", "rep.neg.z", "rep.pp.-2")
def draw(mean, sd, noise):
    mean, sd = variable(mean, sd)
    z = mean + sd * noise
    by_mean, by_sd = slopes(z, mean, sd)
    z = z.detach()
    return {"z": z, "dzdmu": by_mean, "dzdsig": by_sd, "-2": (z, by_sd)}


@recomputes("rep.dL*", "rep.neg.dLdsig")
def loss_of_a_draw(mean, sd, noise, target):
    mean, sd = variable(mean, sd)
    z = mean + sd * noise
    slopes_of_loss = slopes((z - target) ** 2, z, mean, sd)
    return dict(zip(("dLdz", "dLdmu", "dLdsig"), slopes_of_loss, strict=True))


@recomputes("rep.pp.hist")
def masses_both_ways(mean, sd, pieces):
    """Mass of slices by the formula for N(mean, sd^2), and by the noise landing there.

    The formula's density is integrated over z, never over the noise.
    """
    edges = torch.linspace(-3, 3, pieces + 1, dtype=torch.float64)
    bell = torch.distributions.Normal(mean, sd)
    by_noise = torch.as_tensor(stats.norm.cdf(edges.numpy())).diff()
    errors = []
    for low, high, mass in zip(edges[:-1], edges[1:], by_noise, strict=True):
        ends = mean + sd * torch.stack((low, high))
        errors.append(_gauss_legendre(bell, *ends) - mass)
    return torch.stack(errors).abs().max()


def _gauss_legendre(bell: torch.distributions.Normal, low: Tensor, high: Tensor):
    nodes, weights = map(torch.as_tensor, np.polynomial.legendre.leggauss(20))
    density = bell.log_prob((low + high + (high - low) * nodes) / 2).exp()
    return (weights * density).sum() * (high - low) / 2


@recomputes("rep.n10000")
def distance_of_two_samples(mean, sd, draws, repeats, seed):
    """Largest gap between two empirical CDFs: of inner draws, of outer noise."""
    generator, gaps = seeded(seed), []
    for _ in range(repeats):
        inside = torch.normal(mean.expand(draws), sd.item(), generator=generator)
        noise = torch.randn(draws, generator=generator, dtype=torch.float64)
        both = torch.cat((inside, mean + sd * noise))
        steps = torch.where(both.argsort() < draws, 1, -1)
        gaps.append(steps.cumsum(0).abs().max().item() / draws)
    return sum(gaps) / repeats


def along_the_path(loss: Callable[[Tensor], Tensor], mean: Tensor, sd: Tensor):
    """What a draw's own slopes average to, with respect to mean and sd."""
    (z,) = variable(mean + sd * STOPS)
    (slope,) = slopes(loss(z).sum(), z)
    return torch.stack((average(slope), average(slope * STOPS)))


def expected_loss(loss: Callable[[Tensor], Tensor], mean: Tensor, sd: Tensor):
    """The integral over places that stay where they are; only the density moves."""
    places = mean.detach() + sd.detach() * STOPS
    density = torch.distributions.Normal(mean, sd).log_prob(places).exp()
    return torch.trapezoid(loss(places) * density, places)


def cases_of(generator: torch.Generator, cases: int):
    """Means between -1 and 1 and standard deviations between 0.3 and 1.3."""
    means, sds = uniform(generator, 2, cases)
    return zip(2 * means - 1, 0.3 + sds, strict=True)


@recomputes("rep.law.pathwise")
def path_against_expectation(cases, seed):
    errors = []
    for mean, sd in cases_of(seeded(seed), cases):
        leaves = variable(mean, sd)
        for loss in LOSSES:
            true = torch.stack(slopes(expected_loss(loss, *leaves), *leaves))
            errors.append((true - along_the_path(loss, mean, sd)).abs())
    return tuple(torch.stack(errors).amax(0))


@recomputes("gvae.law.pathwise")
def path_to_the_log_variance(cases, seed):
    errors = []
    for mean, sd in cases_of(seeded(seed), cases):
        mean, log_variance = leaves = variable(mean, 2 * sd.log())
        for loss in LOSSES:
            draws = loss(mean + (log_variance / 2).exp() * STOPS)
            on_paths = torch.stack(slopes(average(draws), *leaves))
            expectation = expected_loss(loss, mean, (log_variance / 2).exp())
            true = torch.stack(slopes(expectation, *leaves))
            errors.append((true - on_paths).abs())
    return tuple(torch.stack(errors).amax(0))


def score_estimates(loss: Callable[[Tensor], Tensor], mean: Tensor, sd: Tensor):
    """One draw's loss times the slope of its log density, for mean and for sd."""
    z = mean + sd * STOPS
    return torch.stack(
        (
            loss(z) * (z - mean) / sd**2,
            loss(z) * ((z - mean) ** 2 - sd**2) / sd**3,
        )
    )


@recomputes("rep.dispute.scorefn")
def score_against_path(mean, sd):
    errors = [
        average(score_estimates(loss, mean, sd)) - along_the_path(loss, mean, sd)
        for loss in LOSSES
    ]
    return tuple(torch.stack(errors).abs().amax(0))


@recomputes("rep.extra.variance")
def variances_of_one_draw(mean, sd, target, frequency):
    """By path and by score: for the squared distance, then for a wave."""
    (z,) = variable(mean + sd * STOPS)
    numbers = []
    for loss in (lambda z: (z - target) ** 2, lambda z: torch.sin(frequency * z)):
        (by_path,) = slopes(loss(z).sum(), z)
        by_score, _ = score_estimates(loss, mean, sd)
        for estimate in (by_path, by_score):
            numbers.append(average(estimate**2) - average(estimate) ** 2)
    return tuple(numbers)


@recomputes("gvae.law.logvar")
def sd_from_log_variance(cases, widest, extremes, seed):
    log_variance = widest * (2 * uniform(seeded(seed), cases) - 1)
    sd = torch.exp(0.5 * log_variance)
    error = (sd**2 / torch.exp(log_variance) - 1).abs().max()
    return error, (sd > 0).sum(), (torch.exp(0.5 * extremes) > 0).sum()
