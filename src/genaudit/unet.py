"""Denoisers for pictures: the time embedding, a small U-Net, and their training.

A denoiser here is a network that maps noised points x_t, shape (B, D), and their
timesteps, shape (B,), to a guess of the velocity, shape (B, D). A picture is a point
with one coordinate for each pixel, row by row.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from genaudit import _check
from genaudit.process import forward_jump, noise_from_velocity, velocity
from genaudit.schedule import Schedule
from genaudit.training import fit

LEARNING_RATE = 0.004
"""Adam's at first, in ``train_denoiser``."""

DECAY = 0.4
"""Share of the updates, at the end, over which the rate falls to 0."""

_CHUNK = 32  # points a network sees at once: few enough for the processor's cache


def time_embedding(t, width: int) -> Tensor:
    """Cosines and sines of each timestep, shape (..., width) for t of shape (...).

    Frequencies fall geometrically from 1 to 1/1000 radian a step, the cosines of all
    first (Vaswani and others, 2017, for positions in a text). ``width`` is even, 4 or
    more; otherwise ValueError.
    """
    _check.whole("width", width, 4)
    if width % 2:
        raise ValueError(f"width = {width}: it must be even")
    t = torch.as_tensor(t).to(torch.get_default_dtype())
    exponents = torch.linspace(0, 1, width // 2)
    angle = t[..., None] * 1000**-exponents
    return torch.cat([angle.cos(), angle.sin()], -1)


class Block(nn.Module):
    """Two 3 x 3 convolutions with the time added between them, and a way around both.

    Maps (B, before, H, W) and a time vector (B, time_width) to (B, after, H, W).
    """

    def __init__(self, before: int, after: int, time_width: int):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, padding=1)
        self.second = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(time_width, after)
        self.around = nn.Conv2d(before, after, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Work on x, shape (B, before, H, W), knowing the time (B, time_width)."""
        hidden = self.first(nn.functional.silu(x)) + self.time(time)[..., None, None]
        return self.around(x) + self.second(nn.functional.silu(hidden))


class UNet(nn.Module):
    """A U-Net with one block a level and the time in every block.

    The way down halves the picture between levels, the way up doubles it, and each
    level's result on the way down is handed across (Ronneberger and others, 2015).

    Args:
        side: pixels along each side, divisible by 2^(levels - 1).
        widths: channels of each level, from the full picture to the smallest.
        time_width: length of the time embedding, even, 4 or more.

    ValueError for other values.
    """

    def __init__(
        self, side: int, widths: tuple[int, ...] = (8, 16, 32), time_width: int = 32
    ):
        super().__init__()
        _check.whole("side", side, 1)
        _check.whole("number of widths", len(widths), 1)
        time_embedding(0, time_width)  # refuses a width of another kind
        smallest = 2 ** (len(widths) - 1)
        if side % smallest:
            raise ValueError(
                f"side = {side}: it must be divisible by {smallest}, for "
                f"{len(widths)} levels"
            )
        self.side, self.time_width = side, time_width
        self.mix_time = nn.Sequential(nn.Linear(time_width, time_width), nn.SiLU())
        self.enter = nn.Conv2d(1, widths[0], 3, padding=1)
        before = (widths[0], *widths[:-1])
        self.down = nn.ModuleList(
            Block(a, b, time_width) for a, b in zip(before, widths)
        )
        self.up = nn.ModuleList(
            Block(below + here, here, time_width)
            for here, below in zip(widths[-2::-1], widths[:0:-1])
        )
        self.leave = nn.Conv2d(widths[0], 1, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """The guess for x, shape (B, side^2), at timesteps t, shape (B,), like x."""
        if x.ndim != 2 or x.shape[1] != self.side**2:
            raise ValueError(
                f"x has shape {tuple(x.shape)}: it must be (B, {self.side**2})"
            )
        time = self.mix_time(time_embedding(t, self.time_width).to(x.dtype))
        hidden = self.enter(x.reshape(-1, 1, self.side, self.side))
        handed = []
        for level, block in enumerate(self.down):
            if level > 0:
                hidden = nn.functional.avg_pool2d(hidden, 2)
            hidden = block(hidden, time)
            handed.append(hidden)
        for block, across in zip(self.up, handed[-2::-1], strict=True):
            hidden = nn.functional.interpolate(hidden, scale_factor=2)
            hidden = block(torch.cat([hidden, across], 1), time)
        return self.leave(hidden).reshape(x.shape)


def train_denoiser(
    network: nn.Module,
    clean: Tensor,
    schedule: Schedule,
    seed: int = 6050,
    batch: int = 16,
    updates: int = 2500,
    description: str | None = None,
) -> None:
    """Train ``network`` in place on its mean squared error at uniform timesteps.

    The target is the velocity (Salimans and Ho, 2022), which keeps its meaning at every
    noise level. The seed fixes the batches; a description shows a progress bar. The
    parameters are frozen at the end.

    Args:
        network: maps (B, D) and timesteps (B,) to (B, D), as said for this module.
        clean: data, shape (N, D), roughly of mean 0 and within a few units.
        schedule: noise levels, from which timesteps 1..T are drawn.
        batch: points in each update, 1 or more. Convolutions in float64 run fastest on
            batches that fit into the processor's cache.

    ValueError for bad arguments.
    """
    clean = _check.points("clean", clean)
    _check.whole("batch", batch, 1)
    network.requires_grad_(True)
    stream = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x0 = clean[torch.randint(len(clean), (batch,), generator=stream)]
        t = 1 + torch.randint(len(schedule), (batch,), generator=stream)
        noise = torch.randn(x0.shape, generator=stream, dtype=x0.dtype)
        guess = network(forward_jump(schedule, x0, t, noise), t)
        wanted = velocity(schedule.alpha_bar(t)[:, None], noise, x0)
        return nn.functional.mse_loss(guess, wanted)

    fit(loss, network.parameters(), updates, LEARNING_RATE, description, DECAY)
    network.requires_grad_(False)


def noise_guess(
    network: nn.Module, schedule: Schedule
) -> Callable[[Tensor, int], Tensor]:
    """What samplers ask for, (x_t, t) -> noise guess, from a velocity network."""

    def predict_noise(x: Tensor, t: int) -> Tensor:
        times = torch.full((len(x),), t)
        parts = zip(x.split(_CHUNK), times.split(_CHUNK))
        v = torch.cat([network(part, time) for part, time in parts])
        return noise_from_velocity(x, schedule.alpha_bar(t), v)

    return predict_noise
