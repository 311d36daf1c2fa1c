"""A small variational autoencoder for pictures, and the terms of its loss."""

import torch
from torch import Tensor, nn

from genaudit import _check
from genaudit.divergence import kl_gaussian
from genaudit.training import fit, mlp

HIDDEN = 64
"""Units of the one hidden layer of encoder and decoder."""

BATCH = 128
"""Pictures in each update of ``train_vae``."""

LEARNING_RATE = 0.002
"""Adam's, in ``train_vae``."""


class Vae(nn.Module):
    """Encoder and decoder of one hidden layer each, and a fixed decoder variance.

    The prior of the code is N(0, I), the decoder's law N(decode(z), noise_variance I).

    Args:
        pixels: numbers in a picture.
        codes: numbers in a code.
        noise_variance: variance of each pixel around the decoder's output, > 0, else
            ValueError.
    """

    def __init__(self, pixels: int, codes: int, noise_variance: float = 0.0625):
        super().__init__()
        _check.positive("noise_variance", noise_variance)
        self.encoder = mlp(pixels, HIDDEN, 2 * codes)
        self.decode = mlp(codes, HIDDEN, pixels)
        self.noise_variance = noise_variance

    def encode(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(z | x), each (B, codes), for pictures (B, pixels)."""
        mean, log_variance = self.encoder(pictures).chunk(2, 1)
        return mean, log_variance.exp()

    def loss_terms(self, pictures: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The two parts of the negative ELBO, in nats (Kingma and Welling, 2014).

        Args:
            pictures: shape (B, pixels).
            noise: one standard normal draw for each code entry, shape (B, codes).

        Returns:
            The squared error over twice the noise variance, summed over pixels, (B,),
            which is -log p(x | z) without its constant pixels/2 log(2 pi
            noise_variance); and KL(q(z | x) || N(0, 1)) of each code entry, (B, codes).
            ValueError for noise of another shape.
        """
        mean, variance = self.encode(pictures)
        # Noise that broadcast would move all entries of a code together.
        _check.same_shape("noise", noise, "the code", mean)
        rebuilt = self.decode(mean + variance.sqrt() * noise)
        error = (rebuilt - pictures).square().sum(1) / (2 * self.noise_variance)
        return error, kl_gaussian(mean, variance)


def train_vae(
    pictures: Tensor,
    beta: float,
    seed: int = 6050,
    codes: int = 2,
    updates: int = 3000,
    description: str | None = None,
) -> Vae:
    """Train a Vae on pictures, shape (N, pixels), with weight ``beta`` on the KL.

    Sum over pixels and code entries, mean over the batch. ``beta`` >= 0; 1 is the ELBO.
    The seed fixes the first weights, the batches and the noise. ValueError for bad
    arguments; a description shows a progress bar.
    """
    _check.nonnegative("beta", beta)
    _check.whole("codes", codes, 1)
    pictures = _check.points("pictures", pictures)
    with torch.random.fork_rng(devices=[]):  # the caller's global generator stays put
        torch.manual_seed(seed)
        vae = Vae(pictures.shape[1], codes).to(pictures.dtype)
    stream = torch.Generator().manual_seed(seed + 1)

    def loss() -> Tensor:
        rows = torch.randint(len(pictures), (BATCH,), generator=stream)
        noise = torch.randn(BATCH, codes, generator=stream, dtype=pictures.dtype)
        error, kl = vae.loss_terms(pictures[rows], noise)
        return (error + beta * kl.sum(1)).mean()

    fit(loss, vae.parameters(), updates, LEARNING_RATE, description)
    return vae.requires_grad_(False)
