"""Claims about guidance: two conventions, what it tilts, and what it samples."""

from functools import partial

import torch
from scipy.integrate import quad
from torch import Tensor

from genaudit.mixture import GaussianMixture
from genaudit.process import (
    ddpm_step,
    guided_noise,
    scale_from_extra,
    score_from_noise,
)
from genaudit.sampler import ddim_sample
from genaudit.schedule import Schedule, linear_schedule
from tests.claims.ledger import cited_year, numbers_after, printed, recomputes
from tests.claims.recompute.cases import seeded, uniform
from tests.claims.recompute.denoiser import mixtures


@recomputes("cfg.w3", "cfg.pp")
def guided(unconditional, conditional, scale):
    return guided_noise(unconditional, conditional, scale)


@recomputes("cfg.diff")
def difference(unconditional, conditional):
    return conditional - unconditional


@recomputes("cfg.fact")
def year_of_classifier_free_guidance():
    return cited_year("ho2022")


@recomputes("cfg.law.conventions")
def extra_weight_and_scale(cases, seed):
    """Error of the translation; of plain conditional at extra 0; of neither at -1."""
    u, c, w = 4 * uniform(seeded(seed), 3, cases) - 2
    published = (1 + w) * c - w * u
    return (
        (guided_noise(u, c, scale_from_extra(w)) - published).abs().max(),
        (guided_noise(u, c, scale_from_extra(0)) - c).abs().max(),
        (guided_noise(u, c, scale_from_extra(-1)) - u).abs().max(),
    )


@recomputes("str.law.cfg0")
def no_extra_weight(cases, seed):
    u, c = 4 * uniform(seeded(seed), 2, cases) - 2
    return (guided_noise(u, c, scale_from_extra(0)) - c).abs().max()


def petals_at(scale: int) -> list[float]:
    """Share on the class, its parts that are hit, shares on its inner and outer ring.

    The chapter prints the petals first, then a blank line, then the other class.
    """
    table, *_ = printed("guidance", "sweep-audit").split("\n\n")
    assert table.startswith("petals, scale")
    return numbers_after(f"{scale}", table)


@recomputes("cfg.toy.w*")
def guided_to_the_petals(scale):
    return tuple(petals_at(scale))


@recomputes("cfg.pp.lamps")
def rings_at_two_scales(before, after):
    return *petals_at(before)[2:], *petals_at(after)[2:]


@recomputes("cfg.law.bayes")
def evidence_for_the_class(cases, seed, scale):
    """The class is the first two bells of three; gradients are autograd's."""
    plain, tilted = [], []
    for mixture, level, x in mixtures(cases, seed):
        shares = mixture.weights[:2] / mixture.weights[:2].sum()
        members = GaussianMixture(shares, mixture.means[:2], mixture.variance[0])
        x = x.requires_grad_()
        log_class = mixture.responsibilities(x, level)[..., :2].sum(-1).log()
        tilt = mixture.log_density(x, level) + scale * log_class
        [of_class] = torch.autograd.grad(log_class.sum(), x, retain_graph=True)
        [of_tilt] = torch.autograd.grad(tilt.sum(), x)
        x = x.detach()
        noise = [model.noise_mean(x, level) for model in (mixture, members)]
        difference = members.score(x, level) - mixture.score(x, level)
        guided_score = score_from_noise(level, guided_noise(*noise, scale))
        plain.append((difference - of_class).abs().max())
        tilted.append((guided_score - of_tilt).abs().max())
    return max(plain), max(tilted)


def bell(variance: Tensor) -> GaussianMixture:
    """N(0, variance) on the line."""
    one = torch.ones(1, dtype=variance.dtype)
    return GaussianMixture(one, torch.zeros_like(one), variance)


def guided_guess(schedule: Schedule, variance, class_variance, scale):
    """Exact guess of the noise for N(0, variance), guided to N(0, class_variance)."""
    models = bell(variance), bell(class_variance)

    def predict_noise(x: Tensor, t: int) -> Tensor:
        level = schedule.alpha_bar(t)
        return guided_noise(*(model.noise_mean(x, level) for model in models), scale)

    return predict_noise


def tilted_variance(variance, class_variance, scale) -> Tensor:
    """Of the density in proportion to p(x) p(c|x)^scale, by an integral."""
    x = torch.linspace(-12, 12, 4801, dtype=torch.float64)[:, None]
    log_p, log_class = (
        bell(variance).log_density(x),
        bell(class_variance).log_density(x),
    )
    mass = (log_p + scale * (log_class - log_p)).softmax(0)
    return mass @ x[:, 0] ** 2


@recomputes("cfg.dispute.tilt")
def deterministic_guidance(steps, first, last, variance, class_variance, scale):
    """Variance of the chain, of its limit of small steps, of the tilted density."""
    schedule = linear_schedule(steps, first, last)
    guess = guided_guess(schedule, variance, class_variance, scale)
    kept = ddim_sample(guess, schedule, torch.ones(1, dtype=torch.float64))
    limit = class_variance**scale * variance ** (1 - scale)
    return kept**2, limit, tilted_variance(variance, class_variance, scale)


@recomputes("cfg.law.agree")
def small_steps_against_tilt(variance, class_variance, scales):
    """Variances in the limit of small deterministic steps, then the tilted ones."""
    limits = class_variance**scales * variance ** (1 - scales)
    tilted = partial(tilted_variance, variance, class_variance)
    return *limits, *map(tilted, scales)


@recomputes("cfg.dispute.tilt-ancestral")
def stochastic_guidance(steps, first, last, class_variance, scale):
    """Variance with beta; of the tilted density; with beta-tilde; for small steps.

    The start and every fresh noise have a coordinate of their own. For small steps the
    variance V grows with a = alpha-bar by dV/d(log a) = V (2 r - 1) + 1, where r is
    scale (1 - 1/(1 - c a)) and c = 1 - class_variance.
    """
    schedule = linear_schedule(steps, first, last)
    one = torch.ones_like(class_variance)
    predict_noise = guided_guess(schedule, one, class_variance, scale)
    source = torch.eye(steps + 1, dtype=torch.float64)[..., None]

    def final_variance(rule: str) -> Tensor:
        x = source[0]
        for t in range(steps, 0, -1):
            x = ddpm_step(schedule, x, t, predict_noise(x, t), source[t], rule)
        return x.square().sum()

    c, w = 1 - class_variance.item(), scale.item()
    grown, _ = quad(lambda a: (1 - c * a) ** (-2 * w), 0, 1, epsabs=0, epsrel=1e-13)
    return (
        final_variance("beta"),
        tilted_variance(one, class_variance, scale),
        final_variance("beta_tilde"),
        (1 - c) ** (2 * w) * grown,
    )
