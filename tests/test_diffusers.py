"""The same steps as diffusers' schedulers, which its users will compare with.

Its indices start at 0: its timestep i is i + 1 here. ``fixed_small`` is beta-tilde,
held above 1e-20, and ``fixed_large`` is beta; both add nothing at its index 0. It clips
the clean guess to [-1, 1] unless told not to, which no equation asks for.

Its DDIM goes down by T // steps whatever the spacing, so trailing steps are compared
where they divide T.
"""

import pytest
import torch

from genaudit.process import clean_from_noise, ddpm_step, forward_jump
from genaudit.sampler import ddim_path
from genaudit.schedule import Schedule

diffusers = pytest.importorskip(
    "diffusers", reason="compares with diffusers, an optional package: not installed"
)

STEPS = 100
VARIANCES = {"beta_tilde": "fixed_small", "beta": "fixed_large"}


SPACINGS = ("leading", "trailing")


def pair(variance="beta_tilde", dtype=torch.float64, ddim=False, **settings):
    if not ddim:
        settings["variance_type"] = VARIANCES[variance]
    theirs = (diffusers.DDIMScheduler if ddim else diffusers.DDPMScheduler)(
        num_train_timesteps=STEPS,
        beta_start=1e-4,
        beta_end=0.1,
        clip_sample=False,
        **settings,
    )
    ours = Schedule(theirs.betas.to(dtype))
    # It ships its tables in float32 only; here the equations are compared.
    theirs.alphas_cumprod = (1 - theirs.betas.to(dtype)).cumprod(0)
    return theirs, ours


def normal(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_tables_agree():
    theirs, ours = pair()
    t = ours.timesteps
    assert torch.allclose(ours.alpha_bar(t), theirs.alphas_cumprod, rtol=1e-13)
    variances = torch.stack([theirs._get_variance(i) for i in range(STEPS)])
    assert variances[0] == 1e-20
    assert torch.allclose(ours.beta_tilde(t), variances, rtol=0, atol=1e-12)


def test_jumps_agree():
    theirs, ours = pair()
    x0, noise = normal(STEPS, 3, seed=1), normal(STEPS, 3, seed=2)
    index = torch.arange(STEPS)
    jump = theirs.add_noise(x0, noise, index)
    assert torch.allclose(forward_jump(ours, x0, index + 1, noise), jump, atol=1e-12)


@pytest.mark.parametrize("variance", VARIANCES)
def test_reverse_steps_agree(variance):
    theirs, ours = pair(variance)
    x, guess = normal(50, 3, seed=3), normal(50, 3, seed=4)
    for index in range(STEPS):
        noise = normal(50, 3, seed=index)
        generator = torch.Generator().manual_seed(index)
        step = theirs.step(guess, index, x, generator=generator)
        mine = ddpm_step(ours, x, index + 1, guess, noise, variance)
        assert torch.allclose(mine, step.prev_sample, rtol=0, atol=1e-11)
        clean = clean_from_noise(x, ours.alpha_bar(index + 1), guess)
        assert torch.allclose(clean, step.pred_original_sample, rtol=1e-12)


def test_reverse_steps_agree_as_shipped_but_for_rounding():
    """In float32 its 1 - alpha-bar ratio loses digits in the first few steps."""
    theirs, ours = pair(dtype=torch.float32)
    x, guess = normal(50, 3, seed=3).float(), normal(50, 3, seed=4).float()
    for index in range(STEPS):
        generator = torch.Generator().manual_seed(index)
        step = theirs.step(guess, index, x, generator=generator).prev_sample
        noise = torch.randn(
            50, 3, generator=torch.Generator().manual_seed(index), dtype=torch.float32
        )
        mine = ddpm_step(ours, x, index + 1, guess, noise)
        apart = (mine - step).abs().max()
        assert apart < (2e-6 if index >= 10 else 5e-5)


@pytest.mark.parametrize("variance", VARIANCES)
def test_neither_adds_noise_at_the_last_step(variance):
    theirs, ours = pair(variance)
    x, guess = normal(4, 1, seed=5), normal(4, 1, seed=6)
    first, again = (
        theirs.step(guess, 0, x, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 2)
    )
    assert torch.equal(first.prev_sample, again.prev_sample)
    mine = ddpm_step(ours, x, 1, guess, torch.full_like(x, 1e6), variance)
    assert torch.allclose(mine, first.prev_sample, atol=1e-12)


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("ddim", [False, True])
def test_visits_agree(ddim, spacing):
    """Its trailing ones add up a rounded stride: of 29 steps in 100 it makes 30."""
    theirs, ours = pair(ddim=ddim, timestep_spacing=spacing)
    for steps in (1, 3, 7, 8, 10, 16, 20, 30, 33, 50, 60, 99, STEPS):
        theirs.set_timesteps(steps)
        assert torch.equal(ours.visits(steps, spacing) - 1, theirs.timesteps)


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("steps", [1, 5, 20, STEPS])
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
def test_ddim_paths_agree(eta, steps, spacing):
    """Point by point, each side with its own draws from one seed."""
    theirs, ours = pair(ddim=True, timestep_spacing=spacing)
    theirs.set_timesteps(steps)
    generator, x = torch.Generator().manual_seed(8), normal(50, 3, seed=7)

    def guess(x, t):
        return torch.tanh(x) + t / STEPS

    visits, seeded = ours.visits(steps, spacing), torch.Generator().manual_seed(8)
    path = ddim_path(guess, ours, x, visits, eta, seeded)
    assert torch.equal(next(path), x)
    for index, point in zip(theirs.timesteps, path, strict=True):
        noise = guess(x, int(index) + 1)
        step = theirs.step(noise, int(index), x, eta, generator=generator)
        x = step.prev_sample
        assert torch.allclose(point, x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("steps", [1, 7, 20])
def test_reverse_jumps_agree(steps, variance, spacing):
    theirs, ours = pair(variance, timestep_spacing=spacing)
    theirs.set_timesteps(steps)
    levels = ours.alpha_bar([0, *ours.visits(steps, spacing).flip(0).tolist()])
    jumps = Schedule(1 - levels[1:] / levels[:-1])
    x, guess = normal(50, 3, seed=3), normal(50, 3, seed=4)
    for t, index in zip(range(steps, 0, -1), theirs.timesteps):
        noise = normal(50, 3, seed=t)
        generator = torch.Generator().manual_seed(t)
        step = theirs.step(guess, index, x, generator=generator).prev_sample
        if t == 1 and index > 0 and variance == "beta":
            # It adds noise to the finished sample, unless that comes from its index 0.
            step = step - jumps.beta(1).sqrt() * noise
        mine = ddpm_step(jumps, x, t, guess, noise, variance)
        assert torch.allclose(mine, step, rtol=0, atol=1e-9)
