"""Hidden checks of the exercise on the beta-VAE's loss."""

import torch
from scipy.optimize import minimize
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import mse_loss

from coursework.checks import Check, Exercise, close, flat, misshapen, same

REDUCED = {
    "mean": torch.mean,
    "sum": torch.sum,
    "example": lambda terms: terms.sum(1).mean(),
}


def questions(stream, given):
    """Each question once."""
    return [("weight",), ("kl",), ("error",), ("batch",)]


def foretold(given, question):
    """A larger weight means a smaller KL and a larger error; B is in both terms."""
    words = {"weight": "larger", "kl": "smaller", "error": "larger", "batch": "same"}
    return words[question]


def batches(stream, given):
    """Four batches with clouds and a beta, no two of their axes equally long."""

    def table(rows, columns, low, high):
        return [
            [stream.uniform(low, high) for _ in range(columns)] for _ in range(rows)
        ]

    return [
        (
            table(rows, pixels, 0, 1),
            table(rows, pixels, 0, 1),
            table(rows, codes, -2, 2),
            table(rows, codes, 0.05, 2),
            stream.uniform(0.2, 4),
        )
        for rows, pixels, codes in [(3, 7, 2), (5, 4, 3), (2, 9, 1), (4, 6, 5)]
    ]


def prices(mean, variance):
    """The KL of each code entry by torch's distributions."""
    prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))
    return kl_divergence(Normal(mean, variance.sqrt()), prior)


def summed(given, x, rebuilt, mean, variance, beta):
    """From the log density that has squares of weight 1: a variance of one half."""
    pixel = Normal(rebuilt, torch.full_like(rebuilt, 0.5).sqrt())
    at_best = pixel.log_prob(rebuilt)
    squares = (at_best - pixel.log_prob(x)).sum(1).mean()
    return squares + beta * prices(mean, variance).sum(1).mean()


def averaged(given, x, rebuilt, mean, variance, beta):
    """The line as it stands."""
    return mse_loss(rebuilt, x) + beta * prices(mean, variance).sum(1).mean()


def reductions(stream, given):
    """Six pairs of reductions at random sizes."""
    pairs = [
        ("mean", "example"),
        ("mean", "mean"),
        ("example", "mean"),
        ("sum", "example"),
        ("mean", "sum"),
        ("sum", "mean"),
    ]
    return [
        (
            stream.randint(2, 40),
            stream.randint(50, 400),
            stream.randint(2, 20),
            stream.uniform(0.2, 4),
            *pair,
        )
        for pair in pairs
    ]


def effective(given, batch, pixels, codes, beta, squares, price):
    """Reduce arrays of ones, and compare with the sums that should have been."""

    def share(way, width):
        ones = torch.ones(batch, width, dtype=torch.float64)
        return REDUCED[way](ones) / REDUCED["example"](ones)

    return beta * share(price, codes) / share(squares, pixels)


def implied(given):
    """The weight from arrays of ones; then 1 / (2 s^2) is one over it."""
    pixels = given["side"] ** 2
    weight = effective(given, 2, pixels, 1, given["beta"], "mean", "example")
    return [weight, weight / 2]


def settings(stream, given):
    """Few and many pixels with betas far apart: no fixed pair of networks fits."""
    return [
        (2, stream.uniform(0.01, 0.05)),
        (2, stream.uniform(20, 100)),
        (given["side"] ** 2, given["beta"]),
        (stream.randint(3, 3000), 10 ** stream.uniform(-1, 1)),
    ]


def ranked_apart(expected, got):
    """The two losses, at one beta, must prefer different networks."""
    pixels, beta = expected
    reason = misshapen([[0, 0], [0, 0]], got)
    if reason:
        return reason
    if min(flat(got)) <= 0:
        return "an error or a KL that is not positive"
    ahead = {
        divisor: (got[1][0] - got[0][0]) / divisor + beta * (got[1][1] - got[0][1])
        for divisor in (1, pixels)
    }
    # A tie that only rounding decides is none of the two.
    rounding = 1e-12 * max(flat(got)) * max(1, beta)
    if ahead[pixels] <= rounding:
        return "the team's line does not prefer A"
    if ahead[1] >= -rounding:
        return "sum_loss does not prefer B"
    return None


def spectra(stream, given):
    """Two living directions and a dead one, none of them close to its threshold."""

    def spectrum(weight):
        shares = [
            stream.uniform(1.4, 9),
            stream.uniform(0.1, 0.7),
            stream.uniform(2, 4),
        ]
        return [share * weight / 2 for share in shares]

    weights = [stream.uniform(0.3, 6) for _ in range(4)]
    return [(spectrum(weight), weight) for weight in weights]


def minimum(given, spectrum, weight):
    """By a minimiser that knows only the loss."""

    def split(parameters, variance):
        w, a, log_v = torch.as_tensor(parameters, dtype=torch.float64)
        error = (1 - w * a) ** 2 * variance + w**2 * log_v.exp()
        return (a**2 * variance + log_v.exp() - 1 - log_v) / 2, error

    total = torch.zeros(2, dtype=torch.float64)
    for variance in spectrum:

        def loss(parameters, variance=variance):
            kl, error = split(parameters, variance)
            return (error / weight + kl).item()

        best = minimize(loss, [1.0, 0.5, -1.0], tol=1e-12)
        total += torch.stack(split(best.x, variance))
    return total


def pixels(stream, given):
    """Three sets of pixel variances with a beta."""
    return [
        ([stream.uniform(0, 0.25) for _ in range(size)], stream.uniform(0.2, 4))
        for size in (3, 10, 50)
    ]


def ceiling(given, variances, beta):
    """Beta times the KL is at most the loss of the mean picture at the prior."""
    two_values = torch.stack([variances.sqrt(), -variances.sqrt()])
    return mse_loss(two_values, torch.zeros_like(two_values)) / beta


def once(stream, given):
    """A single call without arguments."""
    return [()]


PRICE = "    kl = ((mean ** 2 + variance - 1 - variance.log()) / 2).sum(1)\n"
SUM = "def sum_loss(x, rebuilt, mean, variance, beta):\n" + PRICE
MEAN = "def mean_loss(x, rebuilt, mean, variance, beta):\n" + PRICE
EFFECTIVE = "def effective_beta(batch, pixels, codes, beta, squares, price):\n"
MINIMUM = "def at_minimum(spectrum, weight):\n"

exercise = Exercise(
    title="Auditing a beta-VAE",
    chapter="vae",
    constants={
        "side": [28, 20, 24, 32, 36],
        # Neither 1 nor a power of 2: a beta forgotten, turned over, or squared shows.
        "beta": [0.6, 0.3, 1.5, 2.5, 3.0],
    },
    checks=[
        Check(
            "directions foretold",
            2,
            "prediction",
            questions,
            foretold,
            "Which of the two terms is divided by the pixels? The lighter one loses.",
            [
                # The means cancel.
                "def prediction(question): return 'same'",
                # The KL is thought to have been divided.
                "def prediction(question):\n"
                "    return {'weight': 'smaller', 'kl': 'larger', 'error': 'smaller',\n"
                "            'batch': 'same'}[question]",
                # B is thought to stay, like D.
                "def prediction(question):\n"
                "    return {'weight': 'larger', 'kl': 'smaller', 'error': 'larger',\n"
                "            'batch': 'larger'}[question]",
                # A larger weight is thought to make the KL larger.
                "def prediction(question):\n"
                "    return {'weight': 'larger', 'kl': 'larger', 'error': 'larger',\n"
                "            'batch': 'same'}[question]",
            ],
            same,
        ),
        Check(
            "summed loss against a log density",
            2,
            "sum_loss",
            batches,
            summed,
            "Sum over the second axis of both terms, then average over the first.",
            [
                # Summed over pictures too.
                SUM + "    return ((rebuilt - x) ** 2).sum() + beta * kl.sum()",
                # The KL averaged over code entries.
                SUM + "    squares = ((rebuilt - x) ** 2).sum(1).mean()\n"
                "    return squares + beta * kl.mean() / mean.shape[1]",
                # Half the squared error.
                SUM + "    squares = ((rebuilt - x) ** 2).sum(1).mean()\n"
                "    return squares / 2 + beta * kl.mean()",
                # The variance taken for a standard deviation.
                "def sum_loss(x, rebuilt, mean, variance, beta):\n"
                "    kl = mean ** 2 + variance ** 2 - 1 - 2 * variance.log()\n"
                "    squares = ((rebuilt - x) ** 2).sum(1).mean()\n"
                "    return squares + beta * kl.sum(1).mean() / 2",
            ],
        ),
        Check(
            "the team's line against torch",
            2,
            "mean_loss",
            batches,
            averaged,
            "The two means are over different axes: read the shapes in the line.",
            [
                # The two means cancel: the summed loss, over D.
                MEAN + "    squares = ((rebuilt - x) ** 2).sum(1).mean()\n"
                "    return (squares + beta * kl.mean()) / x.shape[1]",
                # Both terms averaged over everything.
                MEAN + "    squares = ((rebuilt - x) ** 2).mean()\n"
                "    return squares + beta * kl.mean() / mean.shape[1]",
                # No mean over pixels.
                MEAN + "    squares = ((rebuilt - x) ** 2).sum(1).mean()\n"
                "    return squares + beta * kl.mean()",
                # The KL summed over pictures.
                MEAN + "    return ((rebuilt - x) ** 2).mean() + beta * kl.sum()",
            ],
        ),
        Check(
            "six pairs of reductions",
            3,
            "effective_beta",
            reductions,
            effective,
            "Divide each reduction by the one that sum_loss uses; then compare.",
            [
                # The two means cancel.
                EFFECTIVE + "    return beta",
                # The pixels, whatever was done to the KL.
                EFFECTIVE + "    return beta * pixels",
                # Turned over.
                EFFECTIVE + "    share = {'example': (1, 1), 'sum': (batch, batch),\n"
                "             'mean': (1 / pixels, 1 / codes)}\n"
                "    return beta * share[squares][0] / share[price][1]",
                # The pictures forgotten.
                EFFECTIVE + "    share = {'example': (1, 1), 'sum': (1, 1),\n"
                "             'mean': (1 / pixels, 1 / codes)}\n"
                "    return beta * share[price][1] / share[squares][0]",
                # A mean over everything also divided by the pictures.
                EFFECTIVE + "    share = {'example': (1, 1), 'sum': (batch, batch),\n"
                "             'mean': (1 / pixels / batch, 1 / codes / batch)}\n"
                "    return beta * share[price][1] / share[squares][0]",
            ],
        ),
        Check(
            "two networks that the losses rank differently",
            2,
            "refutation",
            settings,
            lambda given, pixels, beta: [pixels, beta],
            "Let A save one nat. How much squared error may that cost in each loss?",
            [
                # One fixed pair for all pixels and betas.
                "def refutation(pixels, beta): return [[11.0, 1.0], [1.0, 2.0]]",
                # Fails for two pixels.
                "def refutation(pixels, beta):\n"
                "    return [[1 + 2 * beta, 1.0], [1.0, 2.0]]",
                # The two names exchanged.
                "def refutation(pixels, beta):\n"
                "    return [[1.0, 2.0], [1 + beta * pixels ** .5, 1.0]]",
                # The team is believed: both losses prefer A.
                "def refutation(pixels, beta): return [[1.0, 1.0], [2.0, 2.0]]",
            ],
            ranked_apart,
        ),
        Check(
            "effective weight and pixel noise",
            2,
            "implied_model",
            once,
            implied,
            "The ELBO's squares have the weight 1 / (2 s^2), and its KL the weight 1.",
            [
                # The two means cancel.
                "def implied_model(): return beta, beta / 2",
                # The factor 2 of the normal density forgotten.
                "def implied_model(): return beta * side ** 2, beta * side ** 2",
                # The beta forgotten in the variance.
                "def implied_model(): return beta * side ** 2, side ** 2 / 2",
                # And in both.
                "def implied_model(): return side ** 2, side ** 2 / 2",
                # The beta on the other side of the fraction.
                "def implied_model():\n"
                "    return beta * side ** 2, side ** 2 / beta / 2",
                # A standard deviation in place of the variance.
                "def implied_model():\n"
                "    return beta * side ** 2, (beta * side ** 2 / 2) ** .5",
                # One side of the picture only.
                "def implied_model(): return beta * side, beta * side / 2",
            ],
        ),
        Check(
            "flat model against a numerical minimiser",
            3,
            "at_minimum",
            spectra,
            minimum,
            "Bring the loss to the chapter's form: for which beta s^2 do the squares "
            "have weight 1? Living directions have an error too.",
            [
                # The factor of the squares not minded.
                MINIMUM + "    kl = (spectrum / weight).log().clamp(min=0).sum() / 2\n"
                "    return kl, spectrum.clamp(max=weight).sum()",
                # Dead directions counted as negative.
                MINIMUM + "    kl = (2 * spectrum / weight).log().sum() / 2\n"
                "    return kl, spectrum.clamp(max=weight / 2).sum()",
                # Living directions thought to be free of error.
                MINIMUM + "    alive = spectrum > weight / 2\n"
                "    kl = (2 * spectrum[alive] / weight).log().sum() / 2\n"
                "    return kl, spectrum[~alive].sum()",
                # What the decoder explains, in place of what it leaves.
                MINIMUM + "    tau = weight / 2\n"
                "    kl = (spectrum / tau).log().clamp(min=0).sum() / 2\n"
                "    return kl, (spectrum - tau).clamp(min=0).sum()",
                # The error of the cloud's centre.
                MINIMUM + "    tau = weight / 2\n"
                "    kl = (spectrum / tau).log().clamp(min=0).sum() / 2\n"
                "    rest = spectrum.clamp(max=tau)\n"
                "    return kl, (rest ** 2 / spectrum).sum()",
            ],
            close(1e-4, 1e-4),
        ),
        Check(
            "ceiling for random pixels",
            1,
            "kl_ceiling",
            pixels,
            ceiling,
            "What does the line cost when the code is ignored?",
            [
                # The two means cancel: the ceiling of the summed loss.
                "def kl_ceiling(variances, beta): return variances.sum() / beta",
                # Divided by the pixels once more.
                "def kl_ceiling(variances, beta):\n"
                "    return variances.mean() / beta / len(variances)",
                # The largest variance.
                "def kl_ceiling(variances, beta): return variances.max() / beta",
                # The weight of an ELBO's squares, which the line does not have.
                "def kl_ceiling(variances, beta): return variances.mean() / 2 / beta",
            ],
        ),
    ],
)
