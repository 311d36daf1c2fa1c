"""Audits of a whole sampling loop, and of guidance."""

from collections.abc import Callable

import torch
from torch import Tensor

from genaudit.audit._forward import POINT, SLACK, levels, normal
from genaudit.audit._report import Report, Unusable, as_tensor, close, named, probe


def sampler(sample: Callable, alpha_bar) -> Report:
    """Audit a whole sampling loop, DDPM or DDIM, by the data law that hides nothing.

    All data are one point, 0.7, for which the exact guess of the noise is known: (x -
    sqrt(alpha_bar_t) 0.7) / sqrt(1 - alpha_bar_t). A loop whose last step adds no noise
    lands on the point: Ho and others, 2020, algorithm 2.

    Args:
        sample: ``sample(network, x)`` runs all steps from x, shape (64, 1), and returns
            the samples. It calls ``network(x, t)``, with t in 1..T an int or a tensor
            of equal ints, for the guess. Torch's global generator is seeded.
        alpha_bar: shape (T,), entry 0 is alpha_bar_1: the levels that were trained.

    >>> from genaudit.sampler import ddim_sample
    >>> from genaudit.schedule import linear_schedule; s = linear_schedule()
    >>> loop = lambda network, x: ddim_sample(network, s, x, s.visits(10))
    >>> sampler(loop, s.alpha_bar(s.timesteps)).passed
    True
    """
    level, report = levels(alpha_bar), Report("Sampling loop")
    calls = []

    def network(x, t):
        x, t = as_tensor(x), as_tensor(t).flatten()
        if not ((t == t[0]) & (t == t.long()) & (t >= 1) & (t < len(level))).all():
            told = t[0].item()
            raise Unusable(f"differs: network told t = {told:g}, not in 1..T")
        now = level[int(t[0])].to(x.dtype)
        guess = (x - now.sqrt() * POINT) / (1 - now).sqrt()
        calls.append((int(t[0]), x.double(), guess.double()))
        return guess

    with report.trying("samples"), torch.random.fork_rng(devices=[]):
        torch.manual_seed(6050)
        got = probe(sample, network, normal((64, 1), 3), shape=(64, 1)).double()
        if not calls:
            raise Unusable("differs: the network was never asked")
        told, last = torch.tensor([t for t, *_ in calls]), len(level) - 1
        verdict = "agrees"
        if told[0] != last:
            verdict = f"differs: pure noise is taken for level {told[0]}"
        report.add("first t of the network", last, told[0], verdict)
        falls = bool((told.diff() <= 0).all())
        verdict = "agrees" if falls else "differs"
        report.add("order of its t", "falls", "falls" if falls else "rises", verdict)
        _audit_calls(report, level, calls)
        spread = (got - POINT).square().mean().sqrt()
        name = _what_stays(level, *calls[-1], got)
        suspects = {name: spread} if name else {}
        report.compare("distance from the point", 0.0, spread, suspects, slack=SLACK)
    return report


def _audit_calls(report: Report, level: Tensor, calls: list) -> None:
    """Without draws the noise in x stays what it is, if t is the level of x.

    At another level each guess is a number times the one before, plus another number;
    if it is not, then noise was drawn.
    """
    check, guesses = "noise in x, call to call", torch.stack([g for *_, g in calls])
    before, after = guesses[:-1, :, 0], guesses[1:, :, 0]
    apart = [each - each.mean(1, keepdim=True) for each in (before, after)]
    ratio = (apart[0] * apart[1]).sum(1) / apart[0].square().sum(1)
    if not close(ratio[:, None] * apart[0], apart[1], 10 * SLACK).all():
        report.add(check, "-", "-", "not checked: the loop draws noise")
        return
    if len(ratio) == 0:
        report.add(check, "-", "-", "not checked: one call alone")
        return
    ones, suspects = torch.ones(len(ratio), dtype=torch.float64), {}
    wrong = (~close(ratio, ones, SLACK)).nonzero()
    if len(wrong):
        place = int(wrong[0])
        guess, (_, x, _) = calls[place][2], calls[place + 1]
        paths = level[:, None, None].sqrt() * POINT
        paths = paths + (1 - level)[:, None, None].sqrt() * guess
        reached = int((paths - x).square().sum((1, 2)).argmin())
        suspects[f"there x is at level {reached}"] = ratio
    at = [f"t = {t}" for t, *_ in calls[1:]]
    report.compare(check, ones, ratio, suspects, at, SLACK)


def _what_stays(
    level: Tensor, t: int, x: Tensor, guess: Tensor, got: Tensor
) -> str | None:
    """Words for what the loop did after the network's last answer."""
    faults = {}
    near = range(max(t - 2, 1), min(t + 3, len(level)))
    for k in sorted(near, key=lambda k: abs(k - t)):
        clean = (x - (1 - level[k]).sqrt() * guess) / level[k].sqrt()
        for s in range(min(k, 2) + 1):
            name = f"the last jump goes to level {s}, not to 0"
            if k != t:
                name = f"network told t = {t}, then a step from {k} to {s}"
            faults[name] = level[s].sqrt() * clean + (1 - level[s]).sqrt() * guess
    spread = (got - POINT).square().mean().sqrt()
    if name := named(got, faults, SLACK):
        return name
    if 0.7 < spread / (1 - level[t]).sqrt() < 1.4:
        return "looks like fresh noise at the last step"
    return "most of the noise is still there" if spread > 0.5 else None


def guidance(combine: Callable) -> Report:
    """Audit classifier-free guidance, and say which of two conventions it has.

    Ho and Salimans, 2022, equation 6, write (1 + w) conditional - w unconditional, so
    that w = 0 is no guidance. Others write unconditional + scale (conditional -
    unconditional), so that scale 1 is none: scale = 1 + w. Both agree here.

    Args:
        combine: ``combine(unconditional, conditional, scale)`` with two guesses of one
            shape (B, D) and a float; returns the guided guess.

    >>> report = guidance(lambda u, c, s: u + s * (c - u))
    >>> print(report.rows[0].verdict)
    agrees: scale 1 is the conditional guess
    """
    report, shape, scales = Report("Guidance"), (3, 2), (0.0, 1.0, 2.0, 3.5)
    u, c = normal(shape, 4), normal(shape, 5)

    def each(formula: Callable) -> Tensor:
        return torch.stack([formula(scale) for scale in scales])

    def guided(u: Tensor, c: Tensor) -> Tensor:
        return each(lambda s: probe(combine, u, c, s, shape=u.shape).double())

    with report.trying("guesses"):
        found, at = guided(u, c), [f"scale {s:g}" for s in scales for _ in range(6)]
        # Which scale leaves the conditional guess as it is?
        extra = int(close(found[0], c).all() and not close(found[1], c).all())
        note = "extra weight 0" if extra else "scale 1"
        note += " is the conditional guess"
        sign = "the sign of the unconditional guess is wrong"
        swap = "the two guesses are exchanged"
        report.compare("no guidance", c, found[1 - extra], {swap: u}, note=note)
        faults = {sign: each(lambda s: (2 * (s + extra) - 1) * c)}
        report.compare(
            "equal guesses stay", each(lambda s: c), guided(c, c), faults, at
        )
        faults = {
            sign: each(lambda s: (s + extra) * c + (s + extra - 1) * u),
            swap: each(lambda s: c + s * (u - c)),
        }
        right = each(lambda s: u + (s + extra) * (c - u))
        report.compare("straight line in scale", right, found, faults, at)
        doubled = guided(2 * u, 2 * c)
        report.compare("guesses twice as large", 2 * found, doubled, at=at)
        one = torch.ones(1, 1, dtype=torch.float64)
        faults = {sign: 5.0 + 3 * extra, swap: 0.0}
        got = guided(one, 2 * one)[2]
        report.compare("guesses 1, 2; scale 2", 3.0 + extra, got, faults)
    return report
