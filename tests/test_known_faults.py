"""Small inputs on which a known fault of public code gives another number.

Each test has the right value, from the package, and the wrong one, from the line that
people wrote. An input on which both agree would show nothing.

Five more stand with their rooms: a jump over several steps with a beta in
test_schedule, log(1 - sigmoid) in test_training, histograms handed over as samples in
test_ablation, the dropped weight 1/t and pairs drawn at once in test_discrete.
"""

import math

import pytest
import torch
from scipy.spatial.distance import jensenshannon
from torch import nn
from torch.distributions import Normal, kl_divergence

from genaudit.divergence import jsd_finite, kl_gaussian
from genaudit.latent import FiniteModel, GaussianModel, multi_sample_bound
from genaudit.metrics import bits_per_dimension, coverage, pass_at_k
from genaudit.mixture import GaussianMixture
from genaudit.process import (
    clean_from_noise,
    clean_from_velocity,
    ddim_step,
    ddpm_mean,
    ddpm_step,
    forward_jump,
    guided_noise,
    langevin_step,
    noise_from_clean,
    scale_from_extra,
    velocity,
)
from genaudit.sampler import ddim_sample
from genaudit.schedule import Schedule, linear_schedule
from genaudit.vae import Vae
from tests.strategies import exact

ONE, ZERO = exact([1.0]), exact([0.0])
HUNDRED = linear_schedule(100, 1e-4, 0.1)


def final_variance(schedule, data_variance, told=lambda t: t, noisy_end=False):
    """Variance of x_0 from x_T ~ N(0, 1): every step is linear in x and fresh noise.

    The denoiser is exact for N(0, data_variance) at the timestep that it is told.
    """
    law = GaussianMixture(ONE, ZERO, exact(data_variance))
    variance = 1.0
    for t in schedule.timesteps.flip(0).tolist():
        guess = law.noise_mean(ONE[None], schedule.alpha_bar(told(t)))[0]
        slope = ddpm_step(schedule, ONE, t, guess, ZERO, "beta")
        fresh = ddpm_step(schedule, ZERO, t, ZERO, ONE, "beta")
        if noisy_end and t == 1:
            fresh = schedule.beta(1).sqrt()
        variance = slope.item() ** 2 * variance + fresh.item() ** 2
    return variance


def test_noise_at_the_last_step():
    schedule = Schedule([0.0151, 0.1])
    assert ddpm_step(schedule, ZERO, 1, ZERO, ONE, "beta") == 0
    faulty = ddpm_mean(schedule, ZERO, 1, ZERO) + schedule.beta(1).sqrt() * ONE
    assert abs(faulty - 0.12288) < 5e-6
    assert abs(faulty.square() - 0.0151) < 1e-15


def test_noise_at_the_last_step_looks_like_a_gain_on_wide_data():
    schedule = linear_schedule(1000)
    assert abs(final_variance(schedule, 1.0) - 0.9999) < 1e-12
    assert abs(final_variance(schedule, 1.0, noisy_end=True) - 1) < 1e-12
    narrow = 1e-9  # as good as one point
    assert final_variance(schedule, narrow) < 1e-7
    assert abs(final_variance(schedule, narrow, noisy_end=True) - 1e-4) < 1e-7


@pytest.mark.parametrize(
    ("schedule", "data_variance", "per_cent"),
    [
        (linear_schedule(1000), 1.0, -0.9),
        (HUNDRED, 1.0, -5.8),
        (HUNDRED, 0.01, -10.6),
        (linear_schedule(1000).strided(20), 1.0, -26.5),
    ],
)
def test_a_denoiser_that_is_told_the_next_timestep(schedule, data_variance, per_cent):
    right = final_variance(schedule, data_variance)
    last = len(schedule)
    faulty = final_variance(schedule, data_variance, lambda t: min(t + 1, last))
    assert abs(100 * (faulty / right - 1) - per_cent) < 0.05


def test_a_forward_table_with_one_beta_too_many():
    betas = HUNDRED.beta(HUNDRED.timesteps)
    longer = Schedule(torch.cat([betas[:1], betas]))
    right, faulty = (
        ddpm_step(HUNDRED, forward_jump(schedule, ZERO, t, ONE), 1, ONE, ZERO)
        for schedule, t in [(HUNDRED, 1), (longer, 2)]
    )
    assert abs(right) < 1e-14
    assert abs(faulty - 0.0041) < 5e-5  # of the noise stays, though it is known exactly


def test_a_standard_deviation_taken_for_a_variance():
    schedule = Schedule([0.25])
    assert schedule.alpha_bar(1) == 0.75
    assert forward_jump(schedule, ZERO, 1, ONE).square() == 0.25
    faulty = schedule.noise(1).sqrt() * ONE
    assert abs(faulty.square() - 0.5) < 1e-15


def test_a_level_without_any_signal():
    with pytest.raises(ValueError, match="^alpha_bar = 0: "):
        clean_from_noise(ONE, 0.0, ZERO)
    assert (ONE - ZERO) / exact(0.0).sqrt() == math.inf
    vanished = Schedule([0.9] * 400)  # alpha-bar 1e-400
    with pytest.raises(ValueError, match="^alpha_bar = 0: "):
        ddim_step(vanished, ONE, 400, 0, ZERO)


def test_almost_no_signal_with_a_guess_of_the_noise():
    """An error of the guess is multiplied; that of a velocity is not."""
    level, clean, noise, error = 1e-12, exact([0.7]), exact([-1.3]), 1e-3
    x = math.sqrt(level) * clean + math.sqrt(1 - level) * noise
    v = velocity(level, noise, clean)
    assert abs(clean_from_velocity(x, level, v + error) - clean) < 1.001 * error
    faulty = clean_from_noise(x, level, noise + error)
    assert abs(faulty - clean) > 0.999e6 * error


def test_guidance_with_a_wrong_sign():
    conditional, unconditional, scale = exact([2.0]), exact([1.0]), 2
    assert guided_noise(unconditional, conditional, scale) == 3
    faulty = scale * conditional + (scale - 1) * unconditional
    assert faulty == 5


def test_one_weight_of_guidance_taken_for_the_other():
    """A weight of 1 is the plain conditional guess, or one share on top of it."""
    conditional, unconditional, value = exact([2.0]), exact([0.0]), 1
    assert guided_noise(unconditional, conditional, value) == 2
    extra = scale_from_extra(value)
    assert guided_noise(unconditional, conditional, extra) == 4


def test_eta_on_the_variance():
    schedule, eta = Schedule([0.2, 1 - 0.5 / 0.8]), 0.5
    x = forward_jump(schedule, ZERO, 2, ONE)
    right = ddim_step(schedule, x, 2, 1, ONE, ZERO, eta)
    assert abs(right.square() - 0.1625) < 1e-15
    faulty = (1 - schedule.alpha_bar(1) - eta * schedule.beta_tilde(2)).sqrt()
    assert abs(faulty.square() - 0.125) < 1e-15
    root = ddim_step(schedule, x, 2, 1, ONE, ZERO, math.sqrt(eta))
    assert abs(root - faulty) < 1e-15  # a right sampler, under another eta


def test_a_step_table_that_starts_at_the_wrong_level():
    """Every step turns N(0, 1) data by an angle, so one number is the whole sample."""
    schedule = linear_schedule(1000)

    def settled(visits):
        end = ddim_sample(lambda x, t: schedule.noise(t) * x, schedule, ONE, visits)
        return end.square()

    for steps, variance, shifted in [(10, 0.6917, 0.6879), (50, 0.9294, 0.9284)]:
        leading = schedule.visits(steps, "leading")
        assert abs(settled(leading) - variance) < 5e-5
        faulty = settled(leading + 1000 // steps - 1)  # the same strides, from T
        assert abs(faulty - shifted) < 5e-5
    assert abs(settled(schedule.timesteps.flip(0)) - 0.9963) < 5e-5  # no other table


def test_a_step_table_that_ends_before_the_clean_level():
    """Its last jump goes to alpha-bar 0.9999, and a hundredth of the noise stays."""
    schedule, clean = linear_schedule(1000), exact([0.7])
    x = forward_jump(schedule, clean, 101, ONE)
    noise = noise_from_clean(x, schedule.alpha_bar(101), clean)
    assert abs(ddim_step(schedule, x, 101, 0, noise) - clean) < 1e-14
    faulty = ddim_step(schedule, x, 101, 1, noise)
    assert abs(faulty - clean - 0.01) < 5e-5


def test_a_langevin_step_with_too_little_noise():
    size = 0.1
    slope = langevin_step(ONE, -ONE, size, ZERO)
    added = langevin_step(ZERO, ZERO, size, ONE)

    def settled(spread):
        return spread**2 / (1 - slope**2)

    assert abs(settled(added) - 1.0526) < 5e-5
    assert abs(settled(math.sqrt(size)) - 0.5263) < 5e-5
    assert abs(settled(size) - 0.0526) < 5e-5


class Told(nn.Module):
    """An encoder whose cloud has mean 0 and log-variance ln 4, whatever it sees."""

    def forward(self, pictures):
        return exact([[0.0, math.log(4)]])


def test_a_log_variance_without_its_half():
    vae = Vae(1, 1, noise_variance=0.5)
    vae.encoder, vae.decode = Told(), nn.Identity()
    error, _ = vae.loss_terms(ZERO[None], ONE[None])  # one standard deviation, squared
    assert abs(error.sqrt() - 2) < 1e-15
    _, log_variance = vae.encoder(ZERO[None]).chunk(2, 1)
    assert abs(log_variance.exp() * ONE - 4) < 1e-15


def test_a_log_variance_without_its_half_prints_more_than_the_evidence():
    """The KL takes the drawn standard deviation for the variance."""
    model, x = GaussianModel(0.01 / 0.99), exact(0.5)
    mean, variance = model.posterior(x)
    assert abs(variance - 0.01) < 1e-15
    right = model.elbo_terms(x, mean, variance)
    assert abs(right.elbo - model.log_evidence(x)) < 1e-12
    faulty = right.reconstruction - kl_gaussian(mean, variance.sqrt())
    assert abs(faulty - model.log_evidence(x) - 1.1063) < 5e-5
    assert kl_gaussian(0.0, 0.1) < 0.7014 < 1.8075 < kl_gaussian(0.0, 0.01)


@pytest.mark.parametrize(
    ("mean_over_pixels", "mean_over_entries", "effective"),
    [(False, False, 1), (False, True, 1 / 2), (True, False, 784), (True, True, 392)],
)
def test_averages_where_sums_belong(mean_over_pixels, mean_over_entries, effective):
    """Solve for the weight on the sum of prices that the averages amount to."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        vae = Vae(pixels=784, codes=2, noise_variance=0.5).double()
        pictures, noise = torch.rand(5, 784).double(), torch.randn(5, 2).double()
    error, kl = vae.loss_terms(pictures, noise)
    mean, variance = vae.encode(pictures)
    squares = (vae.decode(mean + variance.sqrt() * noise) - pictures).square()
    prices = kl_divergence(Normal(mean, variance.sqrt()), Normal(ZERO, ONE))
    loss = (squares.mean(1) if mean_over_pixels else squares.sum(1)).mean()
    loss = loss + (prices.mean(1) if mean_over_entries else prices.sum(1)).mean()
    scale = 784 if mean_over_pixels else 1
    weight = (scale * loss - error.mean()) / kl.sum(1).mean()
    assert abs(weight / effective - 1) < 1e-10


def test_means_of_logs_and_forgotten_log_k():
    weights, even = exact([1.0, 3.0]), exact([0.5, 0.5])
    mean_of_logs, sum_without_log_k = weights.log().mean(), weights.sum().log()
    assert abs(mean_of_logs - 0.5493) < 5e-5
    assert abs(sum_without_log_k - 1.3863) < 5e-5
    # Of the four equally likely pairs, one is (1, 1), one (3, 3), and two are mixed.
    pairs = multi_sample_bound(even, weights.log(), 2)
    assert abs((4 * pairs - math.log(3)) / 2 - 0.6931) < 5e-5
    # The first is the ELBO, for any number of draws; the second exceeds log p(x).
    model = FiniteModel(even, weights)
    assert abs(model.elbo_terms(even).elbo - mean_of_logs) < 1e-15
    assert mean_of_logs < model.log_evidence() < sum_without_log_k


def test_a_divergence_an_outcome_without_mass_and_a_distance():
    p, q = exact([0.3, 0.3, 0.4]), exact([0.5, 0.5, 0.0])
    assert abs(jsd_finite(p, q) - 0.163897) < 5e-7
    assert abs(jensenshannon(p, q) - 0.404841) < 5e-7
    middle = (p + q) / 2
    naive = (p * (p / middle).log() + q * (q / middle).log()).sum() / 2
    assert naive.isnan()


def test_attempts_drawn_with_replacement():
    n, c, k = 4, 1, 4
    assert pass_at_k(n, c, k) == 1  # all four are granted, and one passes
    faulty = 1 - (1 - c / n) ** k
    assert abs(faulty - 0.684) < 5e-4


def test_balls_without_their_border():
    """Each point stands twice, so the nearest other one is at distance 0."""
    real = exact([[0.0], [1.0], [3.0]]).repeat(2, 1)
    assert coverage(real, real, 1) == 1
    apart = torch.cdist(real, real)
    radii = apart.sort().values[:, 1]
    assert (apart <= radii[:, None]).any(1).double().mean() == 1
    faulty = (apart < radii[:, None]).any(1).double().mean()
    assert faulty == 0


def test_seven_bits_for_any_range():
    """8-bit data whose levels are all equally likely: 8 bits, not a choice of units."""
    for low, high, given in [(0, 1, 7), (-1, 1, 8)]:
        log_density = -exact(high - low).log()
        assert abs(bits_per_dimension(log_density, 1, (high - low) / 256) - 8) < 1e-15
        faulty = -log_density / math.log(2) + 7
        assert abs(faulty - given) < 1e-15
