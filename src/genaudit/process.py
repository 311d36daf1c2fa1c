"""One step each: forward jump, reverse steps, Langevin step, guidance, conversions.

``schedule`` and ``t`` name the noise level: ``t`` is an int in 1..T, or an integer
tensor of shape (B,) with one timestep for each of the B examples in a batch of shape
(B, ...). Noise is handed in, never drawn here, so each step is a plain function. Bad
input raises a ValueError that names the argument, its value and the rule.
"""

import torch
from torch import Tensor

from genaudit import _check
from genaudit.schedule import Schedule

VARIANCES = ("beta", "beta_tilde", "none")
"""What ``ddpm_step`` can take for the variance of the fresh noise."""


def _per_example(coefficient: Tensor, x: Tensor) -> Tensor:
    """Give a coefficient of shape () or (B,) the axes and the dtype of a batch."""
    coefficient = coefficient.to(x.dtype)
    if coefficient.ndim == 0:
        return coefficient
    if coefficient.ndim != 1 or x.ndim == 0 or len(coefficient) not in (1, len(x)):
        raise ValueError(
            f"t has shape {tuple(coefficient.shape)} for a batch of shape "
            f"{tuple(x.shape)}: t must be one number or have shape (B,)"
        )
    return coefficient.reshape(-1, *[1] * (x.ndim - 1))


def _points(**tensors: Tensor) -> list[Tensor]:
    """The named tensors as finite floating-point ones, all of the first one's shape."""
    points = {name: _check.finite(name, value) for name, value in tensors.items()}
    (first, like), *others = points.items()
    for name, value in others:
        _check.same_shape(name, value, first, like)
    return list(points.values())


def forward_step(schedule: Schedule, x: Tensor, t, noise: Tensor) -> Tensor:
    """One noising step: x_t = sqrt(alpha_t) x_{t-1} + sqrt(beta_t) noise.

    ``x`` and ``noise`` have one shape (B, ...). Ho and others, 2020, equation 2.
    """
    x, noise = _points(x=x, noise=noise)
    keep = _per_example(schedule.alpha(t).sqrt(), x)
    return keep * x + _per_example(schedule.beta(t).sqrt(), x) * noise


def forward_jump(schedule: Schedule, x0: Tensor, t, noise: Tensor) -> Tensor:
    """Straight to level t: x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) noise.

    ``x0`` and ``noise`` have one shape (B, ...). t = 0 returns the data. Ho and
    others, 2020, equation 4.
    """
    x0, noise = _points(x0=x0, noise=noise)
    level = schedule.alpha_bar(t)
    signal, spread = (_per_example(part.sqrt(), x0) for part in (level, 1 - level))
    return signal * x0 + spread * noise


def ddpm_mean(schedule: Schedule, x: Tensor, t, predicted_noise: Tensor) -> Tensor:
    """Mean of the reverse step from x_t, given a guess of the noise in it.

    (x_t - beta_t / sqrt(1 - abar_t) predicted_noise) / sqrt(alpha_t): Ho and others,
    2020, equation 11. Equal to the exact posterior mean with the clean guess put in.
    """
    x, predicted_noise = _points(x=x, predicted_noise=predicted_noise)
    share = _per_example(schedule.beta(t) / schedule.noise(t), x)
    return (x - share * predicted_noise) / _per_example(schedule.alpha(t).sqrt(), x)


def ddpm_step(
    schedule: Schedule,
    x: Tensor,
    t,
    predicted_noise: Tensor,
    noise: Tensor,
    variance: str = "beta_tilde",
) -> Tensor:
    """One reverse step x_t -> x_{t-1} (Ho and others, 2020, algorithm 2).

    ``variance`` is the fresh noise's: "beta" (beta_t), "beta_tilde" (the posterior's),
    or "none" (the mean alone, which collapses). Whatever it says, the last step t = 1
    adds no noise: it makes the finished sample.
    """
    _check.choice("variance", variance, VARIANCES)
    x, noise = _points(x=x, noise=noise)
    mean = ddpm_mean(schedule, x, t, predicted_noise)
    added = {
        "beta": schedule.beta,
        "beta_tilde": schedule.beta_tilde,
        "none": lambda t: torch.zeros_like(schedule.beta(t)),
    }[variance](t)
    added = torch.where(torch.as_tensor(t) == 1, torch.zeros_like(added), added)
    return mean + _per_example(added.sqrt(), x) * noise


def ddim_step(
    schedule: Schedule,
    x: Tensor,
    t,
    previous,
    predicted_noise: Tensor,
    noise: Tensor | None = None,
    eta: float = 0.0,
) -> Tensor:
    """One step from level t down to ``previous`` (Song, Meng, Ermon, 2021, eq. 12).

    Estimates the clean point, then mixes it with the same noise guess at the lower
    level. ``previous`` is below t, 0 included: there the clean estimate is returned.
    ``eta`` in [0, 1] scales the SD of the fresh ``noise``, which only eta > 0 needs:
    0 is deterministic, 1 has the variance beta-tilde of DDPM for the same jump.
    """
    x, predicted_noise = _points(x=x, predicted_noise=predicted_noise)
    _check_eta(eta, noise)
    # On a long schedule alpha-bar may round to 0: nothing of the clean point is left.
    high = _check.alpha_bar_level(schedule.alpha_bar(t))
    low = schedule.alpha_bar(previous)
    clean = (x - _per_example((1 - high).sqrt(), x) * predicted_noise) / _per_example(
        high.sqrt(), x
    )
    signal = _per_example(low.sqrt(), x)
    if not (torch.as_tensor(previous) < torch.as_tensor(t)).all():
        raise ValueError(f"previous = {previous}: must be below t = {t}")
    # A ratio of alpha-bars, not one beta: the jump may be over several steps.
    spread = eta * ((1 - low) / (1 - high) * (1 - high / low)).sqrt()
    rest = (1 - low - spread.square()).clamp(min=0).sqrt()
    mixed = signal * clean + _per_example(rest, x) * predicted_noise
    if eta == 0:
        return mixed
    (noise,) = _points(noise=noise)
    _check.same_shape("noise", noise, "x", x)
    return mixed + _per_example(spread, x) * noise


def _check_eta(eta: float, noise: Tensor | None) -> None:
    if not 0 <= eta <= 1:
        raise ValueError(f"eta = {eta}: must lie in [0, 1]")
    if eta > 0 and noise is None:
        raise ValueError(f"noise = None: eta = {eta} needs fresh noise")


def guided_noise(unconditional: Tensor, conditional: Tensor, scale: float) -> Tensor:
    """Classifier-free guidance: unconditional + scale (conditional - unconditional).

    Both guesses have one shape. Scale 0 ignores the condition, scale 1 is the plain
    conditional guess, more exaggerates it. Ho and Salimans, 2022, write 1 + w for the
    scale: see ``scale_from_extra``.
    """
    unconditional, conditional = _points(
        unconditional=unconditional, conditional=conditional
    )
    scale = _check.finite("scale", scale).to(conditional.dtype)
    return unconditional + scale * (conditional - unconditional)


def scale_from_extra(extra: float) -> float:
    """The scale 1 + w for an extra weight w, by which w = 0 is no guidance."""
    return 1 + extra


def langevin_step(x: Tensor, score: Tensor, step_size: float, noise: Tensor) -> Tensor:
    """Unadjusted Langevin step: x + step_size score + sqrt(2 step_size) noise.

    ``x``, ``score`` and ``noise`` have one shape; step_size > 0. Roberts and Tweedie,
    1996. A finite step settles near the target, not on it.
    """
    x, score, noise = _points(x=x, score=score, noise=noise)
    step_size = _check.positive("step_size", step_size).to(x.dtype)
    return x + step_size * score + (2 * step_size).sqrt() * noise


def clean_from_noise(x: Tensor, alpha_bar, noise: Tensor) -> Tensor:
    """Clean point behind x_t: (x_t - sqrt(1 - abar) noise) / sqrt(abar); 0 < abar <= 1.

    Here and below ``alpha_bar`` is a number or broadcasts against x. At alpha-bar 0
    nothing of the clean point is left, and the call raises ValueError.
    """
    x, noise = _points(x=x, noise=noise)
    level = _check.alpha_bar_level(alpha_bar)
    signal, spread = level.sqrt().to(x.dtype), (1 - level).sqrt().to(x.dtype)
    return (x - spread * noise) / signal


def noise_from_clean(x: Tensor, alpha_bar, clean: Tensor) -> Tensor:
    """Noise in x_t: (x_t - sqrt(abar) clean) / sqrt(1 - abar); 0 < abar < 1."""
    x, clean = _points(x=x, clean=clean)
    level = _check.noisy_level(alpha_bar)
    signal, spread = level.sqrt().to(x.dtype), (1 - level).sqrt().to(x.dtype)
    return (x - signal * clean) / spread


def score_from_noise(alpha_bar, noise: Tensor) -> Tensor:
    """Score of the noised density: -noise / sqrt(1 - abar); 0 < abar < 1."""
    noise = _check.finite("noise", noise)
    return -noise / (1 - _check.noisy_level(alpha_bar)).sqrt().to(noise.dtype)


def noise_from_score(alpha_bar, score: Tensor) -> Tensor:
    """Noise guess: -sqrt(1 - abar) score; 0 < abar < 1."""
    score = _check.finite("score", score)
    return -(1 - _check.noisy_level(alpha_bar)).sqrt().to(score.dtype) * score


def velocity(alpha_bar, noise: Tensor, clean: Tensor) -> Tensor:
    """The target v = sqrt(abar) noise - sqrt(1 - abar) clean; 0 < abar <= 1.

    Salimans and Ho, 2022. With x_t = sqrt(abar) clean + sqrt(1 - abar) noise the pair
    (x_t, v) is the pair (clean, noise), turned by an angle.
    """
    noise, clean = _points(noise=noise, clean=clean)
    level = _check.alpha_bar_level(alpha_bar)
    signal, spread = level.sqrt().to(noise.dtype), (1 - level).sqrt().to(noise.dtype)
    return signal * noise - spread * clean


def noise_from_velocity(x: Tensor, alpha_bar, v: Tensor) -> Tensor:
    """Noise in x_t: sqrt(1 - abar) x_t + sqrt(abar) v; 0 < abar <= 1."""
    x, v = _points(x=x, v=v)
    level = _check.alpha_bar_level(alpha_bar)
    return (1 - level).sqrt().to(x.dtype) * x + level.sqrt().to(x.dtype) * v


def clean_from_velocity(x: Tensor, alpha_bar, v: Tensor) -> Tensor:
    """Clean point behind x_t: sqrt(abar) x_t - sqrt(1 - abar) v; 0 < abar <= 1."""
    x, v = _points(x=x, v=v)
    level = _check.alpha_bar_level(alpha_bar)
    return level.sqrt().to(x.dtype) * x - (1 - level).sqrt().to(x.dtype) * v
