"""Training loops against plain ones, and losses far from zero."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit, log_expit
from torch import nn

from genaudit.divergence import gan_value
from genaudit.training import (
    discriminator_loss,
    fit,
    minimax_loss,
    mlp,
    nonsaturating_loss,
    progress,
    train_gan,
)
from tests.strategies import exact, numbers, seeded


def test_fit_is_adam_with_its_usual_numbers():
    goal = exact([1.0, -2.0])
    ours, theirs = (exact([0.0, 0.5]).requires_grad_() for _ in range(2))
    calls = []

    def loss():
        calls.append(1)
        return (ours - goal).square().sum()

    fit(loss, [ours], 40, 0.03)
    adam = torch.optim.Adam([theirs], lr=0.03)
    for _ in range(40):
        adam.zero_grad()
        (theirs - goal).square().sum().backward()
        adam.step()
    assert torch.allclose(ours, theirs, rtol=1e-12)
    assert len(calls) == 40
    assert (ours - goal).abs().max() < 1.5


def test_fit_takes_a_modules_parameters():
    line = nn.Linear(1, 1)
    before = line.weight.item()
    fit(lambda: line(torch.ones(1, 1)).square().sum(), line.parameters(), 1, 0.01)
    assert abs(line.weight.item() - before) > 0.005


@given(numbers(0, 1), st.integers(1, 12))
@example(0.0, 5)
@example(0.4, 10)
@example(1.0, 4)
def test_the_rate_falls_in_a_straight_line_over_the_last_share(decay, updates):
    # Under a slope that never changes each of Adam's steps is as long as its rate.
    weight, path = exact([0.0]).requires_grad_(), []

    def loss():
        path.append(weight.item())
        return weight.sum()

    fit(loss, [weight], updates, 0.25, decay=decay)
    rates = -exact([*path, weight.item()]).diff()
    for rate, left in zip(rates, range(updates, 0, -1), strict=True):
        share = left / updates
        right = share / decay if share < decay else 1
        assert abs(rate - 0.25 * right) < 1e-6


def test_the_rate_stays_without_a_decay():
    weight = exact([0.0]).requires_grad_()
    fit(weight.sum, [weight], 8, 0.25)
    assert abs(weight.item() + 8 * 0.25) < 1e-6


def test_progress_is_silent_without_a_description(capsys):
    numbers = [1, 2, 3]
    assert progress(numbers, None) is numbers
    assert list(progress(numbers, "counting")) == numbers
    shown = capsys.readouterr()
    assert "counting: 100%" in shown.err
    assert shown.out == ""
    weight = torch.ones(1, requires_grad=True)
    fit(lambda: weight.sum(), [weight], 2, 0.1)
    assert capsys.readouterr().err == ""
    fit(lambda: weight.sum(), [weight], 2, 0.1, "fitting")
    assert "fitting: 100%" in capsys.readouterr().err


def test_mlp_alternates_and_ends_linear():
    network = mlp(2, 64, 32, 1)
    kinds = [type(layer) for layer in network]
    assert kinds == [nn.Linear, nn.SiLU, nn.Linear, nn.SiLU, nn.Linear]
    assert [tuple(layer.weight.shape) for layer in network[::2]] == [
        (64, 2),
        (32, 64),
        (1, 32),
    ]
    assert isinstance(mlp(1, 2, 1, activation=nn.Tanh)[1], nn.Tanh)
    assert len(mlp(3, 4)) == 1


@pytest.mark.parametrize("logit", [-800.0, -21.0, -6.0, 0.0, 2.0, 17.0, 21.0, 800.0])
def test_losses_agree_with_scipy_far_from_zero(logit):
    real, fake = log_expit(logit), log_expit(-logit)
    here = exact([logit])
    assert abs(nonsaturating_loss(here) + real) < 1e-12
    assert abs(minimax_loss(here) - fake) < 1e-12
    assert abs(discriminator_loss(here, here) + real + fake) < 1e-12


def test_losses_are_means():
    real, fake = exact([[0.3], [-1.0], [2.0]]), exact([[0.7], [-0.2]])
    log_real, log_fake = log_expit(real.numpy()), log_expit(-fake.numpy())
    right = log_real.mean() + log_fake.mean()
    assert abs(discriminator_loss(real, fake).item() + right) < 1e-15
    assert abs(minimax_loss(fake).item() - log_fake.mean()) < 1e-15
    right = log_expit(fake.numpy()).mean()
    assert abs(nonsaturating_loss(fake).item() + right) < 1e-15


def test_the_discriminators_loss_is_minus_the_value_of_the_game():
    logits = exact([0.4, -1.1])
    p, q = exact([0.25, 0.75]), exact([0.5, 0.5])
    real, fake = logits[[0, 1, 1, 1]], logits[[0, 1]]
    value = gan_value(p, q, logits.sigmoid())
    assert abs(discriminator_loss(real, fake) + value) < 1e-15


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_confident_discriminator_does_not_make_infinities(dtype):
    logit = torch.tensor([17.0], dtype=dtype)
    if dtype == torch.float32:
        assert (1 - logit.sigmoid()).log() == -math.inf
    assert minimax_loss(logit) == -17
    assert minimax_loss(logit).dtype == dtype
    assert discriminator_loss(-logit, logit) == 34
    assert nonsaturating_loss(-logit) == 17


def test_gradients_at_a_generators_logits():
    for value in (-6.0, -2.0, 0.0, 2.0, 21.0):
        logit = exact([value]).requires_grad_()
        (minimax,) = torch.autograd.grad(minimax_loss(logit), logit)
        (usual,) = torch.autograd.grad(nonsaturating_loss(logit), logit)
        assert abs(minimax.item() + expit(value)) < 1e-15
        assert abs(usual.item() + expit(-value)) < 1e-15


def players(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return mlp(2, 5, 1).double(), mlp(1, 5, 1).double()


def draws(seed):
    generator = seeded(seed)
    return (
        lambda: 1 + torch.randn(8, 1, generator=generator, dtype=torch.float64),
        lambda: torch.randn(8, 2, generator=generator, dtype=torch.float64),
    )


def weights(player):
    return [parameter.detach().clone() for parameter in player.parameters()]


def test_the_game_is_played_in_turns():
    generator, discriminator = players()
    seen = []
    train_gan(*draws(1), generator, discriminator, 6, (0.01, 0.02), seen.append)
    assert seen == [0, 1, 2, 3, 4, 5, 6]

    painter, critic = players()
    real, latent = draws(1)
    adam_g = torch.optim.Adam(painter.parameters(), lr=0.01, betas=(0.5, 0.999))
    adam_d = torch.optim.Adam(critic.parameters(), lr=0.02, betas=(0.5, 0.999))
    for _ in range(6):
        fake = painter(latent()).detach()
        value = critic(real()).sigmoid().log().mean()
        value = value + (1 - critic(fake).sigmoid()).log().mean()
        adam_d.zero_grad()
        (-value).backward()
        adam_d.step()
        loss = -critic(painter(latent())).sigmoid().log().mean()
        adam_g.zero_grad()
        loss.backward()
        adam_g.step()
    for ours, theirs in ((generator, painter), (discriminator, critic)):
        for mine, plain in zip(weights(ours), weights(theirs), strict=True):
            assert torch.allclose(mine, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("moving", [0, 1])
def test_each_player_moves_only_in_its_own_turn(moving):
    both = players()
    before = [weights(player) for player in both]
    rates = (0.01, 0.0) if moving == 0 else (0.0, 0.01)
    train_gan(*draws(1), *both, 3, rates)
    for index, player in enumerate(both):
        same = [
            torch.equal(now, then)
            for now, then in zip(weights(player), before[index], strict=True)
        ]
        assert not any(same) if index == moving else all(same)


def test_the_game_shows_a_bar_if_asked(capsys):
    train_gan(*draws(1), *players(), 2, (0.01, 0.01))
    assert capsys.readouterr().err == ""
    train_gan(*draws(1), *players(), 2, (0.01, 0.01), description="playing")
    assert "playing: 100%" in capsys.readouterr().err


def test_bad_input_is_named():
    weight = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="^updates = 0: must be a whole number, 1 or"):
        fit(weight.sum, [weight], 0, 0.1)
    with pytest.raises(ValueError, match="^learning_rate = 0: every entry must be > 0"):
        fit(weight.sum, [weight], 1, 0.0)
    for decay in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"^decay = {decay}: it must lie in .0, 1"):
            fit(weight.sum, [weight], 1, 0.1, decay=decay)
    with pytest.raises(ValueError, match="^updates = 1.5: must be a whole number, 1"):
        train_gan(*draws(1), *players(), 1.5, (0.1, 0.1))
