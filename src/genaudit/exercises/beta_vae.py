"""Visible checks of the exercise on the beta-VAE's loss."""

import torch
from scipy.integrate import quad
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import mse_loss

from genaudit.exercises._say import visible, visible_words


@visible_words
def prediction(answer):
    """prediction(question) -> word."""
    for question in ("weight", "kl", "error", "batch"):
        yield (
            answer(question) in ("larger", "smaller", "same"),
            f'the answer to "{question}" is one of "larger", "smaller", "same".',
        )


@visible
def sum_loss(answer):
    """sum_loss(x, rebuilt, mean, variance, beta) -> number."""
    yield from _either(answer)
    x, rebuilt, mean, variance = _batch()
    wide = answer(_twice(x), _twice(rebuilt), mean, variance, 0.0)
    yield (
        _near(wide, 2 * answer(x, rebuilt, mean, variance, 0.0)),
        "twice as many pixels: a sum over pixels doubles.",
    )
    yield (
        _near(answer(x, x + 1, mean, variance, 0.0), x.shape[1]),
        "with beta 0, what does a picture cost that is off by one at every pixel?",
    )


@visible
def mean_loss(answer):
    """mean_loss(x, rebuilt, mean, variance, beta) -> number."""
    yield from _either(answer)
    x, rebuilt, mean, variance = _batch()
    wide = answer(_twice(x), _twice(rebuilt), mean, variance, 0.0)
    yield (
        _near(wide, answer(x, rebuilt, mean, variance, 0.0)),
        "every pixel shown twice: a mean over pixels does not notice.",
    )
    yield (
        _near(answer(x, x + 1, mean, variance, 0.0), 1),
        "with beta 0, what does a picture cost that is off by one at every pixel?",
    )


def _either(answer):
    """What holds for both losses."""
    x, rebuilt, mean, variance = _batch()
    batch = (x, rebuilt, mean, variance)
    loss = answer(*batch, 2.0)
    yield torch.as_tensor(loss).numel() == 1, "a loss is one number."
    yield (
        _near(answer(*(part.repeat(2, 1) for part in batch), 2.0), loss),
        "every picture twice in the batch: an average over pictures does not notice.",
    )
    priors = (torch.zeros_like(mean), torch.ones_like(variance))
    yield (
        abs(answer(x, x, *priors, 2.0)) < 1e-12,
        "perfect rebuilds, with every cloud at the prior, cost nothing.",
    )
    price = answer(x, x, mean, variance, 1.0)
    yield _near(answer(x, x, mean, variance, 3.0), 3 * price), "the KL counts beta."
    yield (
        _near(answer(x, x, _twice(mean), _twice(variance), 1.0), 2 * price),
        "every code entry twice: entries add, so the KL doubles.",
    )
    yield (
        _near(answer(_twice(x), _twice(x), mean, variance, 1.0), price),
        "perfect rebuilds: the number of pixels is nothing to the KL.",
    )
    cloud = torch.tensor([[0.7]]), torch.tensor([[0.3]])
    yield (
        _near(answer(x[:1], x[:1], *cloud, 1.0), _price(0.7, 0.3**0.5), 1e-7),
        "the KL of an entry must be the integral of q (log q - log p).",
    )


@visible
def effective_beta(answer):
    """effective_beta(batch, pixels, codes, beta, squares, price) -> number."""
    ways = ("mean", "sum", "example")
    for squares, price in [(a, b) for a in ways for b in ways]:
        weight = answer(6, 50, 4, 0.7, squares, price)
        yield weight > 0, "a weight is positive."
        yield (
            _near(answer(6, 50, 4, 2.1, squares, price), 3 * weight),
            "three times beta: three times the weight.",
        )
        alike = squares == price or "sum" not in (squares, price)
        yield (
            _near(answer(12, 50, 4, 0.7, squares, price), weight) == alike,
            "B stays where one term is summed over pictures and the other averaged, "
            "and only there.",
        )
        swapped = answer(6, 9, 9, 1.0, price, squares)
        yield (
            _near(answer(6, 9, 9, 1.0, squares, price) * swapped, 1),
            "D = K: exchange the two reductions, and the factor is turned over.",
        )
    yield (
        _near(
            answer(6, 100, 4, 0.7, "mean", "example"),
            2 * answer(6, 50, 4, 0.7, "mean", "example"),
        ),
        "a mean over twice as many pixels: each counts half, so the KL weighs twice as "
        "much beside them.",
    )
    for way in ("sum", "example"):
        yield (
            _near(answer(6, 50, 4, 0.7, way, way), 0.7),
            "summed alike: beta is what it says.",
        )
    yield (
        not _near(answer(6, 50, 4, 0.7, "mean", "mean"), 0.7),
        "both means over everything: do they divide by the same number?",
    )


@visible
def refutation(answer):
    """refutation(pixels, beta) -> [[error, kl], [error, kl]]."""
    for pixels, beta in [(2, 1.0), (9, 0.02), (784, 30.0)]:
        pair = torch.as_tensor(answer(pixels, beta)).double()
        yield pair.shape == (2, 2), "two networks, two numbers each."
        yield bool((pair > 0).all()), "errors and KL are positive."
        first, second = pair @ torch.tensor([1.0, beta]).double()
        yield _below(second, first), "sum_loss at this beta must be lower for B."
        first, second = (_line(*network, pixels, beta) for network in pair)
        yield _below(first, second), "the team's line must be lower for A."


@visible
def at_minimum(answer):
    """at_minimum(spectrum, weight) -> (kl, error)."""
    spectrum = torch.tensor([7.0, 3.0, 0.9, 0.2])
    kl, error = answer(spectrum, 1e6)
    yield _near(kl, 0), "a very large weight: every cloud is the prior."
    yield _near(error, spectrum.sum()), "and every rebuild is the mean picture."
    yield answer(spectrum, 1e-9)[1] < 1e-6, "a very small weight: no error is left."
    for weight in (0.1, 1.0, 4.0, 11.0):
        kl, error = answer(spectrum, weight)
        parts = [answer(spectrum[i : i + 1], weight) for i in range(4)]
        yield _near(sum(part[0] for part in parts), kl), "directions add."
        yield _near(sum(part[1] for part in parts), error), "directions add."
        yield kl >= 0, "no direction has a negative KL."
        rise = _at_best(answer, spectrum, weight + 1e-4)
        rise = rise - _at_best(answer, spectrum, weight - 1e-4)
        yield (
            abs(rise / 2e-4 - kl) < 1e-5,
            "at a minimum, the slope of error + weight KL in the weight is the KL.",
        )


@visible
def kl_ceiling(answer):
    """kl_ceiling(variances, beta) -> number."""
    variances = torch.tensor([0.2, 0.05, 0.1])
    ceiling = answer(variances, 2.0)
    yield answer(torch.zeros(3), 2.0) == 0, "pictures all alike need no code."
    yield _near(answer(variances, 6.0), ceiling / 3), "what does beta do to the KL?"
    yield (
        _near(answer(_twice(variances[None])[0], 2.0), ceiling),
        "every pixel shown twice: the team's line does not notice.",
    )
    others = variances.flip(0) ** 2
    yield (
        _near(answer(variances + others, 2.0), ceiling + answer(others, 2.0)),
        "squares add up, pixel by pixel, and so do variances.",
    )
    yield (
        answer(torch.full((3,), 0.25), 0.3) >= _switch(0.3),
        "one code entry, black pictures and white ones, half of each, and a decoder "
        "that paints black below z = 0 and white above: it beats the mean picture, and "
        "its KL is larger than your ceiling.",
    )


def _batch():
    """Three pictures of five pixels, with clouds of two code entries."""
    stream = torch.Generator().manual_seed(6050)
    x, rebuilt = torch.rand(2, 3, 5, generator=stream)
    mean = torch.randn(3, 2, generator=stream)
    return x, rebuilt, mean, torch.rand(3, 2, generator=stream) + 0.1


def _line(error: torch.Tensor, kl: torch.Tensor, pixels: int, beta: float):
    """What the team's line says of a picture with this error, spread evenly."""
    x = torch.zeros(1, pixels).double()
    return mse_loss(x + (error / pixels).sqrt(), x) + beta * kl


def _below(a, b) -> bool:
    """Whether a is smaller, by more than rounding."""
    return bool(b - a > 1e-12 * b)


def _switch(beta: float) -> torch.Tensor:
    """The KL of the best clouds for a decoder that sees nothing but the sign of z."""
    mean, sd = torch.meshgrid(
        torch.linspace(0, 2, 81), torch.linspace(0.1, 1.5, 57), indexing="ij"
    )
    kl = kl_divergence(Normal(mean, sd), Normal(0.0, 1.0))
    wrong = Normal(0.0, 1.0).cdf(-mean / sd)
    return kl.flatten()[(wrong + beta * kl).argmin()]


def _at_best(answer, spectrum: torch.Tensor, weight: float):
    kl, error = answer(spectrum, weight)
    return error + weight * kl


def _twice(rows: torch.Tensor) -> torch.Tensor:
    return torch.cat([rows, rows], 1)


def _near(a, b, tolerance: float = 1e-9) -> bool:
    return bool(abs(a - b) <= tolerance * max(1, abs(b)))


def _price(mean: float, sd: float) -> float:
    """The KL of one code entry, by quadrature."""
    cloud, prior = Normal(mean, sd), Normal(0.0, 1.0)

    def integrand(z):
        log_q = cloud.log_prob(torch.tensor(z))
        return (log_q.exp() * (log_q - prior.log_prob(torch.tensor(z)))).item()

    return quad(integrand, mean - 12 * sd, mean + 12 * sd)[0]
