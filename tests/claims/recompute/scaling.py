"""Claims about fitted laws that share a compute budget out to model and data."""

import math

from tests.claims.ledger import recomputes


@recomputes("scal.fit.*")
def the_other_half(coefficient, exponent):
    """What C = M D leaves for one of the two when the other is fitted."""
    return 1 / coefficient, 1 - exponent


@recomputes("scal.M100", "scal.D100", "scal.mult")
def growth(ratio, exponents):
    per_token, tokens = ratio**exponents
    return {"M100": per_token, "D100": tokens, "mult": per_token * tokens}


@recomputes("scal.law.CMD")
def product_of_the_fits(coefficients, exponents):
    return coefficients.prod(), exponents.sum()


@recomputes("scal.opt.1e17")
def optimum(budget, coefficients, exponents):
    return tuple(coefficients * budget**exponents)


@recomputes("scal.fig.inrange")
def powers_of_ten(fitted, drawn):
    """That the drawing spans, that the fit spans, that they share."""
    shared = max(fitted[0], drawn[0]), min(fitted[1], drawn[1])
    return tuple(math.log10(high / low) for low, high in (drawn, fitted, shared))
