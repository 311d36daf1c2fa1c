"""Hidden checks of the exercise on the identity behind the game."""

import math

import numpy as np
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from torch.distributions import Normal

from coursework.checks import Check, Exercise, close, misshapen

LOG_2 = math.log(2)


def masses(stream, given):
    """Masses of five outcomes, three times, some empty on one side or on both."""
    calls = []
    for _ in range(3):
        a, b = ([stream.uniform(0.05, 2) for _ in range(5)] for _ in range(2))
        a[1] = b[2] = a[4] = b[4] = 0.0
        calls.append((a, b))
    return calls


def judged(stream, given):
    """Masses, and what a judge says of each outcome."""
    return [
        (a, b, [stream.uniform(0.03, 0.97) for _ in a])
        for a, b in masses(stream, given)
    ]


def roots(given, a, b):
    """Where the derivative of f, times d (1 - d), vanishes."""
    return [
        brentq(lambda d, a=a, b=b: a * (1 - d) - b * d, 0, 1) if a + b else 0.5
        for a, b in zip(a.tolist(), b.tolist())
    ]


def lost(given, a, b, d):
    """The derivative of f, integrated from d to the best."""
    said, rows = d.tolist(), zip(a.tolist(), b.tolist())
    return [
        quad(lambda u, a=a, b=b: a / u - b / (1 - u), start, end)[0]
        for start, end, (a, b) in zip(said, roots(given, a, b), rows)
    ]


def average(function):
    """The mean of a function under N(0, 1), by quadrature."""
    bell = 1 / math.sqrt(2 * math.pi)
    mass, _ = quad(
        lambda x: bell * math.exp(-x * x / 2) * function(x), -12, 12, epsabs=1e-12
    )
    return mass


def distances(stream, given):
    """Near, middling, negative and far."""
    return [
        (stream.uniform(0.1, 0.6),),
        (stream.uniform(1, 2.5),),
        (stream.uniform(-5, -1),),
        (stream.uniform(50, 60),),
    ]


def divergence(given, m):
    """From an average over the data alone: for two equal bells both halves agree."""
    return LOG_2 - average(lambda x: np.logaddexp(0, m * x - m * m / 2))


def line(given, m):
    """From the densities at 0 and at 1."""
    points = torch.tensor([0.0, 1.0])
    odds = Normal(0.0, 1.0).log_prob(points) - Normal(m, 1.0).log_prob(points)
    return [odds[1] - odds[0], odds[0]]


def lines(stream, given):
    """Distances with a judge each, one of them steep, one undecided."""
    return [
        (stream.uniform(1, 4), stream.uniform(-2, 2), stream.uniform(-1, 1)),
        (stream.uniform(-3, -1), stream.uniform(8, 10), stream.uniform(-1, 1)),
        (stream.uniform(5, 9), 0.0, 0.0),
        (stream.uniform(0.1, 1), stream.uniform(-1, 1), stream.uniform(1, 3)),
    ]


def valued(given, m, slope, intercept):
    """Each expectation over its own bell."""
    real = average(lambda x: -np.logaddexp(0, -slope * x - intercept))
    return real + average(lambda x: -np.logaddexp(0, slope * (x + m) + intercept))


def once(stream, given):
    """A single call without arguments."""
    return [()]


def apart(given):
    """The distance in standard deviations, found by bisection, times one of them."""
    excess = lambda m: divergence(given, m) - given["share"] * LOG_2  # noqa: E731
    return given["sd"] * brentq(excess, 0.01, 20, xtol=1e-12)


def real_numbers(stream, given):
    """One hump, two humps, and a far one."""
    centre = stream.choice([-3, 3])
    one = [stream.gauss(centre, 1) for _ in range(10)]
    two = [stream.gauss(side, 0.5) for side in (-2, 4) for _ in range(6)]
    far = [stream.uniform(6, 9) for _ in range(8)]
    return [(one,), (two,), (far,)]


def fooled(real, got):
    """The properties that were asked for: many batches have them."""
    reason = misshapen(real, got)
    if reason:
        return reason
    if max(map(abs, got)) > 1000:
        return "an entry beyond the range that was allowed"
    if abs(sum(got) - sum(real)) > 1e-6 * len(real):
        return "the judge's gradient is not zero"
    near = any(abs(a - b) <= 1 for a in real for b in got)
    return "a generated number lies too near to a real one" if near else None


exercise = Exercise(
    title="The identity behind the game",
    chapter="gan",
    constants={
        "share": [0.4, 0.3, 0.35, 0.45, 0.55, 0.6, 0.65],
        "sd": [2.0, 1.5, 2.5, 3.0, 0.5, 0.8],
    },
    checks=[
        Check(
            "maximum at five outcomes, empty ones among them",
            2,
            "best_judgement",
            masses,
            roots,
            "It is a share of the outcome's mass. And if that has none?",
            [
                # The belief that it is generated.
                "def best_judgement(a, b):\n"
                "    return torch.where(a + b > 0, b / (a + b), 0.5)",
                # NaN where nothing is.
                "def best_judgement(a, b): return a / (a + b)",
                # The odds.
                "def best_judgement(a, b): return torch.where(b > 0, a / b, 1.)",
                # A verdict.
                "def best_judgement(a, b): return ((a > b) + 0.5 * (a == b)).double()",
                # Zero where nothing is.
                "def best_judgement(a, b): return a / (a + b).clamp(min=1e-9)",
            ],
        ),
        Check(
            "loss of any other opinion",
            3,
            "shortfall",
            judged,
            lost,
            "It is a + b times a divergence between two coins; 0 log 0 counts as 0.",
            [
                # The wrong sign.
                "def shortfall(a, b, d):\n"
                "    f = torch.special.xlogy\n"
                "    top = f(a, best_judgement(a, b)) + f(b, best_judgement(b, a))\n"
                "    return f(a, d) + f(b, 1 - d) - top",
                # NaN at an outcome without data.
                "def shortfall(a, b, d):\n"
                "    best, other = best_judgement(a, b), best_judgement(b, a)\n"
                "    return a * (best / d).log() + b * (other / (1 - d)).log()",
                # The divergence not weighted by the mass.
                "def shortfall(a, b, d):\n"
                "    best, f = best_judgement(a, b), torch.special.xlogy\n"
                "    heads = f(best, best) - f(best, d)\n"
                "    return heads + f(1 - best, 1 - best) - f(1 - best, 1 - d)",
                # The divergence in the other direction.
                "def shortfall(a, b, d):\n"
                "    best = best_judgement(a, b).clamp(1e-9, 1 - 1e-9)\n"
                "    tails = (1 - d) * ((1 - d) / (1 - best)).log()\n"
                "    return (a + b) * (d * (d / best).log() + tails)",
                # Compared with a judge who says one half.
                "def shortfall(a, b, d):\n"
                "    f, half = torch.special.xlogy, torch.tensor(0.5)\n"
                "    return (a + b) * half.log() - f(a, d) - f(b, 1 - d)",
            ],
        ),
        Check(
            "divergence of near and far bells",
            3,
            "jsd",
            distances,
            divergence,
            "Compare each bell with the mixture of both, in logarithms far out.",
            [
                # The mixture of two bells taken for a bell in the middle.
                "def jsd(m): return m * m / 8",
                # The symmetrised KL.
                "def jsd(m): return m * m / 2",
                # The distance: the root of the divergence.
                "before = jsd\ndef jsd(m): return before(m) ** 0.5",
                # In bits.
                "before = jsd\ndef jsd(m): return before(m) / 0.6931471805599453",
                # Without the half.
                "before = jsd\ndef jsd(m): return 2 * before(m)",
                # Densities that round to zero far out.
                "def jsd(m):\n"
                "    x = torch.linspace(min(m, 0) - 12, max(m, 0) + 12, 20_001)\n"
                "    p = torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5\n"
                "    q = torch.exp(-((x - m) ** 2) / 2) / (2 * torch.pi) ** 0.5\n"
                "    middle = (p + q) / 2\n"
                "    terms = p * (p / middle).log() + q * (q / middle).log()\n"
                "    return torch.trapezoid(terms, x) / 2",
                # A range that a far bell is not in.
                "def jsd(m):\n"
                "    x = torch.linspace(-10, 10, 20_001)\n"
                "    p, q = -x * x / 2, -((x - m) ** 2) / 2\n"
                "    middle = torch.logaddexp(p, q) - torch.tensor(2.0).log()\n"
                "    terms = p.exp() * (p - middle) + q.exp() * (q - middle)\n"
                "    return torch.trapezoid(terms, x) / 2 / (2 * torch.pi) ** 0.5",
            ],
            close(1e-5, 1e-8),
        ),
        Check(
            "sigmoid against the ratio of densities",
            2,
            "best_line",
            distances,
            line,
            "The logit of the best D is the log of p over q. Expand the squares.",
            [
                # The belief that a point is generated.
                "def best_line(m): return m, -m * m / 2",
                # Half as steep.
                "def best_line(m): return -m / 2, m * m / 4",
                # One half at the data's centre.
                "def best_line(m): return -m, 0.0",
                # A square in place of half a square.
                "def best_line(m): return -m, m * m",
            ],
        ),
        Check(
            "integral for gentle, steep and undecided judges",
            3,
            "line_value",
            lines,
            valued,
            "Two means, each over its own bell, and a stable log of the sigmoid.",
            [
                # As written: minus infinity where the judge is sure.
                "def line_value(m, slope, intercept):\n"
                "    x = torch.linspace(min(m, 0) - 12, max(m, 0) + 12, 20_001)\n"
                "    p = torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5\n"
                "    q = torch.exp(-((x - m) ** 2) / 2) / (2 * torch.pi) ** 0.5\n"
                "    d = torch.sigmoid(slope * x + intercept)\n"
                "    return torch.trapezoid(p * d.log() + q * (1 - d).log(), x)",
                # Made finite by a cut.
                "def line_value(m, slope, intercept):\n"
                "    x = torch.linspace(min(m, 0) - 12, max(m, 0) + 12, 20_001)\n"
                "    p = torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5\n"
                "    q = torch.exp(-((x - m) ** 2) / 2) / (2 * torch.pi) ** 0.5\n"
                "    d = torch.sigmoid(slope * x + intercept).clamp(1e-6, 1 - 1e-6)\n"
                "    return torch.trapezoid(p * d.log() + q * (1 - d).log(), x)",
                # The generator's non-saturating term.
                "def line_value(m, slope, intercept):\n"
                "    x = torch.linspace(min(m, 0) - 12, max(m, 0) + 12, 20_001)\n"
                "    p = torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5\n"
                "    q = torch.exp(-((x - m) ** 2) / 2) / (2 * torch.pi) ** 0.5\n"
                "    f = torch.nn.functional.logsigmoid(slope * x + intercept)\n"
                "    return torch.trapezoid((p + q) * f, x)",
                # The mean of the two expectations.
                "before = line_value\n"
                "def line_value(m, slope, intercept):\n"
                "    return before(m, slope, intercept) / 2",
                # The loss that is minimised.
                "before = line_value\n"
                "def line_value(m, slope, intercept):\n"
                "    return -before(m, slope, intercept)",
                # Always the best judge.
                "before = line_value\n"
                "def line_value(m, slope, intercept):\n"
                "    return before(m, -m, m * m / 2)",
            ],
            close(1e-5, 1e-8),
        ),
        Check(
            "distance in the right unit",
            2,
            "mean_for_share",
            once,
            apart,
            "In units of sd the bells are those of `jsd`. Find the root there, then go "
            "back to the unit of x.",
            [
                # The unit forgotten.
                "before = mean_for_share\ndef mean_for_share(): return before() / sd",
                # The variance in place of the standard deviation.
                "before = mean_for_share\ndef mean_for_share(): return before() * sd",
                # Twice as far.
                "before = mean_for_share\ndef mean_for_share(): return before() * 2",
                # A share of one in place of log 2.
                "from scipy.optimize import brentq\n"
                "def mean_for_share():\n"
                "    return sd * brentq(lambda m: float(jsd(m) - share), 0, 20)",
                # The rest of the way.
                "from scipy.optimize import brentq\n"
                "def mean_for_share():\n"
                "    most = torch.tensor(2.0).log()\n"
                "    rest = lambda m: float(jsd(m) / most - 1 + share)\n"
                "    return sd * brentq(rest, 0, 20)",
            ],
            close(1e-5),
        ),
        Check(
            "deception of three kinds of data",
            2,
            "fool",
            real_numbers,
            lambda given, real: real,
            "Which one number of a batch does this judge's gradient see?",
            [
                # A copy.
                "def fool(real): return real.clone()",
                # All at the mean, where one hump has its data.
                "def fool(real): return torch.full_like(real, real.mean())",
                # Away to one side.
                "def fool(real): return real + 50",
                # Around zero in place of the mean.
                "def fool(real):\n"
                "    away = torch.full_like(real, 100.0)\n"
                "    away[::2] = -100.0\n"
                "    return away",
                # Mirrored at the mean.
                "def fool(real): return 2 * real.mean() - real",
            ],
            fooled,
        ),
    ],
)
