"""Hidden checks of the exercise on evidence by sampling."""

import math
import threading
from itertools import combinations_with_replacement, product

import torch

from coursework.checks import Check, Exercise, flat, misshapen
from genaudit.discrete import MASK, masked_elbo, orders, reveal_log_likelihoods
from genaudit.latent import multi_sample_bound

# Right answers, for slips to be made in.
DRAW = """
def estimates(prior, likelihood, draws, repeats):
    ringers = torch.multinomial(prior, draws * repeats, replacement=True)
    return likelihood[ringers].reshape(repeats, draws).mean(1)
"""
LIST = """
def expectations(prior, likelihood, draws):
    chance, total = torch.ones(1), torch.zeros(1)
    for _ in range(draws):
        chance = (chance[:, None] * prior).flatten()
        total = (total[:, None] + likelihood).flatten()
    return chance @ (total / draws), chance @ (total / draws).log()
"""
ABOVE = """
def share_above(prior, likelihood, draws):
    chance, total = torch.ones(1), torch.zeros(1)
    for _ in range(draws):
        chance = (chance[:, None] * prior).flatten()
        total = (total[:, None] + likelihood).flatten()
    return chance[total / draws > prior @ likelihood].sum()
"""
SHORT = """
def shortfall():
    prior, likelihood = torch.tensor(my_prior), torch.tensor(my_likelihood)
    mean, mean_log = expectations(prior, likelihood, my_draws)
    variance = prior @ likelihood**2 - mean**2
    return variance / (2 * my_draws * mean**2), mean.log() - mean_log
"""
RUNGS = """
def ladder(prior, likelihood, q, rungs):
    weights = prior * likelihood / q
    bounds = [expectations(q, weights, k)[1] for k in range(1, rungs + 1)]
    return torch.stack(bounds)
"""
PAIR = """
def masked_pair(text, alone, after):
    a, b = text.tolist()
    orders = torch.stack([alone[0, a] * after[1, a, b], alone[1, b] * after[0, b, a]])
    return orders.mean().log(), orders.log().mean()
"""
STEPS = """
def in_steps(text, alone, after, steps):
    a, b = text.tolist()
    meet = 1 / steps
    apart = masked_pair(text, alone, after)[0].exp()
    return meet * alone[0, a] * alone[1, b] + (1 - meet) * apart
"""


def simplex(stream, size):
    """Positive probabilities that sum to 1."""
    weights = [stream.uniform(0.1, 1) for _ in range(size)]
    return [weight / sum(weights) for weight in weights]


def belfry(stream, size):
    """A prior and likelihoods of so many ringers."""
    return simplex(stream, size), [stream.uniform(0.02, 1) for _ in range(size)]


def repeated(stream, given):
    """Three belfries, a few draws each, a thousand repetitions; the last one twice.

    The second time it is half as loud, by which its verdict knows it.
    """
    calls = [(*belfry(stream, n), draws, 1000) for n, draws in [(3, 2), (4, 3), (3, 1)]]
    prior, likelihood, *counts = calls[-1]
    return [*calls, (prior, [one / 2 for one in likelihood], *counts)]


def drawn(stream, given):
    """Four belfries with 1 to 5 draws."""
    sizes = [(4, 1), (2, 5), (3, 4), (4, 3)]
    return [(*belfry(stream, n), draws) for n, draws in sizes]


def many(stream, given):
    """Six belfries with so many outcomes that some lie near p(x), and one with ties."""
    sizes = [(4, 3), (3, 5), (4, 4), (5, 3), (3, 6), (4, 5)]
    calls = [(*belfry(stream, n), draws) for n, draws in sizes]
    # Sums of powers of two: no rounding decides what is a tie.
    low, high = sorted(stream.sample(range(1, 16), 2))
    return [*calls, ([0.5, 0.5], [low / 16, high / 16], stream.choice([2, 4]))]


def guessed(stream, given):
    """Three belfries, each with a guess q and some rungs."""
    sizes = [(3, 4), (2, 6), (4, 3)]
    return [(*belfry(stream, n), simplex(stream, n), rungs) for n, rungs in sizes]


def texts(stream, given):
    """Five texts, each with the answers of a denoiser that fit no law."""
    calls = []
    for size in (2, 3, 3, 4, 5):
        text = [stream.randrange(size) for _ in range(2)]
        alone = [simplex(stream, size) for _ in range(2)]
        after = [[simplex(stream, size) for _ in range(size)] for _ in range(2)]
        calls.append((text, alone, after))
    return calls


def stepped(stream, given):
    """The same with 1 to 9 steps."""
    return [(*call, n) for call, n in zip(texts(stream, given), (1, 2, 3, 5, 9))]


def once(stream, given):
    """A single call without arguments."""
    return [()]


def outcomes(prior, likelihood, draws):
    """Each estimate that a choice of ringers makes, without order, and its chance."""
    estimate, chance = [], []
    for choice in combinations_with_replacement(range(len(prior)), draws):
        counts = [choice.count(ringer) for ringer in range(len(prior))]
        ways = math.factorial(draws) / math.prod(map(math.factorial, counts))
        estimate.append(likelihood[list(choice)].mean())
        chance.append(ways * prior[list(choice)].prod())
    return torch.stack(estimate), torch.stack(chance)


def law(given, prior, likelihood, draws, repeats):
    """Number of estimates, the values that one can have, and their chances."""
    return [repeats, *outcomes(prior, likelihood, draws)]


_before = threading.local()  # the call before: the calls of a check share a thread


def follows(expected, got):
    """Each possible value about as often as it should be, whatever came before."""
    repeats, values, chances = expected
    reason = misshapen([0.0] * repeats, got)
    if reason:
        return reason
    got = flat(got)
    counts = [sum(abs(one - value) < 1e-9 for one in got) for value in values]
    if sum(counts) < repeats:
        return "a value that no draws can give"
    for count, chance in zip(counts, chances):
        spread = math.sqrt(repeats * chance * (1 - chance))
        if abs(count - repeats * chance) > 5 * spread + 5:
            return "some outcomes come too often or too seldom to be chance"
    pairs = torch.corrcoef(torch.tensor([got[:-1], got[1:]]))
    if abs(pairs[0, 1]) > 5 / math.sqrt(repeats):
        return "an estimate resembles the one before it too much to be chance"
    before, _before.call = getattr(_before, "call", None), (values, got)
    if before == ([2 * value for value in values], [2 * one for one in got]):
        return "two calls made the same draws: set no seed"
    return None


def averages(given, prior, likelihood, draws):
    """The evidence, and the bound by the package's integral."""
    return [prior @ likelihood, multi_sample_bound(prior, likelihood.log(), draws)]


def above(given, prior, likelihood, draws):
    """The chance of exceeding the evidence, over choices without order."""
    estimate, chance = outcomes(prior, likelihood, draws)
    return chance[estimate > prior @ likelihood].sum()


def both_gaps(given):
    """The rule's gap and the exact one for the given belfry."""
    prior, likelihood = (
        torch.tensor(given[name]).double() for name in ("my_prior", "my_likelihood")
    )
    evidence, bound = averages(given, prior, likelihood, given["my_draws"])
    relative = prior @ (likelihood / evidence - 1) ** 2
    return [relative / (2 * given["my_draws"]), evidence.log() - bound]


def climb(given, prior, likelihood, q, rungs):
    """Each bound by the package's integral."""
    weights = (prior * likelihood / q).log()
    return [multi_sample_bound(q, weights, k) for k in range(1, rungs + 1)]


def denoiser(alone, after):
    """The answers as the package asks for them: texts with blanks to log laws."""

    def denoise(rows):
        answers = [
            [alone[i] if row[1 - i] == MASK else after[i, row[1 - i]] for i in (0, 1)]
            for row in rows.tolist()
        ]
        return torch.stack([torch.stack(answer) for answer in answers]).log()

    return denoise


def both_orders(given, text, alone, after):
    """Log-likelihood by the package's orders, ELBO by its sum over masks."""
    denoise = denoiser(alone, after)
    by_order = reveal_log_likelihoods(denoise, text[None], orders(2))[0]
    return [by_order.logsumexp(0) - math.log(2), masked_elbo(denoise, text[None])[0]]


def all_schedules(given, text, alone, after, steps):
    """The mean over all pairs of steps, one by one."""
    schedules = torch.tensor(list(product(range(steps), repeat=2)))
    logs = reveal_log_likelihoods(denoiser(alone, after), text[None], schedules)
    return logs.exp().mean()


exercise = Exercise(
    title="Evidence by sampling",
    chapter="evidence",
    constants={
        "my_prior": [[0.5, 0.3, 0.2], [0.6, 0.25, 0.15], [0.45, 0.35, 0.2]],
        "my_likelihood": [
            [0.11, 0.43, 0.87],
            [0.12, 0.35, 0.93],
            [0.08, 0.41, 0.71],
            [0.13, 0.52, 0.91],
            [0.09, 0.37, 0.83],
        ],
        "my_draws": [4, 3, 5],
    },
    checks=[
        Check(
            "frequencies of every possible average",
            3,
            "estimates",
            repeated,
            law,
            "Draw from the prior, with replacement; average the likelihoods of a set.",
            [
                # Every ringer equally often.
                DRAW.replace("(prior, d", "(torch.ones_like(prior), d"),
                # Drawn from the posterior, which is not known.
                DRAW.replace("(prior, d", "(prior * likelihood, d"),
                # Not divided by the number of draws.
                DRAW.replace("mean(1)", "sum(1)"),
                # The prior counted twice.
                DRAW.replace("likelihood[", "(prior * likelihood)["),
                # One set of draws for all repetitions.
                DRAW.replace("draws * repeats", "draws").replace(
                    "reshape(repeats, draws).mean(1)", "mean().expand(repeats)"
                ),
                # Different ringers in each set.
                "def estimates(prior, likelihood, draws, repeats):\n"
                "    ringers = prior.expand(repeats, -1).multinomial(draws)\n"
                "    return likelihood[ringers].mean(1)",
                # Each estimate takes over all draws but one from the estimate before.
                "def estimates(prior, likelihood, draws, repeats):\n"
                "    ringers = torch.multinomial(prior, repeats + draws - 1, True)\n"
                "    return likelihood[ringers].unfold(0, draws, 1).mean(1)",
                # A fixed seed.
                "def estimates(prior, likelihood, draws, repeats):\n"
                "    fixed = torch.Generator().manual_seed(1)\n"
                "    size = draws * repeats\n"
                "    ringers = prior.multinomial(size, True, generator=fixed)\n"
                "    return likelihood[ringers].reshape(repeats, draws).mean(1)",
                # The exact value is no estimate.
                "def estimates(prior, likelihood, draws, repeats):\n"
                "    return (prior @ likelihood).expand(repeats)",
            ],
            follows,
        ),
        Check(
            "both averages against an integral",
            3,
            "expectations",
            drawn,
            averages,
            "An outcome's probability is a product over its draws; the logarithm is "
            "taken of the mean of its likelihoods.",
            [
                # The mean of the logs.
                LIST.replace(
                    "chance @ (total / draws).log()", "prior @ likelihood.log()"
                ),
                # The log of the sum.
                LIST.replace("(total / draws).log()", "total.log()"),
                # All outcomes taken as equally probable.
                LIST.replace("* prior", "/ len(prior) + 0 * prior"),
                # As if the logarithm of an unbiased estimate were unbiased.
                LIST.replace(
                    "chance @ (total / draws).log()", "(prior @ likelihood).log()"
                ),
                # The rule for many draws.
                LIST.replace(
                    "chance @ (total / draws).log()",
                    "(prior @ likelihood).log() - (prior @ likelihood**2"
                    " / (prior @ likelihood) ** 2 - 1) / (2 * draws)",
                ),
                # The loss, minus the log.
                LIST.replace(", chance", ", -chance"),
            ],
        ),
        Check(
            "chance of overshooting",
            2,
            "share_above",
            many,
            above,
            "Add up the probabilities of the outcomes whose mean exceeds p(x).",
            [
                # Outcomes counted, not weighed.
                ABOVE.replace("chance[", "(0 * chance + 1 / len(chance))["),
                # Ties counted in.
                ABOVE.replace("draws >", "draws >="),
                # The other side.
                ABOVE.replace("draws >", "draws <"),
                # Above the average of the log.
                ABOVE.replace(
                    "prior @ likelihood", "(chance @ (total / draws).log()).exp()"
                ),
                # The sum against p(x).
                ABOVE.replace("total / draws >", "total >"),
                # As if unbiased meant as often above as below.
                "def share_above(prior, likelihood, draws): return 0.5",
            ],
        ),
        Check(
            "gap of the given ringers, twice",
            2,
            "shortfall",
            once,
            both_gaps,
            "The variance is that of a single likelihood under the prior, and the "
            "difference is counted from log p(x) down. If you call the function of "
            "both averages, the fault may be there.",
            [
                # The sign.
                SHORT.replace("mean.log() - mean_log", "mean_log - mean.log()"),
                # No half in the rule.
                SHORT.replace("(2 * my_draws", "(my_draws"),
                # A standard error in place of the rule.
                SHORT.replace(
                    "variance / (2 * my_draws * mean**2)",
                    "(variance / my_draws) ** 0.5 / mean",
                ),
                # The rule for both.
                SHORT.replace(
                    "mean.log() - mean_log", "variance / (2 * my_draws * mean**2)"
                ),
                # Equally probable ringers in the variance.
                SHORT.replace(
                    "prior @ likelihood**2 - mean**2", "likelihood.var(correction=0)"
                ),
            ],
        ),
        Check(
            "rungs under a random guess",
            3,
            "ladder",
            guessed,
            climb,
            "Outcomes have the probabilities of q, and what is averaged are weights. "
            "If you call the function of both averages, the fault may be there.",
            [
                # Likelihoods averaged under q: the weights forgotten.
                RUNGS.replace("prior * likelihood / q", "likelihood"),
                # Weights of q under draws from the prior.
                RUNGS.replace("expectations(q,", "expectations(prior,"),
                # The mean of the logs: every rung is the lowest.
                RUNGS.replace("weights, k)", "weights, 1)"),
                # No division by K.
                RUNGS.replace("[1] for", "[1] + torch.tensor(k).log() for"),
                # One rung too high.
                RUNGS.replace("(1, rungs + 1)", "(2, rungs + 2)"),
            ],
        ),
        Check(
            "five texts against masks and orders",
            3,
            "masked_pair",
            texts,
            both_orders,
            "Two products, one for each order. Which average comes before the log?",
            [
                # The bound for both.
                PAIR.replace("orders.mean().log()", "orders.log().mean()"),
                # Left to right only.
                PAIR.replace("orders.mean().log()", "orders[0].log()"),
                # The weight 1/m left out.
                PAIR.replace(
                    "orders.log().mean()",
                    "(after[0, b, a] * after[1, a, b]).log() / 6"
                    " + (alone[0, a] * alone[1, b]).log() / 3",
                ),
                # The worse order as the bound.
                PAIR.replace("orders.log().mean()", "orders.log().min()"),
                # One order as the bound.
                PAIR.replace("orders.log().mean()", "orders[0].log()"),
                # A sum over the orders, not divided.
                PAIR.replace("orders.mean()", "orders.sum()"),
                # Shown token and asked token exchanged.
                PAIR.replace("[1, a, b]", "[1, b, a]").replace(
                    "[0, b, a]", "[0, a, b]"
                ),
                # Both tokens as if nothing were ever shown.
                PAIR.replace("after[1, a, b]", "alone[1, b]").replace(
                    "after[0, b, a]", "alone[0, a]"
                ),
            ],
        ),
        Check(
            "one to nine steps, each schedule by itself",
            2,
            "in_steps",
            stepped,
            all_schedules,
            "How often do both places draw the same step? Then neither sees the other. "
            "Else one is first, either of them as often. If you call the function of "
            "one place after the other, the fault may be there.",
            [
                # One order only.
                STEPS.replace(
                    "masked_pair(text, alone, after)[0].exp()",
                    "alone[0, a] * after[1, a, b]",
                ),
                # Both orders, and not as often.
                STEPS.replace(
                    "masked_pair(text, alone, after)[0].exp()",
                    "0.3 * alone[0, a] * after[1, a, b]"
                    " + 0.7 * alone[1, b] * after[0, b, a]",
                ),
                # The share of invalid echoes, not of meetings.
                STEPS.replace("1 / steps", "1 / (2 * steps)"),
                # The squared share.
                STEPS.replace("1 / steps", "1 / steps**2"),
                # The bound in place of the likelihood.
                STEPS.replace("[0].exp()", "[1].exp()"),
                # Left as a logarithm.
                STEPS.replace("return", "return torch.log(") + ")",
                # One at a time, whatever the steps.
                STEPS.replace("1 / steps", "0"),
            ],
        ),
    ],
)
