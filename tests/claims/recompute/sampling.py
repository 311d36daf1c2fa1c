"""Claims about drawing: noise pushed through a function, and the law that comes out."""

import math

import numpy as np
import torch
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq

from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import seeded, uniform


@recomputes("samp.heights.z*")
def height(mean, sd, z):
    return mean + sd * z


@recomputes("samp.heights.n500")
def distances_from_the_bell(mean, sd, counts, repeats, seed):
    """Largest gap between the share of draws below a height and the normal CDF."""
    generator = seeded(seed)
    bell = stats.norm(float(mean), float(sd))
    averages = []
    for count in counts.int().tolist():
        z = torch.randn(repeats, count, generator=generator, dtype=torch.float64)
        tests = stats.kstest(height(mean, sd, z).numpy(), bell.cdf, axis=1)
        averages.append(tests.statistic.mean())
    return tuple(averages)


@recomputes("samp.expo.u0.5")
def waiting_time(rate, u):
    return -torch.log1p(-u) / rate


@recomputes("samp.pp.expo")
def share_of_waits_below(rate, waits):
    return tuple(-torch.expm1(-rate * waits))


@recomputes("samp.pixels400")
def numbers_in_a_picture(rows, columns):
    return rows * columns


@recomputes("samp.slope7", "samp.pp.14z")
def stretched_bell(mean, slope, narrower):
    """Height of the peak and distance of the quartiles, against another slope's."""
    bell, other = (torch.distributions.Normal(mean, one) for one in (slope, narrower))
    quarters = torch.tensor([0.25, 0.75], dtype=torch.float64)
    peak = (bell.log_prob(mean) - other.log_prob(mean)).exp()
    width = bell.icdf(quarters).diff() / other.icdf(quarters).diff()
    return {"slope7": (1 / peak, width), "14z": (slope, peak)}


@recomputes("samp.twohumps")
def humps(steepness, stops):
    """Peaks of the law of a sigmoid of a steep multiple of a standard normal draw."""
    z = torch.linspace(-6, 6, stops, dtype=torch.float64)
    counts = []
    for one in steepness:
        x = torch.sigmoid(one * z)
        log_density = -(z**2) / 2 - (one * x * (1 - x)).log()
        rises = log_density.diff() > 0
        counts.append((rises[:-1] & ~rises[1:]).sum())
    return tuple(counts)


@recomputes("samp.law.invcdf")
def inverse_against_cdf(rates, points, shares, seed):
    u = uniform(seeded(seed), points)
    errors = [
        np.abs(
            stats.expon(scale=1 / rate).cdf(-np.log1p(-u.numpy()) / rate) - u.numpy()
        )
        for rate in rates.tolist()
    ]
    errors.append(np.abs(stats.logistic.cdf((u / (1 - u)).log().numpy()) - u.numpy()))
    # The law of a few outcomes has a CDF of steps: take the first that reaches u.
    even = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    outcome = torch.searchsorted(shares.cumsum(0), even)
    drawn = torch.bincount(outcome, minlength=len(shares)).double() / points
    return max(error.max() for error in errors), (drawn - shares).abs().max()


def curve(z: float) -> float:
    """An increasing function whose inverse has no formula."""
    return math.sinh(z) + z


def pushed_density(x: float) -> float:
    """Density of `curve` of a standard normal draw: that of the draw over the slope."""
    z = brentq(lambda z: curve(z) - x, -3, 3, xtol=1e-15)
    return math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / (math.cosh(z) + 1)


@recomputes("samp.law.changevar")
def mass_between_stops(low, high, pieces, matrix):
    """The density's integrals against the input's masses; a linear map of the plane."""
    stops = np.linspace(float(low), float(high), pieces + 1)
    errors = [
        quad(pushed_density, curve(a), curve(b), epsabs=1e-14)[0]
        - (stats.norm.cdf(b) - stats.norm.cdf(a))
        for a, b in zip(stops[:-1], stops[1:], strict=True)
    ]
    z = torch.tensor([[0.0, 0.0], [1.0, -0.5], [-2.0, 1.5]], dtype=torch.float64)
    plane = torch.distributions.MultivariateNormal(
        torch.zeros_like(z[0]), matrix @ matrix.T
    )
    log_input = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(1)
    by_jacobian = log_input - matrix.det().abs().log()
    return np.abs(errors).max(), (
        plane.log_prob(z @ matrix.T) - by_jacobian
    ).abs().max()
