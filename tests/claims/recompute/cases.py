"""Random cases on which the laws are tried."""

import torch
from torch import Tensor

from genaudit.schedule import Schedule


def seeded(seed: int) -> torch.Generator:
    """A generator of its own, so that no law disturbs another."""
    return torch.Generator().manual_seed(seed)


def uniform(generator: torch.Generator, *shape: int) -> Tensor:
    """Float64 numbers between 0 and 1."""
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def distributions(generator: torch.Generator, *shape: int) -> Tensor:
    """Probabilities over the last axis."""
    mass = uniform(generator, *shape)
    return mass / mass.sum(-1, keepdim=True)


def schedules(generator: torch.Generator, count: int, steps: int) -> list[Schedule]:
    """Schedules with betas anywhere between 0.01 and 0.61."""
    return [Schedule(0.01 + 0.6 * one) for one in uniform(generator, count, steps)]
