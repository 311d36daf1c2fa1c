"""The experiment in small, against a plain loop and exact integrals."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from genaudit import ablation
from genaudit.ablation import (
    CONDITIONS,
    METRICS,
    apply_stacked,
    blind_noise_mean,
    denoiser,
    draw_batch,
    draw_mixture,
    exact_floors,
    make_network,
    protocol_schedule,
    run,
    stack_weights,
    target,
    time_input,
    train,
    unstack_weights,
)
from tests.strategies import seeded

SCHEDULE = protocol_schedule()


def plain_network(seed):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)
    )
    torch.set_default_dtype(before)
    return network.float()


def plain_mixture(count, generator):
    component = 2 * torch.randint(0, 2, (count, 1), generator=generator) - 1
    z = torch.randn(count, 1, generator=generator, dtype=torch.float32)
    return 2 * component + 0.5 * z


def plain_batch(count, generator):
    """Points, zero-based indices, noise: the draws in the protocol's order."""
    beta = torch.linspace(1e-4, 0.1, 100, dtype=torch.float64).float()
    kept = torch.cumprod(1 - beta, 0)
    x0 = plain_mixture(count, generator)
    index = torch.randint(100, (count,), generator=generator)
    noise = torch.randn(count, 1, generator=generator, dtype=torch.float32)
    level = kept[index][:, None]
    return level.sqrt() * x0 + (1 - level).sqrt() * noise, index, noise


def plain_training(seed, with_time, updates):
    network, stream = plain_network(seed), seeded(seed + 19000)
    adam = torch.optim.Adam(network.parameters(), lr=0.002)
    for _ in range(updates):
        x, index, noise = plain_batch(512, stream)
        s = (2 * index.double() / 99 - 1).float()[:, None]
        guess = network(torch.cat([x, s if with_time else 0 * s], 1))
        adam.zero_grad()
        (guess - noise).square().mean().backward()
        adam.step()
    return network


def flat(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_the_ensemble_is_a_plain_loop_for_each_network(usual_dtype):
    trained = train((6050, 6051), 30)
    for networks, with_time in zip(trained, (True, False), strict=True):
        for seed, network in zip((6050, 6051), networks, strict=True):
            plain = plain_training(seed, with_time, 30)
            assert (flat(network) - flat(plain)).abs().max() < 1e-5
            assert (flat(network) - flat(make_network(seed))).abs().max() > 1e-2


def test_networks_start_from_the_protocols_weights(usual_dtype):
    network = make_network(6050)
    assert flat(network).numel() == 4417
    assert torch.equal(flat(network), flat(plain_network(6050)))
    assert torch.equal(flat(network), flat(make_network(6050)))
    assert not torch.equal(flat(network), flat(make_network(6051)))
    assert flat(network).dtype == torch.float32
    assert torch.get_default_dtype() == usual_dtype


def test_making_a_network_leaves_the_callers_generator_alone():
    torch.manual_seed(1)
    undisturbed = torch.rand(1)
    torch.manual_seed(1)
    make_network(6050)
    assert torch.rand(1) == undisturbed


def test_draws_follow_the_protocol(usual_dtype):
    assert torch.equal(draw_mixture(20, seeded(3)), plain_mixture(20, seeded(3)))
    x, t, noise = draw_batch(SCHEDULE, 20, seeded(3))
    plain_x, index, plain_noise = plain_batch(20, seeded(3))
    assert torch.equal(t, index + 1)
    assert torch.equal(noise, plain_noise)
    assert torch.allclose(x, plain_x, atol=1e-6)
    assert (x.dtype, noise.dtype, x.shape) == (torch.float32, torch.float32, (20, 1))


def test_training_sees_every_timestep_the_sampler_asks_for():
    _, t, _ = draw_batch(SCHEDULE, 5000, seeded(1))
    assert t.unique().tolist() == list(range(1, 101))


def test_the_time_input_runs_from_minus_one_to_one(usual_dtype):
    t = SCHEDULE.timesteps
    expected = torch.tensor([2 * (i - 1) / 99 - 1 for i in t.tolist()]).float()
    assert torch.equal(time_input(t, SCHEDULE), expected)
    assert [time_input(t, SCHEDULE) for t in (1, 100)] == [-1, 1]
    assert time_input(t, SCHEDULE).dtype == torch.float32


def test_stacking_and_its_inverse():
    networks = [make_network(seed) for seed in (1, 2, 3)]
    stacked = stack_weights(networks)
    assert [tuple(tensor.shape) for tensor in stacked] == [
        (3, 2, 64),
        (3, 1, 64),
        (3, 64, 64),
        (3, 1, 64),
        (3, 64, 1),
        (3, 1, 1),
    ]
    assert all(tensor.requires_grad and tensor.is_leaf for tensor in stacked)
    inputs = torch.randn(3, 5, 2, generator=seeded(1), dtype=torch.float32)
    together = apply_stacked(stacked, inputs)
    alone = torch.stack([net(x) for net, x in zip(networks, inputs, strict=True)])
    assert torch.allclose(together, alone, atol=1e-6)
    copies = [make_network(seed) for seed in (7, 8, 9)]
    unstack_weights(stacked, copies)
    for copy, network in zip(copies, networks, strict=True):
        assert torch.equal(flat(copy), flat(network))


def test_a_denoiser_sees_the_time_only_if_its_condition_says_so():
    network, x = make_network(1), torch.tensor([[0.3], [-1.0]]).float()
    early, late = torch.tensor([[-1.0, -1.0], [1.0, 1.0]]).float()[..., None]
    timed, blind = (denoiser(network, name, SCHEDULE) for name in CONDITIONS)
    assert torch.equal(timed(x, 1), network(torch.cat([x, early], 1)))
    assert torch.equal(timed(x, 100), network(torch.cat([x, late], 1)))
    both = timed(x, torch.tensor([1, 100]))
    assert torch.allclose(both, torch.stack([timed(x, 1)[0], timed(x, 100)[1]]))
    nothing = network(torch.cat([x, 0 * x], 1))
    assert torch.equal(blind(x, 1), nothing)
    assert torch.equal(blind(x, torch.tensor([5, 100])), nothing)
    assert not timed(x, 1).requires_grad


@pytest.fixture(scope="module")
def small():
    return run((6050, 6051), updates=5, evaluation=3000, count=400)


def test_a_small_run_has_a_row_for_each_network(small):
    assert small.metrics.shape == (2, 2, len(METRICS)) == (2, 2, 7)
    assert small.metrics.dtype == torch.float64
    assert small.samples.shape == (2, 2, 400)
    assert [len(networks) for networks in small.networks] == [2, 2]
    assert small.metrics.isfinite().all()
    assert not torch.equal(small.samples[0, 0], small.samples[1, 0])
    assert not torch.equal(small.samples[0, 0], small.samples[0, 1])


def test_a_small_run_repeats(small):
    again = run((6050, 6051), updates=5, evaluation=3000, count=400)
    assert torch.equal(small.metrics, again.metrics)
    assert torch.equal(small.samples, again.samples)


def test_metrics_recomputed_from_the_samples(small):
    for samples, metrics in zip(small.samples, small.metrics, strict=True):
        for seed, x, row in zip((6050, 6051), samples.double(), metrics, strict=True):
            fresh = plain_mixture(400, seeded(seed + 39000))[:, 0].double()
            right = [
                x.mean(),
                x.var(correction=0).sqrt(),
                sum(x > 0) / 400,
                sum((x > -1) & (x < 1)) / 400,
                (x.sort().values - fresh.sort().values).abs().mean(),
            ]
            assert torch.allclose(row[2:], torch.stack(right), atol=1e-6)


def test_noise_errors_recomputed_from_the_networks(small):
    x, index, noise = plain_batch(3000, seeded(91900))
    s = (2 * index.double() / 99 - 1).float()[:, None]
    for condition, scale in enumerate((1, 0)):
        for member, network in enumerate(small.networks[condition]):
            guess = network(torch.cat([x, scale * s], 1))
            error = (guess - noise).square().mean().item()
            assert abs(small.metrics[condition, member, 0] - error) < 1e-6
    exact_errors = small.metrics[..., 1]
    assert (exact_errors == exact_errors[0, 0]).all()
    assert abs(exact_errors[0, 0] - 0.424) < 0.05


def test_samples_are_the_reverse_chain_of_the_networks(small):
    network, generator = small.networks[0][1], seeded(6051 + 29000)
    beta = torch.linspace(1e-4, 0.1, 100, dtype=torch.float64).float()
    kept = torch.cumprod(1 - beta, 0)
    before = torch.cat([torch.ones(1), kept[:-1]])
    x = torch.randn(400, 1, generator=generator, dtype=torch.float32)
    for t in range(99, -1, -1):
        s = torch.full_like(x, 2 * t / 99 - 1)
        with torch.no_grad():
            guess = network(torch.cat([x, s], 1))
        x = (x - beta[t] / (1 - kept[t]).sqrt() * guess) / (1 - beta[t]).sqrt()
        if t > 0:
            tilde = beta[t] * (1 - before[t]) / (1 - kept[t])
            noise = torch.randn(400, 1, generator=generator, dtype=torch.float32)
            x = x + tilde.sqrt() * noise
    assert torch.allclose(small.samples[0, 1], x[:, 0], rtol=1e-4, atol=1e-4)


def test_wasserstein_takes_samples_not_histograms():
    x = torch.tensor([0.0] * 2 + [1.0] * 8)[:, None]
    fresh = torch.tensor([0.0] * 8 + [1.0] * 2)[:, None]
    assert abs(ablation._sample_moments(x, fresh)[-1] - 0.6) < 1e-12


def test_the_target_has_its_exact_mass_in_the_middle():
    law = target()
    assert law.means.dtype == torch.float32
    mean, variance = law.moments()
    assert (mean.item(), variance.item()) == (0, 4.25)
    assert abs(law.mass(-1, 1) - 0.0227501309616) < 1e-7


LEVELS = np.cumprod(1 - np.linspace(1e-4, 0.1, 100))


def densities_and_guesses(x):
    """Of x_t at every level: its density and E[noise | x_t], in plain numpy."""
    spread = np.sqrt(0.25 * LEVELS + 1 - LEVELS)
    left, right = (
        0.5 * stats.norm.pdf(x, side * np.sqrt(LEVELS), spread) for side in (-2, 2)
    )
    density = left + right
    pull = left * (x + 2 * np.sqrt(LEVELS)) + right * (x - 2 * np.sqrt(LEVELS))
    return density, np.sqrt(1 - LEVELS) * pull / spread**2 / density


def test_the_blind_guess_weighs_the_levels_by_their_densities():
    x = np.array([-3.0, -0.1, 0.0, 1.0, 2.5])
    right = []
    for point in x:
        density, guess = densities_and_guesses(point)
        right.append((density * guess).sum() / density.sum())
    blind = blind_noise_mean(torch.tensor(x)[:, None])
    assert (blind.shape, blind.dtype) == ((5, 1), torch.float64)
    np.testing.assert_allclose(blind[:, 0], right, atol=1e-14)


def test_the_blind_guess_is_finite_where_every_density_underflows():
    far = blind_noise_mean(torch.tensor([[40.0], [-40.0]]))
    # Only the levels of widest spread reach so far, and there x is nearly all noise.
    assert 30 < far[0] < 40
    assert torch.allclose(far[0], -far[1])


def test_floors_by_adaptive_quadrature():
    def both(x):
        density, guess = densities_and_guesses(x)
        blind = (density * guess).mean() ** 2 / density.mean()
        return np.array([(density * guess**2).mean(), blind])

    explained, _ = integrate.quad_vec(both, -12, 12, epsabs=1e-12, points=[-2, 0, 2])
    np.testing.assert_allclose(exact_floors(), 1 - explained, atol=1e-11)
    np.testing.assert_allclose(
        exact_floors(), [0.424039803143, 0.748964399359], atol=1e-11
    )


def test_floors_by_brute_force():
    x, index, noise = (each.double().numpy() for each in plain_batch(4000, seeded(1)))
    timed, blind = [], []
    for point, t, eps in zip(x[:, 0], index.astype(int), noise[:, 0], strict=True):
        density, guess = densities_and_guesses(point)
        timed.append((guess[t] - eps) ** 2)
        blind.append(((density * guess).sum() / density.sum() - eps) ** 2)
    for errors, floor in zip((timed, blind), exact_floors(), strict=True):
        standard_error = np.std(errors) / math.sqrt(len(errors))
        assert abs(np.mean(errors) - floor) < 4 * standard_error


def test_bars_only_if_asked(capsys):
    run((1,), updates=1, evaluation=10, count=10)
    assert capsys.readouterr().err == ""
    run((1,), updates=1, evaluation=10, count=10, description="training")
    shown = capsys.readouterr().err
    for label in ("training:", "sampling with time, seed 1:", "sampling without time,"):
        assert label in shown


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="^updates = 0: must be a whole number, 1 or"):
        train((1,), 0)
