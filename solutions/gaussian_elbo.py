"""Hidden checks of the exercise on the Gaussian ELBO."""

import math

import torch
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import quad
from torch.distributions import Normal

from coursework.checks import Check, Exercise, close, misshapen
from genaudit.latent import GaussianModel


def cases(stream, given):
    """Four data points and noise variances."""
    return [(stream.uniform(-3, 3), stream.uniform(0.1, 3)) for _ in range(4)]


def guesses(stream, given):
    """Four data points with a law q each."""
    return [
        (x, s2, stream.uniform(-2, 2), stream.uniform(0.05, 2))
        for x, s2 in cases(stream, given)
    ]


def near_and_far(stream, given):
    """Guesses, and two so far out that log p(x) and the ELBO share twelve digits."""
    far = []
    for side in (-1, 1):
        x, s2 = side * stream.uniform(1e7, 2e7), stream.uniform(0.1, 3)
        miss, v = stream.uniform(0.3, 1), stream.uniform(0.05, 2)
        far.append((x, s2, x / (1 + s2) + miss, v))
    return guesses(stream, given) + far


def with_noise(stream, given):
    """Guesses, each with 500 draws of noise."""
    return [
        (*guess, [stream.gauss(0, 1) for _ in range(500)])
        for guess in guesses(stream, given)
    ]


def once(stream, given):
    """A single call without arguments."""
    return [()]


def evidence(given, x, s2):
    """log p(x) by quadrature over z."""
    mean, variance = GaussianModel(s2).posterior(x)
    spread = 10 * variance.sqrt().item()
    mass, _ = quad(
        lambda z: (
            (
                Normal(0.0, 1.0).log_prob(torch.tensor(z))
                + Normal(z, s2**0.5).log_prob(torch.tensor(x))
            )
            .exp()
            .item()
        ),
        mean.item() - spread,
        mean.item() + spread,
    )
    return torch.tensor(mass).log()


def bound(given, x, s2, m, v):
    """The ELBO from the package's model."""
    return GaussianModel(s2).elbo_terms(x, m, v).elbo


def distance(given, x, s2, m, v):
    """log q(z) - log p(z | x) averaged over q, by quadrature."""
    mean, variance = GaussianModel(s2).posterior(x)
    nodes, weights = map(torch.from_numpy, hermegauss(5))
    z = m + v**0.5 * nodes
    logs = Normal(m, v**0.5).log_prob(z) - Normal(mean, variance.sqrt()).log_prob(z)
    return weights @ logs / math.sqrt(2 * math.pi)


def three(given):
    """The gaps of the given law, of the prior and of the posterior."""
    x, s2 = given["x"], given["s2"]
    laws = [(given["m"], given["v"]), (0.0, 1.0), GaussianModel(s2).posterior(x)]
    return [distance(given, x, s2, *law) for law in laws]


def slope(given):
    """d ELBO / d m at the given law, by a central difference."""
    x, s2, m, v = (given[name] for name in ("x", "s2", "m", "v"))
    step = 1e-4
    up, down = (bound(given, x, s2, m + side, v) for side in (step, -step))
    return (up - down) / (2 * step)


def gradients(given, x, s2, m, v, noise):
    """Estimate and standard error, with the KL in closed form and sampled too."""
    z = m + v**0.5 * noise
    terms = [(x - z) / s2 - m, (x - z) / s2 - z]
    return [[term.mean(), term.std() / len(noise) ** 0.5] for term in terms]


def either(expected, got):
    """Right in one of two ways; the error may divide by n or n - 1."""
    reason = misshapen(expected[0], got)
    if reason:
        return reason
    for estimate, error in expected:
        if close(1e-6)(estimate, got[0]) is None and close(3e-3)(error, got[1]) is None:
            return None
    return "the value is not right"


exercise = Exercise(
    title="The Gaussian ELBO",
    chapter="elbo",
    constants={
        "x": [-0.8, 0.9, -1.1, 1.6, 1.4],
        "s2": [0.5, 0.4, 0.64, 0.25, 0.81],
        "m": [0.2, -0.15, 0.5, -0.4],
        "v": [0.6, 0.9, 0.4, 0.8],
    },
    checks=[
        Check(
            "posterior for four random models",
            2,
            "posterior",
            cases,
            lambda given, x, s2: list(GaussianModel(s2).posterior(x)),
            "Complete the square in z, or add the inverse variances.",
            [
                "def posterior(x, s2): return x, s2 / (1 + s2)",
                "def posterior(x, s2): return x / (1 + s2), (s2 / (1 + s2)) ** 0.5",
                "def posterior(x, s2): return x * s2 / (1 + s2), s2 / (1 + s2)",
                "def posterior(x, s2): return x / (1 + s2), 1 + s2",
            ],
        ),
        Check(
            "log evidence against quadrature",
            2,
            "log_evidence",
            cases,
            evidence,
            "x is a sum of two independent normal variables. What is its variance?",
            [
                "from torch.distributions import Normal\n"
                "def log_evidence(x, s2):\n"
                "    return Normal(0., s2 ** .5).log_prob(torch.tensor(x))",
                "from torch.distributions import Normal\n"
                "def log_evidence(x, s2):\n"
                "    return Normal(0., 1 + s2).log_prob(torch.tensor(x))",
                "def log_evidence(x, s2): return -x * x / 2 / (1 + s2)",
                "from torch.distributions import Normal\n"
                "def log_evidence(x, s2):\n"
                "    density = Normal(0., (1 + s2) ** .5)\n"
                "    return density.log_prob(torch.tensor(x)).exp()",
            ],
            close(1e-6),
        ),
        Check(
            "bound for four random guesses",
            3,
            "elbo",
            guesses,
            bound,
            "E over q of the squared error has two parts, one from m and one from v.",
            [
                # The squared error at the mean only.
                "import math\n"
                "def elbo(x, s2, m, v):\n"
                "    fit = -((x - m) ** 2) / 2 / s2 - math.log(2 * math.pi * s2) / 2\n"
                "    return fit - (m * m + v - 1 - math.log(v)) / 2",
                # Minus became plus.
                "import math\n"
                "def elbo(x, s2, m, v):\n"
                "    fit = -((x - m) ** 2 + v) / 2 / s2\n"
                "    fit -= math.log(2 * math.pi * s2) / 2\n"
                "    return fit + (m * m + v - 1 - math.log(v)) / 2",
                # No constant of the likelihood.
                "import math\n"
                "def elbo(x, s2, m, v):\n"
                "    fit = -((x - m) ** 2 + v) / 2 / s2\n"
                "    return fit - (m * m + v - 1 - math.log(v)) / 2",
                # The standard deviation in place of the variance, inside the KL.
                "import math\n"
                "def elbo(x, s2, m, v):\n"
                "    fit = -((x - m) ** 2 + v) / 2 / s2\n"
                "    fit -= math.log(2 * math.pi * s2) / 2\n"
                "    return fit - (m * m + v ** .5 - 1 - math.log(v) / 2) / 2",
            ],
        ),
        Check(
            "divergence to the posterior for four random guesses",
            2,
            "gap",
            near_and_far,
            distance,
            "It is the KL between two normal laws, from q to the posterior.",
            [
                # From the posterior to q.
                "import math\n"
                "def gap(x, s2, m, v):\n"
                "    a, b = x / (1 + s2), s2 / (1 + s2)\n"
                "    return ((m - a) ** 2 / v + b / v - 1 - math.log(b / v)) / 2",
                # To the prior.
                "import math\n"
                "def gap(x, s2, m, v): return (m * m + v - 1 - math.log(v)) / 2",
                # The square of the distance not scaled.
                "import math\n"
                "def gap(x, s2, m, v):\n"
                "    a, b = x / (1 + s2), s2 / (1 + s2)\n"
                "    return ((m - a) ** 2 + v / b - 1 - math.log(v / b)) / 2",
                # The difference of the other two.
                "def gap(x, s2, m, v): return log_evidence(x, s2) - elbo(x, s2, m, v)",
            ],
        ),
        Check(
            "identity for the three laws",
            2,
            "three_gaps",
            once,
            three,
            "Log evidence minus bound, for your own numbers, in the order asked for.",
            [
                "def three_gaps(): return [0.0, 0.0, 0.0]",
                "def three_gaps():\n"
                "    post = posterior(x, s2)\n"
                "    laws = [post, (0.0, 1.0), (m, v)]\n"
                "    return [log_evidence(x, s2) - elbo(x, s2, *q) for q in laws]",
                "def three_gaps():\n"
                "    laws = [(m, v), (0.0, 1.0), posterior(x, s2)]\n"
                "    return [elbo(x, s2, *q) - log_evidence(x, s2) for q in laws]",
            ],
            close(1e-6, 1e-7),
        ),
        Check(
            "slope at the given law",
            1,
            "gradient_at_start",
            once,
            slope,
            "Differentiate the bound with respect to m; two terms depend on it.",
            [
                "def gradient_at_start(): return (x - m) / s2",
                "def gradient_at_start(): return m - (x - m) / s2",
                "def gradient_at_start(): return (x - m) / s2 ** 0.5 - m",
            ],
        ),
        Check(
            "estimate and error from given noise",
            3,
            "pathwise_gradient",
            with_noise,
            gradients,
            "Write z as m plus a multiple of the noise, then differentiate each term; "
            "the error is the SD over the root of N.",
            [
                # The variance in place of the standard deviation.
                "def pathwise_gradient(x, s2, m, v, noise):\n"
                "    term = (x - m - v * noise) / s2 - m\n"
                "    return term.mean(), term.std() / len(noise) ** 0.5",
                # The KL forgotten.
                "def pathwise_gradient(x, s2, m, v, noise):\n"
                "    term = (x - m - v ** 0.5 * noise) / s2\n"
                "    return term.mean(), term.std() / len(noise) ** 0.5",
                # A standard deviation is no standard error.
                "def pathwise_gradient(x, s2, m, v, noise):\n"
                "    term = (x - m - v ** 0.5 * noise) / s2 - m\n"
                "    return term.mean(), term.std()",
                # The exact gradient is no estimate.
                "def pathwise_gradient(x, s2, m, v, noise):\n"
                "    return (x - m) / s2 - m, v ** 0.5 / s2 / len(noise) ** 0.5",
                # The exact error is no estimate either.
                "def pathwise_gradient(x, s2, m, v, noise):\n"
                "    term = (x - m - v ** 0.5 * noise) / s2 - m\n"
                "    return term.mean(), v ** 0.5 / s2 / len(noise) ** 0.5",
                # The score function in place of the path.
                "def pathwise_gradient(x, s2, m, v, noise):\n"
                "    z = m + v ** 0.5 * noise\n"
                "    logs = noise**2 / 2 - z**2 / 2 - (x - z) ** 2 / 2 / s2\n"
                "    term = logs * noise / v ** 0.5\n"
                "    return term.mean(), term.std() / len(noise) ** 0.5",
            ],
            either,
        ),
    ],
)
