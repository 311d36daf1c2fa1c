"""Claims about fitted laws that share a compute budget out to model and data."""

import math

from genaudit.scaling import DEEPSEEK_D, DEEPSEEK_M, PowerLaw
from tests.claims.ledger import recomputes


def other_half(law: PowerLaw) -> tuple[float, float]:
    """Coefficient and exponent that C = M D leaves for the other of the two."""
    return 1 / law.coefficient, 1 - law.exponent


@recomputes("scal.fit.*")
def each_from_the_other():
    return {"M": other_half(DEEPSEEK_D), "D": other_half(DEEPSEEK_M)}


@recomputes("scal.M100", "scal.D100", "scal.mult")
def growth(ratio):
    per_token, tokens = (
        law(ratio * law.low) / law(law.low) for law in (DEEPSEEK_M, DEEPSEEK_D)
    )
    return {"M100": per_token, "D100": tokens, "mult": per_token * tokens}


@recomputes("scal.law.CMD")
def product_of_the_fits():
    return (
        DEEPSEEK_M.coefficient * DEEPSEEK_D.coefficient,
        DEEPSEEK_M.exponent + DEEPSEEK_D.exponent,
    )


@recomputes("scal.opt.1e17")
def optimum(budget):
    return DEEPSEEK_M(budget), DEEPSEEK_D(budget)


@recomputes("scal.fig.inrange")
def powers_of_ten(drawn):
    """That the drawing spans, that the fit spans, that they share."""
    fitted = DEEPSEEK_M.low, DEEPSEEK_M.high
    shared = max(fitted[0], drawn[0]), min(fitted[1], drawn[1])
    return tuple(math.log10(high / low) for low, high in (drawn, fitted, shared))
