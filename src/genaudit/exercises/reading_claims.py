"""Visible checks of the exercise on reading claims."""

import itertools
import math

import torch

from genaudit.exercises._say import visible


@visible
def passes_within(answer):
    """passes_within(n, c, k) -> number."""
    for n, c in [(5, 2), (9, 4), (30, 1)]:
        yield (
            abs(answer(n, c, 1) - c / n) < 1e-9,
            "a single run passes as often as seen.",
        )
    yield abs(answer(12, 0, 4)) < 1e-9, "no pass on record, no pass estimated."
    yield abs(answer(12, 12, 3) - 1) < 1e-9, "where every run passed, one is enough."
    yield (
        abs(answer(12, 9, 5) - 1) < 1e-9,
        "fewer failures than runs: every choice holds a pass.",
    )
    for n, c, k in [(6, 2, 3), (7, 3, 2), (6, 3, 3)]:
        runs = [run < c for run in range(n)]
        choices = list(itertools.combinations(runs, k))
        share = sum(any(choice) for choice in choices) / len(choices)
        yield (
            abs(answer(n, c, k) - share) < 1e-9,
            "it is a share of all choices of runs.",
        )
    yield abs(answer(40, 3, 8) - answer(40, 8, 3)) < 1e-9, "c and k may change places."
    million = 1_000_000
    rare = answer(million, 1, 2)
    yield (
        abs(rare * million / 2 - 1) < 1e-9,
        "a single pass in a million runs: cancel before you take logarithms.",
    )
    half = answer(million, 700, 1000)
    yield 0 < half < 1, "a million runs must neither overflow nor end in NaN."


@visible
def shortcut_bias(answer):
    """shortcut_bias(n, k, chances) -> signed number."""
    chances = torch.tensor([0.1, 0.35, 0.8], dtype=torch.float64)
    yield abs(answer(12, 1, chances)) < 1e-9, "for a single run the shortcut is right."
    certain = torch.tensor([0.0, 1.0], dtype=torch.float64)
    yield (
        abs(answer(12, 4, certain)) < 1e-9,
        "where nothing is left to chance: no bias.",
    )
    two, ten = answer(20, 2, chances[:1]), answer(20, 10, chances[:1])
    yield two < 0 and ten < 0, "the average over records has a sign; think of Jensen."
    yield ten < two, "of few and of many runs on a hard task, one bias is off."
    once = (chances - 1 + (1 - chances) ** 5).mean()
    yield (
        abs(answer(1, 5, chances) - once) < 1e-9,
        "with a single run on record the shortcut is nought or one, whatever k.",
    )
    halved = answer(400, 2, chances) / answer(800, 2, chances)
    yield abs(halved - 2) < 0.1, "twice the runs on record: about half of the bias."
    each = sum(answer(15, 3, chance[None]) for chance in chances) / 3
    yield (
        abs(answer(15, 3, chances) - each) < 1e-9,
        "each task by itself, and then the mean.",
    )


@visible
def perplexity_and_bits(answer):
    """perplexity_and_bits(logs, mask, characters) -> (perplexity, bits)."""
    die = torch.full((2, 3), 0.125, dtype=torch.float64).log()
    full = torch.ones(2, 3, dtype=torch.int64)
    perplexity, bits = answer(die, full, torch.tensor([3, 3]))
    yield (
        abs(perplexity - 8) < 1e-9,
        "a fair die has its number of sides as perplexity.",
    )
    yield (
        abs(2**bits - perplexity) < 1e-9,
        "where each token is a character, both numbers say the same.",
    )
    logs = torch.tensor([[-0.3, -2.0, -0.9], [-1.5, -0.1, -0.2]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    characters = torch.tensor([14, 3])
    pair = answer(logs, mask, characters)
    for junk in [0.0, -40.0, math.nan, -math.inf]:
        other = answer(torch.where(mask == 1, logs, junk), mask, characters)
        yield _near(other, pair), "what stands under the filling must not matter."
    flat = logs[mask == 1][None]
    other = answer(flat, torch.ones_like(flat).long(), characters.sum()[None])
    yield _near(other, pair), "all texts written one after the other: the same numbers."
    longer = answer(logs, mask, 2 * characters)
    yield (
        _near(longer, (pair[0], pair[1] / 2)),
        "more characters make fewer bits for each, and leave the perplexity.",
    )


@visible
def pooled_perplexity(answer):
    """pooled_perplexity(perplexities, tokens) -> number."""

    def pool(perplexities, tokens):
        perplexities = torch.tensor(perplexities, dtype=torch.float64)
        return float(answer(perplexities, torch.tensor(tokens)))

    yield abs(pool([7.0, 7.0], [10, 90]) - 7) < 1e-9, "equal texts keep their value."
    even = pool([2.0, 8.0], [50, 50])
    yield abs(even / 2 - 8 / even) < 1e-9, "of two equal lengths neither has the word."
    long = pool([2.0, 8.0], [50, 5000])
    yield (
        math.isfinite(long),
        "a product over thousands of tokens overflows: what can be added instead?",
    )
    yield 7.5 < long < 8, "a long text outweighs a short one."
    parts = pool([pool([2.0, 8.0], [30, 60]), 5.0], [90, 20])
    yield (
        abs(parts - pool([2.0, 8.0, 5.0], [30, 60, 20])) < 1e-9,
        "first two texts, then the third: the order of pooling changes nothing.",
    )


@visible
def attention_counts(answer):
    """attention_counts(tokens, width, pattern) -> scores, FLOPs, FLOPs of a step."""
    pairs = [(q, k) for q in range(9) for k in range(9)]
    earlier = [pair for pair in pairs if pair[1] <= pair[0]]
    everything, causal = answer(9, 4, "all"), answer(9, 4, "causal")
    yield everything[0] == len(pairs), "every query meets every key."
    yield causal[0] == len(earlier), "a token sees itself and those before it."
    _, forward, step = answer(1, 1, "all")
    yield forward == 2 + 2, "a single token of width one: two products of one entry."
    back = step - forward
    yield back == 2 * forward, "on the way back each product asks for two of its size."
    for place in (1, 2):
        share = causal[place] * len(pairs) - everything[place] * len(earlier)
        yield share == 0, "the FLOPs shrink in proportion to the scores."
    for pattern in ("all", "causal"):
        # No table of so many scores fits in any memory.
        long, half = (answer(n, 8, pattern) for n in (20_000_000, 10_000_000))
        yield (
            3.99 < long[1] / half[1] < 4.01,
            f"pattern {pattern}: it stays quadratic.",
        )
        short, wide = (answer(500, width, pattern) for width in (8, 16))
        yield wide[0] == short[0], "a wider head has as many scores."
        yield wide[2] == 2 * short[2], "a head twice as wide: twice the arithmetic."


@visible
def split_budget(answer):
    """split_budget(budget, a, e, low, high) -> (M, D) or "refused"."""
    for budget in (1e18, 1e20, 7e18):
        split = answer(budget, 0.3, 0.55, 1e18, 1e20)
        yield (
            split != "refused",
            "inside of the range, ends included, there is an answer.",
        )
        yield abs(split[0] * split[1] / budget - 1) < 1e-9, "the budget must be spent."
    for budget in (9e17, 1.1e20):
        gone = answer(budget, 0.3, 0.55, 1e18, 1e20)
        yield gone == "refused", "outside of the range no run stands behind an answer."
    small, large = (answer(c, 0.3, 0.6, 1e18, 1e20) for c in (1e18, 1e20))
    gained = math.log(large[0] / small[0]) / math.log(100)
    yield abs(gained - 0.6) < 1e-9, "M grows with the exponent of the fit."
    single, double = (answer(1e19, a, 0.55, 1e18, 1e20)[0] for a in (0.3, 0.6))
    yield abs(double / single - 2) < 1e-9, "M is in proportion to the coefficient."


@visible
def grow(answer):
    """grow(budget, factor, e, low, high) -> (factor of M, factor of D) or "refused"."""
    model, data = answer(1e18, 50, 0.6, 1e17, 1e20)
    yield abs(model * data / 50 - 1) < 1e-9, "both factors together raise the budget."
    yield model > data > 1, "an exponent above one half favours the model."
    again = answer(1e18, 2500, 0.6, 1e17, 1e22)
    yield abs(again[0] / model**2 - 1) < 1e-9, "raised twice: the factors multiply."
    even = answer(1e18, 50, 0.5, 1e17, 1e20)
    yield abs(even[0] - even[1]) < 1e-9, "an exponent of one half splits evenly."
    for budget, factor in [(1e17, 10), (1e18, 100)]:
        yield (
            answer(budget, factor, 0.6, 1e17, 1e20) != "refused",
            "both ends belong to the range.",
        )
    for budget, factor in [(5e16, 50), (1e19, 50), (5e16, 1e6)]:
        gone = answer(budget, factor, 0.6, 1e17, 1e20)
        yield gone == "refused", "both budgets must lie in the range of the fit."


def _near(got, wanted) -> bool:
    return all(abs(a - b) < 1e-9 for a, b in zip(got, wanted))
