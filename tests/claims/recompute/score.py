"""Claims about the score: one bell, mixtures, and what a zero of it means."""

import torch
from torch import Tensor

from genaudit.mixture import GaussianMixture
from genaudit.pattern import CLASSES, LABELS, flower, part_centres
from genaudit.process import forward_jump, score_from_noise
from genaudit.schedule import linear_schedule
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import seeded, uniform
from tests.claims.recompute.denoiser import CLEAN, explanations, mixtures, passing


@recomputes("sc.one.*", "sc.two.score", "sc.pp.zero", "sc.pp.x05")
def score_of_a_mixture(weights, means, variance, alpha_bar, x):
    return GaussianMixture(weights, means, variance).score(x[None], alpha_bar)


@recomputes("sc.eps.bell")
def score_around_one_clean_point(x0, alpha_bar, x):
    centre = forward_jump(passing(alpha_bar), x0, 1, torch.zeros_like(x0))
    weight = torch.ones(1, dtype=x0.dtype)
    return GaussianMixture(weight, centre[None], 1 - alpha_bar).score(x[None])


@recomputes("sc.eps.noise", "sc.pp.091")
def score_of_a_noise_guess(alpha_bar, noise_guess):
    return score_from_noise(alpha_bar, noise_guess)


@recomputes("sc.abarv")
def noise_share(alpha_bar):
    return 1 - alpha_bar


def noised_bell(mean: Tensor, variance: Tensor, alpha_bar: Tensor):
    """Mean and variance after noise; mean, spread and noise are apart."""
    sources = torch.stack([mean, variance.sqrt(), torch.zeros_like(mean)])
    noise = torch.tensor([0.0, 0.0, 1.0], dtype=mean.dtype)
    centre, *rest = forward_jump(passing(alpha_bar), sources, 1, noise)
    return centre, torch.stack(rest).square().sum()


@recomputes("sc.two.centres", "sc.two.var")
def noised_component(mean, variance, alpha_bar):
    centre, spread = noised_bell(mean, variance, alpha_bar)
    return {"centres": centre, "var": spread}


@recomputes("sc.two.resp?")
def responsibility(weights, means, variance, alpha_bar, x):
    mixture = GaussianMixture(weights, means, variance)
    left, right = mixture.responsibilities(x[None], alpha_bar)
    return {"respL": left, "respR": right}


def peaks(mixture: GaussianMixture, alpha_bar: Tensor) -> Tensor:
    """How often the score falls through zero along a fine grid without zero itself."""
    x = torch.linspace(-6, 6, 6000, dtype=torch.float64)[:, None]
    score = mixture.score(x, alpha_bar)[:, 0]
    return ((score[:-1] > 0) & (score[1:] < 0)).sum()


@recomputes("sc.try.abar005")
def merged(weights, means, variance, alpha_bar):
    """Half the distance of the centres; standard deviation; peaks."""
    centre, spread = noised_bell(means.max(), variance, alpha_bar)
    found = peaks(GaussianMixture(weights, means, variance), alpha_bar)
    return centre, spread.sqrt(), found


@recomputes("sc.try.abar099")
def apart(weights, means, variance, alpha_bar, x):
    mixture = GaussianMixture(weights, means, variance)
    return *mixture.score(x[:, None], alpha_bar), peaks(mixture, alpha_bar)


@recomputes("sc.pattern.55", "sc.pattern.lamps30", "sc.pattern.petals24")
def sizes_of_the_classes():
    counts = LABELS.bincount()
    return {
        "55": len(part_centres()),
        "lamps30": counts[CLASSES.index("petals")],
        "petals24": counts[CLASSES.index("seeds")],
    }


@recomputes("sc.pattern.t*")
def signal_and_noise(steps, first, last, t):
    schedule = linear_schedule(steps, first, last)
    return schedule.alpha_bar(t), schedule.noise(t)


def uphill_ends(alpha_bar: Tensor, rounds: int) -> Tensor:
    """Where a climb from each part of the noised flower ends.

    A round moves a point to the mean of the centres, weighted by responsibility. All
    widths are equal, so it stays only where the score is zero. The starts are off the
    centres, or symmetry would hold some of them on a saddle.
    """
    centres = alpha_bar.sqrt() * part_centres()
    x = centres + torch.tensor([0.003, 0.002], dtype=centres.dtype)
    for _ in range(rounds):
        x = flower().responsibilities(x, alpha_bar) @ centres
    return x


@recomputes("sc.law.peaks")
def summits_of_the_flower(steps, first, last, visited, rounds, apart):
    """At each level, how many ends of climbs are further apart than that."""
    schedule, found = linear_schedule(steps, first, last), []
    for t in visited.int():
        ends = uphill_ends(schedule.alpha_bar(t), rounds)
        found.append(len((torch.cdist(ends, ends) < apart).unique(dim=0)))
    return tuple(found)


@recomputes("sc.law.mixture", "rev4.law.mixscore")
def weighted_component_scores(cases, seed):
    """Against autograd; against the distance to the mean of the centres, over v."""
    by_slope, by_centres = [], []
    for mixture, level, x in mixtures(cases, seed):
        x = x.requires_grad_()
        [slope] = torch.autograd.grad(mixture.log_density(x, level).sum(), x)
        x = x.detach()
        centre = mixture.responsibilities(x, level) @ (level.sqrt() * mixture.means)
        variance = level * mixture.variance[0] + 1 - level
        score = mixture.score(x, level)
        by_slope.append((score - slope).abs().max())
        by_centres.append((score - (centre - x) / variance).abs().max())
    return max(by_slope), max(by_centres)


@recomputes("sc.law.epsscore", "rev4.law.score")
def expected_noise_turned_round(cases, seed):
    errors = []
    for mixture, level, x in mixtures(cases, seed):
        noise, share = explanations(mixture, x, level)
        score = score_from_noise(level, (noise * share).sum(-1))
        errors.append((score - mixture.score(x, level)[:, 0]).abs().max())
    return max(errors)


@recomputes("sc.law.tweedie")
def one_step_to_the_clean_mean(cases, seed, weights, means, variance, alpha_bar, x):
    """Error of the step; clean guesses near the data and far from them."""
    errors = []
    for mixture, level, points in mixtures(cases, seed):
        _, share = explanations(mixture, points, level)
        landed = points + (1 - level) * mixture.score(points, level)
        expected = level.sqrt() * (CLEAN * share).sum(-1)
        errors.append((landed[:, 0] - expected).abs().max())
    guesses = GaussianMixture(weights, means, variance).clean_mean(
        x[:, None], alpha_bar
    )
    return max(errors), *guesses


@recomputes("sc.law.noisedvar")
def noised_bell_by_an_integral(cases, seed):
    """Integral over the clean point, the package's density, the formula's."""
    generator, errors = seeded(seed), []
    means = 4 * uniform(generator, cases) - 2
    variances, levels = 0.05 + 0.9 * uniform(generator, 2, cases)
    x = torch.linspace(-3, 3, 13, dtype=torch.float64)[:, None]
    for mean, variance, level in zip(means, variances, levels, strict=True):
        bell = torch.distributions.Normal(mean, variance.sqrt())
        noising = torch.distributions.Normal(level.sqrt() * CLEAN, (1 - level).sqrt())
        joint = noising.log_prob(x) + bell.log_prob(CLEAN)
        integral = torch.trapezoid(joint.exp(), CLEAN)
        weight = torch.ones_like(mean)[None]
        density = GaussianMixture(weight, mean[None], variance).log_density(x, level)
        centre, spread = noised_bell(mean, variance, level)
        formula = torch.distributions.Normal(centre, spread.sqrt()).log_prob(x[:, 0])
        errors.append((density.exp() - integral).abs().max())
        errors.append((formula.exp() - integral).abs().max())
    return max(errors)


@recomputes("sc.law.zero-not-likely")
def zero_in_a_valley(weights, means, variance):
    """Score at zero; density there over that at a centre; peaks."""
    mixture = GaussianMixture(weights, means, variance)
    valley, centre = torch.stack([torch.zeros_like(means[1]), means[1]])[:, None]
    ratio = (mixture.log_density(valley) - mixture.log_density(centre)).exp()
    return mixture.score(valley), ratio, peaks(mixture, torch.ones_like(ratio))
