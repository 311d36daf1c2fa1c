"""One short function for each family of claims, filed by the chapter they belong to."""

from tests.claims.recompute import (
    ablation,
    autoencoder,
    ddim,
    denoiser,
    discrete_diffusion,
    elbo,
    evidence,
    forward,
    gan,
    gaussian_noise,
    guidance,
    reparameterization,
    reverse,
    sampling,
    score,
    vae,
)

__all__ = [
    "ablation",
    "autoencoder",
    "ddim",
    "denoiser",
    "discrete_diffusion",
    "elbo",
    "evidence",
    "forward",
    "gan",
    "gaussian_noise",
    "guidance",
    "reparameterization",
    "reverse",
    "sampling",
    "score",
    "vae",
]
