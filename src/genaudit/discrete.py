"""Diffusion over short texts, small enough to list every text and every path.

A text is a row of L tokens 0..V-1; MASK stands where a token is hidden. Two corruptions
are here. Masking hides tokens one after another, and a denoiser reveals them. Uniform
corruption redraws tokens, and matrices over all V^L texts give every probability. Bad
input raises a ValueError that names the argument, its value and the rule.
"""

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import torch
from torch import Tensor

from genaudit import _check

MASK = -1
"""Stands in a text where a token is hidden."""

Denoiser = Callable[[Tensor], Tensor]
"""Texts (B, L) with masks -> log-probabilities (B, L, V) of the token at each place."""


def all_texts(vocabulary: int, length: int) -> Tensor:
    """Every text, shape (V^L, L), in the order of a dictionary."""
    _check.whole("vocabulary", vocabulary, 1)
    _check.whole("length", length, 1)
    places = torch.cartesian_prod(*[torch.arange(vocabulary)] * length)
    return places.reshape(-1, length)


class TextLaw:
    """A law on all texts of one length, with every conditional of it.

    Args:
        probabilities: p(text), one axis of size V for each of the L places, sums to 1.
    """

    def __init__(self, probabilities):
        flat = _check.finite("probabilities", probabilities)
        if flat.ndim < 1 or len(set(flat.shape)) != 1:
            raise ValueError(
                f"probabilities has shape {tuple(flat.shape)}: needs one axis of the "
                "size of the vocabulary for each place"
            )
        self.vocabulary, self.length = flat.shape[0], flat.ndim
        self.probabilities = _check.probabilities("probabilities", flat.flatten())
        self.texts = all_texts(self.vocabulary, self.length)

    def entropy(self) -> Tensor:
        """- sum p log p, in nats: the mean code length that no model can undercut."""
        return -torch.xlogy(self.probabilities, self.probabilities).sum()

    def log_probability(self, texts: Tensor) -> Tensor:
        """log p of complete texts, shape (B, L) to (B,)."""
        _check_rows("texts", texts, 0, self.length, self.vocabulary)
        place = self.vocabulary ** torch.arange(self.length - 1, -1, -1)
        return self.probabilities[(texts * place).sum(-1)].log()

    def denoise(self, texts: Tensor) -> Tensor:
        """Exact log p(token at each place | visible tokens), the best denoiser.

        Uniform over the vocabulary where the visible tokens have probability zero.
        """
        _check_rows("texts", texts, MASK, self.length, self.vocabulary)
        fits = (texts[:, None] == self.texts) | (texts[:, None] == MASK)
        weights = fits.all(-1) * self.probabilities
        tokens = torch.nn.functional.one_hot(self.texts, self.vocabulary)
        joint = torch.einsum("bs,slv->blv", weights, tokens.to(weights.dtype))
        total = joint.sum(-1, keepdim=True)
        return torch.where(total > 0, joint / total, 1 / self.vocabulary).log()

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """``count`` independent texts, shape (count, L)."""
        _check.whole("count", count, 1)
        rows = self.probabilities.multinomial(count, True, generator=generator)
        return self.texts[rows]


def orders(length: int) -> Tensor:
    """Every order of revealing, shape (L!, L): the step at which each place appears."""
    _check.whole("length", length, 1)
    return torch.tensor(list(permutations(range(length))))


def reveal_log_likelihoods(
    denoise: Denoiser, texts: Tensor, schedules: Tensor
) -> Tensor:
    """log p(text | schedule) for complete texts (B, L) and schedules (M, L): (B, M).

    A schedule gives each place the step at which it is revealed, counted from 0. Places
    of one step are drawn at once, independently, given what earlier steps revealed.
    """
    _check_rows("texts", texts, 0)
    _check_rows("schedules", schedules, 0, texts.shape[1])
    total = torch.zeros(len(texts), len(schedules), dtype=torch.float64)
    for column, schedule in enumerate(schedules):
        for step in schedule.unique():
            logs = _log_tokens(denoise, texts, schedule >= step)
            total[:, column] += logs[:, schedule == step].sum(-1)
    return total


def masked_losses(denoise: Denoiser, texts: Tensor) -> Tensor:
    """Cross-entropy of all masked places, averaged over masks of one size: (B, L).

    Column m - 1 has m of the L places masked and averages over all ways to choose them,
    for complete texts (B, L).
    """
    _check_rows("texts", texts, 0)
    length = texts.shape[1]
    masks = all_texts(2, length)[1:].bool()
    losses = torch.zeros(len(texts), length, dtype=torch.float64)
    for mask in masks:
        logs = _log_tokens(denoise, texts, mask)
        losses[:, mask.sum() - 1] -= logs[:, mask].sum(-1)
    ways = [math.comb(length, size) for size in range(1, length + 1)]
    return losses / torch.tensor(ways)


def masked_elbo(denoise: Denoiser, texts: Tensor) -> Tensor:
    """ELBO of masked diffusion in continuous time, exact, in nats: (B, L) to (B,).

    Minus the integral over t in (0, 1) of 1/t times the cross-entropy of the masked
    places, each place masked with probability t (Sahoo and others, 2024). A mask of
    size m has the weight 1/m on average, so the integral is a sum over sizes.
    """
    losses = masked_losses(denoise, texts)
    return -(losses / torch.arange(1, texts.shape[1] + 1)).sum(-1)


def unmask(
    denoise: Denoiser,
    count: int,
    length: int,
    steps: int,
    generator: torch.Generator,
    greedy: bool = False,
) -> Tensor:
    """Draw ``count`` texts, shape (count, length), from all masked, in ``steps`` steps.

    Each place is revealed at a step drawn uniformly from 1..steps, with a token drawn
    from the denoiser, or with its most probable one where ``greedy``.
    """
    for name, value in (("count", count), ("length", length), ("steps", steps)):
        _check.whole(name, value, 1)
    texts = torch.full((count, length), MASK)
    when = torch.randint(steps, (count, length), generator=generator)
    for step in range(steps):
        law = _denoised(denoise, texts).exp()
        if greedy:
            drawn = law.argmax(-1)
        else:
            drawn = law.flatten(0, 1).multinomial(1, generator=generator)[:, 0]
        texts = torch.where(when == step, drawn.reshape(count, length), texts)
    return texts


def uniform_corruption(vocabulary: int, length: int, beta) -> Tensor:
    """Matrix of one step over all texts, shape (V^L, V^L), row: before, column: after.

    Each token stays or, with probability ``beta`` in (0, 1), is redrawn uniformly from
    the vocabulary, its old value included (Austin and others, 2021).
    """
    beta = _check.between("beta", beta, 0, 1)
    if beta.ndim:
        raise ValueError(f"beta has shape {tuple(beta.shape)}: it must be one number")
    _check.whole("vocabulary", vocabulary, 1)
    _check.whole("length", length, 1)
    one = (1 - beta) * torch.eye(vocabulary, dtype=beta.dtype) + beta / vocabulary
    step = one
    for _ in range(length - 1):
        step = torch.kron(step, one)
    return step


def exact_reverse(forward: Sequence[Tensor], data) -> list[Tensor]:
    """Matrices p(x_{t-1} | x_t) of the true reversal for data (S,), by Bayes' rule.

    Item t - 1 has row x_t, column x_{t-1}, as the items of ``forward`` have row x_{t-1}
    and column x_t. A row that no data reach is uniform.
    """
    law, reverse = _law("data", data), []
    for step in _steps("forward", forward, len(law)):
        joint = law[:, None] * step
        law = joint.sum(0)
        reverse.append(torch.where(law > 0, joint / law, 1 / len(law)).T)
    return reverse


def independent_tokens(step: Tensor, vocabulary: int, length: int) -> Tensor:
    """Replace each row of a reverse matrix by the product of its token marginals.

    Among products this one has the smallest KL from each row, and so the best ELBO of
    a model that draws all tokens of a step at once. (Not the best likelihood.)
    """
    texts = all_texts(vocabulary, length)
    step = _check.probabilities("step", step)
    if step.ndim != 2 or step.shape[1] != len(texts):
        raise ValueError(
            f"step has shape {tuple(step.shape)}: a row must have V^L = {len(texts)} "
            "entries"
        )
    product = torch.ones_like(step)
    for place in range(length):
        tokens = torch.nn.functional.one_hot(texts[:, place], vocabulary)
        product = product * (step @ tokens.to(step.dtype))[:, texts[:, place]]
    return product


class FiniteDiffusion:
    """A diffusion on S states: data laws, likelihood, ELBO and paths without sampling.

    Args:
        forward: matrices q(x_t | x_{t-1}), t = 1..T, each (S, S), row x_{t-1}.
        reverse: matrices p(x_{t-1} | x_t), t = 1..T, each (S, S), row x_t.
        final: p(x_T), shape (S,).
    """

    def __init__(self, forward: Sequence[Tensor], reverse: Sequence[Tensor], final):
        self.final = _law("final", final)
        self.forward = _steps("forward", forward, len(self.final))
        self.reverse = _steps("reverse", reverse, len(self.final))
        if len(self.forward) != len(self.reverse):
            raise ValueError(
                f"forward has {len(self.forward)} steps, reverse {len(self.reverse)}: "
                "the numbers must be equal"
            )

    def log_likelihood(self) -> Tensor:
        """log p(x_0) of every state, shape (S,): the sum over all paths."""
        law = self.final
        for step in reversed(self.reverse):
            law = law @ step
        return law.log()

    def elbo(self) -> Tensor:
        """ELBO of every state as data, shape (S,), exact.

        E_q of log p(x_T) + sum log p(x_{t-1} | x_t) - sum log q(x_t | x_{t-1})
        (Sohl-Dickstein and others, 2015), summed over the law of each pair of
        neighbours on the path.
        """
        law = torch.eye(len(self.final), dtype=self.final.dtype)  # row: x_0
        bound = torch.zeros_like(self.final)
        for ahead, back in zip(self.forward, self.reverse):
            logs = torch.xlogy(ahead, back.T) - torch.xlogy(ahead, ahead)
            bound = bound + _average(law, logs.sum(1))
            law = law @ ahead
        return bound + _average(law, self.final.log())

    def paths(self, state: int) -> tuple[Tensor, Tensor]:
        """log q(path | x_0) and log p(x_0, path) of all S^T paths from x_0 = ``state``.

        The path x_1..x_T is the latent variable. Both have shape (S^T,).
        """
        _check.whole("state", state, 0, len(self.final) - 1)
        path = all_texts(len(self.final), len(self.forward))
        before = torch.cat([torch.full((len(path), 1), state), path[:, :-1]], 1)
        log_q, log_p = 0.0, self.final.log()[path[:, -1]]
        for t, (ahead, back) in enumerate(zip(self.forward, self.reverse)):
            log_q = log_q + ahead.log()[before[:, t], path[:, t]]
            log_p = log_p + back.log()[path[:, t], before[:, t]]
        return log_q, log_p


def _average(law: Tensor, values: Tensor) -> Tensor:
    """Rows of probabilities against values; a value of -inf counts where it can be."""
    return torch.where(law > 0, law * values, 0.0).sum(-1)


def _denoised(denoise: Denoiser, texts: Tensor) -> Tensor:
    known = denoise(texts)
    if known.ndim != 3 or known.shape[:2] != texts.shape:
        raise ValueError(
            f"denoise gave shape {tuple(known.shape)} for texts of shape "
            f"{tuple(texts.shape)}: it must be (B, L, V)"
        )
    total = known.logsumexp(-1).exp()
    if not ((total - 1).abs() < 0.01).all():  # rounding passes, raw scores do not
        raise ValueError(
            f"denoise gave probabilities that sum to {_check.short(total)}: they must "
            "sum to 1"
        )
    return known


def _log_tokens(denoise: Denoiser, texts: Tensor, mask: Tensor) -> Tensor:
    """log p(token at each place | tokens outside the mask), (B, L) to (B, L)."""
    known = _denoised(denoise, torch.where(mask, MASK, texts))
    _check_rows("texts", texts, 0, vocabulary=known.shape[-1])
    return known.gather(-1, texts[..., None])[..., 0]


def _law(name: str, value) -> Tensor:
    law = _check.probabilities(name, value)
    if law.ndim != 1:
        raise ValueError(f"{name} has shape {tuple(law.shape)}: it must be (S,)")
    return law


def _steps(name: str, steps: Sequence[Tensor], states: int) -> list[Tensor]:
    steps = [_check.probabilities(name, step) for step in steps]
    for step in steps:
        if step.shape != (states, states):
            raise ValueError(
                f"{name} has a step of shape {tuple(step.shape)}: it must be (S, S) "
                f"with S = {states}"
            )
    return steps


def _check_rows(
    name: str,
    rows: Tensor,
    low: int,
    length: int | None = None,
    vocabulary: int | None = None,
) -> None:
    if rows.ndim != 2 or rows.shape[1] != (length or rows.shape[1]):
        raise ValueError(
            f"{name} has shape {tuple(rows.shape)}: must be (B, {length or 'L'})"
        )
    if rows.dtype != torch.int64:
        raise ValueError(f"{name} has dtype {rows.dtype}: must be torch.int64")
    if (rows < low).any() or (vocabulary and (rows >= vocabulary).any()):
        rule = f"in {low}..{vocabulary - 1}" if vocabulary else f"{low} or more"
        raise ValueError(f"{name} = {_check.short(rows)}: every entry must be {rule}")
