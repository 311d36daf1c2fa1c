"""Gaussian mixtures: data whose noised density, score and best noise guess are known.

If x_0 follows the mixture, then x_t = sqrt(abar) x_0 + sqrt(1 - abar) eps follows a
mixture with the same weights, means sqrt(abar) m_k and variances
abar v_k + 1 - abar. Everything below is that one fact.
"""

import math

import torch
from torch import Tensor

from genaudit import _check


class GaussianMixture:
    """A mixture of K round Gaussians in D dimensions.

    Args:
        weights: shape (K,), probabilities that sum to 1.
        means: shape (K, D), or (K,) for D = 1.
        variance: variance per coordinate, > 0: one number or shape (K,).

    Points have shape (..., D). ``alpha_bar`` is a noise level in (0, 1], a number or a
    tensor that broadcasts against (...); 1, the default, is the clean data. Densities
    are logarithms in nats. NaN, an infinity, a wrong shape, a variance <= 0 or a
    weight vector that does not sum to 1 raise ValueError.
    """

    def __init__(self, weights, means, variance):
        self.weights = _check.probabilities("weights", weights)
        means = _check.finite("means", means)
        self.means = means[:, None] if means.ndim == 1 else means
        variance = _check.positive("variance", variance)
        if self.means.ndim != 2 or self.weights.shape != self.means.shape[:1]:
            raise ValueError(
                f"weights have shape {tuple(self.weights.shape)}, means "
                f"{tuple(means.shape)}: they must be (K,) and (K, D)"
            )
        if variance.shape not in ((), self.weights.shape):
            raise ValueError(
                f"variance has shape {tuple(variance.shape)}: it must be one number "
                f"or (K,) = {tuple(self.weights.shape)}"
            )
        dtype = torch.promote_types(self.means.dtype, self.weights.dtype)
        dtype = torch.promote_types(dtype, variance.dtype)
        self.weights, self.means = self.weights.to(dtype), self.means.to(dtype)
        self.variance = variance.to(dtype).expand(self.weights.shape)

    def _at(self, x, alpha_bar) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets (..., K, D), variances (..., K) and log joint (..., K) at a level.

        Half precision is widened to float32: the square of a far offset overflows it.
        """
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        if x.ndim == 0 or x.shape[-1] != self.means.shape[1]:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: the last axis must be D = "
                f"{self.means.shape[1]}"
            )
        level = _check.alpha_bar_level(alpha_bar).to(x.dtype)
        means, weights = self.means.to(x.dtype), self.weights.to(x.dtype)
        offset = x[..., None, :] - level[..., None, None].sqrt() * means
        variance = level[..., None] * self.variance.to(x.dtype) + 1 - level[..., None]
        square = offset.square().sum(-1) / variance
        dimension = self.means.shape[1]
        log_joint = weights.log() - 0.5 * (
            square + dimension * (2 * math.pi * variance).log()
        )
        return offset, variance, log_joint

    def log_density(self, x, alpha_bar=1.0) -> Tensor:
        """Log density of the noised data at x, shape (...)."""
        x = _check.finite("x", x)
        return self._at(x, alpha_bar)[2].logsumexp(-1).to(x.dtype)

    def responsibilities(self, x, alpha_bar=1.0) -> Tensor:
        """Probability that each component made x, shape (..., K)."""
        x = _check.finite("x", x)
        return self._at(x, alpha_bar)[2].softmax(-1).to(x.dtype)

    def score(self, x, alpha_bar=1.0) -> Tensor:
        """Gradient of the log density: component scores averaged by responsibility."""
        x = _check.finite("x", x)
        offset, variance, log_joint = self._at(x, alpha_bar)
        pull = log_joint.softmax(-1) / variance
        return -(pull[..., None, :] @ offset)[..., 0, :].to(x.dtype)

    def noise_mean(self, x, alpha_bar) -> Tensor:
        """E[eps | x_t]: the best guess of the noise under squared error, shape of x."""
        x = _check.finite("x", x)
        level = _check.noisy_level(alpha_bar)
        return -(1 - level)[..., None].sqrt().to(x.dtype) * self.score(x, alpha_bar)

    def clean_mean(self, x, alpha_bar) -> Tensor:
        """E[x_0 | x_t] by Tweedie's formula (x + (1 - abar) score) / sqrt(abar)."""
        x = _check.finite("x", x)
        level = _check.alpha_bar_level(alpha_bar)[..., None].to(x.dtype)
        return (x + (1 - level) * self.score(x, alpha_bar)) / level.sqrt()

    def mass(self, low: float, high: float) -> Tensor:
        """Probability of the interval low < x < high; one-dimensional mixtures only."""
        if self.means.shape[1] != 1:
            raise ValueError(f"D = {self.means.shape[1]}: mass needs D = 1")
        if not low < high:
            raise ValueError(f"low = {low}, high = {high}: low must be below high")
        ends = torch.tensor([low, high], dtype=self.means.dtype)
        scaled = (ends - self.means) / self.variance.sqrt()[:, None]
        # Take both tails on the side of zero where neither is close to one.
        flipped = torch.where(
            scaled.sum(-1, keepdim=True) > 0, -scaled.flip(-1), scaled
        )
        # torch.special.ndtr rounds to zero below -8.3; erfc does not.
        tails = torch.erfc(-flipped / math.sqrt(2)) / 2
        return (self.weights * (tails[:, 1] - tails[:, 0])).sum()

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean (D,) and variance per coordinate (D,) of the clean data."""
        mean = self.weights @ self.means
        spread = (self.means - mean).square() + self.variance[:, None]
        return mean, self.weights @ spread

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw ``count`` points, shape (count, D), from a seeded generator."""
        _check.whole("count", count, 1)
        index = torch.multinomial(
            self.weights, count, replacement=True, generator=generator
        )
        noise = torch.randn(
            count, self.means.shape[1], generator=generator, dtype=self.means.dtype
        )
        return self.means[index] + self.variance[index, None].sqrt() * noise
