"""Samplers: the loop as written on paper, its draws, and answers known exactly."""

import math

import pytest
import torch

from genaudit.mixture import GaussianMixture
from genaudit.process import forward_jump, noise_from_clean
from genaudit.sampler import (
    ddim_path,
    ddim_sample,
    ddpm_path,
    ddpm_sample,
    heun_sample,
    langevin_sample,
)
from genaudit.schedule import linear_schedule
from tests.strategies import exact, seeded

STEPS = linear_schedule(20, 0.01, 0.3)


def normal(count, seed=1):
    return torch.randn(count, 1, generator=seeded(seed), dtype=torch.float64)


def denoiser(mixture, schedule):
    """The exact noise mean as a sampler wants it."""
    return lambda x, t: mixture.noise_mean(x, schedule.alpha_bar(t))


BELL = GaussianMixture(exact([1.0]), exact([1.5]), exact(0.5))


@pytest.mark.parametrize("variance", ["beta", "beta_tilde", "none"])
def test_the_path_is_the_published_loop(variance):
    guess, start = denoiser(BELL, STEPS), normal(30)
    path = list(ddpm_path(guess, STEPS, start, seeded(5), variance))
    x, generator, kept = start, seeded(5), 1 - STEPS.beta(STEPS.timesteps)
    assert torch.equal(path[0], start)
    for t in range(20, 0, -1):
        beta, now = 1 - kept[t - 1], kept[:t].prod()
        before = kept[: t - 1].prod()
        x = (x - beta / (1 - now).sqrt() * guess(x, t)) / (1 - beta).sqrt()
        if t > 1:
            added = {
                "beta": beta,
                "beta_tilde": beta * (1 - before) / (1 - now),
                "none": exact(0.0),
            }[variance]
            noise = torch.randn(30, 1, generator=generator, dtype=torch.float64)
            x = x + added.sqrt() * noise
        assert torch.allclose(path[21 - t], x, atol=1e-12)
    assert len(path) == 21
    sample = ddpm_sample(guess, STEPS, start, seeded(5), variance)
    assert torch.equal(sample, path[-1])


def test_the_default_variance_is_the_posteriors():
    guess, start = denoiser(BELL, STEPS), normal(30)
    for sampler in (ddpm_sample, lambda *call: list(ddpm_path(*call))[-1]):
        usual = sampler(guess, STEPS, start, seeded())
        assert torch.equal(usual, sampler(guess, STEPS, start, seeded(), "beta_tilde"))
        assert not torch.equal(usual, sampler(guess, STEPS, start, seeded(), "beta"))


def test_one_draw_fewer_than_steps():
    generator, counted = seeded(3), seeded(3)
    ddpm_sample(denoiser(BELL, STEPS), STEPS, normal(30), generator)
    for _ in range(19):
        torch.randn(30, 1, generator=counted, dtype=torch.float64)
    assert torch.equal(generator.get_state(), counted.get_state())


def test_a_seed_repeats_its_samples():
    guess, start = denoiser(BELL, STEPS), normal(30)
    for sample in (
        lambda seed: ddpm_sample(guess, STEPS, start, seeded(seed)),
        lambda seed: ddim_sample(guess, STEPS, start, eta=0.01, generator=seeded(seed)),
    ):
        first, again, other = map(sample, (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("timesteps", [None, torch.tensor([20, 13, 7, 2])])
def test_the_ddim_path_is_the_published_loop(eta, timesteps):
    guess, start = denoiser(BELL, STEPS), normal(30)
    path = list(ddim_path(guess, STEPS, start, timesteps, eta, seeded(5)))
    visited = range(20, 0, -1) if timesteps is None else [20, 13, 7, 2]
    level = torch.cat([exact([1.0]), (1 - STEPS.beta(STEPS.timesteps)).cumprod(0)])
    x, generator = start, seeded(5)
    assert torch.equal(path[0], start)
    for point, t, before in zip(path[1:], visited, [*visited[1:], 0], strict=True):
        now, then, noise = level[t], level[before], guess(x, t)
        spread = eta * ((1 - then) / (1 - now)).sqrt() * (1 - now / then).sqrt()
        x = then.sqrt() * (x - (1 - now).sqrt() * noise) / now.sqrt()
        x = x + (1 - then - spread**2).sqrt() * noise
        if eta > 0:
            fresh = torch.randn(30, 1, generator=generator, dtype=torch.float64)
            x = x + spread * fresh
        assert torch.allclose(point, x, atol=1e-12)
    sample = ddim_sample(guess, STEPS, start, timesteps, eta, seeded(5))
    assert torch.equal(sample, path[-1])


def test_eta_is_zero_unless_named_and_asks_for_no_generator():
    guess, start = denoiser(BELL, STEPS), normal(30)
    path = list(ddim_path(guess, STEPS, start))
    assert torch.equal(path[-1], ddim_sample(guess, STEPS, start))
    assert torch.equal(path[-1], list(ddim_path(guess, STEPS, start, eta=0.0))[-1])
    untouched = seeded(3)
    ddim_sample(guess, STEPS, start, generator=untouched)
    assert torch.equal(untouched.get_state(), seeded(3).get_state())


@pytest.mark.parametrize("steps", [1, 7, 20])
def test_eta_one_is_ddpm_on_the_same_draws(steps):
    """Over jumps as well: the schedule of the visited levels gives the same chain."""
    strided = STEPS.strided(steps)
    start, visits = normal(30), STEPS.visits(steps)
    ddim = ddim_sample(denoiser(BELL, STEPS), STEPS, start, visits, 1.0, seeded(6))
    ddpm = ddpm_sample(denoiser(BELL, strided), strided, start, seeded(6))
    assert torch.allclose(ddim, ddpm, atol=1e-11)


def test_heun_is_its_rule_in_scaled_coordinates():
    """In y = x / sqrt(abar) against s, the noise-to-signal ratio: dy/ds = guess."""
    guess, visits = denoiser(BELL, STEPS), [20, 13, 7, 2, 0]
    signal, ratio = STEPS.signal(visits), STEPS.noise(visits) / STEPS.signal(visits)
    y = normal(30) / signal[0]
    for k, (t, previous) in enumerate(zip(visits, visits[1:])):
        step = ratio[k + 1] - ratio[k]
        first = guess(signal[k] * y, t)
        second = first
        if previous > 0:
            second = guess(signal[k + 1] * (y + step * first), previous)
        y = y + step * (first + second) / 2
    sample = heun_sample(guess, STEPS, normal(30), torch.tensor(visits[:-1]))
    assert torch.allclose(sample, y, atol=1e-12)


def test_heun_is_ddim_at_one_step():
    guess, one = denoiser(BELL, STEPS), STEPS.visits(1)
    single = heun_sample(guess, STEPS, normal(30), one)
    assert torch.equal(single, ddim_sample(guess, STEPS, normal(30), one))
    assert not torch.allclose(
        heun_sample(guess, STEPS, normal(30)), ddim_sample(guess, STEPS, normal(30))
    )


def test_halved_steps_halve_the_error_of_ddim_and_quarter_that_of_heun():
    """On a bell the flow keeps each point's distance in standard deviations.

    The first beta is small, or the last step, which is Euler's, would tell in the end.
    """
    schedule, start = linear_schedule(960, 1e-5, 0.02), normal(50)
    guess, level = denoiser(BELL, schedule), schedule.alpha_bar(960)
    deviations = (start - 1.5 * level.sqrt()) / (0.5 * level + 1 - level).sqrt()
    right = 1.5 + math.sqrt(0.5) * deviations

    def errors(sampler):
        ends = (
            sampler(guess, schedule, start, schedule.visits(steps))
            for steps in (20, 40, 80, 160)
        )
        return torch.stack([(end - right).abs().mean() for end in ends])

    for sampler, order in ((ddim_sample, 1), (heun_sample, 2)):
        error = errors(sampler)
        assert ((error[:-1] / error[1:]).log2() - order).abs().max() < 0.1
    assert errors(heun_sample)[0] < errors(ddim_sample)[-1]


@pytest.mark.parametrize("variance", ["beta", "beta_tilde"])
def test_a_point_mass_comes_back_without_spread(variance):
    """Noise at the last step would show here, and look like a gain on wider data."""

    def guess(x, t):
        return noise_from_clean(x, STEPS.alpha_bar(t), torch.full_like(x, 0.7))

    path = list(ddpm_path(guess, STEPS, normal(1000), seeded(), variance))
    assert (path[-1] - 0.7).abs().max() < 1e-12
    assert path[-2].std() > 0.05


def chain_moments(mean, variance, schedule, added):
    """Mean and variance of x_0 when the data are N(mean, variance): all is affine."""
    centre, spread = 0.0, 1.0
    for t in range(len(schedule), 0, -1):
        level, beta = schedule.alpha_bar(t).item(), schedule.beta(t).item()
        now = level * variance + 1 - level
        # x + beta score, with the score of N(sqrt(level) mean, now).
        slope = (1 - beta / now) / math.sqrt(1 - beta)
        shift = beta * math.sqrt(level) * mean / now / math.sqrt(1 - beta)
        centre, spread = slope * centre + shift, slope**2 * spread
        spread += 0.0 if t == 1 else getattr(schedule, added)(t).item()
    return centre, spread


@pytest.mark.parametrize("added", ["beta", "beta_tilde"])
@pytest.mark.parametrize("schedule", [STEPS, linear_schedule(1000).strided(25)])
def test_a_gaussian_comes_back_with_the_chains_exact_moments(schedule, added):
    count = 20_000
    x = ddpm_sample(denoiser(BELL, schedule), schedule, normal(count), seeded(), added)
    mean, variance = chain_moments(1.5, 0.5, schedule, added)
    # Four standard errors of a normal sample's mean and variance.
    assert abs(x.mean() - mean) < 4 * math.sqrt(variance / count)
    assert abs(x.var() - variance) < 4 * variance * math.sqrt(2 / count)


def test_a_mixture_comes_back_with_its_moments_and_masses():
    mixture = GaussianMixture(exact([0.3, 0.7]), exact([-2.0, 2.0]), exact(0.25))
    schedule, count = linear_schedule(400, 1e-4, 0.05), 10_000
    x = ddpm_sample(denoiser(mixture, schedule), schedule, normal(count), seeded())
    mean, variance = (moment.item() for moment in mixture.moments())
    # Four standard errors, and 1 per cent for steps that are not infinitely small.
    assert abs(x.mean() - mean) < 4 * math.sqrt(variance / count) + 0.01
    assert abs(x.var() / variance - 1) < 4 * math.sqrt(2 / count) + 0.01
    left = (x < 0).double().mean()
    assert abs(left - 0.3) < 4 * math.sqrt(0.3 * 0.7 / count) + 0.01
    for side, centre in ((x < 0, -2), (x > 0, 2)):
        assert abs(x[side].mean() - centre) < 0.03
        assert abs(x[side].std() - 0.5) < 0.03


def test_without_noise_the_samples_collapse():
    schedule = linear_schedule(1000)
    x = ddpm_sample(
        denoiser(GaussianMixture(exact([1.0]), exact([0.0]), exact(1.0)), schedule),
        schedule,
        exact([[1.0]]),
        seeded(),
        "none",
    )
    assert abs(x - schedule.signal(1000)) < 1e-12


def test_the_denoiser_is_told_every_timestep():
    asked = []

    def guess(x, t):
        asked.append(t)
        return torch.zeros_like(x)

    ddpm_sample(guess, STEPS, normal(2), seeded())
    assert asked == list(range(20, 0, -1))
    for sampler, right in (
        (ddim_sample, [16, 11, 6, 1]),
        (heun_sample, [16, 11, 11, 6, 6, 1, 1]),
    ):
        asked.clear()
        sampler(guess, STEPS, normal(2), STEPS.visits(4, "leading"))
        assert asked == right
        asked.clear()
        sampler(guess, STEPS, normal(2))
        assert sorted(set(asked)) == list(range(1, 21))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_samples_keep_the_dtype_of_the_start(dtype):
    start = normal(200).to(dtype)
    sample = ddpm_sample(denoiser(BELL, STEPS), STEPS, start, seeded())
    assert sample.dtype == dtype
    assert abs(sample.float().mean() - 1.5) < 0.3
    for sample in (
        ddim_sample(denoiser(BELL, STEPS), STEPS, start, None, 1.0, seeded()),
        heun_sample(denoiser(BELL, STEPS), STEPS, start),
    ):
        assert sample.dtype == dtype
        assert abs(sample.float().mean() - 1.5) < 0.3
    walk = langevin_sample(BELL.score, start, 0.1, 50, seeded())
    assert walk.dtype == dtype
    assert abs(walk.float().mean() - 1.5) < 0.3


def test_samples_carry_no_gradient():
    slope = torch.ones(1, dtype=torch.float64, requires_grad=True)
    assert not ddpm_sample(
        lambda x, t: slope * x, STEPS, normal(2), seeded()
    ).requires_grad
    for sampler in (ddim_sample, heun_sample):
        assert not sampler(lambda x, t: slope * x, STEPS, normal(2)).requires_grad
    assert not langevin_sample(
        lambda x: -slope * x, normal(2), 0.1, 3, seeded()
    ).requires_grad


def test_a_path_leaves_its_callers_gradients_alone():
    guess, modes = denoiser(BELL, STEPS), []
    with torch.enable_grad():
        paths = [
            ddpm_path(guess, STEPS, normal(2), seeded()),
            ddim_path(guess, STEPS, normal(2)),
        ]
        for _ in zip(*paths, strict=True):
            modes.append(torch.is_grad_enabled())
        del paths
        modes.append(torch.is_grad_enabled())
    assert modes == [True] * 22


def test_langevin_is_its_published_loop():
    x, generator = normal(30), seeded(5)
    for _ in range(7):
        noise = torch.randn(30, 1, generator=generator, dtype=torch.float64)
        x = x + 0.05 * BELL.score(x) + math.sqrt(0.1) * noise
    walk = langevin_sample(BELL.score, normal(30), 0.05, 7, seeded(5))
    assert torch.allclose(walk, x, atol=1e-13)


def test_langevin_settles_at_its_own_variance():
    count, step_size = 20_000, 0.5
    x = langevin_sample(lambda x: -x, normal(count), step_size, 30, seeded())
    variance = 2 / (2 - step_size)
    assert abs(x.var() - variance) < 4 * variance * math.sqrt(2 / count)
    assert abs(x.mean()) < 4 * math.sqrt(variance / count)


def test_a_description_shows_a_bar(capsys):
    guess = denoiser(BELL, STEPS)
    ddpm_sample(guess, STEPS, normal(2), seeded(), description="backwards")
    ddim_sample(guess, STEPS, normal(2), STEPS.visits(5), description="leaping")
    heun_sample(guess, STEPS, normal(2), STEPS.visits(4), description="averaging")
    langevin_sample(BELL.score, normal(2), 0.1, 3, seeded(), description="walking")
    shown = capsys.readouterr()
    assert "backwards: 100%" in shown.err
    assert "20/20" in shown.err
    assert "leaping: 100%" in shown.err
    assert "5/5" in shown.err
    assert "averaging: 100%" in shown.err
    assert "4/4" in shown.err
    assert "walking: 100%" in shown.err
    assert shown.out == ""
    ddpm_sample(guess, STEPS, normal(2), seeded())
    ddim_sample(guess, STEPS, normal(2))
    heun_sample(guess, STEPS, normal(2))
    langevin_sample(BELL.score, normal(2), 0.1, 3, seeded())
    assert capsys.readouterr().err == ""


def test_bad_input_is_named():
    start = normal(3)
    with pytest.raises(ValueError, match="^variance = 'small': must be one of beta"):
        ddpm_sample(denoiser(BELL, STEPS), STEPS, start, seeded(), "small")
    with pytest.raises(ValueError, match=r"^predicted_noise has shape \(3,\), x has"):
        ddpm_sample(lambda x, t: x[:, 0], STEPS, start, seeded())
    with pytest.raises(ValueError, match=r"^predicted_noise = \[nan, nan, nan\]: ev"):
        ddpm_sample(lambda x, t: math.nan * x, STEPS, start, seeded())
    guess = denoiser(BELL, STEPS)
    with pytest.raises(ValueError, match="^generator = None: eta = 0.5 needs a sou"):
        ddim_sample(guess, STEPS, start, eta=0.5)
    with pytest.raises(ValueError, match=r"^eta = 1.5: must lie in \[0, 1\]$"):
        ddim_sample(guess, STEPS, start, None, 1.5, seeded())
    for sampler in (ddim_sample, heun_sample):
        with pytest.raises(ValueError, match=r"^timesteps has shape \(0,\): it must b"):
            sampler(guess, STEPS, start, torch.tensor([]).long())
        with pytest.raises(ValueError, match=r"^timesteps has shape \(1, 2\): it must"):
            sampler(guess, STEPS, start, torch.tensor([[2, 1]]))
        with pytest.raises(ValueError, match="^previous = 2: must be below t = 1$"):
            sampler(guess, STEPS, start, torch.tensor([1, 2]))
        with pytest.raises(ValueError, match="^t = 21: timesteps run from 0 to 20$"):
            sampler(lambda x, t: x, STEPS, start, torch.tensor([21]))
    with pytest.raises(ValueError, match="^steps = 0: must be a whole number, 1 or"):
        langevin_sample(BELL.score, start, 0.1, 0, seeded())
    with pytest.raises(ValueError, match="^step_size = -0.1: every entry must be > 0"):
        langevin_sample(BELL.score, start, -0.1, 3, seeded())


def test_a_jump_and_the_way_back_meet():
    """Start from noised data instead of pure noise: the rest of the chain is right."""
    count, clean = 20_000, BELL.sample(20_000, seeded(4))
    schedule = linear_schedule(200, 1e-4, 0.05)
    start = forward_jump(schedule, clean, 200, normal(count))
    x = ddpm_sample(denoiser(BELL, schedule), schedule, start, seeded())
    assert abs(x.mean() - 1.5) < 4 * math.sqrt(0.5 / count)
    assert abs(x.var() - 0.5) < 4 * 0.5 * math.sqrt(2 / count) + 0.005
