"""One short function for each family of claims, filed by the chapter they belong to."""

from tests.claims.recompute import (
    ablation,
    elbo,
    forward,
    gan,
    gaussian_noise,
    reparameterization,
    reverse,
    sampling,
)

__all__ = [
    "ablation",
    "elbo",
    "forward",
    "gan",
    "gaussian_noise",
    "reparameterization",
    "reverse",
    "sampling",
]
