"""Sixteen practice problems: answers that are checked without being shown."""

import math
from numbers import Real
from typing import NamedTuple

import torch

from genaudit import _check
from genaudit.latent import FiniteModel
from genaudit.mixture import GaussianMixture
from genaudit.process import (
    clean_from_noise,
    ddim_step,
    ddpm_mean,
    guided_noise,
    langevin_step,
    noise_from_clean,
    noise_from_score,
)
from genaudit.report import print_table
from genaudit.schedule import Schedule


class Part(NamedTuple):
    """What one part of a problem asks for.

    Attributes:
        value: the answer.
        places: decimals that are asked; an answer is right within half of the last,
            and without any it has to be the number itself.
        hint: what to think of, without a number from the answer.
    """

    value: float
    places: int
    hint: str


def check(problem: int, **answers) -> None:
    """Say of each answer whether it is right, close, or what to think of.

    Args:
        problem: 1..16.
        answers: a number, or a tensor of one number, for each part, by the names that
            the problem gives; ``...`` stands for a part that is still open.

    ValueError for a problem that does not exist, or a part that it does not have.
    """
    _check.whole("problem", problem, 1, len(_PROBLEMS))
    parts = _PROBLEMS[problem - 1]()
    for name, answer in answers.items():
        _check.choice("part", name, tuple(parts))
        print(f"{name}: {_verdict(parts[name], answer)}")


def print_answers() -> None:
    """Print the answers of all problems, with the decimals that were asked for."""
    rows = [
        [f"{number}", name, f"{part.value:.{part.places}f}"]
        for number, problem in enumerate(_PROBLEMS, 1)
        for name, part in problem().items()
    ]
    print_table(["problem", "part", "answer"], rows)


def _verdict(part: Part, answer) -> str:
    if answer is ...:
        return "no answer yet"
    number = _number(answer)
    if number is None:
        return f"not a number: {answer!r}"
    if _is_right(part, number):
        return "right"
    if _is_right(part, -number):
        return "not yet: the size is right, the sign is not"
    if _is_close(part, number):
        return f"close: round only at the end; decimals asked: {part.places}"
    return f"not yet: {part.hint}"


def _number(answer) -> Real | None:
    if isinstance(answer, torch.Tensor) and answer.numel() == 1:
        answer = answer.item()
    known = isinstance(answer, Real) and not isinstance(answer, bool)
    return answer if known and math.isfinite(answer) else None


def _is_right(part: Part, number: Real) -> bool:
    slack = 10.0**-part.places / 2 * (1 + 1e-9) if part.places else 0.0
    return abs(number - part.value) <= slack


def _is_close(part: Part, number: Real) -> bool:
    """Whether only the last decimals are off, or missing.

    Where one or two decimals are asked, five units of the last would let errors of
    thought pass, 0.03 for 0.06 among them.
    """
    fewer = range(2, part.places)
    short = number != 0 and any(round(part.value, k) == number for k in fewer)
    units = 5 if part.places > 2 else min(part.places, 1)
    return short or abs(number - part.value) <= units * 10.0**-part.places * (1 + 1e-9)


def _value(tensor) -> float:
    return torch.as_tensor(tensor, dtype=torch.float64).item()


def _point(value: float) -> torch.Tensor:
    return torch.tensor([[value]], dtype=torch.float64)


def _loaves():
    mean, sd = 200.0, 15.0
    again = "a loaf is the mean plus z standard deviations"
    return {
        "light": Part(mean - 2 * sd, 1, again),
        "middling": Part(mean + 0.4 * sd, 1, again),
        "heavy": Part(mean + 1.5 * sd, 1, again),
        "z": Part((245 - mean) / sd, 1, "run the map backwards: subtract, then divide"),
    }


def _waits():
    hint = "solve u = 1 - exp(-2 t) for t; the logarithm is natural"
    return {
        "late": Part(-math.log(1 - 0.75) / 2, 4, hint),
        "early": Part(-math.log(1 - 0.2) / 2, 4, hint),
        "median": Part(math.log(2) / 2, 4, "which u has half of the others below it?"),
    }


def _one_step():
    beta = 0.2
    return {
        "mean": Part(-math.sqrt(1 - beta), 4, "the step multiplies by sqrt(1 - beta)"),
        "sd": Part(math.sqrt(beta), 4, "the root of the variance that is added"),
        "variance": Part((1 - beta) * 4 + beta, 1, "a factor enters squared"),
        "sum": Part(9.0 * 1 + 4.0 * 2, 1, "square the factors, the minus too, and add"),
    }


def _price():
    def price(sd, mean=0.0):
        return (mean**2 + sd**2 - 1 - math.log(sd**2)) / 2

    def solve(low, high):
        for _ in range(100):
            middle = (low + high) / 2
            same = (price(middle) > 0.3181) == (price(low) > 0.3181)
            low, high = (middle, high) if same else (low, middle)
        return low

    hint = "two clouds have this price: one side of 1 and the other"
    return {
        "price": Part(
            price(0.8, 0.5), 4, "log of the variance, not of s; the 1 is subtracted"
        ),
        "narrow": Part(solve(0.1, 1.0), 2, hint),
        "wide": Part(solve(1.0, 3.0), 2, hint),
    }


def _slopes():
    z = -0.5 + 2.0 * 0.3
    return {
        "draw": Part(z, 2, "mean plus SD times noise"),
        "by_mean": Part(2 * z, 2, "chain rule: dz/dmean is 1"),
        "by_sd": Part(2 * z * 0.3, 2, "chain rule: dz/dsd is the noise"),
    }


def _two_causes():
    model = FiniteModel([0.5, 0.5], [0.9, 0.1])
    log_evidence = _value(model.log_evidence())
    parts = {
        "evidence": Part(math.exp(log_evidence), 2, "sum of prior times likelihood"),
        "log_evidence": Part(log_evidence, 4, "the natural logarithm of it"),
        "posterior": Part(0.45 / math.exp(log_evidence), 2, "joint over evidence"),
    }
    for name, q in [("even", (0.5, 0.5)), ("leaning", (0.7, 0.3))]:
        rebuilt = q[0] * math.log(0.9) + q[1] * math.log(0.1)
        kl = sum(share * math.log(share / 0.5) for share in q)
        parts |= {
            f"{name}_rebuilt": Part(rebuilt, 4, "mean of log p(x | z) under q"),
            f"{name}_kl": Part(kl, 4, "mean under q of log q minus log prior"),
            f"{name}_elbo": Part(rebuilt - kl, 4, "rebuilding minus KL"),
            f"{name}_gap": Part(
                log_evidence - rebuilt + kl, 4, "log evidence minus ELBO"
            ),
        }
    return parts


def _three_steps():
    level = _value(Schedule([0.1, 0.2, 0.5]).alpha_bar(3))
    return {
        "alpha_bar": Part(level, 2, "multiply what each step keeps"),
        "signal": Part(math.sqrt(level), 2, "the root of alpha-bar"),
        "noise": Part(math.sqrt(1 - level), 2, "the root of the rest, not the rest"),
        "point": Part(
            math.sqrt(level) - 0.5 * math.sqrt(1 - level), 2, "signal x0 + noise eps"
        ),
    }


def _half_life():
    kept = Schedule([0.01] * 300)
    hint = "the first whole t for which t log 0.99 is below log(level)"
    return {
        "half": Part(kept.first_below(0.5), 0, hint),
        "tenth": Part(kept.first_below(0.1), 0, hint),
    }


def _clean_guess():
    level, x, x0 = 0.64, _point(0.5), _point(1.4)
    true = _value(noise_from_clean(x, level, x0))
    clean = _value(clean_from_noise(x, level, _point(-1.0)))
    return {
        "clean": Part(clean, 3, "subtract the weighted noise, divide by the signal"),
        "noise": Part(
            true, 4, "subtract the weighted clean point, divide by the noise weight"
        ),
        "loss": Part((true + 1) ** 2, 4, "the squared difference of the two noises"),
        "gain": Part(0.6 / 0.8, 2, "how far does the clean guess move with the noise?"),
    }


def _scores():
    score = (0.5 - 1.2 + 1.0) / 0.75  # centre 1.5 minus 1.2, over the variance
    return {
        "right_of_it": Part(-(0 + 1) / 0.5, 1, "minus the distance over the variance"),
        "left_of_it": Part(-(-2 + 1) / 0.5, 1, "does your arrow point to the centre?"),
        "centre": Part(0.5 * 3, 2, "the clean point times the root of alpha-bar"),
        "variance": Part(0.75, 2, "of the copies of one point: the noise alone"),
        "score": Part(score, 2, "centre minus point, over the variance"),
        "noise": Part(
            _value(noise_from_score(0.25, _point(score))), 4, "minus SD times score"
        ),
    }


def _two_bells():
    bells = GaussianMixture([0.5, 0.5], [-1.0, 1.0], 0.04)
    right = _value(bells.responsibilities(_point(0.2), 0.36)[..., 1])
    return {
        "centre": Part(0.6, 2, "the clean centre times the root of alpha-bar"),
        "variance": Part(0.36 * 0.04 + 0.64, 4, "shrunk variance plus noise variance"),
        "right": Part(right, 4, "compare the two bells at the point"),
        "score": Part(
            _value(bells.score(_point(0.2), 0.36)), 4, "weigh the two bells' scores"
        ),
    }


def _step_back():
    schedule = Schedule([0.2, 0.2])  # two equal steps keep 0.64
    x, guess = _point(0.8), _point(0.3)
    mean = _value(ddpm_mean(schedule, x, 2, guess))
    return {
        "share": Part(
            0.2 / 0.6 * 0.3, 2, "beta over sqrt(1 - alpha-bar), times the guess"
        ),
        "mean": Part(mean, 4, "take off the share, then divide by sqrt(1 - beta)"),
        "sd": Part(math.sqrt(0.2), 4, "the root of the variance"),
        "point": Part(mean + math.sqrt(0.2) * 0.5, 4, "mean plus SD times z"),
    }


def _langevin():
    x, score = _point(2.0), _point(-4.0)
    moved = langevin_step(x, score, 0.05, _point(0.0))
    return {
        "score": Part(-(2 - 1) / 0.25, 1, "minus the distance over the variance"),
        "drift": Part(_value(moved), 2, "the point plus eta times the score"),
        "point": Part(
            _value(langevin_step(x, score, 0.05, _point(-1.0))),
            4,
            "the noise has variance 2 eta",
        ),
    }


def _jump():
    schedule = Schedule([0.19, 1 - 0.36 / 0.81])  # levels 0.81 and 0.36
    x, guess = _point(0.2), _point(-0.5)
    return {
        "clean": Part(
            _value(clean_from_noise(x, 0.36, guess)),
            2,
            "take off the weighted noise, divide by the signal",
        ),
        "point": Part(
            _value(ddim_step(schedule, x, 2, 1, guess)), 4, "mix it with the same guess"
        ),
        "all_the_way": Part(
            _value(ddim_step(schedule, x, 2, 0, guess)), 2, "what is left of the noise?"
        ),
    }


def _guided():
    pairs = zip((0.1, -0.2), (0.4, 0.2))
    first, second = (_value(guided_noise(_point(u), _point(c), 2.5)) for u, c in pairs)
    hint = "the unconditional guess plus the scale times the difference"
    return {
        "first": Part(first, 2, hint),
        "second": Part(second, 2, hint),
        "scale": Part((1.3 - 0.1) / (0.4 - 0.1), 1, "how many differences are needed?"),
    }


def _smaller():
    before, after = 1024**2 * 3, (1024 // 8) ** 2 * 4
    return {
        "before": Part(before, 0, "places times colours"),
        "after": Part(after, 0, "places shrink along both sides"),
        "factor": Part(before / after, 0, "one over the other"),
        "other": Part(
            before / ((1024 // 16) ** 2 * 16),
            0,
            "both sides shrink by 16; count the channels",
        ),
    }


_PROBLEMS = (
    _loaves,
    _waits,
    _one_step,
    _price,
    _slopes,
    _two_causes,
    _three_steps,
    _half_life,
    _clean_guess,
    _scores,
    _two_bells,
    _step_back,
    _langevin,
    _jump,
    _guided,
    _smaller,
)
