"""Latent-variable models small enough that the evidence is known exactly.

For one observation x and any q(z), log p(x) = ELBO(q) + KL(q || p(z | x)). Each model
here gives every term of that identity in closed form, in nats. Bad input raises a
ValueError that names the argument, its value and the rule.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from genaudit import _check
from genaudit.divergence import kl_finite, kl_gaussian


class ElboTerms(NamedTuple):
    """The terms of the evidence identity for one q, in nats.

    Attributes:
        reconstruction: E_q log p(x | z).
        kl: KL(q || p(z)), the price of leaving the prior.
        gap: KL(q || p(z | x)), what the bound misses.
    """

    reconstruction: Tensor
    kl: Tensor
    gap: Tensor

    @property
    def elbo(self) -> Tensor:
        """reconstruction - kl, the evidence lower bound."""
        return self.reconstruction - self.kl


class FiniteModel:
    """A latent variable with K values and one observation x.

    Args:
        prior: p(z), shape (K,), sums to 1.
        likelihood: p(x | z) at the observed x, shape (K,), entries >= 0 and not all
            zero where the prior has mass (probabilities, or densities of a continuous
            x). They need not sum to 1.
    """

    def __init__(self, prior, likelihood):
        self.prior = _check.probabilities("prior", prior)
        self.likelihood = _check.nonnegative("likelihood", likelihood)
        if self.prior.ndim != 1:
            raise ValueError(
                f"prior has shape {tuple(self.prior.shape)}: it must be (K,)"
            )
        _check.same_shape("likelihood", self.likelihood, "prior", self.prior)
        if not ((self.prior > 0) & (self.likelihood > 0)).any():
            raise ValueError(
                f"likelihood = {_check.short(self.likelihood)} is zero wherever the "
                "prior has mass: p(x) = 0"
            )

    def log_evidence(self) -> Tensor:
        """log p(x) = log sum p(z) p(x | z)."""
        return (self.prior.log() + self.likelihood.log()).logsumexp(-1)

    def posterior(self) -> Tensor:
        """p(z | x) by Bayes' rule, shape (K,)."""
        return (self.prior.log() + self.likelihood.log()).softmax(-1)

    def elbo_terms(self, q) -> ElboTerms:
        """Terms of the identity for q, shape (..., K), each row a distribution.

        Where q has mass on a z with p(x | z) = 0, the reconstruction is -inf and the
        gap infinite.
        """
        q = _check.probabilities("q", q)
        if q.shape[-1:] != self.prior.shape:
            raise ValueError(
                f"q has shape {tuple(q.shape)}: its last axis must be K = "
                f"{len(self.prior)}"
            )
        reconstruction = torch.xlogy(q, self.likelihood).sum(-1)
        return ElboTerms(
            reconstruction,
            kl_finite(q, self.prior.expand_as(q)),
            kl_finite(q, self.posterior().expand_as(q)),
        )


class GaussianModel:
    """z ~ N(0, 1) and x | z ~ N(z, noise_variance): a VAE with one exact answer.

    Args:
        noise_variance: variance of x around z, > 0.

    Observations ``x`` and the parameters of q broadcast against each other. q is
    N(q_mean, q_variance) with q_variance > 0.
    """

    def __init__(self, noise_variance):
        self.noise_variance = _check.positive("noise_variance", noise_variance)

    def log_evidence(self, x) -> Tensor:
        """log p(x), where x ~ N(0, 1 + noise_variance)."""
        x = _check.finite("x", x)
        return _log_normal(x, 0.0, 1 + self.noise_variance)

    def posterior(self, x) -> tuple[Tensor, Tensor]:
        """Mean and variance of p(z | x): precisions add, means weigh by precision."""
        x = _check.finite("x", x)
        variance = self.noise_variance / (1 + self.noise_variance)
        mean = x / (1 + self.noise_variance)
        return mean, variance.expand_as(mean)

    def elbo_terms(self, x, q_mean, q_variance) -> ElboTerms:
        """Terms of the identity for x and q = N(q_mean, q_variance)."""
        x, q_mean = _check.finite("x", x), _check.finite("q_mean", q_mean)
        q_variance = _check.positive("q_variance", q_variance)
        spread = q_variance / (2 * self.noise_variance)
        reconstruction = _log_normal(x, q_mean, self.noise_variance) - spread
        mean, variance = self.posterior(x)
        return ElboTerms(
            reconstruction,
            kl_gaussian(q_mean, q_variance),
            kl_gaussian(q_mean, q_variance, mean, variance),
        )

    def log_weights(self, x, q_mean, q_variance, noise: Tensor) -> Tensor:
        """log p(x, z) - log q(z) at z = q_mean + sqrt(q_variance) noise.

        Averaged over standard normal noise this is an unbiased estimate of the ELBO.
        ``noise`` broadcasts against x and the parameters of q.
        """
        x, q_mean = _check.finite("x", x), _check.finite("q_mean", q_mean)
        q_variance = _check.positive("q_variance", q_variance)
        z = q_mean + q_variance.sqrt() * _check.finite("noise", noise)
        joint = _log_normal(z, 0.0, torch.ones_like(z)) + _log_normal(
            x, z, self.noise_variance
        )
        return joint - _log_normal(z, q_mean, q_variance)


def multi_sample_bound(q, log_weights, samples: int) -> Tensor:
    """E log of the mean of ``samples`` weights, exact, for z from a finite q.

    Burda and others, 2016, equation (8). With log w(z) = log p(x, z) - log q(z) it is
    the ELBO for one sample, rises with more, and tends to log p(x) where q covers the
    posterior. In nats.

    Args:
        q: probabilities of the K values of z, shape (..., K).
        log_weights: log w(z), same shape; -inf where the model rules z out, anything
            where q = 0.
        samples: 1 or more.

    The logarithm of a sum S is the integral of (exp(-u) - exp(-u S)) / u over u > 0,
    and E exp(-u S) is a power, since the draws are independent. The integral over log u
    is smooth: the trapezoid rule has more than eleven decimals.
    """
    q = _check.probabilities("q", q)
    log_weights = _check.floating(log_weights)
    _check.same_shape("log_weights", log_weights, "q", q)
    _check.whole("samples", samples, 1)
    dtype = torch.promote_types(q.dtype, log_weights.dtype)
    q, log_weights = q.double(), log_weights.double()
    drawn = q > 0
    if (drawn & ~(log_weights < math.inf)).any():
        raise ValueError(
            f"log_weights = {_check.short(log_weights)}: entries must be finite or "
            "-inf where q > 0"
        )
    q = q / q.sum(-1, keepdim=True)  # a sum rounded in half precision would show
    lost = (drawn & (log_weights == -math.inf)).any(-1, keepdim=True)
    top = torch.where(drawn, log_weights, -math.inf).amax(-1, keepdim=True)
    relative = torch.where(drawn & ~lost, log_weights - top, 0.0)[..., None, :]
    reach = math.log(samples) - relative.min().item() + 6
    log_u = torch.arange(-40, reach, 0.1, dtype=q.dtype)[:, None]
    share = torch.expm1(-torch.exp(log_u - math.log(samples) + relative))
    missing = (q[..., None, :] * share).sum(-1).clamp(min=-1)  # rounding passes -1
    power = torch.exp(samples * torch.log1p(missing))
    integral = 0.1 * (torch.exp(-log_u[:, 0].exp()) - power).sum(-1)
    return torch.where(lost[..., 0], -math.inf, top[..., 0] + integral).to(dtype)


def _log_normal(x: Tensor, mean, variance: Tensor) -> Tensor:
    return -0.5 * ((x - mean).square() / variance + (2 * math.pi * variance).log())
