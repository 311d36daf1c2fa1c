"""Claims about the two-player game and the divergence it measures."""

import torch

from genaudit.divergence import (
    gan_optimal_value,
    gan_value,
    jsd_finite,
    optimal_discriminator,
)
from genaudit.training import minimax_loss, nonsaturating_loss
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import distributions, seeded


@recomputes("gan.covered.*", "gan.collapsed.*")
def three_modes(data, generator):
    best = optimal_discriminator(data, generator)
    return {
        "jsd": jsd_finite(data, generator),
        "value": gan_value(data, generator, best),
        "identity": gan_optimal_value(data, generator),
        "dstar": tuple(best),
    }


@recomputes("gan.err")
def identity_errors(data, covered, collapsed):
    return tuple(
        (
            gan_value(data, other, optimal_discriminator(data, other))
            - gan_optimal_value(data, other)
        ).abs()
        for other in (covered, collapsed)
    )


@recomputes("gan.sat.*.D")
def belief(logit):
    return 1 / (1 + torch.exp(-logit))


@recomputes("gan.sat.*.mm", "gan.sat.*.ns")
def slopes(logit):
    logit = logit.requires_grad_()
    losses = {"mm": minimax_loss(logit), "ns": nonsaturating_loss(logit)}
    return {
        name: torch.autograd.grad(loss, logit)[0].abs() for name, loss in losses.items()
    }


@recomputes("gan.law.value")
def value_identity(cases, outcomes, seed):
    p, q = distributions(seeded(seed), 2, cases, outcomes)
    top = gan_value(p, q, optimal_discriminator(p, q))
    return (top - gan_optimal_value(p, q)).abs().max()


@recomputes("gan.law.dstar")
def gain_from_moving_away(cases, outcomes, seed):
    """The most that any moved discriminator gains over the best one: nothing."""
    generator = seeded(seed)
    p, q = distributions(generator, 2, cases, outcomes)
    best = optimal_discriminator(p, q)
    moves = 0.1 * torch.randn(best.shape, generator=generator, dtype=torch.float64)
    moved = (best + moves).clamp(1e-3, 1 - 1e-3)
    gain = gan_value(p, q, moved) - gan_value(p, q, best)
    return gain.max().clamp(min=0)


@recomputes("gan.law.min")
def game_among_equals(data):
    best = optimal_discriminator(data, data)
    return gan_value(data, data, best), best.min(), best.max()


@recomputes("gan.law.grads")
def slopes_against_beliefs(low, high, cases):
    logits = torch.linspace(low, high, cases, dtype=torch.float64).requires_grad_()
    belief = logits.sigmoid().detach()
    # The losses are means over the samples.
    for_minimax, for_other = (
        torch.autograd.grad(cases * loss(logits), logits)[0].abs()
        for loss in (minimax_loss, nonsaturating_loss)
    )
    return (for_minimax - belief).abs().max(), (for_other - 1 + belief).abs().max()
