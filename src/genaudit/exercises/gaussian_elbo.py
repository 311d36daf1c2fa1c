"""Visible checks of the exercise on the Gaussian ELBO."""

import math

import torch
from scipy.integrate import quad
from torch.distributions import Normal

from genaudit.exercises._say import visible


@visible
def posterior(answer):
    """posterior(x, s2) -> (mean, variance)."""
    mean, variance = answer(1.0, 1.0)
    yield mean == 0.5, "prior and likelihood equally wide: the mean lies half way."
    for x, s2 in [(-0.7, 0.2), (2.0, 3.0)]:
        mean, variance = answer(x, s2)
        yield variance > 0, "a variance is positive."
        yield variance < min(1, s2), "it is narrower than prior and likelihood."
        yield 0 < mean / x < 1, "the mean lies between 0 and x."
        slope = (x - mean) / s2 - mean
        yield abs(slope) < 1e-9, "log p(z) + log p(x | z) is flat at the mean."
        bend = 1 / variance - 1 - 1 / s2
        yield abs(bend) < 1e-9, "the inverse variances of two bells add."


@visible
def log_evidence(answer):
    """log_evidence(x, s2) -> number."""
    yield answer(3.0, 0.5) == answer(-3.0, 0.5), "x and -x are equally probable."
    seconds = []
    for s2 in [0.3, 2.0]:
        mass, _ = quad(lambda x, s2=s2: math.exp(answer(x, s2)), -15, 15)
        yield abs(mass - 1) < 1e-6, "as a density of x it must integrate to 1."
        second, _ = quad(lambda x, s2=s2: x * x * math.exp(answer(x, s2)), -15, 15)
        yield second > s2, "x varies more than the noise: z varies too."
        seconds.append(second)
    gain = seconds[1] - seconds[0]
    yield abs(gain - 1.7) < 1e-6, "what the noise gains in variance, x gains."


@visible
def elbo(answer):
    """elbo(x, s2, m, v) -> number."""
    far, near = answer(1.0, 0.5, -4.0, 0.5), answer(1.0, 0.5, 0.5, 0.5)
    yield far < near, "a guess far from x and from the prior has a lower bound."
    thin = [answer(1.0, 0.5, 0.5, v) for v in (1e-2, 1e-4, 1e-6)]
    yield thin[0] > thin[1] > thin[2], "the KL grows as the guess gets very narrow."
    step = (thin[1] - thin[2]) / torch.tensor(10.0).log()
    yield abs(step - 1) < 1e-3, "the KL holds half the log of v."
    draws = 0.3 + 0.4**0.5 * torch.randn(40_000, generator=_stream())
    weights = Normal(0, 1).log_prob(draws) + Normal(draws, 0.5**0.5).log_prob(
        torch.tensor(1.0)
    )
    weights = weights - Normal(0.3, 0.4**0.5).log_prob(draws)
    off = abs(answer(1.0, 0.5, 0.3, 0.4) - weights.mean())
    yield (
        off < 5 * weights.std() / 200,
        "it is the average of log p(x, z) - log q(z) over q.",
    )


@visible
def gap(answer):
    """gap(x, s2, m, v) -> number."""
    yield abs(answer(1.0, 1.0, 0.5, 0.5)) < 1e-12, "no gap where q is the posterior."
    yield answer(1.0, 1.0, 0.5, 0.1) > 0, "a divergence is not negative."
    yield answer(1.0, 1.0, 0.9, 0.5) > 0, "a divergence is not negative."
    left, right = answer(1.0, 1.0, 0.1, 0.5), answer(1.0, 1.0, 0.9, 0.5)
    yield abs(left - right) < 1e-12, "equally far on both sides: the same gap."
    wide, wider = answer(1.0, 1.0, 0.5, 1e4), answer(1.0, 1.0, 0.5, 2e4)
    yield (
        abs(wider / wide - 2) < 1e-2,
        "a very wide guess pays in proportion to its variance.",
    )
    missed, narrow = answer(1.0, 1.0, 0.8, 0.5), answer(1.0, 1 / 3, 1.05, 0.25)
    yield missed < narrow, "the narrower the posterior, the dearer the same miss."
    here, far = answer(0.0, 1.0, 0.0, 0.1), answer(2e7, 1.0, 1e7, 0.1)
    yield (
        abs(here - far) < 1e-6,
        "far out the same gap: no difference of two large numbers keeps it.",
    )


@visible
def pathwise_gradient(answer):
    """pathwise_gradient(x, s2, m, v, noise) -> (estimate, standard error)."""
    noise = torch.randn(4000, generator=_stream())
    estimate, error = answer(1.0, 0.5, 0.2, 0.3, noise)
    _, smaller = answer(1.0, 0.5, 0.2, 0.3, noise.repeat(4))
    yield error > 0, "the second value is a standard error, so it is positive."
    yield (
        abs(smaller / error - 0.5) < 0.01,
        "four times the draws halve the standard error.",
    )
    best, best_error = answer(1.0, 0.5, 2 / 3, 1 / 3, noise)
    yield (
        abs(best) < 5 * best_error + 1e-9,
        "at the posterior's mean the gradient vanishes.",
    )
    low, _ = answer(1.0, 0.5, -1.0, 0.3, noise)
    high, _ = answer(1.0, 0.5, 2.0, 0.3, noise)
    yield low > 0 > high, "the gradient points to the posterior's mean."
    once, twice = (answer(1.0, 0.5, 0.2, 0.3, noise + k)[0] for k in (1, 2))
    yield abs(once - estimate) > 1e-6, "other draws, another estimate."
    yield (
        abs(twice - 2 * once + estimate) < 1e-6,
        "along the path equal shifts of the noise are equal shifts of the estimate.",
    )
    _, doubled = answer(1.0, 0.5, 0.2, 1.2, noise)
    yield abs(doubled / error - 2) < 1e-6, "four times v doubles the error."
    _, louder = answer(1.0, 0.5, 0.2, 0.3, 2 * noise)
    yield (
        abs(louder / error - 2) < 1e-6,
        "twice the noise, twice the error: it is estimated from the draws.",
    )


def _stream() -> torch.Generator:
    return torch.Generator().manual_seed(6050)
