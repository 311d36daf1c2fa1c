"""Claims about the guess of the noise: its targets, its best value, its weight."""

import re
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from genaudit.divergence import kl_gaussian
from genaudit.mixture import GaussianMixture
from genaudit.pattern import flower
from genaudit.process import (
    clean_from_noise,
    clean_from_velocity,
    ddpm_mean,
    forward_jump,
    noise_from_clean,
    noise_from_velocity,
    velocity,
)
from genaudit.schedule import Schedule, linear_schedule
from tests.claims.ledger import readouts, recomputes
from tests.claims.recompute.cases import distributions, schedules, seeded, uniform

CLEAN = torch.linspace(-9, 9, 3601, dtype=torch.float64)


def passing(*alpha_bars: Tensor) -> Schedule:
    """The schedule whose steps have these alpha-bars."""
    levels = torch.stack([torch.ones_like(alpha_bars[0]), *alpha_bars])
    return Schedule(1 - levels[1:] / levels[:-1])


def mixtures(cases: int, seed: int) -> Iterator[tuple[GaussianMixture, Tensor, Tensor]]:
    """Mixtures of three bells of one width, each with a noise level and four points."""
    generator = seeded(seed)
    weights = distributions(generator, cases, 3)
    means = 4 * uniform(generator, cases, 3) - 2
    variances = 0.05 + 0.5 * uniform(generator, cases)
    levels = 0.05 + 0.9 * uniform(generator, cases)
    points = 6 * uniform(generator, cases, 4, 1) - 3
    for weight, mean, variance, level, x in zip(
        weights, means, variances, levels, points, strict=True
    ):
        yield GaussianMixture(weight, mean, variance), level, x


def explanations(mixture: GaussianMixture, x: Tensor, level: Tensor):
    """Noise that each clean point would need to become x, and how probable that is."""
    noise = (x - level.sqrt() * CLEAN) / (1 - level).sqrt()
    joint = mixture.log_density(CLEAN[:, None]) - noise.square() / 2
    return noise, joint.softmax(-1)


@recomputes("den.xt")
def noised_point(x0, alpha_bar, noise):
    return forward_jump(passing(alpha_bar), x0, 1, noise)


@recomputes("den.root")
def weights_of_data_and_noise(alpha_bar):
    schedule = passing(alpha_bar)
    return schedule.signal(1), schedule.noise(1)


@recomputes("den.x0hat.*", "den.pp.x0")
def clean_guess(x, alpha_bar, noise_guess):
    return clean_from_noise(x, alpha_bar, noise_guess)


@recomputes("den.loss0", "den.guess-0.2")
def error_and_its_square(noise, noise_guess):
    error = noise - noise_guess
    return error, error**2


@recomputes("den.pp.static")
def clean_guess_from_static(steps, first, last, mean, variance, radius):
    """What x adds to the guess for a bell; how far the flower's guesses go."""
    schedule = linear_schedule(steps, first, last)
    level = schedule.alpha_bar(steps)
    bell = GaussianMixture(torch.ones(1, dtype=mean.dtype), mean[None], variance)
    at_zero, at_one = bell.clean_mean(torch.tensor([[0.0], [1.0]]).double(), level)
    angle = torch.linspace(0, 2 * torch.pi, 361, dtype=torch.float64)
    circle = radius * torch.stack([angle.cos(), angle.sin()], 1)
    return at_one - at_zero, flower().clean_mean(circle, level).norm(dim=1).max()


@recomputes("den.demo.*")
def guesses_on_the_flower(alpha_bar):
    """How many guesses there are; how many hit; how many do when all are turned."""
    found = re.findall(
        rf"level {float(alpha_bar):g}: .* of (\d+) flower guesses (\d+) lie on the "
        r"flower, (\d+) after a turn",
        readouts("denoiser", "guess-explorer"),
    )
    [counts] = set(found)
    return tuple(map(int, counts))


@recomputes("den.law.convert")
def round_trips(cases, seed):
    """Clean to noise and back, noise to clean and back, both through velocity."""
    generator = seeded(seed)
    x0, noise = 4 * uniform(generator, 2, cases) - 2
    level = 0.05 + 0.9 * uniform(generator, cases)
    x = level.sqrt() * x0 + (1 - level).sqrt() * noise
    v = velocity(level, noise, x0)
    return (
        (clean_from_noise(x, level, noise) - x0).abs().max(),
        (noise_from_clean(x, level, x0) - noise).abs().max(),
        (clean_from_velocity(x, level, v) - x0).abs().max(),
        (noise_from_velocity(x, level, v) - noise).abs().max(),
    )


@recomputes("den.law.condmean", "rev4.law.eps-optimum")
def best_guess(cases, seed, shift):
    """Against an integral; what a shifted guess costs; the clean point it implies."""
    noise_errors, cost_errors, clean_errors = [], [], []
    for mixture, level, x in mixtures(cases, seed):
        noise, share = explanations(mixture, x, level)
        best = mixture.noise_mean(x, level)
        implied = clean_from_noise(x, level, best)
        at_best, shifted = (
            ((noise - guess).square() * share).sum(-1) for guess in (best, best + shift)
        )
        noise_errors.append((best[:, 0] - (noise * share).sum(-1)).abs().max())
        cost_errors.append((shifted - at_best - shift**2).abs().max())
        clean_errors.append((implied[:, 0] - (CLEAN * share).sum(-1)).abs().max())
    return max(noise_errors), max(cost_errors), max(clean_errors)


def bound_weights(schedule: Schedule) -> Tensor:
    """Price of a noise error of 1 at each step: the divergence between two steps."""
    t = schedule.timesteps
    x = torch.zeros(len(t), dtype=torch.float64)
    one, other = (ddpm_mean(schedule, x, t, guess) for guess in (x, x + 1))
    return kl_gaussian(one, schedule.beta(t), other, schedule.beta(t))


@recomputes("den.dispute.weights", "r.ddpm.notbound")
def first_and_last_weight(steps, first, last):
    weights = bound_weights(linear_schedule(steps, first, last))
    return weights[0], weights[-1], weights.max() / weights.min()


@recomputes("den.law.weights")
def formula_of_the_weights(steps, first, last):
    """Its error; first over last; range without the first; place of the smallest."""
    schedule = linear_schedule(steps, first, last)
    weights, t = bound_weights(schedule), schedule.timesteps
    formula = schedule.beta(t) / (2 * schedule.alpha(t) * (1 - schedule.alpha_bar(t)))
    later = weights[1:]
    return (
        (weights - formula).abs().max(),
        weights[0] / weights[-1],
        later.max() / later.min(),
        t[weights.argmin()],
    )


@recomputes("r.ddpm.norm")
def divergence_against_squared_norm(cases, steps, size, seed):
    """The divergence of two steps in all coordinates at once, and the weighted sum."""
    generator, errors = seeded(seed), []
    for schedule in schedules(generator, cases, steps):
        x, guess, other = 4 * uniform(generator, 3, size) - 2
        beta, alpha = schedule.beta(steps), schedule.alpha(steps)
        weight = beta / (2 * alpha * (1 - schedule.alpha_bar(steps)))
        one, two = (
            MultivariateNormal(
                ddpm_mean(schedule, x, steps, noise), beta * torch.eye(size).double()
            )
            for noise in (guess, other)
        )
        squared_norm = (guess - other).square().sum()
        errors.append((kl_divergence(one, two) - weight * squared_norm).abs())
    return max(errors)
