"""Claims about adding independent noise, with and without shrinking first."""

import torch

from genaudit.process import forward_step
from genaudit.schedule import Schedule
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import distributions, seeded, uniform


def walk(beta, steps):
    """Weight of the start after some equal steps, and variance of all their noise.

    The start and each step's noise have a coordinate of their own.
    """
    schedule = Schedule(beta.expand(steps))
    source = torch.eye(steps + 1, dtype=torch.float64)
    x = source[0]
    for t in range(1, steps + 1):
        x = forward_step(schedule, x, t, source[t])
    return x[0], x[1:].square().sum()


@recomputes("gauss.x2.*", "gauss.demo.*", "gauss.pp.twosteps")
def from_one_point(start, beta, steps):
    weight, variance = walk(beta, steps)
    mean, sd = weight * start, variance.sqrt()
    return {
        "mean": mean,
        "sd": sd,
        "start-3": (mean, variance),
        "10steps": (mean, sd),
        "twosteps": (mean, variance, sd),
    }


@recomputes("gauss.unitvar", "gauss.table.vp.*")
def variance_of_a_cloud(start_variance, beta, steps):
    weight, variance = walk(beta, steps)
    return weight**2 * start_variance + variance


@recomputes("gauss.table.add.*")
def variance_without_shrinking(start_variance, beta, steps):
    return start_variance + steps * beta


@recomputes("gauss.trap.sqrt2", "gauss.pp.three")
def sum_of_noises(sds):
    variance = sds.square().sum()
    return {"sqrt2": (variance, variance.sqrt()), "three": variance.sqrt()}


@recomputes("gauss.retained")
def percent_kept_and_replaced(beta):
    schedule = Schedule(beta[None])
    return 100 * schedule.alpha(1), 100 * schedule.beta(1)


def moments(values, mass):
    """Mean and variance of laws on finitely many values."""
    mean = (mass * values).sum(-1, keepdim=True)
    return mean, (mass * (values - mean).square()).sum(-1)


@recomputes("gauss.law.varadd")
def variance_of_a_sum(cases, outcomes, seed):
    """Over all pairs of outcomes, whose probabilities are products."""
    generator = seeded(seed)
    x, y = 4 * uniform(generator, 2, cases, outcomes) - 2
    p, q = distributions(generator, 2, cases, outcomes)
    a, b = 4 * uniform(generator, 2, cases, 1) - 2
    pairs = (a * x)[:, :, None] + (b * y)[:, None, :]
    joint = p[:, :, None] * q[:, None, :]
    _, together = moments(pairs.flatten(1), joint.flatten(1))
    apart = a[:, 0] ** 2 * moments(x, p)[1] + b[:, 0] ** 2 * moments(y, q)[1]
    return (together - apart).abs().max()


@recomputes("gauss.law.sdscale")
def scaled_outcomes(cases, outcomes, seed):
    generator = seeded(seed)
    x = 4 * uniform(generator, cases, outcomes) - 2
    mass = distributions(generator, cases, outcomes)
    a = 4 * uniform(generator, cases, 1) - 2
    _, variance = moments(x, mass)
    _, scaled = moments(a * x, mass)
    a = a[:, 0]
    return (
        (scaled - a**2 * variance).abs().max(),
        (scaled.sqrt() - a.abs() * variance.sqrt()).abs().max(),
    )


@recomputes("gauss.law.nstep")
def many_steps(cases, most, seed):
    generator, errors = seeded(seed), []
    betas = 0.01 + 0.98 * uniform(generator, cases)
    starts = 6 * uniform(generator, cases) - 3
    lengths = torch.randint(1, most + 1, (cases,), generator=generator).tolist()
    for beta, start, steps in zip(betas, starts, lengths, strict=True):
        weight, variance = walk(beta, steps)
        errors.append((weight - (1 - beta) ** (steps / 2)).abs() * start.abs())
        errors.append((variance - 1 + (1 - beta) ** steps).abs())
    return max(errors)


@recomputes("gauss.law.vp", "gauss.law.drift")
def one_step_from_any_variance(cases, seed):
    generator = seeded(seed)
    betas = 0.01 + 0.98 * uniform(generator, cases)
    starts = 5 * uniform(generator, cases)
    unit, drift = [], []
    for beta, start in zip(betas, starts, strict=True):
        weight, variance = walk(beta, 1)
        unit.append((weight**2 + variance - 1).abs())
        after = weight**2 * start + variance
        drift.append((after - 1 - (1 - beta) * (start - 1)).abs())
    return {"vp": max(unit), "drift": max(drift)}
