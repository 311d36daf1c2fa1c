"""Visible checks of the exercise on the aggregate posterior's divergence."""

import torch

from genaudit.exercises._say import visible, visible_words


@visible_words
def prediction(answer):
    """prediction(question) -> word."""
    for question in ("level", "size", "scatter", "bias"):
        yield (
            answer(question) in ("larger", "smaller", "same"),
            f'the answer to "{question}" is one of "larger", "smaller", "same".',
        )


@visible_words
def estimator_case(answer):
    """estimator_case(quantity) -> word."""
    for quantity in ("price", "fit", "weights", "aggregate", "rmse", "entropy"):
        yield (
            answer(quantity) in ("mean", "inner", "whole"),
            f'the answer to "{quantity}" is one of "mean", "inner", "whole".',
        )


@visible
def aggregate_kl(answer):
    """aggregate_kl(q, prior) -> number."""
    q, prior = _guesses(), torch.tensor([0.2, 0.5, 0.3])
    value = answer(q, prior)
    yield torch.as_tensor(value).numel() == 1, "a divergence is one number."
    yield value > 0, "a divergence between different laws is positive."
    yield (
        _near(answer(q, q.mean(0)), 0),
        "an aggregate equal to the prior: no distance.",
    )
    yield (
        _near(answer(q[[2, 0, 3, 1]], prior), value),
        "the order of the examples does not matter.",
    )
    yield (
        _near(answer(q[:, [2, 0, 1]], prior[[2, 0, 1]]), value),
        "the names of the codes do not matter.",
    )
    for codes in (2, 7):
        certain = torch.eye(codes)[:1]
        distance = torch.as_tensor(answer(certain, torch.full((codes,), 1 / codes)))
        yield (
            bool(distance.isfinite()),
            "a code that no guess uses counts nothing. From which law to which?",
        )
        yield (
            _near(distance.exp(), codes),
            "a sure guess against a uniform prior: how many codes were ruled out, and "
            "in which unit?",
        )


@visible
def expected_batch_kl(answer):
    """expected_batch_kl(q, prior, size) -> number."""
    q, prior = _guesses(), torch.tensor([0.2, 0.5, 0.3])
    single = [answer(row[None], prior, 3) for row in q]
    yield (
        _near(answer(q, prior, 1), sum(single) / 4),
        "batches of one, and batches that hold one guess three times, on average.",
    )
    alike = q[:1].repeat(3, 1)
    yield (
        _near(answer(alike, prior, 2), answer(alike, prior, 1)),
        "guesses all alike: every batch has the same aggregate.",
    )
    for size in (2, 3):
        yield (
            _near(answer(q.repeat(2, 1), prior, size), answer(q, prior, size)),
            "with replacement, every example entered twice changes nothing. Is each "
            "batch counted as often as it is drawn?",
        )
    values = [answer(q, prior, size) for size in (2, 4, 5)]
    yield len(set(map(float, values))) == 3, "the size of the batch must matter."
    yield (
        not _near(answer(q, q.mean(0), 4), 0),
        "a batch as large as the data set need not be the data set.",
    )


@visible
def excess_terms(answer):
    """excess_terms(q, size) -> a divergence for each batch."""
    q = _guesses()
    for size in (1, 2, 3):
        terms = _terms(answer, q, size)
        yield (
            terms.shape == (4**size,),
            "one number for each batch that can be drawn, order counted.",
        )
        yield bool((terms > -1e-12).all()), "a divergence is never negative."
        yield terms.mean() > 1e-6, "guesses that differ: an excess."
        yield (
            _near(_terms(answer, q.repeat(2, 1), size).mean(), terms.mean()),
            "with replacement, every example entered twice changes no average.",
        )
    alike = _terms(answer, q[:1].repeat(3, 1), 2)
    yield _near(alike.abs().max(), 0), "guesses all alike: no excess in any batch."
    singles, pairs = _terms(answer, q, 1), _terms(answer, q, 2)
    yield (
        all(_near((pairs - term).abs().min(), 0) for term in singles),
        "a batch that holds one example twice has the aggregate of that example alone.",
    )
    yield (
        not _near(2 * pairs.mean(), singles.mean()),
        "twice the size need not halve the excess: list the batches.",
    )
    for codes in (2, 4):
        certain = _terms(answer, torch.eye(codes), 1)
        yield (
            all(_near(term.exp(), codes) for term in certain),
            "sure guesses, a code each, batches of one: how far is each of them from "
            "their average?",
        )


@visible
def batch_estimate(answer):
    """batch_estimate(q, prior, picks) -> (mean, standard error)."""
    q, prior = _guesses(), torch.tensor([0.2, 0.5, 0.3])
    picks = torch.randint(4, (400, 3), generator=_stream())
    mean, error = answer(q, prior, picks)
    yield error > 0, "the second value is a standard error, so it is positive."
    yield (
        _near(answer(q, prior, picks.flip(1))[0], mean),
        "the order inside a batch does not matter.",
    )
    halves = [answer(q, prior, half)[0] for half in (picks[:200], picks[200:])]
    yield (
        not _near(halves[0], halves[1]),
        "other batches, the same mean? It must come from the batches that are listed.",
    )
    yield (
        _near(sum(halves) / 2, mean),
        "the mean over all batches is that of its halves: take the KL of each batch, "
        "then the mean.",
    )
    _, smaller = answer(q, prior, picks.repeat(4, 1))
    yield (
        abs(smaller / error - 0.5) < 0.01,
        "four times the batches halve the standard error.",
    )
    still = answer(q, prior, picks[:1].repeat(50, 1))
    yield abs(still[1]) < 1e-9, "the same batch again and again has no scatter."
    two = [answer(q, prior, picks[i : i + 1].repeat(50, 1))[0] for i in (0, 1)]
    _, between = answer(q, prior, picks[:2].repeat(50, 1))
    yield (
        _near(20 * between / abs(two[0] - two[1]), 1, 0.02),
        "two values, each in half of the batches: every one is off by half of their "
        "difference.",
    )


@visible
def batches_needed(answer):
    """batches_needed(bias, sd) -> whole number."""
    for bias, sd in [(0.013, 0.21), (0.5, 0.5)]:
        number = answer(bias, sd)
        yield number == int(number), "a number of batches is whole."
        yield (
            bias * number**0.5 >= 5 * sd,
            "the bias must be at least five standard errors.",
        )
        yield (
            bias * (number - 1) ** 0.5 < 5 * sd,
            "fewer batches would do: exactly five standard errors are enough.",
        )
    yield (
        answer(0.13, 2.1) == answer(0.013, 0.21),
        "only the ratio of bias and scatter counts.",
    )


@visible
def own_setting(answer):
    """own_setting() -> (q, whole, expected)."""
    q, whole, expected = answer()
    q = torch.as_tensor(q)
    yield q.ndim == 2, "the first value is a table: an example a row, a code a column."
    yield (
        2 <= len(q) <= 6 and 2 <= q.shape[1] <= 6,
        "2 to 6 examples, 2 to 6 codes.",
    )
    yield bool((q >= 0).all()), "probabilities are not negative."
    yield _near((q.sum(1) - 1).abs().max(), 0), "each row must sum to 1."
    yield whole >= 0.01, "the KL of the whole is at least 0.01."
    yield (
        whole <= torch.tensor(q.shape[1]).log(),
        "no law is so far from a uniform one.",
    )
    yield expected != whole, "the batches report another value than the whole."
    yield (
        all(round(float(value), 5) != float(value) for value in (whole, expected)),
        "return both values as your functions compute them, with all their digits.",
    )


def _terms(answer, q: torch.Tensor, size: int) -> torch.Tensor:
    return torch.as_tensor(answer(q, size))


def _guesses() -> torch.Tensor:
    """Four guesses over three codes."""
    return (4 * torch.rand(4, 3, generator=_stream())).softmax(1)


def _near(a, b, tolerance: float = 1e-9) -> bool:
    return bool(abs(a - b) <= tolerance * max(1, abs(b)))


def _stream() -> torch.Generator:
    return torch.Generator().manual_seed(6050)
