"""Hidden checks of the exercise on the aggregate posterior's divergence."""

from collections import Counter
from itertools import combinations_with_replacement
from math import factorial, prod

import torch

from coursework.checks import Check, Exercise, close, misshapen, same
from genaudit.divergence import kl_finite


def questions(stream, given):
    """Each question once."""
    return [("level",), ("size",), ("scatter",), ("bias",)]


def foretold(given, question):
    """The level is too large; more batches change the scatter and nothing else."""
    words = {"level": "larger", "size": "smaller", "scatter": "smaller", "bias": "same"}
    return words[question]


def quantities(stream, given):
    """Each quantity once."""
    return [(name,) for name in CASES]


CASES = {
    "price": "mean",
    "fit": "mean",
    "weights": "inner",
    "aggregate": "whole",
    "rmse": "whole",
    "entropy": "mean",
}


def law(stream, codes):
    """A law over the codes that leaves none out."""
    parts = [stream.uniform(0.05, 1) ** 2 for _ in range(codes)]
    return [part / sum(parts) for part in parts]


def settings(stream, given):
    """Four tables of guesses with a prior; the last one has guesses that are sure."""
    shapes = [(3, 2), (4, 3), (2, 5)]
    cases = [
        ([law(stream, codes) for _ in range(rows)], law(stream, codes))
        for rows, codes in shapes
    ]
    return [*cases, ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], law(stream, 3))]


def sized(stream, given):
    """The same, with batch sizes."""
    return [(*case, size) for case, size in zip(settings(stream, given), (3, 2, 4, 3))]


def without_prior(stream, given):
    """Guesses and sizes alone."""
    return [(q, size) for q, _, size in sized(stream, given)]


def picked(stream, given):
    """Each setting with 200 batches of three."""
    return [
        (q, prior, [[stream.randrange(len(q)) for _ in range(3)] for _ in range(200)])
        for q, prior in settings(stream, given)
    ]


def whole(given, q, prior):
    """The divergence from the package."""
    return kl_finite(q.mean(0), prior)


def expected(given, q, prior, size):
    """By contents: each multiset of examples as often as it can be drawn."""
    total = 0.0
    for members in combinations_with_replacement(range(len(q)), size):
        ways = factorial(size) // prod(map(factorial, Counter(members).values()))
        total += ways * kl_finite(q[list(members)].mean(0), prior)
    return total / len(q) ** size


def excess(given, q, size):
    """All batches at once."""
    picks = torch.cartesian_prod(*[torch.arange(len(q))] * size)
    aggregates = q[picks.reshape(-1, size)].mean(1)
    return kl_finite(aggregates, q.mean(0).expand_as(aggregates))


def in_any_order(wanted, got):
    """The same terms: nobody said which batch comes first."""
    return misshapen(wanted, got) or close()(sorted(wanted), sorted(got))


def estimate(given, q, prior, picks):
    """All batches at once."""
    aggregates = q[picks].mean(1)
    values = kl_finite(aggregates, prior.expand_as(aggregates))
    return [values.mean(), values.std() / len(values) ** 0.5]


def both(wanted, got):
    """The mean is exact; the error may divide by n or n - 1."""
    reason = misshapen(wanted, got)
    if reason:
        return reason
    return close()(wanted[0], got[0]) or close(5e-3)(wanted[1], got[1])


def biases(stream, given):
    """Biases with a standard deviation, small and large; the last fits exactly."""
    return [
        (stream.uniform(0.01, 0.05), stream.uniform(0.05, 0.3)),
        (stream.uniform(0.2, 0.3), stream.uniform(0.05, 0.3)),
        (stream.uniform(0.001, 0.002), stream.uniform(0.1, 0.2)),
        (0.25, 0.5),
    ]


def first_beyond_doubt(given, bias, sd):
    """By trying one number after another in steps that halve."""
    low, high = 0, 1
    while bias * high**0.5 < 5 * sd:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bias * middle**0.5 >= 5 * sd else (middle, high)
    return high


def once(stream, given):
    """A single call without arguments."""
    return [()]


def known_case(wanted, got):
    """Guesses that are laws, both values right, and the bias that was asked for."""
    size, target = wanted
    if not isinstance(got, list) or len(got) != 3:
        return "three values were expected: q, whole and expected"
    q, *stated = got
    if not isinstance(q, list) or not 2 <= len(q) <= 6 or not isinstance(q[0], list):
        return "the first value is no table of 2 to 6 guesses"
    if not 2 <= len(q[0]) <= 6:
        return "the guesses are not over 2 to 6 codes"
    reason = misshapen([[0.0] * len(q[0])] * len(q), q) or misshapen([0, 0], stated)
    if reason:
        return reason
    if any(min(row) < 0 or abs(sum(row) - 1) > 1e-9 for row in q):
        return "a guess is no law: negative, or not of sum 1"
    q = torch.tensor(q, dtype=torch.float64)
    prior = torch.full_like(q[0], 1 / q.shape[1])
    exact = [whole({}, q, prior).item(), expected({}, q, prior, size).item()]
    if exact[0] < 0.01:
        return "the KL of the whole is below 0.01"
    if abs(exact[1] - exact[0] - target) > 0.005:
        return "the bias of the setting is not the target"
    off = [close(0, 1e-5)(right, said) for right, said in zip(exact, stated)]
    return "a stated value is not that of these guesses" if any(off) else None


AGGREGATE = "def aggregate_kl(q, prior):\n"
EXPECTED = (
    "from itertools import *\ndef expected_batch_kl(q, prior, size):\n    n = len(q)\n"
)
TERMS = (
    "from itertools import *\n"
    "def excess_terms(q, size):\n"
    "    whole, even = q.mean(0), torch.full_like(q[0], 1 / q.shape[1])\n"
    "    batches = [list(one) for one in product(range(len(q)), repeat=size)]\n"
)
ESTIMATE = (
    "def batch_estimate(q, prior, picks):\n"
    "    value = torch.stack([aggregate_kl(q[one], prior) for one in picks])\n"
)
NEEDED = "from math import ceil\ndef batches_needed(bias, sd):\n"
OWN = (
    "right = own_setting\n"
    "def own_setting():\n"
    "    q, whole, batches = right()\n"
    "    even = torch.full((3,), 1 / 3)\n"
)

exercise = Exercise(
    title="The aggregate posterior, batch by batch",
    chapter="elbo",
    constants={
        "size": [3, 2, 4],
        "target": [0.1, 0.06, 0.08, 0.12, 0.15],
    },
    checks=[
        Check(
            "what batches do, foretold",
            2,
            "prediction",
            questions,
            foretold,
            "A mean of many batches has the expectation of one. Is the KL convex?",
            [
                # Averaging many batches is thought to remove the bias.
                "def prediction(question):\n"
                "    return {'level': 'larger', 'size': 'smaller',\n"
                "            'scatter': 'smaller', 'bias': 'smaller'}[question]",
                # Batches are thought to be right on average.
                "def prediction(question):\n"
                "    return {'level': 'same', 'size': 'same',\n"
                "            'scatter': 'smaller', 'bias': 'same'}[question]",
                # The wrong direction.
                "def prediction(question):\n"
                "    return {'level': 'smaller', 'size': 'smaller',\n"
                "            'scatter': 'smaller', 'bias': 'same'}[question]",
                # The size of the batch is thought to matter for the scatter alone.
                "def prediction(question):\n"
                "    return {'level': 'larger', 'size': 'same',\n"
                "            'scatter': 'smaller', 'bias': 'same'}[question]",
            ],
            same,
        ),
        Check(
            "case of each estimator",
            2,
            "estimator_case",
            quantities,
            lambda given, quantity: CASES[quantity],
            "Where is the average, and is there a curved function around it?",
            [
                # The aggregate taken for a mean over examples.
                "def estimator_case(quantity):\n"
                "    return {'weights': 'inner', 'rmse': 'whole'}.get(\n"
                "        quantity, 'mean')",
                # A logarithm inside each example is thought to need the data set.
                "def estimator_case(quantity):\n"
                "    return {'weights': 'whole', 'rmse': 'whole',\n"
                "            'aggregate': 'whole'}.get(quantity, 'mean')",
                # One draw is thought to bias the fit.
                "def estimator_case(quantity):\n"
                "    return {'weights': 'inner', 'rmse': 'whole', 'fit': 'inner',\n"
                "            'aggregate': 'whole'}.get(quantity, 'mean')",
                # A root of a mean taken for a mean.
                "def estimator_case(quantity):\n"
                "    return {'weights': 'inner', 'aggregate': 'whole'}.get(\n"
                "        quantity, 'mean')",
                # A curved function inside an example, of no average.
                "def estimator_case(quantity):\n"
                "    return {'weights': 'inner', 'rmse': 'whole',\n"
                "            'aggregate': 'whole', 'entropy': 'whole',\n"
                "            }.get(quantity, 'mean')",
            ],
            same,
        ),
        Check(
            "divergence of four aggregates",
            2,
            "aggregate_kl",
            settings,
            whole,
            "Average the guesses first, then take the KL to the prior, once.",
            [
                # The mean of the guesses' own divergences.
                AGGREGATE + "    terms = torch.xlogy(q, q) - torch.xlogy(q, prior)\n"
                "    return terms.sum(1).mean()",
                # From the prior to the aggregate.
                AGGREGATE + "    mean = q.mean(0)\n"
                "    return (prior * (prior / mean).log()).sum()",
                # In bits.
                AGGREGATE + "    mean = q.mean(0)\n"
                "    terms = torch.xlogy(mean, mean) - torch.xlogy(mean, prior)\n"
                "    return terms.sum() / torch.tensor(2.0).log()",
                # A code that is not used gives NaN.
                AGGREGATE + "    mean = q.mean(0)\n"
                "    return (mean * (mean / prior).log()).sum()",
                # Averaged over codes.
                AGGREGATE + "    mean = q.mean(0)\n"
                "    terms = torch.xlogy(mean, mean) - torch.xlogy(mean, prior)\n"
                "    return terms.mean()",
            ],
        ),
        Check(
            "expectation by multisets",
            3,
            "expected_batch_kl",
            sized,
            expected,
            "How many batches are there, order counted, and is any left out?",
            [
                # Averaging is thought to give the whole.
                EXPECTED + "    return aggregate_kl(q, prior)",
                # Distinct examples only, as in the chapter.
                EXPECTED + "    batches = list(combinations(range(n), min(size, n)))\n"
                "    values = [aggregate_kl(q[list(b)], prior) for b in batches]\n"
                "    return sum(values) / len(values)",
                # Each content counted once.
                EXPECTED
                + "    batches = list(combinations_with_replacement(range(n), size))\n"
                "    values = [aggregate_kl(q[list(b)], prior) for b in batches]\n"
                "    return sum(values) / len(values)",
                # The KL after averaging the batches, not before.
                EXPECTED + "    batches = list(product(range(n), repeat=size))\n"
                "    means = torch.stack([q[list(b)].mean(0) for b in batches])\n"
                "    return aggregate_kl(means, prior)",
                # The divergences of single examples.
                EXPECTED
                + "    return sum(aggregate_kl(r[None], prior) for r in q) / n",
            ],
        ),
        Check(
            "terms of the excess, one by one",
            2,
            "excess_terms",
            without_prior,
            excess,
            "Each term is a divergence: none is negative. In which step of your proof "
            "did the prior go?",
            [
                # By difference, with a uniform prior: the right mean of other terms.
                TERMS + "    least = aggregate_kl(q, even)\n"
                "    return [aggregate_kl(q[b], even) - least for b in batches]",
                # From the whole to the batch.
                TERMS + "    return [aggregate_kl(whole[None], q[b].mean(0))\n"
                "            for b in batches]",
                # Unbiased.
                TERMS + "    return [0.0 for b in batches]",
                # Single guesses, divided by the size.
                TERMS
                + "    singles = [aggregate_kl(r[None], whole) / size for r in q]\n"
                "    return singles * len(q) ** (size - 1)",
                # From a uniform law, in place of the aggregate.
                TERMS + "    return [aggregate_kl(q[b], even) for b in batches]",
                # Distinct examples only.
                TERMS + "    distinct = [b for b in batches if len(set(b)) == size]\n"
                "    return [aggregate_kl(q[b], whole) for b in distinct]",
                # Their mean alone.
                TERMS + "    return expected_batch_kl(q, whole, size)",
            ],
            in_any_order,
        ),
        Check(
            "mean and error from listed batches",
            3,
            "batch_estimate",
            picked,
            estimate,
            "One KL a batch; then the mean, and the deviation over the root of how "
            "many.",
            [
                # All batches pooled: the average before the KL.
                ESTIMATE + "    pooled = aggregate_kl(q[picks.flatten()], prior)\n"
                "    return pooled, value.std() / len(value) ** 0.5",
                # A standard deviation is no standard error.
                ESTIMATE + "    return value.mean(), value.std()",
                # The exact value of the whole in place of an estimate.
                ESTIMATE + "    exact = aggregate_kl(q, prior)\n"
                "    return exact, value.std() / len(value) ** 0.5",
                # Divided by the number of members in all.
                ESTIMATE
                + "    return value.mean(), value.std() / picks.numel() ** 0.5",
                # The exact expectation in place of an estimate.
                ESTIMATE + "    exact = expected_batch_kl(q, prior, 3)\n"
                "    return exact, value.std() / len(value) ** 0.5",
            ],
            both,
        ),
        Check(
            "first number beyond doubt",
            1,
            "batches_needed",
            biases,
            first_beyond_doubt,
            "The standard error falls with the root of the number of batches.",
            [
                # The root forgotten.
                NEEDED + "    return ceil(5 * sd / bias)",
                # Rounded down.
                NEEDED + "    return int((5 * sd / bias) ** 2)",
                # One more than needed where five errors fit exactly.
                NEEDED + "    return int((5 * sd / bias) ** 2) + 1",
                # Averaging is thought to remove the bias: never.
                NEEDED + "    return 0",
                # One standard error.
                NEEDED + "    return ceil((sd / bias) ** 2)",
            ],
            same,
        ),
        Check(
            "known case with the bias asked for",
            3,
            "own_setting",
            once,
            lambda given: [given["size"], given["target"]],
            "Blend vague guesses with sure ones, and turn the blend. Then state what "
            "your two functions return for exactly these guesses and a uniform prior.",
            [
                # The batches' own bias denied.
                OWN + "    return q, whole, whole",
                # The price of single guesses.
                OWN + "    return q, whole, expected_batch_kl(q, even, 1)",
                # The chapter's setting, whose whole has no distance.
                "def own_setting():\n"
                "    q = torch.tensor([[.9, .1], [.7, .3], [.3, .7], [.1, .9]])\n"
                "    half = torch.tensor([.5, .5])\n"
                "    return q, 0.0, expected_batch_kl(q, half, size)",
                # The notebook's setting and prior.
                "def own_setting():\n"
                "    batches = expected_batch_kl(q, prior, size)\n"
                "    return q, aggregate_kl(q, prior), batches",
                # Sure guesses: far too large a bias.
                "def own_setting():\n"
                "    q = torch.eye(3)[[0, 0, 1, 2]]\n"
                "    even = torch.full((3,), 1 / 3)\n"
                "    return q, aggregate_kl(q, even), expected_batch_kl(q, even, size)",
                # The right bias, with wrong values stated.
                OWN + "    return q, 0.0, target",
                # Rounded to three digits.
                OWN + "    return q, round(float(whole), 3), round(float(batches), 3)",
            ],
            known_case,
        ),
    ],
)
