"""Audits of distances between laws and of scores for what a model made."""

import math
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import torch
from torch import Tensor

from genaudit import metrics
from genaudit.audit._report import Report, Unusable, probe
from genaudit.divergence import gan_value, jsd_finite, kl_finite, optimal_discriminator


def _exact(values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


_LAWS = _exact([0.2, 0.3, 0.5]), _exact([0.6, 0.3, 0.1])


def _score(
    report: Report,
    check: str,
    right,
    function: Callable,
    arguments: tuple,
    suspects: Mapping | None = None,
) -> None:
    """One row for one number that a function returns."""
    with report.trying(check):
        report.compare(check, right, probe(function, *arguments, shape=()), suspects)


def discriminator_value(value: Callable) -> Report:
    """Audit the value of the game: sum p log D + sum q log(1 - D), in nats.

    Goodfellow and others, 2014, equation 1. It is -log 4 for D = 1/2, and -log 4 + 2
    JSD(p, q) for the best D, p / (p + q), by their theorem 1. Where a mass is 0 its
    logarithm counts nothing.

    Args:
        value: ``value(p, q, discriminator)`` with tensors (K,): the data's masses, the
            generator's, and D in [0, 1]. Returns one number.

    >>> loss = lambda p, q, d: -(p * d.log() + q * (1 - d).log()).sum()
    >>> print(discriminator_value(loss).rows[0].verdict)
    differs: the sign is wrong, as in a loss
    """
    report = Report("Value of the game")
    a, b, sure = *_LAWS, _exact([1.0, 0.0])
    for check, p, q, d in [
        ("any D", a, b, _exact([0.7, 0.4, 0.2])),
        ("D = 1/2: -log 4", a, b, _exact([0.5, 0.5, 0.5])),
        ("best D: -log 4 + 2 JSD", a, b, optimal_discriminator(a, b)),
        ("zero masses, D of 0 and 1", sure, 1 - sure, sure),
    ]:
        right = gan_value(p, q, d)
        suspects = {
            "the sign is wrong, as in a loss": -right,
            "half of it, a mean over both sums": right / 2,
            "minus half of it, a mean cross-entropy": -right / 2,
            "in bits": right / math.log(2),
            "data and generator are exchanged": gan_value(q, p, d),
            "log D for the generator, not log(1 - D)": torch.xlogy(p + q, d).sum(),
        }
        _score(report, check, right, value, (p, q, d), suspects)
    return report


def jensen_shannon(divergence: Callable) -> Report:
    """Audit the Jensen-Shannon divergence, in nats, from 0 to log 2.

    (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2: Lin, 1991. An outcome without
    mass counts nothing. Its square root is a distance, and has another name.

    Args:
        divergence: ``divergence(p, q)`` with tensors (K,) of masses; returns one
            number.

    >>> from scipy.spatial.distance import jensenshannon
    >>> print(jensen_shannon(jensenshannon).rows[0].verdict)
    differs: the distance, which is the square root
    """
    report = Report("Jensen-Shannon divergence")
    a, b = _LAWS
    for check, p, q in [
        ("all masses above 0", a, b),
        ("p and q exchanged", b, a),
        ("a zero mass", _exact([0.3, 0.3, 0.4]), _exact([0.5, 0.5, 0.0])),
        ("equal laws", a, a),
        ("no outcome in common", _exact([1.0, 0.0]), _exact([0.0, 1.0])),
    ]:
        right, bit = jsd_finite(p, q), math.log(2)
        suspects = {
            "the distance, which is the square root": right.sqrt(),
            "in bits": right / bit,
            "the distance, which is the square root, in bits": (right / bit).sqrt(),
            "the half is missing": 2 * right,
            "half the sum of both KL, without the mixture": (
                kl_finite(p, q) + kl_finite(q, p)
            )
            / 2,
            "one KL to the mixture": kl_finite(p, (p + q) / 2),
        }
        _score(report, check, right, divergence, (p, q), suspects)
    return report


def wasserstein(distance: Callable) -> Report:
    """Audit the Wasserstein-1 distance of two histograms over the places 0, 1, ...

    Mass times way, the sum of ``abs(P - Q)`` over the cumulative masses P and Q.

    Args:
        distance: ``distance(p, q)`` with tensors (K,) of masses; returns one number.

    >>> from scipy.stats import wasserstein_distance
    >>> print(wasserstein(wasserstein_distance).rows[0].verdict)
    differs: reads the masses as places of samples
    """
    report = Report("Wasserstein-1 of two histograms")
    for check, p, q in [
        ("two places", _exact([0.2, 0.8]), _exact([0.8, 0.2])),
        ("three places", _exact([0.2, 0.3, 0.5]), _exact([0.7, 0.0, 0.3])),
        ("equal laws", _exact([0.2, 0.8]), _exact([0.2, 0.8])),
    ]:
        right = (p - q).cumsum(0).abs().sum()
        suspects = {
            "reads the masses as places of samples": (p.sort().values - q.sort().values)
            .abs()
            .mean(),
            "total variation, blind to how far": (p - q).abs().sum() / 2,
            "twice the total variation": (p - q).abs().sum(),
            "divided by the number of places": right / len(p),
        }
        _score(report, check, right, distance, (p, q), suspects)
    return report


def pass_at_k(estimator: Callable) -> Report:
    """Audit the estimate of pass@k from c passes in n attempts.

    1 - C(n - c, k) / C(n, k): Chen and others, 2021, equation 1. Its mean over c is
    1 - (1 - p)^k for every p; for k > n nothing has this mean, so that it should be
    refused, by an error or by NaN.

    Args:
        estimator: ``estimator(n, c, k)`` with ints; returns one number.

    >>> report = pass_at_k(lambda n, c, k: 1 - (1 - c / n) ** k)
    >>> print(report.rows[0].verdict)
    differs: 1 - (1 - c/n)^k, drawn with replacement
    """
    report = Report("pass@k")

    def exact(n: int, c: int, k: int) -> float:
        return 1 - math.comb(n - c, k) / math.comb(n, k)

    for check, case in [
        ("n 4, c 1, k 4", (4, 1, 4)),
        ("n 10, c 3, k 2", (10, 3, 2)),
        ("c = 0", (5, 0, 3)),
        ("n - c < k", (5, 4, 3)),
        ("n 10000, c 100, k 100", (10_000, 100, 100)),
    ]:
        n, c, k = case
        suspects = {
            "1 - (1 - c/n)^k, drawn with replacement": 1 - (1 - c / n) ** k,
            "c/n, as for k = 1": c / n,
            "the complement, no attempt passes": 1 - exact(*case),
        }
        _score(report, check, exact(*case), estimator, case, suspects)
    with report.trying("mean over c, p = 0.3"):
        n, k, p = 5, 3, 0.3
        mean = sum(
            math.comb(n, c) * p**c * (1 - p) ** (n - c) * _double(estimator, n, c, k)
            for c in range(n + 1)
        )
        report.compare("mean over c, p = 0.3", 1 - (1 - p) ** k, mean)
    _refuses(report, "k > n", estimator, (3, 1, 4))
    return report


def _double(function: Callable, *arguments) -> float:
    return probe(function, *arguments, shape=()).item()


def _refuses(report: Report, check: str, function: Callable, arguments: tuple) -> None:
    try:
        got = _double(function, *arguments)
    except Unusable as unusable:
        error = str(unusable)
        if error.startswith("raised"):
            report.add(check, "refused", "refused", f"agrees: {error}")
        else:
            report.add(check, "refused", "-", error)
    else:
        if math.isnan(got):
            report.add(check, "refused", "nan", "agrees: NaN")
        else:
            report.add(check, "refused", got, "differs: a number that means nothing")


def perplexity(function: Callable) -> Report:
    """Audit a perplexity: exp(-mean log p) over the tokens that count.

    The tokens of all texts are pooled, as in Jelinek and others, 1977, and padding
    counts nothing.

    Args:
        function: ``function(log_probabilities, mask)`` with log p of each token in
            nats, (B, L), and a boolean mask (B, L), true where a token counts; returns
            one number. Padding may hold anything, NaN too.

    >>> report = perplexity(lambda logs, mask: (-logs.mean()).exp())
    >>> print(report.rows[1].verdict)
    differs: the padding counts
    """
    report = Report("Perplexity")
    logs = _exact([[0.5, 0.1, 0.4, 0.02], [0.25, 0.9, 0.3, 0.3]]).log()
    every = torch.ones(2, 4, dtype=torch.bool)
    mask = every.clone()
    mask[1, 2:] = False
    nowhere = torch.where(mask, logs, math.nan)
    certain = torch.where(mask, logs, 0.0)
    small, zero = logs.clone(), logs.clone()
    small[0, 0], zero[0, 0] = -800.0, -math.inf
    for check, values, counts in [
        ("one text", logs[:1], every[:1]),
        ("two texts with padding", logs, mask),
        ("padding has log p 0", certain, mask),
        ("padding is NaN", nowhere, mask),
        ("a token of log p -800", small, every),
        ("a token of probability 0", zero, every),
    ]:
        right = (-values[counts].mean()).exp()
        suspects = _perplexities(values, counts)
        _score(report, check, right, function, (values, counts), suspects)
    return report


def _perplexities(logs: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """What other averages give."""
    kept, mean = logs[mask], logs[mask].mean()
    each = torch.stack([row[here].mean() for row, here in zip(logs, mask)])
    return {
        "a probability underflows to 0": _exact(math.inf),
        "the padding counts": (-logs.mean()).exp(),
        "each text is averaged first": (-each.mean()).exp(),
        "a mean of the texts' perplexities": (-each).exp().mean(),
        "padding is 0, and its places are divided by": (
            -kept.sum() / logs.numel()
        ).exp(),
        "its logarithm, nats for each token": -mean,
        "its logarithm, bits for each token": -mean / math.log(2),
        "2 to the power of nats": 2**-mean,
        "e to the power of bits": (-mean / math.log(2)).exp(),
        "one over the mean probability": 1 / kept.exp().mean(),
        "the sum of the logs, not their mean": (-kept.sum()).exp(),
    }


def bits_per_dimension(bits: Callable) -> Report:
    """Audit bits for each coordinate of 8-bit data that are scaled to [0, 1].

    -log2(density) / dimensions - log2(bin width), with bin width 1/256: Theis and
    others, 2016. For data in [-1, 1] the last term is 7, not 8.

    Args:
        bits: ``bits(log_density, dimensions)`` with a log density in nats of data in
            [0, 1], a float, and an int; returns one number.

    >>> report = bits_per_dimension(lambda logs, d: -logs / d / math.log(2) + 7)
    >>> print(report.rows[0].verdict)
    differs: the constant 7 of data in [-1, 1]
    """
    report = Report("Bits per dimension, data in [0, 1]")
    for check, logs, size in [
        ("uniform density", 0.0, 1),
        ("log density 6, 4 numbers", 6.0, 4),
    ]:
        right = metrics.bits_per_dimension(logs, size, 1 / 256)
        suspects = {
            "the constant 7 of data in [-1, 1]": right - 1,
            "the bin width is left out": right - 8,
            "in nats": right * math.log(2),
            "not divided by the dimensions": (right - 8) * size + 8,
            "the sign of the density is wrong": 16 - right,
        }
        _score(report, check, right, bits, (logs, size), suspects)
    return report


def coverage(function: Callable) -> Report:
    """Audit coverage: the share of real points whose ball holds a generated one.

    The ball of a real point reaches to its k-th nearest other real point, border
    included: Naeem and others, 2020. Their own code leaves the border out, which shows
    only where points coincide.

    Args:
        function: ``function(real, generated, neighbours)`` with tensors (N, D) and
            (M, D), and k an int; returns one number.

    >>> from genaudit import metrics
    >>> coverage(metrics.coverage).passed
    True
    """
    report = Report("Coverage")
    twice = _exact([[0.0], [1.0], [3.0]]).repeat(2, 1)
    line, some = _exact([[0.0], [1.0], [3.0], [7.0]]), _exact([[0.9], [20.0], [30.0]])
    for check, real, made, k in [
        ("each point twice, itself", twice, twice, 1),
        ("four points, k = 1", line, some, 1),
        ("four points, k = 2", line, some, 2),
    ]:
        right = metrics.coverage(real, made, k)
        near = (torch.cdist(real, real).sort().values, torch.cdist(real, made))
        radius, other = near[0][:, k, None], near[0][:, k - 1, None]
        inside = (radius > near[1]).any(1).double().mean()
        own = (other >= near[1]).any(1).double().mean()
        suspects = {
            "the border of a ball is left out": inside,
            "a point is its own first neighbour": own,
            "the roles are exchanged: precision": metrics.precision(real, made, k),
        }
        _score(report, check, right, function, (real, made, k), suspects)
    return report


def masked_loss(loss: Callable) -> Report:
    """Audit the loss of a masked diffusion model: the masked places' sum over t, nats.

    For t uniform on (0, 1), and masks that hide each place with probability t, its mean
    bounds -log p, so that it cannot be below the entropy: Sahoo and others, 2024.

    Args:
        loss: ``loss(costs, mask, t)`` with the cross-entropy of each place, (L,), in
            nats, a boolean mask (L,), true where hidden, and a float t; returns one
            number for the text.

    >>> report = masked_loss(lambda costs, mask, t: costs[mask].sum())
    >>> print(report.rows[0].verdict)
    differs: the weight 1/t is missing
    """
    report = Report("Loss over masked places")
    costs, mask, t = _exact([0.2, 1.1, 0.7]), torch.tensor([True, False, True]), 0.25
    total = costs[mask].sum()
    suspects = {
        "the weight 1/t is missing": total,
        "a mean over the masked places": total / 2,
        "a mean over the masked places, over t": total / 2 / t,
        "a mean over all places": total / 3,
        "a mean over all places, over t": total / 3 / t,
        "the visible places count": costs.sum() / t,
        "the visible places count, without 1/t": costs.sum(),
        "times t, not over t": total * t,
    }
    _score(report, "one mask, t = 0.25", total / t, loss, (costs, mask, t), suspects)
    check = "mean, laws 00 and 11: ln 2"
    with report.trying(check):
        # One visible token tells the other: only two masks cost anything. A Gauss rule
        # is exact for the polynomials in t that the right loss has.
        nodes, weights = np.polynomial.legendre.leggauss(8)
        mean = 0.0
        for t, weight in zip((1 + nodes) / 2, weights / 2):
            for hidden in product([False, True], repeat=2):
                mask, count = torch.tensor(hidden), sum(hidden)
                costs = torch.full((2,), math.log(2)).double() * (count == 2)
                chance = t**count * (1 - t) ** (2 - count)
                mean += weight * chance * _double(loss, costs, mask, float(t))
        suspects = {"below the entropy, which no bound can be": 2 / 3 * math.log(2)}
        report.compare(check, math.log(2), mean, suspects)
    return report
