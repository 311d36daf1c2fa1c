"""Claims about noising: schedules, the one-jump formula, the endpoint, rounding."""

import math

import torch

from genaudit.ablation import protocol_schedule, target
from genaudit.divergence import kl_gaussian
from genaudit.mixture import GaussianMixture
from genaudit.process import forward_jump, forward_step
from genaudit.schedule import Schedule, cosine_schedule, linear_schedule
from tests.claims.ledger import cited_year, recomputes
from tests.claims.recompute.cases import schedules, seeded


@recomputes("fwd.b01.*", "fwd.pp.036")
def few_steps(beta):
    schedule = Schedule(beta)
    last = len(schedule)
    weights = schedule.signal(last), schedule.noise(last)
    return {
        "abar3": schedule.alpha_bar(last),
        "signal": weights[0],
        "noise": weights[1],
        "036": (schedule.alpha_bar(last), *weights),
    }


@recomputes("fwd.lin.T")
def default_linear_schedule():
    schedule = linear_schedule()
    return len(schedule), schedule.beta(1), schedule.beta(len(schedule))


@recomputes(
    "fwd.lin.abar*",
    "fwd.lin.snr*",
    "fwd.lin.noise12",
    "fwd.lin.sig1000",
    "fwd4.t*.*",
    "fwd.demo.t100",
)
def linear_levels(steps, first, last, t):
    schedule = linear_schedule(steps, first, last)
    level = schedule.alpha_bar(t)
    return {
        f"abar{t}": level,
        f"snr{t}": schedule.snr(t),
        "noise12": 1 / schedule.snr(t),
        f"sig{t}": schedule.signal(t),
        "abar": level,
        "sig": schedule.signal(t),
        "noi": schedule.noise(t),
        f"t{t}": (level, schedule.snr(t)),
    }


@recomputes("fwd.lin.half")
def half_life(steps, first, last):
    return linear_schedule(steps, first, last).first_below(0.5)


@recomputes("fwd.cos.abar500")
def cosine_level(steps, offset, t):
    return cosine_schedule(steps, offset).alpha_bar(t)


@recomputes("fwd.lin.firstthird")
def two_schedules(steps, first, last, offset, t):
    return (
        linear_schedule(steps, first, last).alpha_bar(t),
        cosine_schedule(steps, offset).alpha_bar(t),
    )


@recomputes("fwd.fact.ddpm")
def published_linear_schedule():
    schedule = linear_schedule()
    ends = schedule.beta(1), schedule.beta(len(schedule))
    return cited_year("ho2020"), len(schedule), *ends


@recomputes("fwd.fact.cosine")
def published_cosine_schedule():
    return cited_year("nichol2021")


@recomputes("fwd.pp.facecat")
def two_pictures_at_the_end(steps, first, last, t, largest_difference):
    schedule = linear_schedule(steps, first, last)
    level = schedule.alpha_bar(t)
    apart = largest_difference * schedule.signal(t)
    return apart, kl_gaussian(level.sqrt(), 1 - level, 0.0, 1 - level)


@recomputes("fwd.pp.snr")
def snr_of_a_level(alpha_bar):
    return alpha_bar / (1 - alpha_bar)


@recomputes("fwd.law.jump", "r.ddpm.mix", "fwd4.law.jump")
def steps_against_jump(cases, steps, seed):
    """Each source of x_T, the data and every step's noise, has its own coordinate."""
    errors = []
    for schedule in schedules(seeded(seed), cases, steps):
        source = torch.eye(steps + 1, dtype=torch.float64)
        x = source[0]
        for t in range(1, steps + 1):
            x = forward_step(schedule, x, t, source[t])
        jump = forward_jump(schedule, source[0], steps, source[1])
        errors += [x[0] - jump[0], x[1:].square().sum() - jump[1] ** 2]
    return max(abs(error) for error in errors)


@recomputes("fwd.law.unit")
def squared_weights(cases, steps, seed):
    sums = torch.stack(
        [
            schedule.signal(steps) ** 2 + schedule.noise(steps) ** 2
            for schedule in schedules(seeded(seed), cases, steps)
        ]
    )
    return (sums - 1).abs().max()


@recomputes("fwd.law.forget")
def what_is_left(steps, first, last, t):
    schedule = linear_schedule(steps, first, last)
    return schedule.signal(t), schedule.noise(t) ** 2


@recomputes("r.ddpm.product-not-average")
def product_and_mean(beta):
    schedule = Schedule(beta)
    return schedule.alpha_bar(len(schedule)), schedule.alpha(schedule.timesteps).mean()


@recomputes("r.ddpm.1000")
def published_steps():
    return len(linear_schedule())


@recomputes("r.ddpm.limits")
def near_the_ends(alpha_bar):
    ends = [Schedule(1 - level[None]) for level in alpha_bar]
    return tuple(weight(1) for end in ends for weight in (end.signal, end.noise))


@recomputes("fwd4.seqdirect", "fwd4.effmean", "fwd4.effvar")
def walked_and_jumped(steps, first, last, seed, points):
    schedule = linear_schedule(steps, first, last)
    generator = seeded(seed)
    x0 = torch.randn(points, generator=generator, dtype=torch.float64)
    noises = torch.randn(steps, points, generator=generator, dtype=torch.float64)
    x, gathered = x0, torch.zeros_like(x0)
    for t, noise in zip(range(1, steps + 1), noises, strict=True):
        x = forward_step(schedule, x, t, noise)
        gathered = forward_step(schedule, gathered, t, noise)
    combined = gathered / schedule.noise(steps)
    return {
        "seqdirect": (x - forward_jump(schedule, x0, steps, combined)).abs().max(),
        "effmean": combined.mean(),
        "effvar": combined.var(correction=0),
    }


@recomputes("fwd4.mixture")
def target_law():
    law = target()
    return *law.means[:, 0], *law.variance


@recomputes("fwd4.law.mixvar")
def noised_components(steps, first, last, weights, means, variance):
    """Step by step against the closed form, at every t."""
    schedule = linear_schedule(steps, first, last)
    errors, zero = [], torch.zeros_like(means)
    walked_mean, walked_variance = means, variance
    for t in range(1, steps + 1):
        walked_mean = forward_step(schedule, walked_mean, t, zero)
        walked_variance = schedule.alpha(t) * walked_variance + schedule.beta(t)
        level = schedule.alpha_bar(t)
        errors.append((walked_mean - level.sqrt() * means).abs().max())
        errors.append((walked_variance - variance * level - 1 + level).abs())
    return max(errors)


@recomputes("fwd4.law.endpoint")
def distance_from_normal(steps, first, last, weights, means, variance):
    """Variance of x_T, and its KL from N(0, 1) by the trapezoid rule."""
    level = linear_schedule(steps, first, last).alpha_bar(steps)
    mixture = GaussianMixture(weights, means, variance)
    x = torch.linspace(-12, 12, 4001, dtype=torch.float64)
    log_p = mixture.log_density(x[:, None], level)
    log_normal = -0.5 * (x.square() + math.log(2 * math.pi))
    spread = level * mixture.moments()[1] + 1 - level
    return spread, torch.trapezoid(log_p.exp() * (log_p - log_normal), x)


@recomputes("abl.abarT32")
def single_precision_endpoint():
    schedule = protocol_schedule()
    return schedule.alpha_bar(len(schedule))


@recomputes("num.law.small-not-zero")
def three_ways_to_lose_a_number(small, alpha, steps):
    half = torch.tensor(1, dtype=torch.float16) - small.half()
    single = protocol_schedule()
    long = Schedule((1 - alpha).expand(steps))
    return (
        half,
        single.alpha_bar(len(single)),
        long.alpha_bar(steps),
        long.log_alpha_bar(steps),
    )


@recomputes("num.law.logsum")
def logs_against_products(steps, first, last):
    schedule = linear_schedule(steps, first, last)
    t = schedule.timesteps
    return (schedule.log_alpha_bar(t).exp() - schedule.alpha_bar(t)).abs().max()
