"""Samplers: a start, a guess of the noise or a score, and a loop over single steps.

Bad input raises a ValueError that names the argument, its value and the rule.
"""

from collections import deque
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from genaudit import _check
from genaudit.process import ddim_step, ddpm_step, langevin_step
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


def ddim_path(
    predict_noise: Callable[[Tensor, int], Tensor],
    schedule: Schedule,
    start: Tensor,
    timesteps: Tensor | None = None,
    eta: float = 0.0,
    generator: torch.Generator | None = None,
    description: str | None = None,
) -> Iterator[Tensor]:
    """Yield the start and the point after each step (Song, Meng, Ermon, 2021).

    Args:
        predict_noise: maps (x_t, t) to a guess of the noise in x_t, same shape.
        start: x at the first timestep, any shape, usually standard normal.
        timesteps: those to visit, descending, as ``Schedule.visits`` gives them; all
            of T..1 if omitted. From the last one the step goes to t = 0.
        eta: 0 is deterministic; 1 adds noise of variance beta-tilde at every step.
        generator: source of the fresh noise, needed for eta > 0 only.
        description: if given, shows a progress bar with this label.
    """
    if eta > 0 and generator is None:
        raise ValueError(f"generator = None: eta = {eta} needs a source of noise")
    x = start
    yield x
    for t, previous in progress(_descent(schedule, timesteps), description):
        with torch.no_grad():
            noise = _draw(x, generator) if eta > 0 else None
            x = ddim_step(schedule, x, t, previous, predict_noise(x, t), noise, eta)
        yield x


def ddim_sample(
    predict_noise: Callable[[Tensor, int], Tensor],
    schedule: Schedule,
    start: Tensor,
    timesteps: Tensor | None = None,
    eta: float = 0.0,
    generator: torch.Generator | None = None,
    description: str | None = None,
) -> Tensor:
    """The finished samples x_0 of ``ddim_path``, same shape as ``start``."""
    path = ddim_path(
        predict_noise, schedule, start, timesteps, eta, generator, description
    )
    return deque(path, maxlen=1).pop()


def heun_sample(
    predict_noise: Callable[[Tensor, int], Tensor],
    schedule: Schedule,
    start: Tensor,
    timesteps: Tensor | None = None,
    description: str | None = None,
) -> Tensor:
    """Follow the probability-flow ODE by Heun's rule, two guesses a step but the last.

    In y = x / sqrt(abar) and s = sqrt(1 / abar - 1) the ODE is dy/ds = noise guess
    (Karras and others, 2022). Euler's rule on it is ``ddim_sample`` with eta 0; Heun's
    averages the guesses at both ends. Arguments as there.
    """
    x = start
    with torch.no_grad():
        for t, previous in progress(_descent(schedule, timesteps), description):
            here = predict_noise(x, t)
            ahead = ddim_step(schedule, x, t, previous, here)
            if previous > 0:
                slope = (here + predict_noise(ahead, previous)) / 2
                ahead = ddim_step(schedule, x, t, previous, slope)
            x = ahead
    return x


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


def _descent(schedule: Schedule, timesteps: Tensor | None) -> list[tuple[int, int]]:
    """The timesteps, all of T..1 if None, each with the one it steps down to."""
    visited = schedule.timesteps.flip(0) if timesteps is None else timesteps
    if visited.ndim != 1 or len(visited) == 0:
        raise ValueError(
            f"timesteps has shape {tuple(visited.shape)}: it must be (S,) with S >= 1"
        )
    stops = [*visited.tolist(), 0]
    return list(zip(stops, stops[1:]))


def _draw(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=generator, dtype=x.dtype)
