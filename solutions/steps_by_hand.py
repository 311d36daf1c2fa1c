"""Hidden checks of the exercise on steps by hand."""

import math

import torch

from coursework.checks import Check, Exercise, close
from genaudit.process import (
    clean_from_noise,
    guided_noise,
    noise_from_clean,
    noise_from_score,
    noise_from_velocity,
    score_from_noise,
    velocity,
)

# Right answers, for slips to be made in.
EXCHANGE = """
def four_guesses(kind, value, x, alpha_bar):
    a, b = alpha_bar ** 0.5, (1 - alpha_bar) ** 0.5
    noise = {"noise": value, "clean": (x - a * value) / b,
             "score": -b * value, "velocity": b * x + a * value}[kind]
    clean = (x - b * noise) / a
    return noise, clean, -noise / b, a * noise - b * clean
"""
BACK = """
def ddpm_step(x, t, beta, alpha_bar, guess, fresh, rule):
    mean = (x - beta / (1 - alpha_bar) ** 0.5 * guess) / (1 - beta) ** 0.5
    before = alpha_bar / (1 - beta)
    tilde = max(0.0, (1 - before) / (1 - alpha_bar) * beta)
    variance = beta if rule == "beta" else tilde
    if t == 1:
        return mean
    return mean + variance ** 0.5 * fresh
"""
JUMP = """
def ddim_step(x, alpha_bar, alpha_bar_earlier, guess):
    b = alpha_bar_earlier
    clean = (x - (1 - alpha_bar) ** 0.5 * guess) / alpha_bar ** 0.5
    return b ** 0.5 * clean + (1 - b) ** 0.5 * guess
"""
WALK = """
def ddim_factor(levels, variance):
    x = 1.0
    for a, b in zip(levels[:-1], levels[1:]):
        x = ddim_step(x, a, b, (1 - a) ** 0.5 / (variance * a + 1 - a) * x)
    return x
"""
PUSH = """
def langevin_step(x, alpha_bar, guess, eta, fresh):
    score = -guess / (1 - alpha_bar) ** 0.5
    return x + eta * score + (2 * eta) ** 0.5 * fresh
"""
GUIDE = """
def guided_guess(without, asked, amount, custom):
    s = amount if custom == "scale" else 1 + amount
    return s * asked + (1 - s) * without
"""
LAND = """
def landings():
    pair = my_without, my_asked
    guesses = [guided_guess(*pair, w, "extra") for w in (0, my_extra)]
    return [ddim_step(my_x, my_level, my_earlier, guess) for guess in guesses]
"""


def rows(stream, count):
    """So many lists of three normal draws."""
    return [[stream.gauss(0, 1) for _ in range(3)] for _ in range(count)]


def currencies(stream, given):
    """A call for each currency, at levels from heavy to light noise."""
    kinds = ["noise", "clean", "score", "velocity"]
    levels = [stream.uniform(*ends) for ends in [(0.02, 0.4), (0.6, 0.98)] * 2]
    return [(kind, *rows(stream, 2), level) for kind, level in zip(kinds, levels)]


def backward(stream, given):
    """Inner timesteps for each rule, and the last one, on several schedules."""
    calls = []
    for t, rule in [(1, "beta"), (2, "tilde"), (7, "beta"), (9, "tilde")]:
        betas = [stream.uniform(0.02, 0.3) for _ in range(t)]
        alpha_bar = math.prod(1 - beta for beta in betas)
        x, guess, fresh = rows(stream, 3)
        calls.append((x, t, betas[-1], alpha_bar, guess, fresh, rule))
    # Rounded so that 1 - alpha_bar / (1 - beta) comes out below nought.
    last = stream.choice([(0.066, 0.934), (0.195, 0.805), (0.328, 0.672)])
    x, guess, fresh = rows(stream, 3)
    return [*calls, (x, 1, *last, guess, fresh, "tilde")]


def jumps(stream, given):
    """Three jumps within the noise, one to the clean end, and one of a number."""
    calls = []
    for _ in range(4):
        x, guess = rows(stream, 2)
        low, high = sorted(stream.uniform(0.02, 0.98) for _ in range(2))
        calls.append((x, low, high, guess))
    single = (stream.uniform(-2, 2), 0.3, 0.7, stream.uniform(-2, 2))
    return [*calls[:3], (*calls[3][:2], 1.0, calls[3][3]), single]


def walks(stream, given):
    """Levels of four walks, each with a variance of the data."""
    calls = []
    for length, variance in [(1, 0.2), (2, 3.0), (5, 1.0), (9, 0.4)]:
        stops = sorted(stream.uniform(0.02, 0.95) for _ in range(length))
        calls.append(([*stops, 1.0], variance * stream.uniform(0.8, 1.2)))
    return calls


def pushes(stream, given):
    """Four Langevin steps at different levels."""
    calls = []
    for _ in range(4):
        x, guess, fresh = rows(stream, 3)
        level, eta = stream.uniform(0.1, 0.9), stream.uniform(0.05, 1.5)
        calls.append((x, level, guess, eta, fresh))
    return calls


def settling(stream, given):
    """Four steps and variances, none near the forbidden step."""
    variances = [stream.uniform(*ends) for ends in [(0.1, 0.6), (1.5, 6)] * 2]
    return [(v * stream.uniform(0.3, 1.7), v) for v in variances]


def requests(stream, given):
    """Both customs, with and without guidance."""
    amounts = [("scale", 1.5, 7), ("extra", 0.5, 6), ("extra", -0.9, -0.1)]
    amounts.append(("scale", 0.1, 0.9))
    return [
        (*rows(stream, 2), stream.uniform(low, high), custom)
        for custom, low, high in amounts
    ]


def once(stream, given):
    """A single call without arguments."""
    return [()]


def quartet(given, kind, value, x, alpha_bar):
    """All four, through the package's conversions."""
    to_noise = {
        "noise": lambda: value,
        "clean": lambda: noise_from_clean(x, alpha_bar, value),
        "score": lambda: noise_from_score(alpha_bar, value),
        "velocity": lambda: noise_from_velocity(x, alpha_bar, value),
    }
    noise = to_noise[kind]()
    clean = clean_from_noise(x, alpha_bar, noise)
    score = score_from_noise(alpha_bar, noise)
    return [noise, clean, score, velocity(alpha_bar, noise, clean)]


def by_precisions(given, x, t, beta, alpha_bar, guess, fresh, rule):
    """The step as an average of two centres, weighted by their precisions."""
    clean = clean_from_noise(x, alpha_bar, guess)
    if t == 1:
        return clean
    alpha = 1 - beta
    before = alpha_bar / alpha
    past, future = 1 / (1 - before), alpha / beta
    centres = past * before**0.5 * clean + future * x / alpha**0.5
    variance = beta if rule == "beta" else 1 / (past + future)
    return centres / (past + future) + variance**0.5 * fresh


def turned(given, x, alpha_bar, alpha_bar_earlier, guess):
    """The jump as a turn of point and velocity, by the difference of the angles."""
    clean = clean_from_noise(x, alpha_bar, guess)
    speed = velocity(alpha_bar, guess, clean)
    turn = math.acos(alpha_bar**0.5) - math.acos(alpha_bar_earlier**0.5)
    return math.cos(turn) * x - math.sin(turn) * speed


def product(given, levels, variance):
    """A factor for each jump: the covariance of both ends over the variance."""
    here, there = levels[:-1], levels[1:]
    shared = variance * (here * there).sqrt() + ((1 - here) * (1 - there)).sqrt()
    return (shared / (variance * here + 1 - here)).prod()


def pushed(given, x, alpha_bar, guess, eta, fresh):
    """The Langevin step along the package's score."""
    return x + eta * score_from_noise(alpha_bar, guess) + math.sqrt(2 * eta) * fresh


def iterated(given, eta, variance):
    """Where the recursion of the variance ends."""
    settled = variance
    for _ in range(500):
        settled = (1 - eta / variance) ** 2 * settled + 2 * eta
    return settled


def guided(given, without, asked, amount, custom):
    """The package's guidance at the scale that is meant."""
    return guided_noise(without, asked, amount + (custom == "extra"))


def two_landings(given):
    """The plain and the guided jump of the given point."""
    x, without, asked = (
        torch.tensor(given[name]) for name in ("my_x", "my_without", "my_asked")
    )
    jump = given["my_level"], given["my_earlier"]
    guesses = [guided_noise(without, asked, 1 + w) for w in (0, given["my_extra"])]
    return [turned(given, x, *jump, guess) for guess in guesses]


exercise = Exercise(
    title="Steps by hand",
    chapter="ddim",
    constants={
        "my_x": [1.3, -0.9, 0.8, 1.7, -1.4],
        "my_level": [0.35, 0.2, 0.28, 0.4],
        "my_earlier": [0.6, 0.75, 0.85, 0.55],
        "my_without": [0.7, -0.6, 0.9, -0.3],
        "my_asked": [0.2, 0.4, -0.1],
        "my_extra": [2.5, 1.5, 3.0, 4.0],
    },
    checks=[
        Check(
            "conversions out of each currency",
            3,
            "four_guesses",
            currencies,
            quartet,
            "Turn what comes in into a noise guess, then that into the other three.",
            [
                # The score without its minus, going in and coming out.
                EXCHANGE.replace("-b * value", "b * value").replace(
                    "-noise / b", "noise / b"
                ),
                # The velocity with the other sign.
                EXCHANGE.replace("a * noise - b * clean", "b * clean - a * noise"),
                # The score divides by a variance where the noise has an SD.
                EXCHANGE.replace("-b * value", "-b * b * value").replace(
                    "-noise / b", "-noise / b / b"
                ),
                # No roots.
                EXCHANGE.replace(" ** 0.5", ""),
            ],
        ),
        Check(
            "five steps back, the finished sample among them",
            3,
            "ddpm_step",
            backward,
            by_precisions,
            "Check the level of t - 1, the root of the variance, and the last step.",
            [
                # Fresh noise in the last step too.
                BACK.replace("if t == 1", "if False"),
                # No rule for the last step but the formula of the narrow variance.
                BACK.replace("if t == 1", 'if t == 1 and rule == "beta"').replace(
                    "max(0.0, (1", "torch.tensor((1"
                ),
                # Noise of one's own.
                BACK.replace("* fresh", "* torch.randn_like(x)"),
                # The last step looked for at 0.
                BACK.replace("if t == 1", "if t == 0"),
                # A variance used as a standard deviation.
                BACK.replace("variance ** 0.5", "variance"),
                # The level of t + 1 in place of that of t - 1.
                BACK.replace("alpha_bar / (1 - beta)", "alpha_bar * (1 - beta)"),
                # All of the guessed noise taken off.
                BACK.replace("beta / (1 - alpha_bar) ** 0.5", "(1 - alpha_bar) ** 0.5"),
            ],
        ),
        Check(
            "jumps as turns, one to the very end",
            2,
            "ddim_step",
            jumps,
            turned,
            "Find the clean guess at the level you leave; mix at the level you reach. "
            "Point and guess may be plain numbers.",
            [
                # The clean guess cut off.
                JUMP.replace("* clean", "* torch.as_tensor(clean).clamp(-1, 1)"),
                # The clean guess read with the level that is reached.
                JUMP.replace("alpha_bar)", "alpha_bar_earlier)").replace(
                    "/ alpha_bar **", "/ b **"
                ),
                # The noise of the level that is left is put back.
                JUMP.replace(
                    "(1 - b) ** 0.5 * guess", "(1 - alpha_bar) ** 0.5 * guess"
                ),
                # The clean guess alone.
                JUMP.replace("return b ** 0.5 * clean +", "return clean #"),
                # A DDPM mean over the whole stride.
                "def ddim_step(x, alpha_bar, alpha_bar_earlier, guess):\n"
                "    keep = alpha_bar / alpha_bar_earlier\n"
                "    share = (1 - keep) / (1 - alpha_bar) ** .5\n"
                "    return (x - share * guess) / keep ** .5",
            ],
        ),
        Check(
            "walks on bells of four widths",
            2,
            "ddim_factor",
            walks,
            product,
            "Walk a start of one; at each level the guess is covariance over variance "
            "of the noise and the point, times the point. If you call your DDIM step, "
            "the fault may be there.",
            [
                # The guess of standard normal data.
                WALK.replace("/ (variance * a + 1 - a)", ""),
                # The root forgotten in the guess.
                WALK.replace("(1 - a) ** 0.5 /", "(1 - a) /"),
                # The variance's factor.
                WALK.replace("return x", "return x ** 2"),
                # The last jump left out.
                WALK.replace("levels[1:]", "levels[1:-1]"),
                # The limit of many jumps in place of the walk.
                "def ddim_factor(levels, variance):\n"
                "    v = variance * levels + 1 - levels\n"
                "    return (v[-1] / v[0]) ** .5",
            ],
        ),
        Check(
            "pushes and jolts at four levels",
            2,
            "langevin_step",
            pushes,
            pushed,
            "The guess has to become a score first; then mind the root and the 2.",
            [
                # Push and jolt of the other custom, half as much.
                PUSH.replace("return x + eta", "return x + eta / 2").replace(
                    "(2 * eta)", "eta"
                ),
                # The jolt of the other custom, with the push of this one.
                PUSH.replace("(2 * eta)", "eta"),
                # The guess taken for a score.
                PUSH.replace("-guess / (1 - alpha_bar) ** 0.5", "guess"),
                # Downhill.
                PUSH.replace("-guess", "guess"),
                # A variance used as a standard deviation.
                PUSH.replace("(2 * eta) ** 0.5", "(2 * eta)"),
            ],
        ),
        Check(
            "recursion run to its end",
            2,
            "settled_variance",
            settling,
            iterated,
            "One step turns a variance V into another. Which V reproduces itself?",
            [
                # The law itself.
                "def settled_variance(eta, variance): return variance",
                # The formula of variance 1, scaled.
                "def settled_variance(eta, variance): return variance * 2 / (2 - eta)",
                # First order in the step.
                "def settled_variance(eta, variance): return variance + eta / 2",
                # The jolt of the other custom.
                "def settled_variance(eta, variance):\n"
                "    return variance ** 2 / (2 * variance - eta)",
                # A square too many, inside and outside.
                "def settled_variance(eta, variance):\n"
                "    return variance / (1 - (eta / 2 / variance) ** 2)",
                "def settled_variance(eta, variance):\n"
                "    return variance / (1 - eta / 2 / variance) ** 2",
            ],
            close(1e-6),
        ),
        Check(
            "amounts in two customs, weak ones too",
            2,
            "guided_guess",
            requests,
            guided,
            "Turn the amount into a scale where 1 is no guidance, then exaggerate.",
            [
                # One custom for both.
                GUIDE.replace("1 + amount", "amount"),
                # The custom converted the wrong way.
                GUIDE.replace("1 + amount", "amount - 1"),
                # The sign of the weight on the guess without.
                GUIDE.replace("s * asked + (1 - s)", "s * asked + (s - 1)"),
                # The two guesses exchanged.
                GUIDE.replace(
                    "s * asked + (1 - s) * without", "s * without + (1 - s) * asked"
                ),
            ],
        ),
        Check(
            "both ends of the given jump",
            2,
            "landings",
            once,
            two_landings,
            "Guide the guess first, then jump once; mind the custom and the order. It "
            "may fail because one of the functions that it calls does.",
            [
                # The extra weight used as a scale.
                LAND.replace('"extra"', '"scale"').replace("(0, my", "(1, my"),
                # No request in the first place.
                LAND.replace("(0, my", "(-1, my"),
                # Asked for the clean guess.
                LAND.replace("my_earlier, guess)", "1.0, guess)"),
                # The order exchanged.
                LAND.replace("(0, my_extra)", "(my_extra, 0)"),
            ],
        ),
    ],
)
