"""The U-Net against plain calls, its training against a loop, noise from velocity."""

import inspect
import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from genaudit.process import noise_from_velocity
from genaudit.schedule import Schedule, linear_schedule
from genaudit.unet import UNet, noise_guess, time_embedding, train_denoiser
from tests.strategies import exact, levels, numbers, seeded, variances

NAN = math.nan
SCHEDULE = linear_schedule(9, 0.02, 0.4)
even_widths = st.integers(2, 20).map(lambda half: 2 * half)


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    """Chapters set this default, and an embedding follows it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def normal(*shape, seed=1):
    return torch.randn(shape, generator=seeded(seed))


def make_unet(*arguments, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return UNet(*arguments)


def flat(network):
    return torch.cat([each.detach().flatten() for each in network.parameters()])


@pytest.mark.parametrize("t", [5, 2.5, [1, 2, 3], torch.tensor([[1, 2, 3], [4, 5, 6]])])
def test_an_embedding_has_one_more_axis(t, usual_dtype):
    embedded = time_embedding(t, 6)
    assert embedded.shape == (*torch.as_tensor(t).shape, 6)
    assert embedded.dtype == usual_dtype


@given(numbers(-1000, 1000))
def test_the_shortest_embedding_by_hand(t):
    slow = t / 1000
    right = exact([math.cos(t), math.cos(slow), math.sin(t), math.sin(slow)])
    assert (time_embedding(t, 4) - right).abs().max() < 1e-12


@given(even_widths)
def test_frequencies_fall_geometrically_from_1_to_a_thousandth(width):
    cosine, sine = time_embedding(1, width).chunk(2)
    frequency = torch.atan2(sine, cosine)
    assert abs(frequency[0] - 1) < 1e-14
    assert abs(frequency[-1] - 1e-3) < 1e-14
    ratio = frequency[1:] / frequency[:-1]
    assert (ratio - 1000 ** (-1 / (width // 2 - 1))).abs().max() < 1e-12


@given(even_widths, numbers(0, 1000), numbers(0, 1000))
def test_products_of_embeddings_depend_on_the_distance_alone(width, t, s):
    product = time_embedding(t, width) @ time_embedding(s, width)
    last = width // 2 - 1
    right = sum(math.cos((t - s) * 1000 ** (-k / last)) for k in range(last + 1))
    assert abs(product - right) < 1e-11


def plain_unet(network, x, t):
    """The same weights, the U written as a U-Net within a U-Net."""
    weights = network.state_dict()
    deepest = len(network.down) - 1

    def linear(name, z):
        return z @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def convolve(name, z):
        kernel, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return functional.conv2d(z, kernel, bias, padding=kernel.shape[-1] // 2)

    def silu(z):
        return z * z.sigmoid()

    half = network.time_width // 2
    angle = exact(
        [[int(s) * 1000 ** (-k / (half - 1)) for k in range(half)] for s in t]
    )
    time = silu(linear("mix_time.0", torch.cat([angle.cos(), angle.sin()], 1)))

    def block(name, z):
        shift = linear(f"{name}.time", time).reshape(len(z), -1, 1, 1)
        inner = convolve(f"{name}.first", silu(z)) + shift
        return convolve(f"{name}.second", silu(inner)) + convolve(f"{name}.around", z)

    def from_level(level, z):
        here = block(f"down.{level}", z)
        if level == deepest:
            return here
        smaller = here.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).mean((3, 5))
        below = from_level(level + 1, smaller)
        below = below.repeat_interleave(2, 2).repeat_interleave(2, 3)
        return block(f"up.{deepest - 1 - level}", torch.cat([below, here], 1))

    pictures = x.unflatten(1, (network.side, network.side))[:, None]
    return convolve("leave", from_level(0, convolve("enter", pictures))).flatten(1)


@pytest.mark.parametrize(
    "side, widths, time_width",
    [(5, (3,), 4), (6, (3, 2), 6), (8, (2, 3, 4), 8), (8, (1, 2, 1, 3), 4)],
)
def test_the_network_is_a_few_plain_calls(side, widths, time_width):
    network = make_unet(side, widths, time_width)
    x, t = 3 * normal(4, side**2), torch.tensor([1, 3, 40, 999])
    guess = network(x, t)
    assert guess.shape == x.shape
    assert (guess - plain_unet(network, x, t)).abs().max() < 1e-13
    assert network.state_dict().keys() == dict(network.named_parameters()).keys()


def test_layers_as_documented():
    shapes = [
        {name: each.shape for name, each in network.state_dict().items()}
        for network in (UNet(20), UNet(20, (8, 16, 32), 32))
    ]
    assert shapes[0] == shapes[1]
    channels = [shapes[0][f"down.{level}.second.weight"] for level in range(3)]
    assert channels == [(8, 8, 3, 3), (16, 16, 3, 3), (32, 32, 3, 3)]
    assert shapes[0]["up.0.first.weight"] == (16, 32 + 16, 3, 3)
    assert shapes[0]["up.1.first.weight"] == (8, 16 + 8, 3, 3)


def seen_by_the_middle(network):
    """Which input pixels move each of the four output pixels in the middle."""
    x = normal(1, network.side**2).requires_grad_()
    picture = network(x, torch.tensor([4])).reshape(network.side, network.side)
    corner = network.side // 2 - 1
    middle = picture[corner : corner + 2, corner : corner + 2].flatten()
    slopes = [torch.autograd.grad(each, x, retain_graph=True)[0] for each in middle]
    return torch.stack(slopes).reshape(4, network.side, network.side) != 0


def window(reach):
    """What the first pixel in the middle of 20 x 20 sees if it sees so far each way."""
    near = (torch.arange(20) - 9).abs() <= reach
    return near[:, None] & near


def test_the_middle_sees_the_whole_picture():
    assert seen_by_the_middle(make_unet(20, (8, 16, 32))).all()
    # Without a smaller level there are only four 3 x 3 convolutions.
    assert torch.equal(seen_by_the_middle(make_unet(20, (8,)))[0], window(4))


def test_each_level_is_handed_across():
    network = make_unet(20, (2, 3, 4), 4)
    with torch.no_grad():
        for weight in (network.up[1].first.weight, network.up[1].around.weight):
            weight[:, :3] = 0  # nothing comes up from below any more
    assert torch.equal(seen_by_the_middle(network)[0], window(6))


@pytest.mark.parametrize("block", ["down.0", "down.1", "down.2", "up.0", "up.1"])
def test_the_time_reaches_each_block(block):
    network, alone = make_unet(8, (2, 3, 4), 4), f"{block}.time.weight"
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith(".time.weight") and name != alone:
                weight.zero_()
    x = normal(1, 64).expand(2, -1)
    early, late = network(x, torch.tensor([3, 700]))
    assert (early - late).abs().min() > 1e-8


def test_the_rows_of_a_batch_do_not_mix():
    network = make_unet(8, (2, 3), 4)
    x, t = normal(5, 64), torch.tensor([1, 1, 30, 200, 1000])
    together = network(x, t)
    for row in range(5):
        alone = network(x[row : row + 1], t[row : row + 1])
        assert torch.allclose(together[row], alone[0], rtol=1e-12, atol=1e-14)
    assert network(x[:0], t[:0]).shape == (0, 64)


@pytest.mark.parametrize("shape", [(2, 32), (2, 63), (2, 65), (1, 128), (2, 8, 8)])
def test_a_wrong_number_of_pixels_is_refused(shape):
    network = make_unet(8, (2, 3), 4)
    with pytest.raises(ValueError, match=r"x has shape .*: it must be \(B, 64\)"):
        network(normal(*shape), torch.full(shape[:1], 3))


@pytest.mark.parametrize(
    ("side", "widths", "time_width", "named"),
    [
        (0, (2, 3), 4, "side"),
        (-4, (2, 3), 4, "side"),
        (4, (), 4, "number of widths"),
        (8, (2, 3), 5, "width = 5"),
        (8, (2, 3), 2, "width = 2"),
    ],
)
def test_a_unet_that_cannot_run_is_not_built(side, widths, time_width, named):
    with pytest.raises(ValueError, match=named):
        UNet(side, widths, time_width)


def test_single_precision_under_a_double_default():
    network = make_unet(8, (2, 3), 4).float()
    made = network(normal(2, 64).float(), torch.tensor([1, 2]))
    assert made.dtype == torch.float32


def test_a_trained_network_can_be_trained_further():
    network = make_unet(8, (2, 3), 4)
    train_denoiser(network, normal(20, 64), linear_schedule(50), updates=1)
    once = network.leave.weight.clone()
    train_denoiser(network, normal(20, 64), linear_schedule(50), updates=1)
    assert (network.leave.weight - once).abs().max() > 1e-6


def plain_training(network, clean, schedule, seed, batch, updates):
    """Salimans and Ho's loss by its formula, the rate set by hand."""
    adam = torch.optim.Adam(network.parameters(), lr=0.004)
    stream, dtype = seeded(seed), clean.dtype
    level = torch.cumprod(1 - schedule.beta(schedule.timesteps), 0)
    for update in range(updates):
        picked = clean[torch.randint(len(clean), (batch,), generator=stream)]
        t = torch.randint(len(level), (batch,), generator=stream) + 1
        noise = torch.randn(picked.shape, generator=stream, dtype=dtype)
        signal = level[t - 1, None].sqrt().to(dtype)
        spread = (1 - level[t - 1, None]).sqrt().to(dtype)
        guess = network(signal * picked + spread * noise, t)
        loss = (guess - signal * noise + spread * picked).square().mean()
        adam.param_groups[0]["lr"] = 0.004 * min(1, (updates - update) / updates / 0.4)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return network


@pytest.mark.parametrize("seed, batch, updates", [(6, 16, 15), (-3, 1, 7), (2, 5, 1)])
def test_training_is_a_plain_loop(seed, batch, updates, usual_dtype):
    clean = normal(6, 16)
    arguments = (clean, SCHEDULE, seed, batch, updates)
    network = make_unet(4, (2, 3), 4)
    start = flat(network)
    train_denoiser(network, *arguments)
    plain = plain_training(make_unet(4, (2, 3), 4), *arguments)
    tolerance = 1e-10 if usual_dtype == torch.float64 else 1e-4
    assert flat(network).dtype == usual_dtype
    assert (flat(network) - flat(plain)).abs().max() < tolerance
    assert (flat(network) - start).abs().max() > 0.9 * 0.004


class Recorder(nn.Module):
    """A network that keeps what it was shown."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen = []

    def forward(self, x, t):
        self.seen.append((x, t))
        return self.weight * x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_keeps_the_dtype_of_the_data(dtype, usual_dtype):
    recorder = Recorder().to(dtype)
    train_denoiser(recorder, normal(4, 2).to(dtype), SCHEDULE, updates=1)
    assert recorder.seen[0][0].dtype == recorder.weight.dtype == dtype


def trained(*arguments):
    network = make_unet(4, (2, 3), 4)
    train_denoiser(network, normal(30, 16), SCHEDULE, *arguments, updates=3)
    return network


def test_a_seed_makes_the_weights_and_the_callers_generator_stays_put():
    first = trained(5)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    network, clean = make_unet(4, (2, 3), 4), normal(30, 16)
    train_denoiser(network, clean, SCHEDULE, 5, updates=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(flat(first), flat(network))
    assert not torch.equal(flat(first), flat(trained(6)))
    assert torch.equal(flat(trained()), flat(trained(6050, 16)))
    assert inspect.signature(train_denoiser).parameters["updates"].default == 2500


def test_a_bar_is_shown_only_with_a_description(capsys):
    train_denoiser(Recorder(), normal(4, 2), SCHEDULE, updates=2)
    assert capsys.readouterr() == ("", "")
    train_denoiser(Recorder(), normal(4, 2), SCHEDULE, updates=2, description="U-Net")
    shown = capsys.readouterr()
    assert "U-Net: 100%" in shown.err
    assert shown.out == ""


def test_the_trained_network_is_frozen_and_the_data_untouched():
    network, clean = make_unet(4, (2, 3), 4), normal(30, 16)
    copy = clean.clone()
    assert train_denoiser(network, clean, SCHEDULE, updates=2) is None
    assert not any(each.requires_grad for each in network.parameters())
    assert not network(clean, torch.ones(30)).requires_grad
    assert torch.equal(clean, copy)


def test_one_point_of_one_coordinate_is_enough():
    recorder = Recorder()
    train_denoiser(recorder, exact([[0.3]]), Schedule([0.5]), batch=1, updates=1)
    assert abs(recorder.weight.abs() - 0.004) < 1e-8


@given(variances, levels, st.lists(numbers(-3, 3), min_size=1, max_size=3))
def test_the_exact_velocity_of_a_gaussian_gives_its_exact_noise(variance, level, x):
    x, total = exact(x)[:, None], level * variance + 1 - level

    def network(x, t):
        return math.sqrt(level * (1 - level)) * (1 - variance) / total * x

    noise = noise_guess(network, Schedule([1 - level]))(x, 1)
    assert torch.allclose(noise, math.sqrt(1 - level) / total * x, rtol=1e-9)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 70])
def test_a_guess_in_parts_is_the_guess_of_the_whole(count, usual_dtype):
    network = make_unet(4, (2, 3), 4).requires_grad_(False)
    x = normal(count, 16)
    for t in (1, 4, 9):
        noise = noise_guess(network, SCHEDULE)(x, t)
        v = network(x, torch.full((count,), t))
        right = noise_from_velocity(x, SCHEDULE.alpha_bar(t), v)
        assert noise.dtype == usual_dtype
        assert noise.shape == (count, 16)
        tolerance = 10 * torch.finfo(usual_dtype).eps
        assert torch.allclose(noise, right, rtol=tolerance, atol=tolerance)


def test_a_network_is_asked_for_few_points_at_once():
    recorder = Recorder()
    x = normal(70, 2)
    noise_guess(recorder, SCHEDULE)(x, 5)
    parts, times = zip(*recorder.seen)
    assert torch.equal(torch.cat(parts), x)
    assert [len(part) for part in parts] == [32, 32, 6]
    for part, time in recorder.seen:
        assert torch.equal(time, torch.full((len(part),), 5))


FEW = torch.ones(3, 2)


def train(clean, **settings):
    train_denoiser(Recorder(), clean, SCHEDULE, **{"updates": 1} | settings)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: time_embedding(1, 5), "width = 5: it must be even"),
        (
            lambda: time_embedding(1, 2),
            "width = 2: must be a whole number, 4 or more",
        ),
        (
            lambda: time_embedding(1, 4.0),
            "width = 4.0: must be a whole number, 4 or more",
        ),
        (
            lambda: UNet(18, (2, 3, 4)),
            "side = 18: it must be divisible by 4, for 3 levels",
        ),
        (
            lambda: UNet(12, (2, 2, 2, 2)),
            "side = 12: it must be divisible by 8, for 4 levels",
        ),
        (lambda: train(exact([[0.5, NAN]])), "clean = [0.5, nan]: every entry must"),
        (
            lambda: train(FEW[0]),
            "clean has shape (2,): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: train(FEW[None]),
            "clean has shape (1, 3, 2): it must be (N, D), with",
        ),
        (lambda: train(FEW[:0]), "clean has shape (0, 2): it must be (N, D), with"),
        (lambda: train(FEW[:, :0]), "clean has shape (3, 0): it must be (N, D), with"),
        (lambda: train(FEW, batch=0), "batch = 0: must be a whole number, 1 or more"),
        (lambda: train(FEW, batch=1.5), "batch = 1.5: must be a whole number, 1 or"),
        (
            lambda: train(FEW, updates=0),
            "updates = 0: must be a whole number, 1 or more",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
