"""What the tests draw from, and the one setting that property tests share."""

import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st

from genaudit.mixture import GaussianMixture
from genaudit.schedule import Schedule

# A failure is shrunk but not explained: explaining one takes longer than all the rest.
settings.register_profile(
    "laws",
    derandomize=True,
    deadline=None,
    max_examples=50,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.load_profile("laws")


def exact(values) -> torch.Tensor:
    """The values in float64, whatever the default dtype is."""
    return torch.tensor(values, dtype=torch.float64)


def seeded(seed: int = 0) -> torch.Generator:
    """A generator of its own, so that no test disturbs another."""
    return torch.Generator().manual_seed(seed)


def numbers(low: float, high: float):
    """Finite floats in [low, high]."""
    return st.floats(low, high, allow_subnormal=False)


def vectors(size: int, low: float = -5, high: float = 5):
    """Float64 tensors of shape (size,)."""
    return st.lists(numbers(low, high), min_size=size, max_size=size).map(exact)


levels = numbers(0.01, 0.99)
variances = numbers(0.05, 5)


@st.composite
def distributions(draw, count: int = 1, zeros: bool = False):
    """``count`` distributions over the same 2 to 6 outcomes, each of shape (K,)."""
    outcomes = draw(st.integers(2, 6))
    mass = numbers(0.01, 1) | st.just(0.0) if zeros else numbers(0.01, 1)
    masses = st.lists(mass, min_size=outcomes, max_size=outcomes)
    drawn = [exact(draw(masses.filter(any))) for _ in range(count)]
    return [each / each.sum() for each in drawn]


@st.composite
def schedules(draw, shortest: int = 1, longest: int = 10):
    """Float64 schedules with any betas in [0.001, 0.6]."""
    beta = st.lists(numbers(0.001, 0.6), min_size=shortest, max_size=longest)
    return Schedule(exact(draw(beta)))


@st.composite
def mixtures(draw, dimension: int = 1):
    """Float64 mixtures of one to three Gaussians with means in [-3, 3]."""
    count = draw(st.integers(1, 3))
    weights = draw(vectors(count, 0.1, 1))
    means = draw(vectors(count * dimension, -3, 3)).reshape(count, dimension)
    return GaussianMixture(
        weights / weights.sum(), means, draw(vectors(count, 0.05, 2))
    )
