"""Samplers: a start, a guess of the noise or a score, and a loop over single steps."""

from collections import deque
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from genaudit import _check
from genaudit.process import ddpm_step, langevin_step
from genaudit.schedule import Schedule
from genaudit.training import progress


def ddpm_path(
    predict_noise: Callable[[Tensor, int], Tensor],
    schedule: Schedule,
    start: Tensor,
    generator: torch.Generator,
    variance: str = "beta_tilde",
    description: str | None = None,
) -> Iterator[Tensor]:
    """Yield x_T, x_{T-1}, ..., x_0 of the reverse chain (Ho and others, 2020, alg. 2).

    Args:
        predict_noise: maps (x_t, t) to a guess of the noise in x_t, same shape.
        start: x_T, any shape, usually standard normal.
        generator: source of the fresh noise; T - 1 draws of start's shape and dtype.
        variance: "beta", "beta_tilde" or "none", as in ``process.ddpm_step``.
        description: if given, shows a progress bar with this label.
    """
    x = start
    yield x
    for t in progress(range(len(schedule), 0, -1), description):
        # Closed before the yield: the caller's own gradients are not ours to stop.
        with torch.no_grad():
            noise = _draw(x, generator) if t > 1 else torch.zeros_like(x)
            x = ddpm_step(schedule, x, t, predict_noise(x, t), noise, variance)
        yield x


def ddpm_sample(
    predict_noise: Callable[[Tensor, int], Tensor],
    schedule: Schedule,
    start: Tensor,
    generator: torch.Generator,
    variance: str = "beta_tilde",
    description: str | None = None,
) -> Tensor:
    """The finished samples x_0 of ``ddpm_path``, same shape as ``start``."""
    path = ddpm_path(predict_noise, schedule, start, generator, variance, description)
    return deque(path, maxlen=1).pop()


def langevin_sample(
    score: Callable[[Tensor], Tensor],
    start: Tensor,
    step_size: float,
    steps: int,
    generator: torch.Generator,
    description: str | None = None,
) -> Tensor:
    """Run ``steps`` unadjusted Langevin steps from ``start`` (Roberts, Tweedie, 1996).

    ``score`` maps points to scores of the same shape; step_size > 0; steps >= 1.
    """
    _check.whole("steps", steps, 1)
    x = start
    with torch.no_grad():
        for _ in progress(range(steps), description):
            x = langevin_step(x, score(x), step_size, _draw(x, generator))
    return x


def _draw(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=generator, dtype=x.dtype)
