"""Claims that the course's longer exercises ask for."""

import math

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from genaudit.divergence import (
    gan_optimal_value,
    gan_value,
    jsd_finite,
    kl_gaussian,
    optimal_discriminator,
)
from genaudit.latent import GaussianModel
from genaudit.mixture import GaussianMixture
from genaudit.process import ddpm_step, forward_jump
from genaudit.schedule import linear_schedule
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import distributions, seeded

STOPS = torch.linspace(-9, 12, 4201, dtype=torch.float64)
SPACING = 0.005
NORMAL = torch.distributions.Normal(STOPS.new_tensor(0.0), 1.0)


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Standard normal draws of float64."""
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@recomputes("ex1.grad")
def slope_of_the_bound(noise_variance, x, mean, variance):
    mean = mean.requires_grad_()
    bound = GaussianModel(noise_variance).elbo_terms(x, mean, variance).elbo
    [slope] = torch.autograd.grad(bound, mean)
    mean = mean.detach()
    return slope, (x - mean) / noise_variance - mean


@recomputes("ex1.three")
def three_gaps(noise_variance, x, means, variances):
    """For two laws of the code, then for the posterior; error of the identity."""
    model = GaussianModel(noise_variance)
    mean, variance = model.posterior(x)
    terms = model.elbo_terms(
        x, torch.cat([means, mean[None]]), torch.cat([variances, variance[None]])
    )
    errors = terms.elbo + terms.gap - model.log_evidence(x)
    return *terms.gap, errors.abs().max()


@recomputes("ex1.mc")
def slope_from_draws(noise_variance, x, mean, variance, draws, seed):
    """Average, its standard error from the draws, and the exact one."""
    means = mean.expand(draws).clone().requires_grad_()
    noise = normal(seeded(seed), draws)
    weights = GaussianModel(noise_variance).log_weights(x, means, variance, noise)
    [slopes] = torch.autograd.grad(weights.sum(), means)
    exact = variance.sqrt() * (1 + 1 / noise_variance) / math.sqrt(draws)
    return slopes.mean(), slopes.std() / math.sqrt(draws), exact


@recomputes("ex2.gather")
def batch_against_rows(rows, width, steps, first, last, seed):
    """Error of a jump and of a step back; noise that the last step adds."""
    generator = seeded(seed)
    schedule = linear_schedule(steps, first, last)
    t = torch.randint(1, steps + 1, (rows,), generator=generator)
    t[0] = 1
    x, noise, fresh = normal(generator, 3, rows, width)
    jumped = forward_jump(schedule, x, t, noise)
    stepped = ddpm_step(schedule, x, t, noise, fresh)
    errors = []
    for row, one in enumerate(t.tolist()):
        jump = forward_jump(schedule, x[row], one, noise[row])
        step = ddpm_step(schedule, x[row], one, noise[row], fresh[row])
        errors += [(jumped[row] - jump).abs().max(), (stepped[row] - step).abs().max()]
    silent = ddpm_step(schedule, x, t, noise, torch.zeros_like(fresh))
    return max(errors), (stepped[0] - silent[0]).abs().max()


@recomputes("ex3.integration")
def values_of_the_game(means):
    """Error of the identity; value at the best discriminator for each mean."""
    data = NORMAL.log_prob(STOPS).exp() * SPACING
    values, errors = [], []
    for mean in means:
        generated = NORMAL.log_prob(STOPS - mean).exp() * SPACING
        best = optimal_discriminator(data, generated)
        values.append(gan_value(data, generated, best))
        errors.append((values[-1] - gan_optimal_value(data, generated)).abs())
    return max(errors), *values


@recomputes("ex3.half-not-convergence")
def undecided(data, generated, cases, seed):
    """Value at D = 1/2, its spread over other generators, and how far they are."""
    others = distributions(seeded(seed), cases, len(data))
    values = gan_value(data.expand_as(others), others, torch.full_like(others, 0.5))
    value = gan_value(data, generated, torch.full_like(data, 0.5))
    return value, (values - value).abs().max(), jsd_finite(data, generated)


@recomputes("ex4.identity")
def averaged_losses(cases, pixels, codes, seed):
    generator, errors = seeded(seed), []
    for _ in range(cases):
        size = int(torch.randint(1, 33, (), generator=generator))
        pictures, rebuilt = normal(generator, 2, size, pixels)
        mean, log_variance = normal(generator, 2, size, codes)
        beta = normal(generator, 1).exp()
        price = kl_gaussian(mean, log_variance.exp()).sum(1).mean()
        by_means = mse_loss(rebuilt, pictures) + beta * price
        summed = (rebuilt - pictures).square().sum(1).mean()
        errors.append((by_means - (summed + beta * pixels * price) / pixels).abs())
    return max(errors)


@recomputes("ex4.784")
def effective_weight(rows, columns, beta):
    """On the price; pixel variance and its root that make the loss a bound."""
    weight = beta * rows * columns
    return weight, weight / 2, math.sqrt(weight / 2)


def price_of_a_mixture(means: Tensor, sd: Tensor) -> Tensor:
    """Divergence of equally weighted bells from N(0, 1), by an integral."""
    mixture = GaussianMixture(torch.full_like(means, 1 / len(means)), means, sd**2)
    log_q = mixture.log_density(STOPS[:, None])
    return (log_q.exp() * (log_q - NORMAL.log_prob(STOPS))).sum() * SPACING


@recomputes("ex5.true", "ex5.batch")
def price_by_batches(posteriors, spread, sd, batch, batches, seed):
    generator = seeded(seed)
    means = spread * normal(generator, posteriors)
    prices = []
    for _ in range(batches):
        drawn = torch.randperm(posteriors, generator=generator)[:batch]
        prices.append(price_of_a_mixture(means[drawn], sd))
    prices = torch.stack(prices)
    return {
        "true": price_of_a_mixture(means, sd),
        "batch": (prices.mean(), prices.std()),
    }


@recomputes("ex5.law.upward")
def price_by_parts(posteriors, spread, sd, batch, partitions, seed):
    """Largest lead of the whole over an average; errors for batches of one and all."""
    generator = seeded(seed)
    means = spread * normal(generator, posteriors)
    whole, lead = price_of_a_mixture(means, sd), []
    for _ in range(partitions):
        parts = means[torch.randperm(posteriors, generator=generator)].split(batch)
        average = torch.stack([price_of_a_mixture(part, sd) for part in parts]).mean()
        lead.append(whole - average)
    singles = torch.stack([price_of_a_mixture(mean[None], sd) for mean in means])
    each = kl_gaussian(means, sd**2)
    return max(lead).clamp(min=0), (singles - each).abs().max()


@recomputes("ex5.ratio")
def overestimate(estimate, truth):
    return estimate / truth
