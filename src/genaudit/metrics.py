"""Scores for what a model made: attempts that pass, texts, clouds of points.

Each says what it counts and what it divides by. None of them is a loss. Bad input
raises a ValueError that names the argument, its value and the rule.
"""

import math

import torch
from torch import Tensor

from genaudit import _check


def pass_at_k(n, c, k) -> Tensor:
    """Unbiased estimate of the probability that one of k attempts passes, float64.

    1 - C(n - c, k) / C(n, k), the share of all choices of k among the n attempts that
    hold one of the c that passed (Chen and others, 2021, equation 1). A product over
    min(c, k) factors, so that no binomial overflows.

    Args:
        n: attempts made, whole, 1 or more.
        c: attempts that passed, 0..n.
        k: attempts that a user is granted, 1..n. For k > n no unbiased estimate exists.

    Whole numbers or integer tensors that broadcast. ValueError for other values.
    """
    n, c, k = torch.broadcast_tensors(
        *(_whole(name, value) for name, value in [("n", n), ("c", c), ("k", k)])
    )
    _within("c", c, 0, n)
    _within("k", k, 1, n)
    cases = torch.stack([n, c, k], -1).reshape(-1, 3).tolist()
    values = [_pass_at_k(*case) for case in cases]
    return torch.tensor(values, dtype=torch.float64).reshape(n.shape)


def _pass_at_k(n: int, c: int, k: int) -> float:
    if c == 0:
        return 0.0
    if n - c < k:
        return 1.0
    # C(n-c, k) / C(n, k) is the same with c and k exchanged: take the short product.
    few, many = sorted((c, k))
    i = torch.arange(n - few + 1, n + 1).double()
    return -math.expm1(torch.log1p(-many / i).sum().item())


def perplexity(log_probabilities, mask=None) -> Tensor:
    """Inverse geometric mean of the tokens' probabilities, exp(-mean log p), float64.

    Args:
        log_probabilities: log p of each token given those before it, in nats, any
            shape, each <= 0. -inf is allowed and makes the perplexity infinite.
        mask: same shape, true where a token counts; padding is false and may hold
            anything, NaN too. All tokens count if omitted.

    All tokens count alike, whichever text they stand in: pool first, then average.
    ValueError for another value, a mask of another shape, or no token that counts.
    """
    return (-_counted(log_probabilities, mask).mean()).exp()


def bits_per_character(log_probabilities, characters: int, mask=None) -> Tensor:
    """Bits to code the text, -sum log2 p, for each of its ``characters``, float64.

    The characters are those of the text, 1 or more, however it was cut into tokens: so
    models with different tokenizers can be compared. Else as ``perplexity``.
    """
    _check.whole("characters", characters, 1)
    return -_counted(log_probabilities, mask).sum() / math.log(2) / characters


def bits_per_dimension(log_density, dimensions: int, bin_width: float) -> Tensor:
    """Bits for each coordinate of data rounded to bins, from a log density in nats.

    -log2(density) / dimensions - log2(bin_width): a bin holds density x width. Data of
    256 levels have bin width 1/256 if they fill [0, 1], 2/256 if they fill [-1, 1].
    ``log_density`` has any shape, ``dimensions`` is 1 or more, ``bin_width`` > 0.
    """
    _check.whole("dimensions", dimensions, 1)
    width = _check.positive("bin_width", bin_width)
    density = _check.finite("log_density", log_density).double()
    return -density / math.log(2) / dimensions - width.double().log2()


def precision(real, generated, neighbours: int = 5) -> float:
    """Share of the generated points that lie in the ball of some real point.

    The ball of a point reaches to its k-th nearest neighbour of the same set, border
    included (Kynkaanniemi and others, 2019). ``real`` (N, D) and ``generated`` (M, D)
    may differ in size; 1 <= neighbours < N. ValueError otherwise.
    """
    real, generated = _clouds(real=real, generated=generated)
    inside = _distances(generated, real) <= _radii(real, neighbours)
    return inside.any(1).double().mean().item()


def recall(real, generated, neighbours: int = 5) -> float:
    """Share of the real points that lie in the ball of some generated point.

    ``precision`` with the roles exchanged: one far generated point has a large ball and
    can raise it.
    """
    real, generated = _clouds(real=real, generated=generated)
    inside = _distances(real, generated) <= _radii(generated, neighbours)
    return inside.any(1).double().mean().item()


def coverage(real, generated, neighbours: int = 5) -> float:
    """Share of the real points whose ball holds a generated point.

    All balls are those of real points, so a stray generated point cannot widen them
    (Naeem and others, 2020). Arguments as in ``precision``.
    """
    real, generated = _clouds(real=real, generated=generated)
    inside = _distances(real, generated) <= _radii(real, neighbours)[:, None]
    return inside.any(1).double().mean().item()


def energy_distance(a, b) -> float:
    """Unbiased estimate of the energy distance of the laws that made two clouds.

    It is 2 E|a - b| - E|a - a'| - E|b - b'| for independent draws a, a' of one law and
    b, b' of the other, 0 for equal laws and positive for others (Szekely and Rizzo,
    2013). The means within a cloud leave out each point's distance to itself. So the
    estimate is right on average, at a price: for laws alike it may be negative.

    ``a`` (N, D) and ``b`` (M, D) may differ in size; N and M are 2 or more. ValueError
    otherwise. (scipy's function of this name takes a root, and counts those zeros.)
    """
    a, b = _clouds(a=a, b=b)
    for name, cloud in [("a", a), ("b", b)]:
        _check.whole(f"number of points in {name}", len(cloud), 2)
    between = _distances(a, b).mean()
    return (2 * between - torch.pdist(a).mean() - torch.pdist(b).mean()).item()


def nearer_to_training(samples, training, held_out) -> float:
    """Share of the samples that are nearer to the training set than to a fresh one.

    One half for a model that has learned the law and nothing else, whatever its faults,
    since the two sets could be exchanged; 1 for a copier. Ties count half. ``samples``
    (M, D); ``training`` and ``held_out`` of one shape (N, D), else ValueError.
    """
    samples, training, held_out = _clouds(
        samples=samples, training=training, held_out=held_out
    )
    _check.same_shape("held_out", held_out, "training", training)
    # The nearest is found by a fast product, for which the origin must not be far, and
    # then measured by differences, so that a tie stays a tie.
    origin = training.mean(0)
    first, other = (
        (samples - each[torch.cdist(samples - origin, each - origin).argmin(1)]).norm(
            dim=1
        )
        for each in (training, held_out)
    )
    return ((first < other).double() + (first == other).double() / 2).mean().item()


def _whole(name: str, value) -> Tensor:
    tensor = torch.as_tensor(value)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise ValueError(f"{name} = {value!r}: it must be a whole number")
    return tensor.long()


def _within(name: str, value: Tensor, low: int, high: Tensor) -> None:
    wrong = (value < low) | (value > high)
    if wrong.any():
        raise ValueError(
            f"{name} = {value[wrong][0]} with n = {high[wrong][0]}: it must lie in "
            f"{low}..n"
        )


def _counted(log_probabilities, mask) -> Tensor:
    """The log-probabilities that count, checked, in float64, shape (tokens,)."""
    logs = _check.floating(log_probabilities).double()
    if mask is not None:
        mask = torch.as_tensor(mask)
        _check.same_shape("mask", mask, "log_probabilities", logs)
        logs = logs[mask.bool()]
    if logs.numel() == 0:
        raise ValueError("log_probabilities holds no token that counts")
    if not (logs <= 0).all():  # false for NaN too
        raise ValueError(
            f"log_probabilities = {_check.short(logs)}: every one must be <= 0"
        )
    return logs.flatten()


def _clouds(**clouds) -> list[Tensor]:
    """Return clouds of points as float64, shape (N, D) each, of one D."""
    tensors = [_check.points(name, value).double() for name, value in clouds.items()]
    width = tensors[0].shape[1]
    for name, tensor in zip(clouds, tensors):
        if tensor.shape[1] != width:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}: it must be (N, {width})"
            )
    return tensors


def _distances(a: Tensor, b: Tensor) -> Tensor:
    """All distances, (N, M), by differences: exactly 0 between equal points."""
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def _radii(points: Tensor, neighbours: int) -> Tensor:
    """Distance of each point to its k-th nearest neighbour among the others, (N,)."""
    _check.whole("neighbours", neighbours, 1, len(points) - 1)
    apart = _distances(points, points).fill_diagonal_(math.inf)
    return apart.kthvalue(neighbours, 1).values
