"""Power laws fitted to runs, which answer only inside the range they were fitted on."""

import math
from typing import NamedTuple

import torch
from scipy.stats import linregress
from torch import Tensor

from genaudit import _check


class PowerLaw(NamedTuple):
    """y = coefficient x^exponent for low <= x <= high.

    Attributes:
        coefficient: > 0, in units of y over units of x to the exponent.
        exponent: any finite number.
        low: smallest x of the runs behind the law, > 0.
        high: largest x of them.
        exponent_error: standard error of the exponent; NaN if it is not known.
    """

    coefficient: float
    exponent: float
    low: float
    high: float
    exponent_error: float = math.nan

    def __call__(self, x) -> Tensor:
        """The law at x > 0, same shape, float64; ValueError outside of low..high.

        Outside of it no run has tested the law. Whoever wants to extrapolate writes
        ``coefficient * x**exponent`` and says so.
        """
        x = _check.positive("x", torch.as_tensor(x, dtype=torch.float64))
        outside = (x < self.low) | (x > self.high)
        if outside.any():
            raise ValueError(
                f"x = {_check.short(x[outside])}: outside of the fitted range "
                f"{self.low:.6g} to {self.high:.6g}"
            )
        return self.coefficient * x**self.exponent


def fit_power_law(x, y) -> PowerLaw:
    """Fit log y = log coefficient + exponent log x by least squares.

    Args:
        x: shape (N,), > 0, three different values or more: the range of the law.
        y: shape (N,), > 0.

    The standard error of the exponent is the usual one of a straight line, which takes
    the scatter around it as independent and equal in log y. ValueError for bad input.
    """
    x = _check.positive("x", torch.as_tensor(x, dtype=torch.float64))
    y = _check.positive("y", torch.as_tensor(y, dtype=torch.float64))
    _check.same_shape("y", y, "x", x)
    if x.ndim != 1 or len(x.unique()) < 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: it must be (N,), with three different "
            "values or more"
        )
    line = linregress(x.log(), y.log())
    # From the residuals: a nearly perfect line leaves nothing of scipy's 1 - r^2.
    residual = y.log() - (line.intercept + line.slope * x.log())
    spread = (x.log() - x.log().mean()).square().sum()
    error = (residual.square().sum() / (len(x) - 2) / spread).sqrt().item()
    low, high = x.min().item(), x.max().item()
    return PowerLaw(math.exp(line.intercept), float(line.slope), low, high, error)


def best_split(a: float, b: float, scale_m: float, scale_d: float) -> PowerLaw:
    """Compute per token M that minimises scale_m M^-a + scale_d D^-b with M D = C.

    Setting the derivative along M D = C to zero gives a scale_m M^-a = b scale_d D^-b,
    so M = (a scale_m / (b scale_d))^(1/(a+b)) C^(b/(a+b)) (Hoffmann and others, 2022,
    equation 4, with M for 6 N). All arguments > 0, else ValueError. Valid for every
    C > 0.
    """
    for name, value in [("a", a), ("b", b), ("scale_m", scale_m), ("scale_d", scale_d)]:
        _check.positive(name, value)
    coefficient = (a * scale_m / (b * scale_d)) ** (1 / (a + b))
    return PowerLaw(coefficient, b / (a + b), 0.0, math.inf, 0.0)


DEEPSEEK_M = PowerLaw(0.1715, 0.5243, 1e17, 3e20)
"""Compute per token, non-embedding FLOPs, against budget (DeepSeek-AI, 2024, eq. 4)."""

DEEPSEEK_D = PowerLaw(5.8316, 0.4757, 1e17, 3e20)
"""Tokens of training data against budget in FLOPs (DeepSeek-AI, 2024, equation 4)."""
