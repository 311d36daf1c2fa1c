"""The loss against torch.distributions and exact evidence, training against a loop."""

import inspect
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import nn
from torch.distributions import Normal, kl_divergence

from genaudit.faces import draw_faces, draw_factors
from genaudit.latent import GaussianModel
from genaudit.vae import Vae, train_vae
from tests.strategies import exact, numbers, seeded, vectors

STANDARD = Normal(exact(0.0), exact(1.0))


def normal(*shape, seed=1):
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


def uniform(*shape, seed=2):
    return torch.rand(shape, generator=seeded(seed), dtype=torch.float64)


def make_vae(*arguments, seed=0, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Vae(*arguments, **settings).double()


def flat(vae):
    return torch.cat([each.detach().flatten() for each in vae.parameters()])


class Told(nn.Module):
    """An encoder that answers what it was told."""

    def __init__(self, mean, log_variance):
        super().__init__()
        self.answer = torch.cat([mean, log_variance], 1)

    def forward(self, pictures):
        return self.answer.expand(len(pictures), -1)


@pytest.mark.parametrize("variance", [0.0625, 0.3, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_loss_terms_are_those_of_torch_distributions(variance, seed):
    vae = make_vae(7, 3, seed=seed, noise_variance=variance)
    pictures, noise = uniform(5, 7), normal(5, 3)
    error, kl = vae.loss_terms(pictures, noise)
    assert error.shape == (5,)
    assert kl.shape == (5, 3)
    mean, log_variance = vae.encoder(pictures).split(3, 1)
    q = Normal(mean, (log_variance / 2).exp())
    assert torch.allclose(kl, kl_divergence(q, STANDARD), rtol=1e-12, atol=1e-14)
    p = Normal(vae.decode(q.mean + q.stddev * noise), math.sqrt(variance))
    constant = 7 / 2 * math.log(2 * math.pi * variance)
    assert torch.allclose(error, -p.log_prob(pictures).sum(1) - constant, rtol=1e-12)


@given(vectors(2, -3, 3), vectors(2, -4, 4), vectors(2, -3, 3))
def test_the_encoder_gives_mean_and_log_variance_in_this_order(mean, log, noise):
    vae = make_vae(2, 2, noise_variance=0.5)
    vae.encoder, vae.decode = Told(mean[None], log[None]), nn.Identity()
    told_mean, variance = vae.encode(torch.zeros(1, 2))
    assert torch.equal(told_mean[0], mean)
    assert torch.allclose(variance[0], log.exp(), rtol=1e-14)
    # The decoder returns the code and the picture is black: the error is the code's
    # squared length.
    error, kl = vae.loss_terms(torch.zeros(1, 2), noise[None])
    code = mean + (log / 2).exp() * noise
    assert torch.allclose(error, code @ code, rtol=1e-12)
    right = (mean**2 + log.exp() - 1 - log) / 2
    assert torch.allclose(kl[0], right, rtol=1e-12, atol=1e-14)


@given(numbers(-2, 2), numbers(0.1, 2), numbers(-2, 2), numbers(-2, 1))
def test_the_terms_bound_an_exact_evidence(x, noise_variance, mean, log_variance):
    model = GaussianModel(exact(noise_variance))
    vae = make_vae(1, 1, noise_variance=noise_variance)
    vae.decode = nn.Identity()
    noise, weights = map(exact, np.polynomial.hermite_e.hermegauss(20))
    pictures = exact(x).expand(20, 1)

    def negative_elbo(mean, log_variance):
        vae.encoder = Told(mean.reshape(1, 1), log_variance.reshape(1, 1))
        error, kl = vae.loss_terms(pictures, noise[:, None])
        constant = math.log(2 * math.pi * noise_variance) / 2
        return weights @ (error + kl.sum(1)) / weights.sum() + constant

    evidence = model.log_evidence(exact(x))
    any_q = negative_elbo(exact(mean), exact(log_variance))
    terms = model.elbo_terms(exact(x), exact(mean), exact(log_variance).exp())
    assert abs(any_q + terms.elbo) < 1e-11
    assert any_q >= -evidence - 1e-12
    best_mean, best_variance = model.posterior(exact(x))
    assert abs(negative_elbo(best_mean, best_variance.log()) + evidence) < 1e-11


def test_layers_and_noise_variance_as_documented():
    vae = Vae(9, 2)
    shapes = [
        [tuple(each.shape) for each in part.parameters()]
        for part in (vae.encoder, vae.decode)
    ]
    assert shapes == [[(64, 9), (64,), (4, 64), (4,)], [(64, 2), (64,), (9, 64), (9,)]]
    assert Vae(9, 2).noise_variance == 0.25**2
    assert Vae(9, 2, noise_variance=0.3).noise_variance == 0.3


def plain_training(pictures, beta, seed, codes, updates):
    """Kingma and Welling's loop, written with torch's own parts."""
    pixels, dtype = pictures.shape[1], pictures.dtype
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = nn.Sequential(
            nn.Linear(pixels, 64), nn.SiLU(), nn.Linear(64, 2 * codes)
        ).to(dtype)
        decoder = nn.Sequential(
            nn.Linear(codes, 64), nn.SiLU(), nn.Linear(64, pixels)
        ).to(dtype)
    weights = [*encoder.parameters(), *decoder.parameters()]
    adam = torch.optim.Adam(weights, lr=0.002)
    stream = seeded(seed + 1)
    for _ in range(updates):
        x = pictures[torch.randint(len(pictures), (128,), generator=stream)]
        noise = torch.randn(128, codes, generator=stream, dtype=dtype)
        mean, log_variance = encoder(x).split(codes, 1)
        q = Normal(mean, (log_variance / 2).exp())
        p = Normal(decoder(q.mean + q.stddev * noise), 0.25)
        prior = Normal(torch.zeros_like(mean), 1)
        loss = beta * kl_divergence(q, prior).sum() - p.log_prob(x).sum()
        adam.zero_grad()
        (loss / 128).backward()
        adam.step()
    return torch.cat([each.detach().flatten() for each in weights])


@pytest.mark.parametrize("beta, seed, codes", [(0, 6050, 2), (0.1, 3, 1), (30, -4, 3)])
def test_training_is_a_plain_loop(beta, seed, codes, usual_dtype):
    pictures = uniform(200, 9)
    vae = train_vae(pictures, beta, seed, codes, 25)
    plain = plain_training(pictures, beta, seed, codes, 25)
    assert flat(vae).dtype == torch.float64
    assert (flat(vae) - plain).abs().max() < 1e-10
    start = plain_training(pictures, beta, seed, codes, 0)
    assert (flat(vae) - start).abs().max() > 0.02


def test_single_precision_stays_single():
    pictures = uniform(200, 9).float()
    vae = train_vae(pictures, 1.0, 3, updates=10)
    assert flat(vae).dtype == torch.float32
    assert (flat(vae) - plain_training(pictures, 1.0, 3, 2, 10)).abs().max() < 1e-4
    error, kl = vae.loss_terms(pictures, torch.zeros(200, 2))
    assert error.dtype == kl.dtype == torch.float32
    noise = torch.zeros(200, 2, dtype=torch.float64)
    exact_error, _ = vae.double().loss_terms(pictures.double(), noise)
    assert torch.allclose(error.double(), exact_error, rtol=1e-5)


def test_a_seed_makes_the_model_and_the_callers_generator_stays_put():
    pictures = uniform(30, 6)
    first = train_vae(pictures, 1.0, 5, updates=3)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    second = train_vae(pictures, 1.0, 5, updates=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(flat(first), flat(second))
    assert not torch.equal(flat(first), flat(train_vae(pictures, 1.0, 6, updates=3)))
    by_default, told = (
        train_vae(pictures, 1.0, *it, updates=3) for it in [(), (6050, 2)]
    )
    assert torch.equal(flat(by_default), flat(told))
    assert inspect.signature(train_vae).parameters["updates"].default == 3000


def test_a_bar_is_shown_only_with_a_description(capsys):
    train_vae(uniform(4, 2), 1.0, updates=2)
    assert capsys.readouterr() == ("", "")
    train_vae(uniform(4, 2), 1.0, updates=2, description="beta = 1")
    shown = capsys.readouterr()
    assert "beta = 1: 100%" in shown.err
    assert shown.out == ""


def test_the_trained_model_is_frozen_and_the_pictures_untouched():
    pictures = uniform(30, 6)
    copy = pictures.clone()
    vae = train_vae(pictures, 1.0, updates=2)
    assert isinstance(vae, Vae)
    assert not any(each.requires_grad for each in vae.parameters())
    assert not vae.loss_terms(pictures, normal(30, 2))[0].requires_grad
    assert torch.equal(pictures, copy)


def test_beta_presses_on_the_code():
    faces = draw_faces(*draw_factors(256, seeded(1)).T)
    total, rebuilt = {}, {}
    for beta in (0, 1, 30, 1000):
        vae = train_vae(faces, beta, updates=150)
        error, kl = vae.loss_terms(faces, torch.zeros(256, 2, dtype=torch.float64))
        total[beta], rebuilt[beta] = kl.mean(0).sum(), error.mean()
        if beta == 30:  # the smile is given up and the size is kept
            assert kl.mean(0).min() < 0.2 < 0.7 < kl.mean(0).max()
    assert total[0] > 1.5 * total[1] > 3 * total[30]
    assert total[1000] < 0.01
    # What the blank mean of all faces leaves: their variance around it, in units of
    # twice the noise.
    blank = 8 * faces.var(0, correction=0).sum()
    assert abs(rebuilt[1000] - blank) < 0.05 * blank
    assert rebuilt[30] < 0.3 * blank
    assert rebuilt[1] < 0.8 * rebuilt[30]


NAN, FEW = math.nan, uniform(3, 2)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: train_vae(FEW, -0.1, updates=1),
            "beta = -0.1: every entry must be >= 0",
        ),
        (lambda: train_vae(FEW, NAN, updates=1), "beta = nan: every entry must be fin"),
        (
            lambda: train_vae(exact([[0.5, NAN]]), 1.0, updates=1),
            "pictures = [0.5, nan]: every entry must be finite",
        ),
        (
            lambda: train_vae(FEW[0], 1.0, updates=1),
            "pictures has shape (2,): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: train_vae(FEW[None], 1.0, updates=1),
            "pictures has shape (1, 3, 2): it must be (N, D), with",
        ),
        (
            lambda: train_vae(FEW[:0], 1.0, updates=1),
            "pictures has shape (0, 2): it must be (N, D), with",
        ),
        (
            lambda: train_vae(FEW, 1.0, updates=0),
            "updates = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: train_vae(FEW, 1.0, codes=0, updates=1),
            "codes = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: Vae(2, 3).double().loss_terms(FEW, exact([[0.1]] * len(FEW))),
            "noise has shape (3, 1), the code has shape (3, 3): the shapes must be",
        ),
        (
            lambda: Vae(2, 1, noise_variance=0.0),
            "noise_variance = 0: every entry must be > 0",
        ),
        (
            lambda: Vae(2, 1, noise_variance=NAN),
            "noise_variance = nan: every entry must be finite",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()


def test_one_picture_of_one_pixel_is_enough():
    vae = train_vae(exact([[0.3]]), 0.0, updates=1)
    assert vae.encode(exact([[0.3]]))[0].shape == (1, 2)
