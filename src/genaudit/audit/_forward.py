"""Audits of a noise schedule's arrays and of the jump to a noise level."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from genaudit import _check
from genaudit.audit._report import Report, Unusable, as_tensor, probe, shown

# A table in float32 loses about this much where 1 - alpha_bar is small.
SLACK = 1e-3
EARLIER, LATER = "belongs to t - 1", "belongs to t + 1"
SD_TAKEN = "looks like the standard deviation where the variance belongs"
VARIANCE_TAKEN = "looks like the variance where the standard deviation belongs"
POINT = 0.7  # a clean point that clipping to [-1, 1] leaves alone
ONE = torch.ones(1, dtype=torch.float64)
OPEN = math.nan * ONE  # what a known fault leaves open


def noise_schedule(beta=None, alpha_bar=None) -> Report:
    """Audit the arrays of a noise schedule; give one, or better both.

    alpha_bar_t = (1 - beta_1) ... (1 - beta_t): Ho and others, 2020, equation 4.

    Args:
        beta: shape (T,), the variance that each step adds; entry 0 is step 1.
        alpha_bar: shape (T,), the share of the data's variance that is left; entry 0
            is alpha_bar_1, not the 1 of the clean data.

    >>> beta = torch.linspace(1e-4, 0.02, 1000)
    >>> noise_schedule(beta, torch.cumprod(1 - beta, 0)).passed
    True
    """
    if beta is None and alpha_bar is None:
        raise ValueError("beta = None, alpha_bar = None: at least one must be given")
    report = Report("Noise schedule")
    with report.trying("arrays"):
        if beta is not None:
            beta = _array("beta", beta)
            _audit_beta(report, beta)
        level = None
        if alpha_bar is not None:
            level = _audit_levels(report, _array("alpha_bar", alpha_bar))
        _audit_product(report, beta, level)
        if beta is None:
            beta = 1 - level / torch.cat([ONE, level[:-1]])
        elif level is None:
            level = torch.cumprod(1 - beta, 0)
        _audit_ends(report, beta, level)
        _audit_float32(report, beta)
    return report


def _array(name: str, value) -> Tensor:
    tensor = as_tensor(value).double()
    if tensor.ndim != 1:
        raise Unusable(f"differs: {name} has shape {tuple(tensor.shape)}, not (T,)")
    if not tensor.isfinite().all():
        raise Unusable(f"differs: {name} holds {shown(tensor[~tensor.isfinite()][0])}")
    return tensor


def _span(values: Tensor) -> str:
    return f"{values.min():.3g} to {values.max():.6g}"  # the largest is near 1


def _audit_beta(report: Report, beta: Tensor) -> None:
    inside = ((beta > 0) & (beta < 1)).all()
    verdict = "agrees" if inside else "differs"
    report.add("beta, range", "in (0, 1)", _span(beta), verdict)
    falls = beta.diff() < 0
    if not falls.any():
        report.add("beta, order", "never falls", "never falls", "agrees")
    elif falls.all():
        report.add("beta, order", "never falls", "falls", "differs: looks reversed")
    else:
        note = "agrees: falls in places, which no equation forbids"
        report.add("beta, order", "never falls", "up and down", note)


def _audit_levels(report: Report, level: Tensor) -> Tensor:
    """Add rows; return the levels from step 1 on."""
    if level[0] == 1:
        verdict = "differs: entry 0 is the clean level, so entry t is step t"
        report.add("alpha_bar, entry 0", "step 1", "step 0", verdict)
        level = level[1:]
    if len(level) == 0:
        raise Unusable("differs: alpha_bar holds no step")
    # An end at 0 has a row of its own.
    inside = ((level >= 0) & (level < 1)).all()
    verdict = "agrees" if inside else "differs"
    report.add("alpha_bar, range", "in (0, 1)", _span(level), verdict)
    falls = bool((level.diff() < 0).all())
    got, verdict = ("falls", "agrees") if falls else ("does not", "differs")
    report.add("alpha_bar, order", "falls", got, verdict)
    return level


def _audit_product(report: Report, beta: Tensor | None, level: Tensor | None) -> None:
    check = "alpha_bar is the product"
    if beta is None or level is None:
        report.add(check, "-", "-", "not checked: needs both arrays")
        return
    if len(beta) not in (len(level), len(level) + 1):
        verdict = f"differs: {len(beta)} betas, {len(level)} steps of alpha_bar"
        report.add(check, shown(len(beta)), shown(len(level)), verdict)
        return
    beta = beta[: len(level)]
    alpha, t = 1 - beta, torch.arange(1, len(level) + 1)
    product = alpha.cumprod(0)
    suspects = {
        EARLIER: torch.cat([ONE, product[:-1]]),
        LATER: torch.cat([product[1:], OPEN]),
        "looks like one beta too many": product * alpha[0],
        "looks like the alphas, not their product": alpha,
        "looks like alpha_t to the power t": alpha**t,
        "looks like alpha_t to the power t + 1": alpha ** (t + 1),
        "looks like its square root": product.sqrt(),
        "looks like 1 - alpha_bar": 1 - product,
        "looks like 1 - the sum of the betas": 1 - beta.cumsum(0),
    }
    at = [f"t = {step}" for step in t]
    # Products suffer less than differences do, and one beta too many may be 1e-4.
    report.compare(check, product, level, suspects, at, 5e-5)
    report.compare("alpha_bar_1 is 1 - beta_1", alpha[0], level[0])


def _audit_ends(report: Report, beta: Tensor, level: Tensor) -> None:
    """What the last level leaves of the data, and that the first step is exact."""
    last = max(float(level[-1]), 0.0)
    left = f"x_T holds {100 * math.sqrt(last):.2g} % of x_0"
    verdict = f"agrees: {left}" if last < 0.01 else f"differs: {left}, no pure noise"
    report.add("alpha_bar_T", "< 0.01", last, verdict)
    # The clean guess divides by the root of alpha_bar, rounding errors too.
    error = 2**-24 / math.sqrt(last) if last else math.inf
    verdict = "agrees"
    if error > 0.01:
        verdict = "differs: a guess of the noise cannot give x_0 here, a velocity can"
    check = "float32 error of x_0 at T"
    report.add(check, "< 0.01", f"{error:.1g}", verdict)
    share = beta[0] / (1 - level[0])  # NaN if step 1 adds nothing
    report.compare("weight of x_0 at t = 1", 1.0, share, slack=SLACK)


def _audit_float32(report: Report, beta: Tensor) -> None:
    """How far rounding takes a table of the same betas that is built in float32."""
    exact = torch.log1p(-beta).cumsum(0).exp()
    table = torch.cumprod(1 - beta.float(), 0).double()
    drift = ((table - exact) / exact).abs()[exact > 0]
    if len(drift):
        # A power of ten, since the digits of rounding are no result.
        bound = 10.0 ** math.ceil(math.log10(drift.max().clamp(min=1e-9).item()))
        verdict = "agrees" if bound <= SLACK else "differs: build the table in float64"
        right = f"< {SLACK:g}"
        report.add("product in float32, drift", right, f"< {bound:g}", verdict)


def forward_jump(jump: Callable, alpha_bar) -> Report:
    """Audit a jump from clean data to noise level t.

    x_t = sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise: Ho and others, 2020,
    equation 4.

    Args:
        jump: ``jump(x0, t, noise)`` with x0 and noise of one shape, (B, D) or
            (B, C, H, W), and integers t in 1..T of shape (B,); returns x_t.
        alpha_bar: shape (T,), entry 0 is alpha_bar_1.

    >>> from genaudit import process, schedule
    >>> s = schedule.linear_schedule()
    >>> jump = lambda x, t, e: process.forward_jump(s, x, t, e)
    >>> forward_jump(jump, s.alpha_bar(s.timesteps)).passed
    True
    """
    level, report = levels(alpha_bar), Report("Forward jump")
    steps = len(level) - 1
    signal, noise = level.sqrt(), (1 - level).sqrt()
    longer = level * level[1]
    many = "looks like one beta too many"
    _audit_weight(
        report,
        jump,
        "x_0",
        signal,
        {"the square root is missing": level, many: longer.sqrt()},
    )
    _audit_weight(
        report,
        jump,
        "the noise",
        noise,
        {VARIANCE_TAKEN: 1 - level, SD_TAKEN: noise.sqrt(), many: (1 - longer).sqrt()},
    )
    t = torch.linspace(min(2, steps), max(steps - 1, 1), 4).long()
    for layout, shape in [("(B, D)", (4, 4)), ("(B, C, H, W)", (4, 3, 2, 4))]:
        check = f"{layout}, last size B"
        with report.trying(check):
            x0, draw = normal(shape, 1), normal(shape, 2)
            axes = (4, *[1] * (len(shape) - 1))

            def jumped(t, axes=axes, x0=x0, draw=draw):
                return signal[t].reshape(axes) * x0 + noise[t].reshape(axes) * draw

            suspects = {
                "t runs along the last axis, a silent broadcast": jumped(t, (4,)),
                EARLIER: jumped(t - 1),
                LATER: jumped((t + 1).clamp(max=steps)),
            }
            got = probe(jump, x0, t, draw, shape=shape)
            report.compare(check, jumped(t), got, suspects, slack=SLACK)
    check = "keeps the dtype"
    with report.trying(check):
        ones = torch.ones(4, 4, dtype=torch.float32)
        got = str(probe(jump, ones, t, ones, shape=(4, 4)).dtype).split(".")[1]
        verdict = "agrees" if got == "float32" else f"differs: comes back as {got}"
        report.add(check, "float32", got, verdict)
    return report


def _audit_weight(
    report: Report, jump: Callable, what: str, table: Tensor, faults: dict[str, Tensor]
) -> None:
    """Compare a weight with its table, entry 0 of which is level 0."""
    steps, check = len(table) - 1, f"weight of {what}"
    # T apart: an index that is off by one may raise there, and the others name it.
    inner = max(steps - 1, 1)
    t, one = torch.arange(1, inner + 1), torch.ones(inner, 1, dtype=torch.float64)
    pair = (one, 0 * one) if what == "x_0" else (0 * one, one)
    with report.trying(check):
        got = probe(jump, pair[0], t, pair[1], shape=(inner, 1))[:, 0]
        suspects = shifted(table, t) | {name: v[t] for name, v in faults.items()}
        suspects["the two weights are exchanged"] = (1 - table[t] ** 2).sqrt()
        at = [f"t = {step}" for step in t]
        report.compare(check, table[t], got, suspects, at, SLACK)
    check += ", t = T"
    with report.trying(check):
        last = torch.tensor([steps])
        got = probe(jump, pair[0][:1], last, pair[1][:1], shape=(1, 1))
        suspects = {EARLIER: table[-2:-1]} if steps > 1 else {}
        report.compare(check, table[-1:], got[0], suspects, slack=SLACK)


def shifted(table: Tensor, t: Tensor) -> dict[str, Tensor]:
    """What an index off by one gives; open at the ends, where it may wrap."""
    after = torch.cat([table[1:], OPEN])
    before = torch.cat([OPEN, OPEN, table[1:-1]])
    return {EARLIER: before[t], LATER: after[t]}


def levels(alpha_bar) -> Tensor:
    """alpha_bar_0 = 1, alpha_bar_1, ..., alpha_bar_T in float64, checked."""
    level = _check.finite("alpha_bar", alpha_bar).double()
    if level.ndim != 1 or len(level) == 0:
        raise ValueError(f"alpha_bar has shape {tuple(level.shape)}: it must be (T,)")
    level = torch.cat([ONE, level])
    if not (level.diff() < 0).all() or level[-1] < 0:
        raise ValueError(
            f"alpha_bar = {_check.short(level[1:])}: it must fall from below 1 to 0 or "
            "more; see noise_schedule"
        )
    return level


def normal(shape: tuple[int, ...], seed: int) -> Tensor:
    """The same standard normal numbers every time."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)
