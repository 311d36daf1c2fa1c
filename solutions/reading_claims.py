"""Hidden checks of the exercise on reading claims."""

import math

import torch

from coursework.checks import Check, Exercise, close, misshapen, same
from genaudit.metrics import bits_per_character, perplexity

# Right answers, for slips to be made in.
PASS = """
def passes_within(n, c, k):
    if n - c < k:
        return 1.0
    places = torch.arange(n - c + 1, n + 1).double()
    return -torch.expm1(torch.log1p(-k / places).sum())
"""
BIAS = """
def shortcut_bias(n, k, chances):
    passes = torch.arange(n + 1.0)
    law = torch.distributions.Binomial(n, chances[:, None]).log_prob(passes).exp()
    expected = law @ (1 - (1 - passes / n) ** k)
    return (expected - (1 - (1 - chances) ** k)).mean()
"""
TEXTS = """
def perplexity_and_bits(logs, mask, characters):
    real = logs[mask == 1]
    bits = -real.sum() / torch.tensor(2.0).log() / characters.sum()
    return (-real.mean()).exp(), bits
"""
MEANS = "(torch.where(mask == 1, logs, 0.0).sum(1) / mask.sum(1))"  # of each row
POOL = """
def pooled_perplexity(perplexities, tokens):
    return ((perplexities.log() * tokens).sum() / tokens.sum()).exp()
"""
COUNT = """
def attention_counts(tokens, width, pattern):
    scores = tokens**2 if pattern == "all" else tokens * (tokens + 1) // 2
    return scores, 4 * width * scores, 12 * width * scores
"""
SPLIT = """
def split_budget(budget, a, e, low, high):
    if not low <= budget <= high:
        return "refused"
    each = a * budget**e
    return each, budget / each
"""
GROW = """
def grow(budget, factor, e, low, high):
    if budget < low or budget * factor > high:
        return "refused"
    return factor**e, factor ** (1 - e)
"""
RIGHT = """
def corrections():
    sizes = my_context, 2 * my_context
    counts = [attention_counts(n, 1, "causal")[0] for n in sizes]
    return [
        passes_within(my_attempts, my_passed, my_granted),
        pooled_perplexity(torch.tensor(my_perplexities), torch.tensor(my_lengths)),
        counts[1] / counts[0],
        grow(1e18, my_raise, my_exponent, 1e17, 3e20)[1],
    ]
"""


def records(stream, given):
    """Ordinary records, two about as many failures as runs, two of a million runs."""
    n, k = stream.randint(30, 60), stream.randint(5, 20)
    few = stream.randint(5, 8)
    return [
        (n, stream.randint(2, 9), stream.randint(2, 15)),
        (n, n - k + 3, k),
        (few, few - 3, 3),
        (n, 0, k),
        (1_000_000, stream.randint(1, 3), stream.randint(2, 5)),
        (1_000_000, stream.randint(300, 500), stream.randint(1500, 2500)),
    ]


def tasks(stream, given):
    """Four benchmarks of one to five tasks."""
    sizes = [(30, 2, 1), (12, 5, 3), (8, 8, 2), (20, 6, 5)]
    return [
        (n + stream.randint(0, 3), k, [stream.uniform(0.03, 0.6) for _ in range(m)])
        for n, k, m in sizes
    ]


def batches(stream, given):
    """Three collections of texts, with something else under each filling."""
    calls = []
    fillings = stream.uniform(-3, 0), math.nan, -math.inf
    for (texts, longest), filling in zip([(2, 6), (3, 9), (5, 7)], fillings):
        real = [longest] + [stream.randint(1, longest - 2) for _ in range(texts - 1)]
        mask = [[int(place < length) for place in range(longest)] for length in real]
        logs = [
            [-stream.expovariate(0.6) if one else filling for one in row]
            for row in mask
        ]
        characters = [length * 3 + stream.randint(1, 40) for length in real]
        calls.append((logs, mask, characters))
    return calls


def tables(stream, given):
    """Four tables of perplexities and numbers of tokens."""
    return [
        (
            [stream.uniform(1.5, 60) for _ in range(size)],
            [stream.randint(5, 3000) for _ in range(size)],
        )
        for size in (2, 2, 3, 6)
    ]


def heads(stream, given):
    """Short and long texts in both patterns."""
    return [
        (stream.randint(*ends), stream.choice([32, 48, 64, 128]), pattern)
        for ends in [(2, 30), (20_000, 60_000)]
        for pattern in ("all", "causal")
    ]


def budgets(stream, given):
    """One budget inside, both ends, and one beyond each."""
    low, high = 10 ** stream.uniform(16, 18), 10 ** stream.uniform(20, 22)
    law = stream.uniform(0.05, 0.5), stream.uniform(0.45, 0.6), low, high
    inside = 10 ** stream.uniform(18.2, 19.8)
    return [(c, *law) for c in (inside, low, high, low / 3, high * 3)]


def raises(stream, given):
    """Three raises inside, one that leaves the range, one that starts outside."""
    low, high = 10 ** stream.uniform(16, 17), 10 ** stream.uniform(20, 21)
    e = stream.choice([-1, 1]) * stream.uniform(0.03, 0.1) + 0.5
    pairs = [
        (low, stream.uniform(5, 200)),
        (low * 20, stream.uniform(2, 40)),
        (high / 64, 64.0),  # exactly up to the end, since 64 is a power of two
        (high / 10, stream.uniform(20, 90)),
        (low / 5, stream.uniform(20, 90)),
    ]
    return [(budget, factor, e, low, high) for budget, factor in pairs]


def once(stream, given):
    """A single call without arguments."""
    return [()]


def by_integers(given, n, c, k):
    """Integers of any length, rounded once at the end."""
    choices = math.comb(n, k)
    return (choices - math.comb(n - c, k)) / choices


def by_moments(given, n, k, chances):
    """The average of a power of the failures, from falling factorials."""
    stirling = [1] + [0] * k  # partitions of so many places into j blocks
    for _ in range(k):
        stirling = [0] + [stirling[j] * j + stirling[j - 1] for j in range(1, k + 1)]
    fails = 1 - chances
    power = sum(stirling[j] * math.perm(n, j) * fails**j for j in range(k + 1)) / n**k
    return (fails**k - power).mean()


def both_measures(given, logs, mask, characters):
    """The package's perplexity and bits."""
    bits = bits_per_character(logs, int(characters.sum()), mask)
    return [perplexity(logs, mask), bits]


def one_by_one(given, perplexities, tokens):
    """The package's perplexity of a text with every token written out."""
    return perplexity((-perplexities.log()).repeat_interleave(tokens))


def rows_of_keys(given, tokens, width, pattern):
    """Scores query by query, then two FLOPs an entry for each of six products."""
    scores = sum(i if pattern == "causal" else tokens for i in range(1, tokens + 1))
    return [scores, 2 * (2 * width * scores), 6 * (2 * width * scores)]


def within_range(given, budget, a, e, low, high):
    """Both shares by their logarithms."""
    if budget < low or budget > high:
        return "refused"
    each = math.exp(math.log(a) + e * math.log(budget))
    return [each, math.exp(math.log(budget / a) - e * math.log(budget))]


def between(given, budget, factor, e, low, high):
    """Both factors, from the split at the two budgets."""
    ends = [
        within_range(given, c, 1.0, e, low, high) for c in (budget, budget * factor)
    ]
    if "refused" in ends:
        return "refused"
    return [after / before for before, after in zip(*ends)]


def four(given):
    """The right number of each sentence."""
    record = (given[name] for name in ("my_attempts", "my_passed", "my_granted"))
    table = (torch.tensor(given[name]) for name in ("my_perplexities", "my_lengths"))
    short, long = (n * (n + 1) for n in (given["my_context"], 2 * given["my_context"]))
    return [
        by_integers(given, *record),
        one_by_one(given, *table),
        long / short,
        between(given, 1e18, given["my_raise"], given["my_exponent"], 1e17, 3e20)[1],
    ]


def or_refused(expected, got):
    """The word where it is due, and the numbers elsewhere."""
    return same(expected, got) if expected == "refused" else close()(expected, got)


def each_sentence(expected, got):
    """Four numbers, each by itself, so that it can be said which one is wrong."""
    reason = misshapen(expected, got)
    if reason:
        return reason
    for place, pair in enumerate(zip(expected, got), 1):
        if close()(*pair):
            return f"the number of sentence {place} is not right"
    return None


exercise = Exercise(
    title="Reading claims",
    chapter="pass_at_k",
    constants={
        "my_attempts": [40, 50, 60],
        "my_passed": [6, 5, 7, 8],
        "my_granted": [10, 8, 12],
        "my_perplexities": [[4.0, 30.0], [5.0, 40.0], [3.0, 24.0], [35.0, 6.0]],
        "my_lengths": [[800, 200], [900, 150], [700, 300]],
        "my_context": [2000, 1500, 3000],
        "my_raise": [60, 40, 80, 25],
        "my_exponent": [0.5243, 0.54, 0.57, 0.46],
    },
    checks=[
        Check(
            "records small and huge, to eight digits",
            3,
            "passes_within",
            records,
            by_integers,
            "Cancel before you take logarithms: of two binomials that are divided a "
            "short product is left.",
            [
                # The shortcut, which puts runs back.
                "def passes_within(n, c, k): return 1 - (1 - c / n) ** k",
                # Binomials as floating-point numbers.
                "from scipy.special import comb\n"
                "def passes_within(n, c, k):\n"
                "    bad, all = (torch.tensor(comb(m, k)) for m in (n - c, n))\n"
                "    return 1 - bad / all",
                # A difference of large logarithms.
                "import math\n"
                "def passes_within(n, c, k):\n"
                "    if n - c < k: return 1.0\n"
                "    up, down = (n - c, n - k), (n, n - c - k)\n"
                "    a, b = (sum(math.lgamma(m + 1) for m in s) for s in (up, down))\n"
                "    return 1 - math.exp(a - b)",
                # Just enough failures taken for too few.
                PASS.replace("n - c < k", "n - c <= k"),
                # The case of too few failures forgotten.
                PASS.replace("n - c < k", "False"),
                # One factor too few.
                PASS.replace("n - c + 1", "n - c + 2"),
            ],
            close(1e-8, 1e-15),
        ),
        Check(
            "bias by moments, for four benchmarks",
            3,
            "shortcut_bias",
            tasks,
            by_moments,
            "Average the shortcut over the binomial law of c and take the truth away; "
            "only then average over tasks.",
            [
                # The truth minus the shortcut.
                BIAS.replace("mean()", "mean().neg()"),
                # Tasks pooled.
                "right = shortcut_bias\n"
                "def shortcut_bias(n, k, chances):\n"
                "    return right(n, k, chances.mean()[None])",
                # As if the mean of c could be put in.
                "def shortcut_bias(n, k, chances): return 0.0",
                # First order in 1/n only.
                "def shortcut_bias(n, k, chances):\n"
                "    q = 1 - chances\n"
                "    return -(k * (k - 1) / 2 * q ** (k - 1) * chances / n).mean()",
                # Second order in the spread of c/n.
                "def shortcut_bias(n, k, chances):\n"
                "    q = 1 - chances\n"
                "    return -(k * (k - 1) / 2 * q ** (k - 2) * chances * q / n).mean()",
                # The degrees of freedom of a sample variance.
                BIAS.replace("mean()", "mean() * (n - 1) / n"),
                # Relative to the truth.
                BIAS.replace(
                    "(expected - (1 - (1 - chances) ** k))",
                    "(expected / (1 - (1 - chances) ** k) - 1)",
                ),
            ],
            close(1e-6, 1e-10),
        ),
        Check(
            "collections with filling, every token alike",
            3,
            "perplexity_and_bits",
            batches,
            both_measures,
            "Pick the real tokens of all texts first; bits divide by all characters.",
            [
                # The claim: an average of the rows' perplexities.
                TEXTS.replace("(-real.mean()).exp()", f"(-{MEANS}).exp().mean()"),
                # The filling multiplied away, which NaN and infinity withstand.
                TEXTS.replace("logs[mask == 1]", "(logs * mask)").replace(
                    "real.mean()", "(real.sum() / mask.sum())"
                ),
                # The filling counted.
                TEXTS.replace("logs[mask == 1]", "logs"),
                # Divided by all places.
                TEXTS.replace("real.mean()", "real.sum() / mask.numel()"),
                # Nats in place of bits.
                TEXTS.replace(" / torch.tensor(2.0).log()", ""),
                # Bits for each token.
                TEXTS.replace("characters.sum()", "mask.sum()"),
                # Exponential of the mean of the rows' means.
                TEXTS.replace("real.mean()", f"{MEANS}.mean()"),
            ],
        ),
        Check(
            "printed tables, token by token",
            2,
            "pooled_perplexity",
            tables,
            one_by_one,
            "Go back to log-probabilities: those add up over tokens, and stay small.",
            [
                # The mean of the perplexities.
                "def pooled_perplexity(perplexities, tokens):\n"
                "    return perplexities.mean()",
                # That mean, weighted with tokens.
                POOL.replace(".log()", "").replace(").exp()", ")"),
                # Every text alike.
                "def pooled_perplexity(perplexities, tokens):\n"
                "    return perplexities.log().mean().exp()",
                # A product over all tokens.
                "def pooled_perplexity(perplexities, tokens):\n"
                "    return (perplexities**tokens).prod() ** (1 / tokens.sum())",
                # A mean of reciprocals.
                "def pooled_perplexity(perplexities, tokens):\n"
                "    return tokens.sum() / (tokens / perplexities).sum()",
            ],
        ),
        Check(
            "operations in both patterns",
            3,
            "attention_counts",
            heads,
            rows_of_keys,
            "Two FLOPs for each entry of a product, two products forward, and twice as "
            "many on the way back; the diagonal belongs to the causal half.",
            [
                # Half of the square.
                COUNT.replace("tokens * (tokens + 1) // 2", "tokens**2 // 2"),
                # One product only; or a multiplication and an addition taken as one.
                COUNT.replace("4 * width", "2 * width").replace("12 *", "6 *"),
                # The way back counted once.
                COUNT.replace("12 *", "8 *"),
                # Without the token itself.
                COUNT.replace("(tokens + 1)", "(tokens - 1)"),
                # A mask laid over the finished table.
                COUNT.replace("4 * width * scores", "4 * width * tokens**2"),
                # Linear, as the announcement has it.
                COUNT.replace("tokens * (tokens + 1) // 2", "tokens"),
            ],
            same,
        ),
        Check(
            "budgets within the fit, on its edge and beyond",
            2,
            "split_budget",
            budgets,
            within_range,
            "D is what the budget leaves at this M. Compare the budget with both ends.",
            [
                # No refusal.
                SPLIT.replace("not low <= budget <= high", "False"),
                # The ends refused too.
                SPLIT.replace("low <= budget <= high", "low < budget < high"),
                # The data without their coefficient.
                SPLIT.replace("budget / each", "budget ** (1 - e)"),
                # The nearest end in place of a refusal.
                SPLIT.replace(
                    'return "refused"', "budget = min(max(budget, low), high)"
                ),
                # An even split.
                SPLIT.replace("a * budget**e", "budget**0.5"),
            ],
            or_refused,
        ),
        Check(
            "raises within the fit and out of it",
            2,
            "grow",
            raises,
            between,
            "The exponents of both factors add to one; look where the raise ends.",
            [
                # Only the start compared with the range.
                GROW.replace("budget * factor > high", "budget > high"),
                # The upper end refused.
                GROW.replace("budget * factor > high", "budget * factor >= high"),
                # Only the end.
                GROW.replace("budget < low", "budget * factor < low"),
                # An even split.
                GROW.replace(
                    "factor**e, factor ** (1 - e)", "factor**0.5, factor**0.5"
                ),
                # Model and data exchanged.
                GROW.replace(
                    "factor**e, factor ** (1 - e)", "factor ** (1 - e), factor**e"
                ),
            ],
            or_refused,
        ),
        Check(
            "all of it mended",
            2,
            "corrections",
            once,
            four,
            "In turn: a share of choices of runs; every token alike; a ratio of two "
            "counts, with their diagonals; the factor of D, not of M. It may fail "
            "because one of the functions that it calls does.",
            [
                # The shortcut believed.
                RIGHT.replace(
                    "passes_within(my_attempts, my_passed, my_granted)",
                    "1 - (1 - my_passed / my_attempts) ** my_granted",
                ),
                # The mean of the perplexities believed.
                RIGHT.replace("pooled_perplexity(", "(lambda p, n: p.mean())("),
                # Exactly the square.
                RIGHT.replace("counts[1] / counts[0]", "4"),
                # Linear.
                RIGHT.replace("counts[1] / counts[0]", "2"),
                # The model's factor.
                RIGHT.replace("3e20)[1]", "3e20)[0]"),
            ],
            each_sentence,
        ),
    ],
)
