"""Claims about clouds of codes: their price, its weight, and what decoding does."""

import inspect
import re
from itertools import chain
from typing import NamedTuple

import torch
from scipy import stats
from scipy.optimize import minimize_scalar
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from genaudit.divergence import kl_gaussian
from genaudit.faces import draw_faces, draw_factors, is_face, nearest_face
from genaudit.latent import FiniteModel, GaussianModel
from tests.claims.ledger import (
    cited_year,
    printed,
    printed_numbers,
    recomputes,
)
from tests.claims.recompute.cases import seeded, uniform
from tests.claims.recompute.reparameterization import STANDARD, STOPS, average


@recomputes("kl.m*", "kl.shift2", "kl.narrow-beats-offset", "vae.pp.AB")
def price_of_a_cloud(mean, sd):
    return tuple(kl_gaussian(mean, sd**2).reshape(-1))


@recomputes("vae.pp.2d")
def price_in_two_coordinates(mean, sd):
    prices = kl_gaussian(mean, sd**2)
    return prices.sum(), *prices


@recomputes("kl.lognumber")
def minus_log_variance(sd):
    return -(sd**2).log()


def clouds(generator: torch.Generator, *shape: int):
    """Means between -2 and 2 and standard deviations between 0.1 and 2.1."""
    means, sds = uniform(generator, 2, *shape)
    return 4 * means - 2, 0.1 + 2 * sds


@recomputes("kl.law.closed")
def formula_against_integral(cases, seed):
    errors = []
    for mean, sd in zip(*clouds(seeded(seed), cases), strict=True):
        z = mean + sd * STOPS
        integral = average(Normal(mean, sd).log_prob(z) - STANDARD.log_prob(z))
        errors.append((kl_gaussian(mean, sd**2) - integral).abs())
    return max(errors)


@recomputes("kl.law.nonneg")
def cheapest_clouds(widest_mean, means, widest_sd, sds):
    """The lowest price on a grid, where it is paid, and the lowest price elsewhere."""
    mean, sd = torch.cartesian_prod(
        torch.linspace(-widest_mean, widest_mean, means, dtype=torch.float64),
        torch.linspace(0, widest_sd, sds + 1, dtype=torch.float64)[1:],
    ).T
    prices = kl_gaussian(mean, sd**2)
    (lowest, second), (place, _) = prices.topk(2, largest=False)
    return lowest, mean[place], sd[place], second


@recomputes("kl.law.additive")
def coordinates_against_matrices(cases, size, seed):
    mean, sd = clouds(seeded(seed), cases, size)
    prior = MultivariateNormal(
        torch.zeros_like(mean), torch.eye(size, dtype=mean.dtype)
    )
    whole = kl_divergence(MultivariateNormal(mean, torch.diag_embed(sd**2)), prior)
    return (kl_gaussian(mean, sd**2).sum(1) - whole).abs().max()


@recomputes("gvae.law.diagkl")
def formula_in_log_variances(cases, size, seed):
    mean, sd = clouds(seeded(seed), cases, size)
    log_variance = 2 * sd.log()
    halved = (mean**2 + log_variance.exp() - log_variance - 1).sum(1) / 2
    return (kl_gaussian(mean, sd**2).sum(1) - halved).abs().max()


@recomputes("vae.fact.kw")
def year_of_the_vae():
    return cited_year("kingma2014")


class Chart(NamedTuple):
    """What the chapter prints of a network trained with one weight on the price."""

    price: float
    first_price: float
    second_price: float
    first_sd: float
    second_sd: float
    error: float
    no_face: float
    sd_of_smiles: float


def chart(beta) -> Chart:
    return Chart(*printed_numbers("vae", "weights-audit", f"{float(beta):g}"))


@recomputes("vae.b*.kl*")
def average_prices(beta):
    """Of a whole cloud, and of the cheaper of its two entries."""
    row = chart(beta)
    return {"klavg": row.price, "klsmile": min(row.first_price, row.second_price)}


@recomputes("vae.row.*")
def clouds_rebuilds_and_random_codes(beta):
    row = chart(beta)
    inside = printed_numbers("vae", "coverage-audit", f"{float(beta):g}")[3]
    clouds = row.first_sd, row.second_sd
    return *clouds, row.error, row.no_face, inside, row.sd_of_smiles


@recomputes("vae.pp.beta30")
def effect_of_the_weight(before, after):
    one, other = chart(before), chart(after)
    return (
        *(one.first_sd, one.second_sd, other.first_sd, other.second_sd),
        *(other.first_price, other.second_price),
        *(one.error, other.error),
    )


def trained_weights() -> list[float]:
    """The first column of the chart."""
    table = printed("vae", "weights-audit")
    return [float(number) for number in re.findall(r"^[\d.]+", table, re.MULTILINE)]


@recomputes("vae.betas")
def weights_in_the_chart():
    return tuple(trained_weights())


@recomputes("vae.demo.12faces")
def faces_with_their_clouds():
    """There is one picture for each of them and each weight."""
    [pictures] = re.findall(r"(\d+) pictures", printed("vae", "cloud-explorer"))
    return int(pictures) / len(trained_weights())


@recomputes("lat.demo.12")
def random_faces():
    """Drawn at once; faces among them; share of faces among four thousand."""
    drawn, faces, _, share, *_ = printed_numbers("latent_space", "samples", "of these")
    return drawn, faces, share


@recomputes("lat.demo.axes")
def correlations_with_the_factors(seeds):
    """For each start: first entry with size and smile, then second entry."""
    rows = [
        printed_numbers("latent_space", "truth-audit", f"{seed:g}") for seed in seeds
    ]
    return tuple(chain.from_iterable(rows))


@recomputes("lat.demo.morph")
def faces_among_midpoints():
    """For each way to blend: share of all pairs, of the most alike, of the least."""
    rows = [
        printed_numbers("latent_space", "morph-audit", blended)
        for blended in ("codes, variational", "codes, plain", "pixels")
    ]
    return tuple(chain.from_iterable(rows))


@recomputes("r.vae.784")
def numbers_that_the_decoder_gives(rows, columns):
    return rows * columns


@recomputes("r.vae.prior")
def mean_and_variance_of_the_prior():
    defaults = inspect.signature(kl_gaussian).parameters
    return defaults["other_mean"].default, defaults["other_variance"].default


@recomputes("lat.pp.66", "r.vae.z")
def prior_mass_at_least_as_far_out(code):
    return stats.chi2(len(code)).sf(code.square().sum())


def expected_cost(outcomes, shares, guess):
    """Average squared error of one guess, or of each of several."""
    return ((outcomes - guess[..., None]).square() * shares).sum(-1)


@recomputes("lat.cost.*")
def cost_of_guesses(outcomes, shares, guess):
    return tuple(expected_cost(outcomes, shares, guess).reshape(-1))


@recomputes("lat.pp.grey")
def cheapest_guess_of_a_grid(outcomes, shares, stops):
    guesses = torch.linspace(0, 1, stops, dtype=torch.float64)
    return guesses[expected_cost(outcomes, shares, guesses).argmin()]


@recomputes("lat.mean")
def mean_outcome(outcomes, shares):
    return (outcomes * shares).sum()


@recomputes("lat.law.mse-mean")
def cost_is_variance_plus_distance(cases, size, seed):
    """Largest error of that, and most that a guess is cheaper than the mean."""
    generator = seeded(seed)
    outcomes, shares, guesses = uniform(generator, 3, cases, size)
    shares = shares / shares.sum(1, keepdim=True)
    mean = (outcomes * shares).sum(1)
    variance = (outcomes**2 * shares).sum(1) - mean**2
    at_mean, at_guess = (
        expected_cost(outcomes, shares, guess) for guess in (mean, guesses[:, 0])
    )
    error = (at_guess - variance - (guesses[:, 0] - mean) ** 2).abs().max()
    return error, (at_mean - at_guess).max().clamp(min=0)


@recomputes("lat.dispute.onmanifold")
def halfway_between_two_codes(sizes):
    """Variance of an entry; share of the prior that is as near to 0, for each size."""
    weights = torch.full((2,), 0.5, dtype=torch.float64)
    variance = weights.square().sum()
    return variance, *(stats.chi2(size).cdf(variance * size) for size in sizes)


@recomputes("lat.tab.face")
def pixel_average_and_picture_between(size, smiles, pairs, seed):
    """Errors of the nearest face, then how many averages of random pairs are faces."""
    average_of_two = draw_faces(size, smiles).mean(0)
    between = draw_faces(size, smiles.mean())
    errors = nearest_face(torch.stack([average_of_two, between])).error
    factors = draw_factors(2 * pairs, seeded(seed))
    pictures = draw_faces(*factors.T).reshape(2, pairs, -1)
    return *errors, is_face(pictures.mean(0)).sum()


@recomputes("gvae.law.beta")
def best_share_for_a_weight(prior, likelihood, beta):
    """By search, by formula, and the share that is best for the bound itself."""

    def loss(share_of_a: float) -> float:
        q = torch.tensor([share_of_a, 1 - share_of_a], dtype=torch.float64)
        terms = FiniteModel(prior, likelihood).elbo_terms(q)
        return (beta * terms.kl - terms.reconstruction).item()

    found = minimize_scalar(
        loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}
    )
    tempered = FiniteModel(prior, likelihood ** (1 / beta)).posterior()[0]
    return found.x, tempered, FiniteModel(prior, likelihood).posterior()[0]


@recomputes("gvae.law.batch")
def average_over_all_batches(examples, batch, noise_variance, seed):
    """Error for the bound; share that is kept of the variance of the codes' means."""
    x, means, variances = uniform(seeded(seed), 3, examples)
    bounds = GaussianModel(noise_variance).elbo_terms(x, means, variances).elbo
    rows = torch.combinations(torch.arange(examples), batch)
    error = (bounds[rows].mean(1).mean() - bounds.mean()).abs()
    within = means[rows].var(1, correction=0).mean()
    return error, within / means.var(correction=0)
