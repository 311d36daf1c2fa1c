"""Noise schedules: how much of the data is left after t steps of noise.

One step keeps ``alpha_t = 1 - beta_t`` of the variance and adds ``beta_t`` of fresh
noise; ``alpha_bar_t`` is the product of the first t alphas (Ho and others, 2020). Bad
input raises a ValueError that names the argument, its value and the rule.
"""

import math
from functools import cached_property

import torch
from torch import Tensor

from genaudit import _check


class Schedule:
    """The variances beta_1, ..., beta_T of a noising process and what follows.

    Args:
        beta: shape (T,), every entry strictly between 0 and 1. Its dtype is the dtype
            of every coefficient, except that half precision is widened to float32: in
            float16 the first alpha, 1 - 1e-4, would round to 1.

    Every method takes a timestep ``t`` in 1..T, an int or an integer tensor of any
    shape, and returns a tensor of that shape. ``alpha_bar`` and what is built on it
    also take t = 0, the clean data, where alpha-bar is 1. A timestep out of range
    raises ValueError.
    """

    def __init__(self, beta):
        beta = _check.between("beta", beta, 0, 1)
        self._beta = beta.to(torch.promote_types(beta.dtype, torch.float32))
        if self._beta.ndim != 1 or len(self._beta) == 0:
            raise ValueError(
                f"beta has shape {tuple(self._beta.shape)}: it must be (T,) with T >= 1"
            )
        if not (1 - self._beta < 1).all():
            raise ValueError(
                f"beta = {float(self._beta.min()):.6g}: 1 - beta rounds to 1 in "
                f"{self._beta.dtype}"
            )

    def __len__(self) -> int:
        return len(self._beta)

    @property
    def timesteps(self) -> Tensor:
        """The integers 1..T, shape (T,)."""
        return torch.arange(1, len(self) + 1)

    @cached_property
    def _alpha_bar(self) -> Tensor:
        clean = torch.ones(1, dtype=self._beta.dtype)
        return torch.cat([clean, torch.cumprod(1 - self._beta, 0)])

    @cached_property
    def _log_alpha_bar(self) -> Tensor:
        logs = torch.log1p(-self._beta.double()).cumsum(0)
        return torch.cat([torch.zeros(1, dtype=torch.float64), logs])

    def _index(self, t, first: int) -> Tensor:
        index = torch.as_tensor(t)
        if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool:
            raise ValueError(f"t = {t!r}: a timestep must be a whole number")
        # Before anything else: 200 wraps in int8, and torch reads uint8 as a mask.
        index = index.long()
        if index.numel() and (index.min() < first or index.max() > len(self)):
            worst = index.min() if index.min() < first else index.max()
            raise ValueError(
                f"t = {int(worst)}: timesteps run from {first} to {len(self)}"
            )
        return index

    def beta(self, t) -> Tensor:
        """Variance of the noise added by step t."""
        return self._beta[self._index(t, 1) - 1]

    def alpha(self, t) -> Tensor:
        """Share of the variance that step t keeps, 1 - beta_t."""
        return 1 - self.beta(t)

    def alpha_bar(self, t) -> Tensor:
        """Share of the data's variance left after t steps: alpha_1 ... alpha_t."""
        return self._alpha_bar[self._index(t, 0)]

    def log_alpha_bar(self, t) -> Tensor:
        """Logarithm of alpha-bar summed in float64: no underflow on long schedules."""
        return self._log_alpha_bar[self._index(t, 0)]

    def signal(self, t) -> Tensor:
        """Weight of the data in x_t, the square root of alpha-bar_t."""
        return self.alpha_bar(t).sqrt()

    def noise(self, t) -> Tensor:
        """Weight of the noise in x_t, the square root of 1 - alpha-bar_t."""
        return (1 - self.alpha_bar(t)).sqrt()

    def snr(self, t) -> Tensor:
        """Signal-to-noise ratio of the variances, alpha-bar_t / (1 - alpha-bar_t)."""
        return self.alpha_bar(t) / (1 - self.alpha_bar(t))

    def posterior(self, t) -> tuple[Tensor, Tensor, Tensor]:
        """Coefficients of q(x_{t-1} | x_t, x_0) (Ho and others, 2020, equation 7).

        Returns (weight of x_0, weight of x_t, variance beta-tilde_t). At t = 1 they
        are exactly 1, 0 and 0: the clean point is known.
        """
        before, now = self.alpha_bar(self._index(t, 1) - 1), self.alpha_bar(t)
        # beta_1 = 1 - alpha-bar_1, but rounding may split the two: say so exactly.
        share = torch.where(before == 1, 1.0, self.beta(t) / (1 - now))
        weight_x0 = before.sqrt() * share
        weight_xt = self.alpha(t).sqrt() * (1 - before) / (1 - now)
        return weight_x0, weight_xt, (1 - before) * share

    def beta_tilde(self, t) -> Tensor:
        """Posterior variance of a reverse step; never above beta_t, zero at t = 1."""
        return self.posterior(t)[2]

    def first_below(self, level: float) -> int:
        """First timestep with alpha-bar_t < level; ValueError if there is none."""
        _check.between("level", level, 0, 1)
        below = (self._alpha_bar < level).nonzero()
        if len(below) == 0:
            last = float(self._alpha_bar[-1])
            raise ValueError(
                f"level = {level}: alpha-bar ends at {last:.6g}, not under it"
            )
        return int(below[0])

    def strided(self, steps: int) -> "Schedule":
        """The schedule that visits ``steps`` evenly spaced levels, T among them.

        A jump over several steps has variance 1 - (ratio of the alpha-bars), which is
        not the beta of either end.
        """
        _check.whole("steps", steps, 1, len(self))
        visited = torch.cat([torch.zeros(1).long(), self.visits(steps).flip(0)])
        logs = self.log_alpha_bar(visited)
        return Schedule(-torch.expm1(logs.diff()).to(self._beta.dtype))

    def visits(self, steps: int, spacing: str = "trailing") -> Tensor:
        """Timesteps that a sampler of ``steps`` steps visits, descending, (steps,).

        "trailing" counts down from T in even parts, so T itself is visited. "leading"
        counts up from 1 by T // steps, as the first fast samplers did, and stops short
        of T. Each step goes to the next entry; the last one goes to t = 0.
        """
        _check.whole("steps", steps, 1, len(self))
        _check.choice("spacing", spacing, ("trailing", "leading"))
        if spacing == "leading":
            return 1 + torch.arange(steps).flip(0) * (len(self) // steps)
        return torch.tensor([round(k * len(self) / steps) for k in range(steps, 0, -1)])


def linear_schedule(
    steps: int = 1000, first: float = 1e-4, last: float = 0.02
) -> Schedule:
    """Betas evenly spaced from ``first`` to ``last`` (Ho and others, 2020).

    Returns a float64 Schedule with T = ``steps`` (1 or more; both ends in (0, 1)).
    """
    _check.whole("steps", steps, 1)
    return Schedule(torch.linspace(first, last, steps, dtype=torch.float64))


def cosine_schedule(
    steps: int = 1000, offset: float = 0.008, largest: float = 0.999
) -> Schedule:
    """Alpha-bar follows a squared cosine (Nichol and Dhariwal, 2021, equation 17).

    alpha-bar_t = f(t) / f(0) with f(t) = cos^2(pi/2 (t/T + offset) / (1 + offset)).
    The betas are cut at ``largest``, since the last one would otherwise be 1.
    """
    _check.whole("steps", steps, 1)
    _check.nonnegative("offset", offset)
    _check.between("largest", largest, 0, 1)
    t = torch.arange(steps + 1, dtype=torch.float64)
    f = torch.cos(math.pi / 2 * (t / steps + offset) / (1 + offset)) ** 2
    return Schedule((1 - f[1:] / f[:-1]).clamp(max=largest))
