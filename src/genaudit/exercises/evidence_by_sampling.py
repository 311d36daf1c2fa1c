"""Visible checks of the exercise on evidence by sampling."""

import itertools
import math

import torch

from genaudit.exercises._say import visible

PRIOR = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
LIKELIHOOD = torch.tensor([0.7, 0.1, 0.4], dtype=torch.float64)
# The first ringer is two people who ring alike.
SPLIT = torch.tensor([0.15, 0.05, 0.5, 0.3], dtype=torch.float64)
SPLIT_LIKELIHOOD = torch.tensor([0.7, 0.7, 0.1, 0.4], dtype=torch.float64)


@visible
def estimates(answer):
    """estimates(prior, likelihood, draws, repeats) -> (repeats,)."""

    def draw(*arguments):
        return torch.as_tensor(answer(PRIOR, *arguments))

    made = draw(LIKELIHOOD, 5, 40)
    yield made.shape == (40,), "one number for each repetition."
    again = draw(LIKELIHOOD, 5, 40)
    yield len(made.unique()) > 2, "each repetition has draws of its own."
    yield not torch.equal(made, again), "without a seed a second call differs."
    low, high = LIKELIHOOD.min(), LIKELIHOOD.max()
    inside = (made > low - 1e-12) & (made < high + 1e-12)
    yield inside.all(), "a mean of likelihoods lies between the smallest and largest."
    event = torch.tensor([1.0, 0.0, 0.0]).to(PRIOR)
    shares = draw(event, 4, 10_000)
    yield (
        ((4 * shares - (4 * shares).round()).abs() < 1e-9).all(),
        "with likelihoods of nought and one an estimate is a share of the draws.",
    )
    off = abs(shares.mean() - PRIOR[0])
    yield (
        off < 5 * shares.std() / 100,
        "each ringer is drawn as often as the prior says.",
    )
    nearby = torch.corrcoef(torch.stack([shares[:-1], shares[1:]]))[0, 1]
    yield abs(nearby) < 0.05, "an estimate shares no draws with the one before it."
    wide = shares.var() / draw(event, 16, 10_000).var()
    yield (
        3.4 < wide < 4.6,
        "independent draws: four times as many quarter the variance.",
    )


@visible
def expectations(answer):
    """expectations(prior, likelihood, draws) -> (mean, mean of the log)."""
    pairs = [answer(PRIOR, LIKELIHOOD, draws) for draws in (1, 2, 5)]
    means, logs = (
        torch.stack([torch.as_tensor(v) for v in row]) for row in zip(*pairs)
    )
    yield (
        (means.diff().abs() < 1e-9).all(),
        "unbiased at every number of draws: the first average must not move.",
    )
    yield (logs.diff() > 1e-6).all(), "the second average rises with the draws."
    yield (
        abs(logs[0] - PRIOR @ LIKELIHOOD.log()) < 1e-9,
        "with a single draw no mean is taken: the second average is one of logarithms.",
    )
    yield (
        (logs < means.log()).all(),
        "the mean of the log is below the log of the mean.",
    )
    mean, log = answer(PRIOR, torch.full_like(PRIOR, 0.25), 3)
    yield (
        abs(mean - 0.25) < 1e-9 and abs(log - math.log(mean)) < 1e-9,
        "ringers who are all alike leave nothing to chance.",
    )
    mean, log = answer(PRIOR, 3 * LIKELIHOOD, 2)
    yield (
        abs(mean - 3 * means[1]) < 1e-9 and abs(log - logs[1] - math.log(3)) < 1e-6,
        "likelihoods three times as large: the estimate too, in every outcome.",
    )
    mean, log = answer(SPLIT, SPLIT_LIKELIHOOD, 2)
    yield (
        abs(mean - means[1]) < 1e-9 and abs(log - logs[1]) < 1e-9,
        "two ringers who ring alike may be counted as one.",
    )


@visible
def share_above(answer):
    """share_above(prior, likelihood, draws) -> probability."""
    shares = [answer(PRIOR, LIKELIHOOD, draws) for draws in (1, 2, 3)]
    yield all(0 < share < 1 for share in shares), "a probability, and here not certain."
    two = answer(PRIOR[1:] / 0.8, LIKELIHOOD[1:], 1)
    yield (
        abs(two - PRIOR[2] / 0.8) < 1e-9,
        "with two ringers and one draw only the likelier sound lies above.",
    )
    even = torch.tensor([0.5, 0.5]).to(PRIOR)
    tied = answer(even, torch.tensor([0.25, 0.75]).to(PRIOR), 2)
    yield (
        abs(tied - 0.25) < 1e-9,
        "an estimate that equals p(x) does not lie above it.",
    )
    scaled = answer(PRIOR, LIKELIHOOD / 7, 3)
    yield abs(scaled - shares[2]) < 1e-9, "a common factor of the likelihoods cancels."
    split = answer(SPLIT, SPLIT_LIKELIHOOD, 2)
    yield abs(split - shares[1]) < 1e-9, "two ringers who ring alike count as one."
    below = answer(PRIOR, 1 - LIKELIHOOD, 3)
    yield (
        abs(shares[2] + below - 1) < 1e-9,
        "turn the likelihoods upside down, and what lay above p(x) lies below.",
    )
    rare = torch.tensor([0.01, 0.99]).to(PRIOR)
    lucky = [answer(rare, torch.tensor([0.9, 0.001]).to(PRIOR), k) for k in (1, 4)]
    yield (
        3.8 < lucky[1] / lucky[0] < 4,
        "where one rare ringer explains all, the share is that of meeting the ringer.",
    )


@visible
def ladder(answer):
    """ladder(prior, likelihood, q, rungs) -> (rungs,)."""
    joint = PRIOR * LIKELIHOOD
    top = joint.sum().log()
    q = torch.tensor([0.3, 0.3, 0.4]).to(PRIOR)
    bounds = torch.as_tensor(answer(PRIOR, LIKELIHOOD, q, 4))
    yield bounds.shape == (4,), "one number for each rung."
    yield (
        (bounds.diff() > 1e-6).all(),
        "each rung is higher than the one before. If you call your function of both "
        "averages, does that one pass?",
    )
    yield (bounds < top).all(), "no rung is above log p(x)."
    # The gap of the lowest rung is a divergence, from the guess to the posterior.
    gap = torch.distributions.kl_divergence(
        torch.distributions.Categorical(q), torch.distributions.Categorical(joint)
    )
    yield (
        abs(bounds[0] + gap - top) < 1e-6,
        "the lowest rung misses log p(x) by the KL from the guess to the posterior.",
    )
    flat = torch.as_tensor(answer(PRIOR, LIKELIHOOD, joint / joint.sum(), 3))
    yield (flat - top).abs().max() < 1e-6, "from the posterior every rung is the top."
    louder = torch.as_tensor(answer(PRIOR, 3 * LIKELIHOOD, q, 4))
    yield (
        (louder - bounds - math.log(3)).abs().max() < 1e-6,
        "a common factor of the likelihoods moves every rung alike.",
    )


@visible
def masked_pair(answer):
    """masked_pair(text, alone, after) -> (log probability, ELBO)."""
    alone, after = _denoiser(3)
    logs, bounds = _tables(lambda text: answer(text, alone, after))
    yield abs(logs.exp().sum() - 1) < 1e-9, "the probabilities of all texts sum to one."
    yield (bounds < logs).all(), "orders that disagree leave a gap below log p(text)."
    renamed = _tables(lambda text: answer(text.flip(0), alone.flip(0), after.flip(0)))
    yield (
        (torch.stack(renamed) - torch.stack([logs, bounds])).abs().max() < 1e-9,
        "if the two places exchange their names, the text keeps both numbers.",
    )
    choices = zip(after, _denoiser(3, 6051)[1])
    four = [torch.stack(pair) for pair in itertools.product(*choices)]
    elbos = [_tables(lambda text, m=m: answer(text, alone, m))[1] for m in four]
    yield (
        (elbos[0] - elbos[1] - elbos[2] + elbos[3]).abs().max() < 1e-9,
        "each order has a share of its own in the ELBO, whatever the other one is.",
    )
    # Both places of one law, so that the orders agree.
    law = alone[0][:, None] * after[1]
    alone = torch.stack([law.sum(1), law.sum(0)])
    after = torch.stack([(law / alone[1]).T, law / alone[0][:, None]])
    logs, bounds = _tables(lambda text: answer(text, alone, after))
    yield (
        (logs.exp() - law).abs().max() < 1e-9,
        "answers that fit one law must give that law back.",
    )
    yield (logs - bounds).abs().max() < 1e-9, "where both orders agree there is no gap."


@visible
def in_steps(answer):
    """in_steps(text, alone, after, steps) -> probability."""
    alone, after = _denoiser(2)
    for steps in [1, 2, 5]:
        [law] = _tables(lambda text, n=steps: [answer(text, alone, after, n)], 2)
        yield (law > 0).all(), "a probability, not its logarithm."
        yield (
            abs(law.sum() - 1) < 1e-9,
            "the probabilities of all texts sum to one. If you call your function of "
            "one place after the other, does that one pass?",
        )
        swapped = alone.flip(0), after.flip(0), steps
        [renamed] = _tables(lambda text, n=swapped: [answer(text.flip(0), *n)], 2)
        yield (
            (renamed - law).abs().max() < 1e-9,
            "if the two places exchange their names, the text keeps its probability.",
        )
        apart = abs(torch.linalg.det(law)) < 1e-9
        yield apart == (steps == 1), "the tokens are independent in a single step only."
    # The echo: two tokens that always agree.
    fair = torch.full((2, 2), 0.5, dtype=torch.float64)
    sure = torch.eye(2, dtype=torch.float64).expand(2, 2, 2)
    broken = [answer(torch.tensor([0, 1]), fair, sure, n) for n in (1, 2, 8)]
    yield (
        abs(broken[0] - 2 * broken[1]) + abs(broken[0] - 8 * broken[2]) < 1e-9,
        "tokens that must agree disagree as often as both places meet.",
    )


def _denoiser(size: int, seed: int = 6050):
    """Seeded answers that fit no law."""
    stream = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, size + 1, size, generator=stream, dtype=torch.float64)
    answers = logits.softmax(-1)
    return answers[:, 0], answers[:, 1:]


def _tables(value, size: int = 3):
    """For each number that a text of two tokens is given, a table over all texts."""
    every = [value(torch.tensor([a, b])) for a in range(size) for b in range(size)]
    return [torch.tensor(column).reshape(size, size) for column in zip(*every)]
