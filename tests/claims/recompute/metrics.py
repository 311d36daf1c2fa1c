"""Claims about attempts that pass, and about the perplexity of a text."""

import itertools
import math
from collections.abc import Callable, Iterator

import torch
from scipy import stats
from torch import Tensor

from genaudit.metrics import pass_at_k, perplexity
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import seeded, uniform


@recomputes("passk.pairs", "passk.failpairs", "passk.okpairs", "passk.names")
def choices_of_attempts(n, k, c=0):
    """Of k among n attempts, numbered from 1; the first c passed."""
    choices = list(itertools.combinations(range(1, n + 1), k))
    failing = [chosen for chosen in choices if min(chosen) > c]
    return {
        "pairs": len(choices),
        "failpairs": len(failing),
        "okpairs": len(choices) - len(failing),
        "names": tuple(itertools.chain(*failing)),
    }


@recomputes("passk.07", "passk.edge")
def unbiased_estimate(n, c, k):
    return pass_at_k(n, c, k)


def shortcut(n, c, k):
    """As if each of the k attempts were drawn anew from all n."""
    return 1 - (1 - torch.as_tensor(c).double() / n) ** k


@recomputes("passk.064")
def plug_in_estimate(n, c, k):
    return shortcut(n, c, k)


def biases(estimate: Callable, largest: int, chances: Tensor) -> Iterator[Tensor]:
    """The mean of an estimate less the truth, for all k, exactly: c is binomial."""
    for n, p in itertools.product(range(1, largest + 1), chances.tolist()):
        c, k = torch.arange(n + 1), torch.arange(1, n + 1)
        weights = torch.from_numpy(stats.binom.pmf(c, n, p))
        yield weights @ estimate(n, c[:, None], k) - (1 - (1 - p) ** k.double())


@recomputes("passk.law.unbiased")
def largest_bias(largest, p):
    return torch.cat(list(biases(pass_at_k, largest, p))).abs().max()


@recomputes("passk.law.shortcut-bias")
def bias_of_the_shortcut(largest, p):
    by_k = list(biases(shortcut, largest, p))
    once = torch.stack([each[0] for each in by_k])
    more = torch.cat([each[1:] for each in by_k])
    return once.abs().max(), more.max(), more.min()


@recomputes("passk.law.stable")
def forms_of_the_estimate(largest):
    """How far the plain product and the package are from the binomials, at most."""
    product_off = package_off = 0.0
    for n in range(1, largest + 1):
        c, k = torch.arange(n + 1), torch.arange(1, n + 1)
        package = pass_at_k(n, c[:, None], k).flatten().tolist()
        for (passed, granted), value in zip(
            itertools.product(c.tolist(), k.tolist()), package, strict=True
        ):
            right = 1 - math.comb(n - passed, granted) / math.comb(n, granted)
            failing = (1 - granted / i for i in range(n - passed + 1, n + 1))
            product_off = max(product_off, abs(1 - math.prod(failing) - right))
            package_off = max(package_off, abs(value - right))
    return product_off, package_off


@recomputes("ppl.quarter", "ppl.464")
def perplexity_of_a_text(p):
    return perplexity(p.log())


@recomputes("ppl.215", "ppl.product")
def product_and_mean(p):
    return {"product": p.prod(), "215": p.prod() ** (1 / len(p))}


@recomputes("ppl.const")
def perplexity_of_equal_tokens(score, tokens):
    return perplexity((1 / score).expand(tokens).log())


@recomputes("ppl.notsum")
def sums_over_positions(p, score):
    return p.sum(), len(p) / score


@recomputes("ppl.law.gm")
def two_readings(cases, tokens, seed):
    """Residuals: times the geometric mean; of the mean negative log-probability."""
    means, logs = [], []
    for p in uniform(seeded(seed), cases, tokens):
        score = perplexity(p.log())
        means.append(abs(score * stats.gmean(p) - 1))
        logs.append(abs(math.log(score) + math.fsum(p.log()) / tokens))
    return max(means), max(logs)
