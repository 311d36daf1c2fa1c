"""One short function for each family of claims, filed by the chapter they belong to."""

from tests.claims.recompute import (
    ablation,
    autoencoder,
    discrete_diffusion,
    elbo,
    evidence,
    forward,
    gan,
    gaussian_noise,
    reparameterization,
    reverse,
    sampling,
    vae,
)

__all__ = [
    "ablation",
    "autoencoder",
    "discrete_diffusion",
    "elbo",
    "evidence",
    "forward",
    "gan",
    "gaussian_noise",
    "reparameterization",
    "reverse",
    "sampling",
    "vae",
]
