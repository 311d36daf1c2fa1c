"""How far apart two laws are, in nats, and the game that measures one such distance.

Bad input raises a ValueError that names the argument, its value and the rule.
"""

import math

import torch
from torch import Tensor

from genaudit import _check


def kl_finite(p, q) -> Tensor:
    """KL(p || q) = sum p log(p / q) over the last axis; p and q of one shape (..., K).

    Outcomes with p = 0 count nothing. Where p > 0 = q the divergence is infinite.
    """
    p, q = _pair(p, q)
    return (torch.xlogy(p, p) - torch.xlogy(p, q)).sum(-1)


def kl_gaussian(mean, variance, other_mean=0.0, other_variance=1.0) -> Tensor:
    """KL(N(mean, variance) || N(other_mean, other_variance)) per coordinate.

    Arguments broadcast; variances > 0. The coordinates of a diagonal Gaussian add: sum
    the result over them. The defaults are the standard normal of a VAE's prior.
    """
    mean = _check.finite("mean", mean)
    other_mean = _check.finite("other_mean", other_mean)
    variance = _check.positive("variance", variance)
    other_variance = _check.positive("other_variance", other_variance)
    ratio = variance / other_variance
    shift = (mean - other_mean).square() / other_variance
    return 0.5 * (shift + ratio - 1 - (variance.log() - other_variance.log()))


def jsd_finite(p, q) -> Tensor:
    """Jensen-Shannon divergence in nats, 0 to ln 2; p and q of one shape (..., K).

    Half of KL(p || m) + KL(q || m) with m = (p + q) / 2 (Lin, 1991). This is the
    divergence: scipy's jensenshannon returns its square root, a distance.
    """
    p, q = _pair(p, q)
    middle = (p + q) / 2
    return ((kl_finite(p, middle) + kl_finite(q, middle)) / 2).clamp(min=0)


def optimal_discriminator(p, q) -> Tensor:
    """D* = p / (p + q): data mass p against generated mass q, shape (..., K).

    Goodfellow and others, 2014, proposition 1. NaN where p + q = 0: outcomes that
    nobody makes leave D undefined.
    """
    p, q = _pair(p, q)
    return p / (p + q)


def gan_value(p, q, discriminator) -> Tensor:
    """Value of the game, sum p log D + sum q log(1 - D), in nats; at most 0.

    ``discriminator`` has the shape of p and q, entries in [0, 1], anything (NaN too)
    where p + q = 0. Outcomes without mass count nothing.
    """
    p, q = _pair(p, q)
    d = _check.floating(discriminator)
    _check.same_shape("discriminator", d, "p", p)
    if not ((d >= 0) & (d <= 1) | (p + q == 0)).all():
        raise ValueError(f"discriminator = {d.tolist()}: entries must lie in [0, 1]")
    d = torch.where(p + q == 0, 0.5, d)
    return (torch.xlogy(p, d) + torch.special.xlog1py(q, -d)).sum(-1)


def gan_optimal_value(p, q) -> Tensor:
    """Value at the optimal discriminator by the identity -log 4 + 2 JSD(p, q)."""
    return -math.log(4) + 2 * jsd_finite(p, q)


def _pair(p, q) -> tuple[Tensor, Tensor]:
    p, q = _check.probabilities("p", p), _check.probabilities("q", q)
    _check.same_shape("p", p, "q", q)
    return p, q
