"""What a denoiser loses without the time input: one protocol, ten small networks.

Data: half N(-2, 0.25), half N(2, 0.25). Schedule: 100 linear betas, 1e-4 to 0.1. Five
seeds train a 2-64-64-1 network with the time and one without it, from the same initial
weights and on the same stream of batches. The ten run as one ensemble: their weights
are stacked, so that each layer is one batched product.
"""

from typing import NamedTuple

import torch
from scipy.stats import wasserstein_distance
from torch import Tensor, nn

from genaudit.mixture import GaussianMixture
from genaudit.process import forward_jump
from genaudit.sampler import ddpm_sample
from genaudit.schedule import Schedule, linear_schedule
from genaudit.training import fit, mlp

SEEDS = (6050, 6051, 6052, 6053, 6054)
"""One for each pair of networks."""

CONDITIONS = ("with time", "without time")
"""What a network is told besides the noised point."""

METRICS = (
    "noise MSE",
    "exact denoiser's MSE",
    "sample mean",
    "sample SD",
    "mass above 0",
    "mass in |x| < 1",
    "Wasserstein-1",
)
"""What is measured of every network and its samples."""

BATCH = 512
"""Points in each update, from each seed's stream."""

LEARNING_RATE = 0.002
"""Adam's, for every network."""


def target() -> GaussianMixture:
    """The data law, 1/2 N(-2, 0.25) + 1/2 N(2, 0.25), in float32."""
    half = torch.tensor([0.5, 0.5], dtype=torch.float32)
    return GaussianMixture(half, torch.tensor([-2.0, 2.0]).float(), half.square()[0])


def protocol_schedule() -> Schedule:
    """100 linear betas from 1e-4 to 0.1, made in float64 and rounded to float32."""
    exact = linear_schedule(100, 1e-4, 0.1)
    return Schedule(exact.beta(exact.timesteps).float())


class Result(NamedTuple):
    """What the protocol measured.

    Attributes:
        metrics: shape (2, seeds, 7), axes as CONDITIONS, seeds and METRICS.
        samples: shape (2, seeds, count), generated points.
        networks: for each condition, one network a seed, (x, time input) -> noise.
    """

    metrics: Tensor
    samples: Tensor
    networks: list[list[nn.Sequential]]


def run(
    seeds: tuple[int, ...] = SEEDS,
    updates: int = 5000,
    evaluation: int = 50_000,
    count: int = 20_000,
    description: str | None = None,
) -> Result:
    """Train, evaluate and sample every network of the protocol.

    ``updates`` Adam steps a network, ``evaluation`` points for the noise MSE, ``count``
    samples a network; a description shows progress bars.
    """
    networks = train(seeds, updates, description)
    return measure(networks, seeds, evaluation, count, description)


def measure(
    networks: list[list[nn.Sequential]],
    seeds: tuple[int, ...] = SEEDS,
    evaluation: int = 50_000,
    count: int = 20_000,
    description: str | None = None,
) -> Result:
    """Evaluate and sample trained networks, one a seed for each condition."""
    schedule = protocol_schedule()
    batch = draw_batch(schedule, evaluation, torch.Generator().manual_seed(91900))
    samples, metrics = [], []
    for condition, members in zip(CONDITIONS, networks, strict=True):
        for seed, network in zip(seeds, members, strict=True):
            denoise = denoiser(network, condition, schedule)
            generator = torch.Generator().manual_seed(seed + 29000)
            start = torch.randn(count, 1, generator=generator, dtype=torch.float32)
            label = description and f"sampling {condition}, seed {seed}"
            x = ddpm_sample(denoise, schedule, start, generator, description=label)
            fresh = draw_mixture(count, torch.Generator().manual_seed(seed + 39000))
            samples.append(x[:, 0])
            metrics.append(_noise_errors(denoise, batch) + _sample_moments(x, fresh))
    shape = (len(CONDITIONS), len(seeds), -1)
    return Result(
        torch.tensor(metrics, dtype=torch.float64).reshape(shape),
        torch.stack(samples).reshape(shape),
        networks,
    )


def train(
    seeds: tuple[int, ...], updates: int, description: str | None = None
) -> list[list[nn.Sequential]]:
    """Train the networks of both conditions together, one batch stream a seed."""
    schedule = protocol_schedule()
    networks = [[make_network(seed) for seed in seeds] for _ in CONDITIONS]
    members = [network for condition in networks for network in condition]
    streams = [torch.Generator().manual_seed(seed + 19000) for seed in seeds]
    stacked = stack_weights(members)

    def loss() -> Tensor:
        x, t, noise = draw_batch(schedule, BATCH, *streams)
        timed = torch.cat([x, time_input(t, schedule)[:, None]], 1)
        blind = torch.cat([x, torch.zeros_like(x)], 1)
        inputs = torch.cat([timed, blind]).reshape(len(members), BATCH, 2)
        noises = torch.cat([noise, noise]).reshape(len(members), BATCH, 1)
        guess = apply_stacked(stacked, inputs)
        # The sum over networks of each one's mean squared error.
        return nn.functional.mse_loss(guess, noises, reduction="sum") / BATCH

    fit(loss, stacked, updates, LEARNING_RATE, description)
    unstack_weights(stacked, members)
    return networks


def draw_mixture(count: int, *generators: torch.Generator) -> Tensor:
    """``count`` points of the data law from each generator, in the protocol's order.

    Shape (N, 1) with N = count x generators, float32, one generator after another.
    """
    side = 2 * _randint(2, (count, 1), generators) - 1
    return 2 * side + 0.5 * _randn(count, generators)


def draw_batch(
    schedule: Schedule, count: int, *generators: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Noised points (N, 1), their timesteps (N,) in 1..T, and the noise (N, 1).

    ``count`` of the N from each generator, one generator after another.
    """
    x0 = draw_mixture(count, *generators)
    t = _randint(len(schedule), (count,), generators) + 1
    noise = _randn(count, generators)
    return forward_jump(schedule, x0, t, noise), t, noise


def _randint(high: int, shape: tuple[int, ...], generators) -> Tensor:
    return torch.cat(
        [torch.randint(high, shape, generator=each) for each in generators]
    )


def _randn(count: int, generators) -> Tensor:
    shape, dtype = (count, 1), torch.float32
    return torch.cat(
        [torch.randn(shape, generator=each, dtype=dtype) for each in generators]
    )


def time_input(t, schedule: Schedule) -> Tensor:
    """The number that tells the network the time: -1 at t = 1, +1 at t = T."""
    return (2 * (torch.as_tensor(t).double() - 1) / (len(schedule) - 1) - 1).float()


def make_network(seed: int) -> nn.Sequential:
    """A 2-64-64-1 network, 4,417 parameters, initialised in float64, then float32."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with torch.random.fork_rng(devices=[]):  # the caller's global generator stays put
        torch.manual_seed(seed)
        network = mlp(2, 64, 64, 1).float()
    torch.set_default_dtype(usual)
    return network


def stack_weights(networks: list[nn.Sequential]) -> list[Tensor]:
    """Weights (M, in, out) and biases (M, 1, out) of M networks, ready for training."""
    layers = [[m for m in network if isinstance(m, nn.Linear)] for network in networks]
    stacked = []
    for same in zip(*layers, strict=True):
        stacked.append(torch.stack([layer.weight.detach().T for layer in same]))
        stacked.append(torch.stack([layer.bias.detach()[None] for layer in same]))
    return [tensor.contiguous().requires_grad_() for tensor in stacked]


def unstack_weights(stacked: list[Tensor], networks: list[nn.Sequential]) -> None:
    """Copy stacked weights back into the M networks they came from."""
    with torch.no_grad():
        for index, network in enumerate(networks):
            layers = [module for module in network if isinstance(module, nn.Linear)]
            for layer, weight, bias in zip(layers, stacked[::2], stacked[1::2]):
                layer.weight.copy_(weight[index].T)
                layer.bias.copy_(bias[index, 0])


def apply_stacked(stacked: list[Tensor], inputs: Tensor) -> Tensor:
    """M networks at once: inputs (M, B, 2) to outputs (M, B, 1)."""
    w1, b1, w2, b2, w3, b3 = stacked
    hidden = nn.functional.silu(torch.baddbmm(b1, inputs, w1))
    hidden = nn.functional.silu(torch.baddbmm(b2, hidden, w2))
    # One output: a weighted sum is faster than a product with a one-column matrix.
    return (hidden * w3.mT).sum(-1, keepdim=True) + b3


def denoiser(network: nn.Sequential, condition: str, schedule: Schedule):
    """The function (x, t) -> noise guess of one trained network; x has shape (B, 1)."""

    def denoise(x: Tensor, t) -> Tensor:
        times = time_input(t, schedule).reshape(-1, 1).expand_as(x)
        if condition == "without time":
            times = torch.zeros_like(x)
        with torch.no_grad():
            return network(torch.cat([x, times], 1))

    return denoise


def _noise_errors(denoise, batch: tuple[Tensor, Tensor, Tensor]) -> list[float]:
    x, t, noise = batch
    exact = target().noise_mean(x, protocol_schedule().alpha_bar(t))
    guesses = (denoise(x, t), exact)
    return [(guess - noise).square().mean().item() for guess in guesses]


def _sample_moments(x: Tensor, fresh: Tensor) -> list[float]:
    return [
        x.mean().item(),
        x.std(correction=0).item(),
        (x > 0).float().mean().item(),
        (x.abs() < 1).float().mean().item(),
        wasserstein_distance(x[:, 0], fresh[:, 0]),
    ]


def blind_noise_mean(x: Tensor) -> Tensor:
    """E[eps | x] when t is unknown and uniform on 1..T, for points x of shape (N, 1).

    The guesses of all levels, each weighted by how probable its level makes this x.
    """
    log_density, guess = _every_level(x)
    return (log_density.softmax(0) * guess).sum(0)[:, None]


def exact_floors(points: int = 6001, reach: float = 12.0) -> tuple[float, float]:
    """Lowest possible noise MSE with and without the time input, by quadrature.

    For any input s the best guess is E[eps | s] and its error 1 - E[E[eps | s]^2],
    since eps has variance 1. With the time, s = (x_t, t); without it, s = x_t with t
    uniform on 1..T. Float64 trapezoid rule with ``points`` nodes on [-reach, reach].
    """
    x = torch.linspace(-reach, reach, points, dtype=torch.float64)
    log_density, guess = _every_level(x[:, None])
    density = log_density.exp()
    with_time = torch.trapezoid(density * guess.square(), x).mean()
    blind = (log_density.softmax(0) * guess).sum(0)
    without_time = torch.trapezoid(density.mean(0) * blind.square(), x)
    return 1 - with_time.item(), 1 - without_time.item()


def _every_level(x: Tensor) -> tuple[Tensor, Tensor]:
    """Log density and best noise guess at each level, shapes (T, N), in float64."""
    schedule = linear_schedule(100, 1e-4, 0.1)
    mixture = GaussianMixture([0.5, 0.5], torch.tensor([-2.0, 2.0]).double(), 0.25)
    levels = schedule.alpha_bar(schedule.timesteps)[:, None]
    grid = x.double().expand(len(schedule), -1, -1)
    guess = mixture.noise_mean(grid, levels)[..., 0]
    return mixture.log_density(grid, levels), guess
