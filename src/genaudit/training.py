"""Training loops with a progress bar: one loss, or two players in turn.

Bad input raises a ValueError that names the argument, its value and the rule.
"""

import sys
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from tqdm import tqdm

from genaudit import _check


def progress(iterable: Iterable, description: str | None) -> Iterable:
    """Wrap an iterable in a progress bar on stderr; no bar without a description."""
    if description is None:
        return iterable
    return tqdm(iterable, desc=description, file=sys.stderr, mininterval=0.5)


def fit(
    loss: Callable[[], Tensor],
    parameters: Iterable[Tensor],
    updates: int,
    learning_rate: float,
    description: str | None = None,
    decay: float = 0.0,
) -> None:
    """Minimise ``loss()`` over ``parameters`` in place with Adam.

    ``loss`` draws its own batch on every call and returns a scalar tensor. ``updates``
    is 1 or more, ``learning_rate`` > 0. Over the last ``decay`` of the updates, a share
    in [0, 1], the rate falls in a straight line to 0. Otherwise ValueError.
    """
    _check.whole("updates", updates, 1)
    _check.positive("learning_rate", learning_rate)
    if not 0 <= decay <= 1:
        raise ValueError(f"decay = {decay}: it must lie in [0, 1]")
    optimizer = torch.optim.Adam(parameters, lr=learning_rate, fused=True)
    for update in progress(range(updates), description):
        left = updates - update
        if left < decay * updates:
            optimizer.param_groups[0]["lr"] = learning_rate * left / (decay * updates)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def mlp(*widths: int, activation: type[nn.Module] = nn.SiLU) -> nn.Sequential:
    """A multilayer perceptron with the given layer widths; the last layer is linear."""
    layers: list[nn.Module] = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


def train_gan(
    make_real: Callable[[], Tensor],
    make_latent: Callable[[], Tensor],
    generator: nn.Module,
    discriminator: nn.Module,
    updates: int,
    learning_rates: tuple[float, float],
    observe: Callable[[int], None] = lambda update: None,
    description: str | None = None,
) -> None:
    """Alternate discriminator and generator updates (Goodfellow and others, 2014).

    Args:
        make_real: returns a fresh batch of data, shape (B, D).
        make_latent: returns a fresh batch of generator inputs, shape (B, d).
        generator: maps (B, d) to (B, D), trained with the non-saturating loss.
        discriminator: maps (B, D) to logits (B, 1); D = sigmoid(logit).
        learning_rates: Adam's, for the generator and the discriminator.
        observe: called with the number of finished updates, 0 included.

    While one player moves the other is frozen: its parameters get no step.
    """
    _check.whole("updates", updates, 1)
    players = (generator, discriminator)
    adam_g, adam_d = (
        torch.optim.Adam(player.parameters(), lr=rate, betas=(0.5, 0.999), fused=True)
        for player, rate in zip(players, learning_rates, strict=True)
    )
    observe(0)
    for update in progress(range(1, updates + 1), description):
        with torch.no_grad():
            fake = generator(make_latent())
        real_logit, fake_logit = discriminator(make_real()), discriminator(fake)
        _descend(adam_d, discriminator_loss(real_logit, fake_logit))
        _descend(adam_g, nonsaturating_loss(discriminator(generator(make_latent()))))
        observe(update)


def discriminator_loss(real_logit: Tensor, fake_logit: Tensor) -> Tensor:
    """Negative value of the game, -E log D(real) - E log(1 - D(fake)), from logits.

    Finite where log(1 - sigmoid(logit)) would round to -inf.
    """
    log_real, log_fake = map(nn.functional.logsigmoid, (real_logit, -fake_logit))
    return -log_real.mean() - log_fake.mean()


def minimax_loss(fake_logit: Tensor) -> Tensor:
    """The generator's part of the game, E log(1 - D(fake)), from logits."""
    return nn.functional.logsigmoid(-fake_logit).mean()


def nonsaturating_loss(fake_logit: Tensor) -> Tensor:
    """The loss that generators are trained with, -E log D(fake), from logits."""
    return -nn.functional.logsigmoid(fake_logit).mean()


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
