"""Answers to the practice problems, a function for each problem or part of one."""

import math
import re

import torch
from scipy.optimize import brentq

from genaudit.divergence import kl_gaussian
from genaudit.latent import FiniteModel
from genaudit.mixture import GaussianMixture
from genaudit.process import (
    clean_from_noise,
    ddim_step,
    ddpm_mean,
    ddpm_step,
    forward_jump,
    forward_step,
    guided_noise,
    langevin_step,
    noise_from_clean,
    noise_from_score,
)
from genaudit.schedule import Schedule, linear_schedule
from tests.claims.ledger import read, recomputes
from tests.claims.recompute.cases import seeded, uniform

ZERO, ONE = torch.tensor([0.0, 1.0], dtype=torch.float64)


@recomputes("pr.count")
def problems():
    return len({row.id[:4] for row in read() if re.match(r"pr\d\d\.", row.id)})


@recomputes("pr01.a.z*")
def scaled_draw(mean, sd, z):
    return mean + sd * z


@recomputes("pr01.b")
def standardized(mean, sd, x):
    return (x - mean) / sd


@recomputes("pr02.a", "pr02.b.*", "pr02.c")
def waiting_time(rate, u):
    """The wait by the inverse, and the share of shorter waits by torch's CDF."""
    wait = -torch.log1p(-u) / rate
    share = torch.distributions.Exponential(rate).cdf(wait)
    return {"a": (wait, share), "75": wait, "20": wait, "c": (share, wait)}


@recomputes("pr03.a.*", "pr03.b")
def after_a_step(beta, x=ZERO, variance=ZERO):
    schedule = Schedule(beta[None])
    keep = forward_step(schedule, ONE, 1, ZERO)
    add = forward_step(schedule, ZERO, 1, ONE)
    spread = keep**2 * variance + add**2
    return {"mean": keep * x, "sd": spread.sqrt(), "b": spread}


@recomputes("pr03.c", "pr03.c.parts")
def variance_of_a_difference(factors, variances):
    """Of two-valued variables, over the four pairs of values; then each one's part."""
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    x, y = (factors * variances.sqrt())[:, None] * signs
    pairs = x[:, None] + y
    parts = x.square().mean(), y.square().mean()
    return {"c": pairs.square().mean(), "parts": parts}


@recomputes("pr04.a")
def price_of_a_cloud(mean, sd):
    return kl_gaussian(mean, sd**2)


@recomputes("pr04.a.mid", "pr04.b.ln")
def halves_of_the_price(sd, mean=ZERO):
    log = -(sd**2).log()
    return {"mid": (mean**2 + sd**2 - 1, log), "ln": log}


@recomputes("pr04.b", "pr04.c")
def sd_of_a_price(price, low, high):
    def excess(sd: float) -> float:
        return float(kl_gaussian(ZERO, sd**2 * ONE) - price)

    return brentq(excess, float(low), float(high), xtol=1e-14)


@recomputes("pr04.b.rhs")
def twice_the_price(price, sd):
    return 2 * price, 2 * kl_gaussian(ZERO, sd**2)


@recomputes("pr05.a", "pr05.b.*")
def slopes_of_a_square(mean, sd, noise):
    mean, sd = mean.requires_grad_(), sd.requires_grad_()
    z = mean + sd * noise
    dz, mu, sig = torch.autograd.grad(z**2, (z, mean, sd))
    return {"a": z.detach(), "dz": dz, "mu": mu, "sig": sig}


@recomputes("pr06.a.*")
def two_codes(prior, likelihood):
    model = FiniteModel(prior, likelihood)
    log, posterior = model.log_evidence(), model.posterior()
    return {
        "px": log.exp(),
        "log": log,
        "post": tuple(posterior),
        "joint": tuple(log.exp() * posterior),
    }


@recomputes(
    "pr06.b.*",
    "pr06.c.rec",
    "pr06.c.kl",
    "pr06.c.elbo",
    "pr06.c.gap",
    "pr06.d",
    "pr06.remember",
)
def bound_and_gap(prior, likelihood, q):
    """The gap as a difference; under d as a divergence from the posterior."""
    model = FiniteModel(prior, likelihood)
    terms = model.elbo_terms(q)
    return {
        "rec": terms.reconstruction,
        "kl": terms.kl,
        "elbo": terms.elbo,
        "gap": model.log_evidence() - terms.elbo,
        "d": terms.gap,
        "remember": terms.elbo,
    }


@recomputes("pr06.c.recparts", "pr06.c.klparts", "pr06.d.parts")
def terms_of_the_sums(prior, likelihood, q):
    posterior = prior * likelihood / (prior @ likelihood)
    return {
        "recparts": tuple(q * likelihood.log()),
        "klparts": tuple(q * (q / prior).log()),
        "parts": tuple(q * (q / posterior).log()),
    }


@recomputes("pr07.*")
def one_jump(beta, x0=ZERO, noise=ZERO):
    schedule, last = Schedule(beta), len(beta)
    return {
        "a": schedule.alpha_bar(last),
        "b": (schedule.signal(last), schedule.noise(last)),
        "c": forward_jump(schedule, x0, last, noise),
    }


def below_by_logarithms(beta, level) -> tuple[float, int]:
    """Steps until equal ones reach the level; the smallest whole number above that."""
    ratio = math.log(level) / math.log(1 - beta)
    return ratio, math.floor(ratio) + 1


@recomputes("pr08.a", "pr08.b.*", "pr08.c.*")
def first_step_below(beta, level):
    ratio, answer = below_by_logarithms(beta, level)
    schedule = Schedule(beta.expand(answer + 1))
    t = schedule.first_below(level)
    return {
        "a": (ratio, answer, t),
        "real": ratio,
        "t": t,
        "chk": (schedule.alpha_bar(t - 1), schedule.alpha_bar(t)),
    }


@recomputes("pr08.remember.half")
def left_after_equal_steps(beta, steps):
    return Schedule(beta.expand(steps)).alpha_bar(steps)


@recomputes("pr08.remember.260")
def half_way(steps, first, last, level):
    return linear_schedule(steps, first, last).first_below(level)


@recomputes("pr08.law")
def wrong_first_steps(cases, seed):
    generator, wrong = seeded(seed), 0
    for beta, level in 0.01 + 0.9 * uniform(generator, cases, 2):
        _, answer = below_by_logarithms(beta, level)
        schedule = Schedule(beta.expand(answer + 5))
        wrong += schedule.first_below(level) != answer
    return wrong


@recomputes("pr09.a", "pr09.a.num")
def clean_estimate(x, alpha_bar, noise_guess):
    clean = clean_from_noise(x, alpha_bar, noise_guess)
    return {"a": clean, "num": alpha_bar.sqrt() * clean}


@recomputes("pr09.b.*")
def miss_of_the_guess(x, alpha_bar, noise_guess, x0):
    noise = noise_from_clean(x, alpha_bar, x0)
    return {"eps": noise, "loss": (noise_guess - noise) ** 2}


@recomputes("pr09.remember")
def gain_of_an_error(alpha_bar):
    """What a unit less of the noise adds to the clean estimate."""
    full, none = (clean_from_noise(ONE, alpha_bar, noise) for noise in (ONE, ZERO))
    return none - full


@recomputes("pr10.a.*", "pr11.c.score", "pr13.score")
def score(weights, means, variance, alpha_bar, x):
    [value] = GaussianMixture(weights, means, variance).score(x[None], alpha_bar)
    return value


def jump_weights(alpha_bar):
    """Weights of the clean point and of the noise in a jump to one level."""
    schedule = Schedule(1 - alpha_bar[None])
    keep = forward_jump(schedule, ONE, 1, ZERO)
    return keep, forward_jump(schedule, ZERO, 1, ONE)


@recomputes("pr10.b.centre", "pr11.a.*")
def noised_cloud(mean, alpha_bar, variance=ZERO):
    keep, add = jump_weights(alpha_bar)
    centre, spread = keep * mean, keep**2 * variance + add**2
    return {"centre": (centre, spread), "centres": centre, "var": spread}


@recomputes("pr10.b.score", "pr10.b.eps")
def score_around_one_point(x0, alpha_bar, x):
    keep, add = jump_weights(alpha_bar)
    cloud = GaussianMixture(ONE[None], keep * x0[None], add**2)
    [value] = cloud.score(x[None])
    return {"score": value, "eps": noise_from_score(alpha_bar, value)}


@recomputes("pr11.b.exp", "pr11.b.weights")
def weights_of_two_bells(means, variance, x):
    exponents = -((x - means) ** 2) / (2 * variance)
    return {"exp": tuple(exponents), "weights": tuple(exponents.exp())}


@recomputes("pr11.b.resp")
def responsibilities(weights, means, variance, alpha_bar, x):
    mixture = GaussianMixture(weights, means, variance)
    return tuple(mixture.responsibilities(x[None], alpha_bar))


@recomputes("pr11.c.compscores")
def scores_of_each_bell(means, variance, alpha_bar, x):
    bells = (GaussianMixture(ONE[None], mean[None], variance) for mean in means)
    return tuple(bell.score(x[None], alpha_bar) for bell in bells)


def peaks(mean, sd) -> list[float]:
    """Where two equal bells at -mean and mean have a density with a peak."""
    x = torch.linspace(-4, 4, 4001, dtype=torch.float64)
    bells = GaussianMixture([0.5, 0.5], torch.stack([-mean, mean]), sd**2)
    rises = bells.log_density(x[:, None]).diff() > 0
    return x[1:-1][rises[:-1] & ~rises[1:]].tolist()


@recomputes("pr11.unimodal")
def hills_of_two_bells(mean, variance, change):
    [highest] = peaks(mean, variance.sqrt())
    closer, wider = (len(peaks(mean, mean * (1 + sign * change))) for sign in (-1, 1))
    return mean, variance.sqrt(), highest, closer, wider


@recomputes("pr12.share", "pr12.a", "pr12.c")
def reverse_step(beta, alpha_bar, noise_guess, x=ZERO, z=ZERO):
    schedule, t = Schedule(torch.stack([1 - alpha_bar / (1 - beta), beta])), 2
    return {
        "share": schedule.beta(t) / schedule.noise(t) * noise_guess,
        "a": ddpm_mean(schedule, x, t, noise_guess),
        "c": ddpm_step(schedule, x, t, noise_guess, z, "beta"),
    }


@recomputes("pr12.a.root", "pr12.b")
def roots_of_a_step(beta):
    schedule = Schedule(beta[None])
    return {"root": schedule.alpha(1).sqrt(), "b": schedule.beta(1).sqrt()}


@recomputes("pr13.drift", "pr13.noise", "pr13.x")
def langevin_on_a_bell(mean, variance, x, step_size, z):
    slope = GaussianMixture(ONE[None], mean[None], variance).score(x[None])[0]
    drift = langevin_step(x, slope, step_size, ZERO)
    after = langevin_step(x, slope, step_size, z)
    return {"drift": drift, "noise": after - drift, "x": after}


@recomputes("pr14.*")
def deterministic_jump(x, noise_guess, high, low):
    """From the level of alpha-bar `high` to that of `low`, and all the way."""
    schedule = Schedule(torch.stack([1 - low, 1 - high / low]))
    return {
        "a": clean_from_noise(x, high, noise_guess),
        "roots": schedule.noise(1),
        "b": ddim_step(schedule, x, 2, 1, noise_guess),
        "c": ddim_step(schedule, x, 2, 0, noise_guess),
    }


@recomputes("pr15.diff")
def difference(unconditional, conditional):
    return tuple(conditional - unconditional)


@recomputes("pr15.a")
def guided_pair(unconditional, conditional, scale):
    return tuple(guided_noise(unconditional, conditional, scale))


@recomputes("pr15.b")
def scale_behind(unconditional, conditional, guided):
    """The result is a straight line in the scale: read it off at 0 and 1."""
    at_zero, at_one = (guided_noise(unconditional, conditional, w) for w in (0, 1))
    return (guided - at_zero) / (at_one - at_zero)


def numbers_in_pictures(height, width, shrink, channels) -> tuple[int, int]:
    """In a colour picture, and in its code, by the size of the tensors."""
    picture = torch.empty(3, height, width, device="meta")
    code = picture[:1, ::shrink, ::shrink].expand(channels, -1, -1)
    return picture.numel(), code.numel()


@recomputes("pr16.a.*", "pr16.b.*")
def size_of_a_code(side, shrink, channels):
    before, after = numbers_in_pictures(side, side, shrink, channels)
    ratio = before / after
    sizes = {"before": before, "after": after, "factor": ratio}
    return sizes | {"f8": ratio, "f16": ratio}


@recomputes("pr16.law")
def ratio_of_sizes(cases, seed):
    generator, errors = seeded(seed), []
    for shrink, channels, rows, columns in torch.randint(
        1, 17, (cases, 4), generator=generator
    ).tolist():
        sizes = rows * shrink, columns * shrink, shrink, channels
        before, after = numbers_in_pictures(*sizes)
        errors.append(abs(before / after - 3 * shrink**2 / channels))
    return max(errors)
