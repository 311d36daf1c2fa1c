"""Audits of one reverse step, of DDPM or of DDIM.

A step is linear in x, the guess and the fresh noise, so three probes tell its weights.
They are small, so that clipping leaves them alone; a large fourth one shows clipping.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from genaudit import _check
from genaudit.audit._forward import (
    EARLIER,
    LATER,
    POINT,
    SD_TAKEN,
    SLACK,
    VARIANCE_TAKEN,
    levels,
    shifted,
)
from genaudit.audit._report import Report, Unusable, as_tensor, close, probe, shown
from genaudit.schedule import Schedule

CLIPS = "clips the clean guess to [-1, 1], which no equation asks for"


def _weights(call: Callable, signal: float) -> Tensor:
    """Of x, guess and noise in ``call(x, guess, noise)``; then its result for 8, -1, 0.

    ``signal`` is the root of alpha_bar at x.
    """
    small = signal / 2
    rows = [[small, 0, 0], [0, small, 0], [0, 0, small], [8, -1, 0]]
    columns = torch.tensor(rows, dtype=torch.float64).T.reshape(3, 4, 1, 1, 1)
    got = probe(call, *columns, shape=(4, 1, 1, 1)).double().flatten()
    return torch.cat([got[:3] / small, got[3:]])


def reverse_step(step: Callable, beta, variance: str = "beta_tilde") -> Report:
    """Audit a DDPM step x_t -> x_{t-1} that is told a guess of the noise in x_t.

    Its mean is (x - beta_t / sqrt(1 - alpha_bar_t) guess) / sqrt(alpha_t), and the last
    step, t = 1, adds no noise: Ho and others, 2020, equation 11 and algorithm 2.

    Args:
        step: ``step(x, t, predicted_noise, noise)`` with tensors (B, C, H, W), all of
            one shape, and one int t in 1..T; returns x_{t-1}. Code that draws by itself
            needs an adapter that puts ``noise`` in the place of its draw.
        beta: shape (T,), entry 0 is beta_1. For strides, the beta of each stride, which
            is 1 - (ratio of its alpha_bars).
        variance: of the fresh noise, "beta" or "beta_tilde", the exact posterior's.

    >>> from functools import partial; from genaudit.process import ddpm_step
    >>> beta = torch.linspace(1e-3, 0.2, 50).double()
    >>> reverse_step(partial(ddpm_step, Schedule(beta)), beta).passed
    True
    """
    _check.choice("variance", variance, ("beta", "beta_tilde"))
    schedule = Schedule(_check.finite("beta", beta).double())
    report = Report(f"Reverse step, variance {variance}")
    with report.trying("steps"):
        found = _reverse_weights(report, step, schedule)
        _audit_mean(report, schedule, found)
        _audit_fresh_noise(report, schedule, found[:, 2], variance)
        _audit_ends(report, schedule, found, variance)
    return report


def _reverse_weights(report: Report, step: Callable, schedule: Schedule) -> Tensor:
    """Weights for t = 1, 2, ...; at T an index off by one may raise, which is a row."""
    found = []
    for t in range(1, len(schedule) + 1):
        try:
            signal = float(schedule.signal(t))
            at_t = _weights(lambda x, *rest, t=t: step(x, t, *rest), signal)
        except Unusable as unusable:
            if not found or t < len(schedule):
                raise Unusable(f"{unusable} (t = {t})") from unusable
            report.add("step at t = T", "-", "-", str(unusable))
        else:
            found.append(at_t)
    return torch.stack(found)


def _audit_mean(report: Report, schedule: Schedule, found: Tensor) -> None:
    t, steps = schedule.timesteps[: len(found)], schedule.timesteps
    at = [f"t = {each}" for each in t]
    root, noise = schedule.alpha(steps).sqrt(), schedule.noise(steps)
    share = schedule.beta(steps) / noise
    undivided = "leaves out the division by sqrt(alpha_t)"
    rootless = "divides by alpha_t, its root is missing"
    of_x = {
        "multiplies by sqrt(alpha_t)": root,
        undivided: torch.ones(len(steps)),
        rootless: root**-2,
        "looks like the clean guess": 1 / schedule.signal(steps),
    }
    of_guess = {
        "the sign is wrong": share / root,
        undivided: -share,
        rootless: -share / root**2,
        "the root of 1 - alpha_bar_t is missing": -share / noise / root,
        "looks like the clean guess": -noise / schedule.signal(steps),
    }
    shorter = _shorter(found, schedule.beta(t), schedule.noise(t))
    for column, check, right, faults in [
        (0, "weight of x", 1 / root, of_x),
        (1, "weight of the guess", -share / root, of_guess),
    ]:
        near = shifted(torch.cat([right[:1], right]), t)
        suspects = near | {name: value[t - 1] for name, value in faults.items()}
        if shorter:
            suspects["looks like the beta of a shorter step"] = found[:, column]
        pair = right[t - 1], found[:, column]
        report.compare(check, *pair, suspects, at, SLACK)
    weight_x0, weight_xt, _ = schedule.posterior(t)
    clean = (8 + schedule.noise(t)) / schedule.signal(t)
    clipped = weight_x0 * clean.clamp(-1, 1) + 8 * weight_xt
    straight = 8 * found[:, 0] - found[:, 1]
    report.compare(
        "linear, large x", straight, found[:, 3], {CLIPS: clipped}, at, SLACK
    )


def _shorter(found: Tensor, beta: Tensor, noise: Tensor) -> bool:
    """Whether the mean is that of a step whose beta is smaller, at every t."""
    own = 1 - found[:, 0] ** -2
    guess = -own / noise / (1 - own).sqrt()
    return bool(((own < beta) & close(found[:, 1], guess, SLACK)).all())


def _audit_fresh_noise(
    report: Report, schedule: Schedule, found: Tensor, variance: str
) -> None:
    steps, t = schedule.timesteps, schedule.timesteps[1 : len(found)]
    beta, tilde = schedule.beta(steps), schedule.beta_tilde(steps)
    own, other = (beta, tilde) if variance == "beta" else (tilde, beta)
    if len(t):
        suspects = {
            f"the variance is {'beta_tilde' if own is beta else 'beta'}": other.sqrt(),
            VARIANCE_TAKEN: own,
            SD_TAKEN: own**0.25,
            "no fresh noise, the mean alone": torch.zeros(len(own)),
        }
        suspects = {name: value[t - 1] for name, value in suspects.items()}
        suspects |= shifted(torch.cat([own[:1], own]).sqrt(), t)
        at = [f"t = {each}" for each in t]
        pair = own[t - 1].sqrt(), found[1:]
        report.compare("SD of fresh noise, t > 1", *pair, suspects, at, SLACK)
    faults = {"fresh noise of beta_1 at the last step": beta[0].sqrt()}
    if len(steps) > 1:
        faults["fresh noise of step 2 at the last step"] = own[1].sqrt()
    note = "the last step adds no noise"
    check = "SD of fresh noise, t = 1"
    report.compare(check, 0.0, found[0].abs(), faults, slack=SLACK, note=note)


def _audit_ends(
    report: Report, schedule: Schedule, found: Tensor, variance: str
) -> None:
    """Run all steps on two laws with an exact denoiser, in numbers alone."""
    t = schedule.timesteps[: len(found)]
    if len(t) > 1:
        slope = found[:, 0] + found[:, 1] / schedule.noise(t)
        pair, at = (schedule.posterior(t)[1], slope), [f"t = {each}" for each in t[1:]]
        check = "slope on a point, t > 1"
        report.compare(check, *(each[1:] for each in pair), at=at, slack=SLACK)
    root = schedule.alpha(t).sqrt()
    added = getattr(schedule, variance)(t).sqrt() * (t > 1)
    right = torch.stack([1 / root, -schedule.beta(t) / schedule.noise(t) / root, added])
    linear = close(8 * found[:, 0] - found[:, 1], found[:, 3], SLACK).all()
    for law, data in [("a point", 0.0), ("N(0, 1)", 1.0)]:
        check = f"final variance, {law}"
        if len(found) < len(schedule):
            report.add(check, "-", "-", "not checked: the step at T is missing")
        elif not linear:
            why = "NaN" if found.isnan().any() else "the step is not linear"
            report.add(check, "-", "-", f"not checked: {why}")
        else:
            ends = [_final_variance(schedule, w, data) for w in (right.T, found)]
            report.compare(check, *ends, slack=SLACK)


def _final_variance(schedule: Schedule, weights: Tensor, data: float) -> float:
    """Of x_0 for data N(0, data) and x_T from N(0, 1), every guess being exact."""
    level = schedule.alpha_bar(schedule.timesteps)
    guess = (1 - level).sqrt() / (data * level + 1 - level)
    slopes, fresh = weights[:, 0] + weights[:, 1] * guess, weights[:, 2]
    variance = 1.0
    for slope, spread in zip(slopes.flip(0).tolist(), fresh.flip(0).tolist()):
        variance = slope**2 * variance + spread**2
    return variance


def ddim_step(step: Callable, alpha_bar, visits: Sequence[int] | None = None) -> Report:
    """Audit a DDIM step from level t down to level s; s = 0 is the clean data.

    x_s = sqrt(alpha_bar_s) x_0 + sqrt(1 - alpha_bar_s - sigma^2) guess + sigma noise,
    where x_0 = (x - sqrt(1 - alpha_bar_t) guess) / sqrt(alpha_bar_t) and sigma = eta
    sqrt((1 - alpha_bar_s) / (1 - alpha_bar_t) (1 - alpha_bar_t / alpha_bar_s)): Song,
    Meng and Ermon, 2021, equations 12 and 16.

    Args:
        step: ``step(x, t, s, predicted_noise, noise, eta)`` with tensors (B, C, H, W),
            all of one shape, ints t > s, and eta in [0, 1]; returns x_s.
        alpha_bar: shape (T,), entry 0 is alpha_bar_1; every entry > 0.
        visits: the timesteps of the audited table, falling, in 1..T; each jumps to the
            next, and the last one to 0. About ten from T down to 1 if omitted.

    >>> from functools import partial; from genaudit.process import ddim_step as step
    >>> schedule = Schedule(torch.linspace(1e-3, 0.2, 50).double())
    >>> ddim_step(partial(step, schedule), schedule.alpha_bar(range(1, 51))).passed
    True
    """
    level, report = levels(alpha_bar), Report("DDIM step")
    _check.positive("alpha_bar", level)
    jumps = None
    with report.trying("visits"):
        jumps = _jumps(visits, len(level) - 1)
    for eta in (0.0, 0.5, 1.0) if jumps else ():
        with report.trying(f"steps with eta {eta:g}"):
            found = _ddim_weights(step, level, jumps, eta)
            if eta == 0:
                _audit_landing(report, level, jumps, found)
            else:
                _audit_eta(report, level, jumps, found, eta)
    return report


def _jumps(visits: Sequence[int] | None, steps: int) -> tuple[Tensor, Tensor]:
    """Where each jump starts and where it ends, both (jumps,)."""
    if visits is None:
        tenths = {round(k * steps / 10) for k in range(1, 11)}
        visits = sorted({1, *tenths} - {0}, reverse=True)
    start = as_tensor(visits)
    if start.ndim != 1 or not (start.diff() < 0).all():
        raise Unusable("differs: the timesteps do not fall")
    if start[-1] < 1 or start[0] > steps or (start != start.long()).any():
        ends = f"{shown(start[0])} to {shown(start[-1])}"
        raise Unusable(f"differs: the timesteps go from {ends}, not within 1..{steps}")
    start = start.long()
    return start, torch.cat([start[1:], torch.zeros(1).long()])


def _ddim_weights(step: Callable, level: Tensor, jumps, eta: float) -> Tensor:
    found = []
    for t, s in zip(*(each.tolist() for each in jumps)):
        signal = float(level[t].sqrt())
        try:
            found.append(
                _weights(lambda x, *rest, t=t, s=s: step(x, t, s, *rest, eta), signal)
            )
        except Unusable as unusable:
            raise Unusable(f"{unusable} ({t} to {s})") from unusable
    return torch.stack(found)


def _ddim_formula(high: Tensor, low: Tensor, eta: float) -> Tensor:
    """Weights of x, guess and noise between two alpha_bars, (jumps, 3)."""
    sigma = eta * ((1 - low) / (1 - high) * (1 - high / low)).sqrt()
    clean = (low / high).sqrt()
    guess = (1 - low - sigma**2).clamp(min=0).sqrt() - clean * (1 - high).sqrt()
    return torch.stack([clean, guess, sigma], 1)


def _audit_landing(report: Report, level: Tensor, jumps, found: Tensor) -> None:
    """With eta 0: where the jumps lead."""
    start, end = jumps
    high, low = level[start], level[end]
    right = _ddim_formula(high, low, 0.0)
    if len(start) > 1:
        at = [f"{t} to {s}" for t, s in zip(start, end) for _ in range(2)]
        suspects = _other_levels(level, jumps, found)
        inner = {name: value[:-1, :2] for name, value in suspects.items()}
        pair = right[:-1, :2], found[:-1, :2]
        report.compare("eta 0, weights, s > 0", *pair, inner, at, SLACK)
    # With the true noise, 1, of a clean point the last jump lands on the point.
    x = high[-1].sqrt() * POINT + (1 - high[-1]).sqrt()
    stays = {
        f"goes to level {k}, not to 0": level[k].sqrt() * POINT + (1 - level[k]).sqrt()
        for k in range(1, int(start[-1]) + 1)
    }
    stays["takes alpha_bar_T, the last entry, for alpha_bar_0"] = (
        level[-1].sqrt() * POINT + (1 - level[-1]).sqrt()
    )
    landed = found[-1, 0] * x + found[-1, 1]
    check = f"last jump, onto {POINT}"
    report.compare(check, POINT, landed, stays, slack=SLACK)
    report.compare("eta 0, fresh noise", 0.0, found[:, 2].abs().max(), slack=SLACK)
    clean = ((8 + (1 - high).sqrt()) / high.sqrt()).clamp(-1, 1)
    again = (8 - high.sqrt() * clean) / (1 - high).sqrt()
    suspects = {
        CLIPS: low.sqrt() * clean - (1 - low).sqrt(),
        f"{CLIPS}, and makes the noise fit": low.sqrt() * clean
        + (1 - low).sqrt() * again,
    }
    straight = 8 * found[:, 0] - found[:, 1]
    at = [f"{t} to {s}" for t, s in zip(start, end)]
    report.compare("linear, large x", straight, found[:, 3], suspects, at, SLACK)


def _other_levels(level: Tensor, jumps, found: Tensor) -> dict[str, Tensor]:
    """What jumps between other levels than those of the table would give."""
    start, end = jumps
    suspects = {}
    for shift, name in [(-1, EARLIER), (1, LATER)]:
        moved = [(each + shift).clamp(0, len(level) - 1) for each in jumps]
        suspects[name] = _ddim_formula(*(level[each] for each in moved), 0.0)
    # The weight of x tells the level that a jump has reached.
    reached = found[:, :1] ** 2 * level[start][:, None]
    reached = (reached - level).abs().nan_to_num().argmin(1)
    wrong = (reached != end).nonzero()
    if len(wrong):
        first = int(wrong[0])
        name = f"goes to level {reached[first]}, the table says {end[first]}"
        suspects[name] = _ddim_formula(level[start], level[reached], 0.0)
    return suspects


def _audit_eta(report: Report, level: Tensor, jumps, found: Tensor, eta: float) -> None:
    start, end = jumps
    high, low = level[start][:-1], level[end][:-1]
    whole = (1 - low) / (1 - high) * (1 - high / low)  # the variance with eta 1
    if len(whole):
        right = _ddim_formula(high, low, eta)
        at = [f"{t} to {s}" for t, s in zip(*jumps)]
        fresh = {
            "eta stands on the variance, not squared": (eta * whole).sqrt(),
            "eta is squared on the standard deviation": eta**2 * whole.sqrt(),
            "the variance is beta of the jump": eta * (1 - high / low).sqrt(),
            VARIANCE_TAKEN: eta**2 * whole,
            SD_TAKEN: (eta**2 * whole) ** 0.25,
            "eta has no effect": torch.zeros(len(whole)),
        }
        pair = right[:, 2], found[:-1, 2].abs()
        report.compare(f"eta {eta:g}, SD of noise", *pair, fresh, at, SLACK)
        root = math.sqrt(eta)
        guess = {
            "sigma^2 is not taken off": _ddim_formula(high, low, 0.0)[:, 1],
            "eta stands on the variance, not squared": _ddim_formula(high, low, root)[
                :, 1
            ],
        }
        pair = right[:, 1], found[:-1, 1]
        report.compare(f"eta {eta:g}, weight of guess", *pair, guess, at, SLACK)
    check = f"eta {eta:g}, noise, last jump"
    report.compare(check, 0.0, found[-1, 2].abs(), slack=SLACK)
