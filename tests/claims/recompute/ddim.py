"""Claims about deterministic jumps: where they land, what they keep, what they lose."""

import re
from functools import partial

import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from genaudit.mixture import GaussianMixture
from genaudit.process import clean_from_noise, ddim_step, forward_jump
from genaudit.sampler import ddim_path, ddim_sample
from genaudit.schedule import Schedule, linear_schedule
from tests.claims.ledger import cited_year, printed_numbers, readouts, recomputes
from tests.claims.recompute.cases import schedules, seeded, uniform
from tests.claims.recompute.denoiser import passing


@recomputes("ddim.x0")
def clean_estimate(x, alpha_bar, noise_guess):
    return clean_from_noise(x, alpha_bar, noise_guess)


@recomputes("ddim.jump")
def jump_to_another_level(x, alpha_bar, noise_guess, lower_level):
    return ddim_step(passing(lower_level, alpha_bar), x, 2, 1, noise_guess)


@recomputes("ddim.pp.one")
def jump_to_the_clean_end(x, alpha_bar, noise_guess):
    return ddim_step(passing(alpha_bar), x, 1, 0, noise_guess)


@recomputes("ddim.toy.370")
def percentage(hits, points):
    return 100 * hits / points


def compared(sampler: str, steps: int) -> list[float]:
    """Calls, hits, covered parts, spread, same part: a line of the chapter's table."""
    return printed_numbers("ddim", "comparison-audit", f"{sampler}, {steps} even")


@recomputes("rev.toy.hit*", "ddim.toy.ddpm*", "ddim.toy.ddim*")
def share_of_hits(sampler, steps):
    return compared(sampler, steps)[1]


@recomputes("ddim.toy.ten")
def share_of_hits_of_both(steps):
    return compared("DDPM", steps)[1], compared("DDIM", steps)[1]


@recomputes("rev.toy.parts55", "rev.toy.steps100")
def parts_and_calls(sampler, steps):
    calls, _, parts, *_ = compared(sampler, steps)
    return {"parts55": parts, "steps100": calls}


@recomputes("rev.pp.nonoise", "rev.toy.parts1")
def chain_without_noise():
    """Hits, covered parts and spread; the parts alone."""
    label = "DDPM with its noise turned off,"
    _, *silent = printed_numbers("ddim", "comparison-audit", label)
    return {"nonoise": tuple(silent), "parts1": silent[1]}


@recomputes("rev.toy.n3000", "ddim.toy.n400")
def points_in_each_run():
    [starts] = set(re.findall(r"of ([\d,]+) starts", readouts("ddim", "path-explorer")))
    return int(starts.replace(",", ""))


@recomputes("ddim.fact.song")
def year_of_ddim():
    return cited_year("song2021ddim")


def twice(eta: float, weights, means, variance, steps, starts, seed) -> Tensor:
    """Samples of two runs from the same starts, with fresh noise of their own."""
    mixture = GaussianMixture(weights, means, variance)
    schedule = linear_schedule()
    start = torch.linspace(-2, 2, starts, dtype=torch.float64)[:, None]
    runs = [
        ddim_sample(
            lambda x, t: mixture.noise_mean(x, schedule.alpha_bar(t)),
            schedule,
            start,
            schedule.visits(steps),
            eta,
            seeded(number),
        )
        for number in (seed, seed + 1)
    ]
    return torch.stack(runs)


@recomputes("ddim.pp.twice", "ddim.law.determinism")
def runs_from_the_same_starts(**inputs):
    """Starts with one end in both, without and with fresh noise; largest distance."""
    first, second = twice(0.0, **inputs)
    noisy, noisy_again = twice(1.0, **inputs)
    return {
        "twice": ((first == second).sum(), (noisy == noisy_again).sum()),
        "determinism": (first - second).abs().max(),
    }


@recomputes("ddim.law.exact", "ddim.law.toclean")
def jumps_with_the_exact_noise(cases, steps, seed):
    """Against the same point and noise, mixed at the lower level or not at all."""
    generator, exact, clean = seeded(seed), [], []
    for schedule in schedules(generator, cases, steps):
        x0, noise = 4 * uniform(generator, 2, 1) - 2
        wrong = noise + uniform(generator, 1)
        x = forward_jump(schedule, x0, steps, noise)
        for t in range(steps):
            landed = ddim_step(schedule, x, steps, t, noise)
            exact.append((landed - forward_jump(schedule, x0, t, noise)).abs())
        finished = ddim_step(schedule, x, steps, 0, wrong)
        guess = clean_from_noise(x, schedule.alpha_bar(steps), wrong)
        clean.append((finished - guess).abs())
    return {"exact": max(exact), "toclean": max(clean)}


def directions(path: Tensor) -> Tensor:
    """Number of directions that a path spans, seen from its start."""
    return torch.linalg.matrix_rank(path - path[0], rtol=1e-9)


@recomputes("ddim.dispute.line")
def path_for_one_datum(steps, first, last, x0, noise):
    """Shortest and longest radius in the plane of x0 and noise; directions spanned.

    The last is for the path over sqrt(alpha-bar).
    """
    schedule = linear_schedule(steps, first, last)
    start = forward_jump(schedule, x0, steps, noise)
    path = torch.stack(list(ddim_path(lambda x, t: noise, schedule, start)))
    plane = torch.stack([x0, noise], 1)
    radii = (torch.linalg.pinv(plane) @ path.T).norm(dim=0)
    scaled = path / schedule.signal(torch.arange(steps, -1, -1))[:, None]
    return radii.min(), radii.max(), directions(path), directions(scaled)


def factor(schedule: Schedule, variance: Tensor, visits: Tensor) -> Tensor:
    """What all jumps together multiply x_T by, for N(0, variance) data."""
    one = torch.ones(1, dtype=variance.dtype)
    bell = GaussianMixture(one, torch.zeros_like(one), variance)
    return ddim_sample(
        lambda x, t: bell.noise_mean(x, schedule.alpha_bar(t)), schedule, one, visits
    )


@recomputes("ddim.law.ode")
def shorter_and_shorter_jumps(variance, steps, first, last, jumps):
    """Factors of x_T after so many jumps; of the flow; error of that by integration.

    In y = x/sqrt(alpha-bar) and s = sqrt(1/alpha-bar - 1) the flow is dy/ds = noise,
    here s y/(variance + s^2).
    """
    schedule = linear_schedule(steps, first, last)
    level = schedule.alpha_bar(steps)
    flow = (variance / (level * variance + 1 - level)).sqrt()
    solved = solve_ivp(
        lambda s, y: s * y / (variance.item() + s**2),
        ((1 / level - 1).sqrt().item(), 0),
        [1 / level.sqrt().item()],
        rtol=1e-12,
        atol=1e-12,
    )
    after = partial(factor, schedule, variance)
    return (
        *(after(schedule.visits(int(n))) for n in jumps),
        flow,
        abs(flow - solved.y[0, -1]),
    )


@recomputes("ddim.law.rotation")
def jumps_on_the_normal_law(cases, steps, seed, jumps):
    """Error of one jump = cosine of an angle; variance left by so many jumps."""
    generator, errors = seeded(seed), []
    for schedule in schedules(generator, cases, steps):
        angles = schedule.signal(torch.arange(steps + 1)).arccos()
        x = uniform(generator, 1)
        for t in range(steps):
            landed = ddim_step(schedule, x, steps, t, schedule.noise(steps) * x)
            errors.append((landed - (angles[steps] - angles[t]).cos() * x).abs())
    whole = linear_schedule()
    after = partial(factor, whole, torch.ones_like(jumps[0]))
    kept = [after(whole.visits(int(count), "leading")) for count in jumps]
    return max(errors), *(one**2 for one in kept)
