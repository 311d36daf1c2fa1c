"""Audits of the terms of a variational autoencoder's bound."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from genaudit import _check
from genaudit.audit._report import Report, close, named, probe, shown
from genaudit.divergence import kl_gaussian as exact_kl


def _exact(values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def kl_gaussian(kl: Callable) -> Report:
    """Audit KL(N(mean, variance) || N(0, 1)), and say what its second argument is.

    (mean^2 + variance - 1 - log variance) / 2 for each entry, in nats, summed over the
    entries of a code: Kingma and Welling, 2014, appendix B. One value for each entry is
    right too, and the examples of a batch may be summed or averaged.

    Args:
        kl: ``kl(mean, spread)`` with two tensors (B, D); spread is the variance, the
            standard deviation, or the logarithm of one. Returns one value, or shape
            (B,) or (B, D).

    >>> report = kl_gaussian(lambda m, v: (m**2 + v - 1 - v.log()).sum(1) / 2)
    >>> print(report.rows[0].verdict)
    agrees: the variance
    """
    report = Report("KL to the standard normal")
    with report.trying("value"):
        mean = _exact([[0.3, -1.2, 0.5], [2.0, 0.1, -0.4]])
        spread = _exact([[0.5, 1.7, 0.2], [1.3, 0.8, 2.5]])
        got = probe(kl, mean, spread).double()
        form = _kl_form(mean, spread, got)
        if form is None:
            right = exact_kl(mean, spread).sum()
            verdict = "differs: no known form, whatever the second argument"
            report.add("value", right, got.flatten()[0], verdict)
            return report
        argument, direction, entries, batch, unit = form
        report.add("second argument", "-", argument, f"agrees: the {argument}")
        verdict = "agrees" if direction == "to N(0, 1)" else "differs: from N(0, 1)"
        report.add("direction", "to N(0, 1)", direction, verdict)
        verdict = "agrees"
        if entries == "mean":
            verdict = "differs: a mean over the entries where their sum belongs"
        report.add("over the entries", "sum", entries, verdict)
        report.add("over the batch", "any", batch, "agrees")
        verdict = "agrees" if unit == "nats" else f"differs: {_UNITS[unit][1]}"
        report.add("unit", "nats", unit, verdict)
        factor = _UNITS[unit][0]
        for check, variance in [("at the prior", 1.0), ("variance 1e-8", 1e-8)]:
            one = _exact([[1.0]])
            second = _ARGUMENTS[argument][1](variance * one)
            right = factor * exact_kl(0.0, variance * one)
            if direction == "from N(0, 1)":
                right = factor * exact_kl(0.0, 1.0, 0 * one, variance * one)
            got = probe(kl, 0 * one, second, shape=(1, 1))
            report.compare(check, right, got)
    return report


# How each argument becomes the variance, and the variance the argument.
_ARGUMENTS = {
    "variance": (lambda s: s, lambda v: v),
    "SD": (torch.square, torch.sqrt),
    "log-variance": (torch.exp, torch.log),
    "log SD": (
        lambda s: (2 * s).exp(),
        lambda v: v.log() / 2,
    ),
}
_REDUCTIONS = {
    ("left open", "left open"): lambda kl: kl,
    ("sum", "left open"): lambda kl: kl.sum(1),
    ("sum", "mean"): lambda kl: kl.sum(1).mean(),
    ("sum", "sum"): lambda kl: kl.sum(),
    ("mean", "left open"): lambda kl: kl.mean(1),
    ("mean", "mean"): lambda kl: kl.mean(),
    ("mean", "sum"): lambda kl: kl.mean(1).sum(),
}
_UNITS = {
    "nats": (1.0, ""),
    "bits": (1 / math.log(2), "bits, which are nats / ln 2"),
    "twice": (2.0, "the factor 1/2 is missing"),
    "half": (0.5, "the factor 1/2 stands twice"),
    "negative": (-1.0, "the sign is wrong"),
}


def _kl_form(mean: Tensor, spread: Tensor, got: Tensor):
    """Words for argument, direction, entries, batch and unit, or None."""
    for unit, (factor, _) in _UNITS.items():
        for argument, (to_variance, _) in _ARGUMENTS.items():
            variance = to_variance(spread)
            for direction, value in [
                ("to N(0, 1)", exact_kl(mean, variance)),
                ("from N(0, 1)", exact_kl(0.0, 1.0, mean, variance)),
            ]:
                for (entries, batch), reduce in _REDUCTIONS.items():
                    expected = factor * reduce(value)
                    same = expected.numel() == got.numel()
                    if same and close(got.reshape(expected.shape), expected).all():
                        return argument, direction, entries, batch, unit
    return None


def reparameterization(draw: Callable) -> Report:
    """Audit a draw of a code: mean + exp(log_variance / 2) noise.

    Kingma and Welling, 2014, section 2.4.

    Args:
        draw: ``draw(mean, log_variance, noise)`` with tensors (B, D); returns the code.
            Code that draws by itself needs an adapter that puts ``noise`` in the place
            of its draw.

    >>> report = reparameterization(lambda m, v, e: m + v.exp() * e)
    >>> print(report.rows[1].verdict)
    differs: the log-variance is exponentiated without the half
    """
    report, shape = Report("Draw of a code"), (1, 3)
    with report.trying("draw"):
        zero, one = torch.zeros(shape).double(), torch.ones(shape).double()
        mean, log_variance = _exact([[0.3, -1.2, 2.0]]), _exact([[4.0, 0.1, 1.0]]).log()
        got = probe(draw, mean, log_variance, zero, shape=shape)
        report.compare("without noise, the mean", mean, got)
        suspects = {
            "the log-variance is exponentiated without the half": log_variance.exp(),
            "the log-variance is taken for the standard deviation": log_variance,
            "the half is taken twice": (log_variance / 4).exp(),
            "the sign of the log-variance is wrong": (-log_variance / 2).exp(),
        }
        right = (log_variance / 2).exp()
        got = probe(draw, zero, log_variance, one, shape=shape)
        report.compare("standard deviation", right, got, suspects)
        got = probe(draw, zero, log_variance, -2 * one, shape=shape)
        report.compare("noise -2", -2 * right, got)
    return report


def vae_loss(loss: Callable, pixels: int = 784, codes: int = 2) -> Report:
    """Audit the loss of a VAE, and say which beta it really trains.

    The negative ELBO is the error, summed over pixels, plus the KL, summed over code
    entries; a mean or a sum over the batch scales both: Kingma and Welling, 2014,
    equation 10. The error is the cross-entropy of a pixel, or a factor times its
    square. The factor is read as 1 / (2 noise variance), and any noise variance is a
    model; if yours is another, beta is off by the ratio, found to yours, besides.

    Args:
        loss: ``loss(x, reconstruction, mean, log_variance)`` with x and reconstruction
            (B, pixels), entries in (0, 1), mean and log_variance (B, codes); returns
            one number. It is called with several B, pixels and codes.
        pixels: how many a picture has where the loss is used.
        codes: how many entries a code has there.

    >>> kl = lambda m, v: (m**2 + v.exp() - 1 - v) / 2
    >>> report = vae_loss(lambda x, r, m, v: ((x - r) ** 2).mean() + kl(m, v).mean())
    >>> print(report.rows[-1].verdict)
    differs: the KL weighs 392 times its share
    """
    _check.whole("pixels", pixels, 1)
    _check.whole("codes", codes, 1)
    report = Report("Loss of a VAE")
    with report.trying("loss"):
        one, more = _terms(loss), _terms(loss, batch=2)
        wider, longer = _terms(loss, pixels=2), _terms(loss, codes=2)
        kind = _kind(_errors(), one["error"], one["error half way"])
        verdict = "agrees" if kind in _LIKELIHOODS else "differs: no likelihood we know"
        report.add("error of a pixel", "-", kind, verdict)
        form = _kind(_kls(), one["kl"], one["kl of another"])
        verdict = "agrees" if form == "to N(0, I)" else f"differs: {form}"
        report.add("KL of an entry", "to N(0, I)", form, verdict)
        both = one["still"] + one["error"] + one["kl"]
        report.compare("their sum, nothing else", both, one["all"])
        over = {
            "error over pixels": _reduction(wider["error"], one["error"]),
            "error over batch": _reduction(more["error"], one["error"]),
            "KL over entries": _reduction(longer["kl"], one["kl"]),
            "KL over batch": _reduction(more["kl"], one["kl"]),
        }
        _add_reductions(report, over)
        _add_beta(report, one, (kind, form), over, pixels, codes)
    return report


# The small batch of the audit.
_BATCH, _PIXELS, _CODES = 2, 6, 3
_PICTURES = 0.15 + 0.05 * torch.arange(12, dtype=torch.float64).reshape(2, 6)
_REBUILT = 0.8 - 0.06 * (torch.arange(12, dtype=torch.float64) % 7).reshape(2, 6)
_MEAN = _exact([[0.3, -1.2, 0.5], [2.0, 0.1, -0.4]])
_LOG_VARIANCE = _exact([[0.5, -1.7, 0.2], [-1.3, 0.8, 0.9]])
_LIKELIHOODS = ("squares", "cross-entropy")


def _terms(loss: Callable, batch: int = 1, pixels: int = 1, codes: int = 1) -> dict:
    """The terms of a loss, each by inputs for which the other stands still.

    The small batch is laid out several times, so that a sum grows and a mean does not.
    """
    x, rebuilt = (each.repeat(batch, pixels) for each in (_PICTURES, _REBUILT))
    mean, spread = (each.repeat(batch, codes) for each in (_MEAN, _LOG_VARIANCE))

    def value(*arguments) -> float:
        return probe(loss, *arguments).double().sum().item()

    prior = 0 * mean, 0 * mean
    still = value(x, x, *prior)
    return {
        "still": still,
        "error": value(x, rebuilt, *prior) - still,
        "error half way": value(x, (x + rebuilt) / 2, *prior) - still,
        "kl": value(x, x, mean, spread) - still,
        "kl of another": value(x, x, -mean / 2, spread / 3) - still,
        "all": value(x, rebuilt, mean, spread),
    }


def _errors() -> dict[str, tuple[float, float]]:
    """Of each kind of error, its sum for the small batch and half way to it."""

    def cross_entropy(x, r):
        return -torch.xlogy(x, r) - torch.xlogy(1 - x, 1 - r)

    x, ends = _PICTURES, (_REBUILT, (_PICTURES + _REBUILT) / 2)
    kinds = {
        "squares": lambda r: (x - r).square(),
        "cross-entropy": lambda r: cross_entropy(x, r) - cross_entropy(x, x),
        "distances": lambda r: (x - r).abs(),
    }
    return {n: tuple(kind(r).sum().item() for r in ends) for n, kind in kinds.items()}


def _kls() -> dict[str, tuple[float, float]]:
    """Of each reading of the log-variance, the KL of the small batch and of another."""
    laws = (_MEAN, _LOG_VARIANCE), (-_MEAN / 2, _LOG_VARIANCE / 3)
    kinds = {
        "to N(0, I)": lambda m, v: exact_kl(m, v.exp()),
        "log-variance taken for log SD": lambda m, v: exact_kl(m, (2 * v).exp()),
        "log-variance with a wrong sign": lambda m, v: exact_kl(m, (-v).exp()),
        "from N(0, I)": lambda m, v: exact_kl(0.0, 1.0, m, v.exp()),
    }
    return {n: tuple(kl(*law).sum().item() for law in laws) for n, kl in kinds.items()}


def _kind(kinds: dict, one: float, other: float) -> str:
    """Which kind has these two values, up to a factor."""
    ratios = {name: first / second for name, (first, second) in kinds.items()}
    return named(_exact(one) / _exact(other), ratios, 1e-4) or "unknown"


def _reduction(twice: float, once: float) -> str:
    """How the parts of a term are put together, which then stood there twice."""
    ratio = _exact(twice) / _exact(once)
    return named(ratio, {"sum": 2.0, "mean": 1.0}, 1e-4) or "unknown"


def _add_reductions(report: Report, over: dict[str, str]) -> None:
    for check, found in over.items():
        right = {
            "error over batch": "sum or mean",
            "KL over batch": over["error over batch"],
        }.get(check, "sum")
        verdict = "agrees"
        if found == "unknown":
            verdict = "differs: neither a sum nor a mean"
        elif found not in right:
            verdict = f"differs: {found} where the {right} belongs"
        report.add(check, right, found, verdict)


def _add_beta(
    report: Report,
    one: dict,
    kinds: tuple[str, str],
    over: dict,
    pixels: int,
    codes: int,
) -> None:
    """Say how much the KL weighs where the loss is used."""
    kind, form = kinds
    if "unknown" in (*kinds, *over.values()):
        report.add("beta", "1", "-", "not checked: a part is unknown")
        return

    def size(check: str, here: int) -> int:
        return here if over[check] == "mean" else 1

    # The factors on sums, then the same loss in the sizes where it is used.
    factor = one["error"] / _errors()[kind][0]
    factor *= size("error over pixels", _PIXELS) * size("error over batch", _BATCH)
    beta = one["kl"] / _kls()[form][0]
    beta *= size("KL over entries", _CODES) * size("KL over batch", _BATCH)
    beta *= size("error over pixels", pixels) / size("KL over entries", codes)
    if factor < 0:
        verdict = "differs: the sign is that of the bound, not of a loss"
        report.add("beta", "1", "-", verdict)
        return
    if kind == "squares":
        report.add("noise variance", "-", 1 / (2 * factor), "agrees: any is a model")
    else:
        beta /= factor
    batches = over["error over batch"], over["KL over batch"]
    if batches[0] != batches[1]:
        power = "B" if batches[0] == "mean" else "1/B"
        verdict = f"differs: the KL weighs {power} times its share, for B examples"
        beta = power
    elif close(_exact(beta), _exact(1.0), 1e-4):
        verdict = "agrees: the ELBO"
    else:
        verdict = f"differs: the KL weighs {shown(beta)} times its share"
    report.add("beta", "1", beta, verdict)


def multi_sample_bound(bound: Callable) -> Report:
    """Audit the bound from K draws: the log of the mean weight, in nats.

    log((w_1 + ... + w_K) / K) with w = p(x, z) / q(z | x): Burda and others, 2016,
    equation 8.

    Args:
        bound: ``bound(log_weights)`` with log w of shape (K,); returns one number.

    >>> report = multi_sample_bound(lambda logs: logs.mean())
    >>> print(report.rows[0].verdict)
    differs: the mean of the logs, which is the ELBO for any K
    """
    report = Report("Bound from several draws")
    for check, logs in [
        ("weights 1 and 3", _exact([1.0, 3.0]).log()),
        ("weights 1, 2 and 6", _exact([1.0, 2.0, 6.0]).log()),
        ("weights e^-2000", _exact([-2000.0, -2000.0 + math.log(3)])),
    ]:
        with report.trying(check):
            size = math.log(len(logs))
            suspects = {
                "the mean of the logs, which is the ELBO for any K": logs.mean(),
                "log K is forgotten": logs.logsumexp(0),
                "the largest weight alone": logs.max(),
                "the mean weight without its log": logs.exp().mean(),
                "the weights underflow": _exact(-math.inf),
            }
            got = probe(bound, logs, shape=())
            report.compare(check, logs.logsumexp(0) - size, got, suspects)
    return report
