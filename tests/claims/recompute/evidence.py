"""Claims about probabilities of texts, and estimates of a sum over hidden causes."""

from itertools import product

import torch
from torch import Tensor
from torch.distributions import Normal

from genaudit.discrete import TextLaw, orders, reveal_log_likelihoods
from genaudit.latent import FiniteModel, GaussianModel, multi_sample_bound
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import distributions, seeded, uniform
from tests.claims.recompute.reparameterization import STOPS, average


@recomputes("dlm.majors")
def share_of_the_others(listed):
    return 1 - listed.sum()


@recomputes("dlm.sentences")
def two_sentences(likely, unlikely, words):
    """Odds of the two, and what each word of the first would have on average."""
    return likely / unlikely, likely ** (1 / words)


@recomputes("dlm.nexttoken")
def two_next_tokens(likely, unlikely):
    return likely / unlikely, 1 - likely - unlikely


@recomputes("dlm.law.chain")
def product_of_conditionals(vocabulary, length, seed):
    """Largest error over all texts and all orders in which the tokens may come."""
    shares = distributions(seeded(seed), vocabulary**length)
    law = TextLaw(shares.reshape([vocabulary] * length))
    texts = law.texts
    products = reveal_log_likelihoods(law.denoise, texts, orders(length)).exp()
    return (products - law.log_probability(texts).exp()[:, None]).abs().max()


@recomputes("dlm.law.freq")
def shares_of_a_count(items, draws, seed):
    """The sum of all shares, and the share of an item that was never drawn."""
    drawn = torch.randint(items, (draws,), generator=seeded(seed))
    shares = torch.bincount(drawn, minlength=items + 1).double() / draws
    return shares.sum(), shares[items]


def models(generator: torch.Generator, cases: int, codes: int):
    """Random finite models, each with a q that has mass everywhere."""
    priors, qs = distributions(generator, 2, cases, codes)
    likelihoods = uniform(generator, cases, codes)
    for prior, likelihood, q in zip(priors, likelihoods, qs, strict=True):
        yield FiniteModel(prior, likelihood), q


def weights(model: FiniteModel, q: Tensor) -> Tensor:
    """p(x, z)/q(z) of every code; a code that q never draws has none."""
    return torch.where(q > 0, model.prior * model.likelihood / q, 0)


@recomputes("dlm.law.marginal")
def sum_over_hidden_causes(cases, codes, seed, noise_variance, x):
    errors = [
        (model.log_evidence().exp() - (model.prior * model.likelihood).sum()).abs()
        for model, _ in models(seeded(seed), cases, codes)
    ]
    integral = average(Normal(STOPS, noise_variance.sqrt()).log_prob(x).exp())
    evidence = GaussianModel(noise_variance).log_evidence(x).exp()
    return max(errors), (evidence - integral).abs()


@recomputes("dlm.law.importance")
def expectation_of_the_weight(cases, codes, seed, prior, likelihood, blind_q):
    """Largest error, and what is left for a q that cannot reach one of two codes."""
    errors = [
        ((q * weights(model, q)).sum() - model.log_evidence().exp()).abs()
        for model, q in models(seeded(seed), cases, codes)
    ]
    blind = weights(FiniteModel(prior, likelihood), blind_q)
    return max(errors), (blind_q * blind).sum()


def every_set(q: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """All ways to draw so many codes, one a row, and the probability of each."""
    codes = torch.tensor(list(product(range(len(q)), repeat=samples)))
    return codes, q[codes].prod(1)


@recomputes("dlm.law.unbiased")
def average_estimate(prior, likelihood, q, samples):
    model, errors = FiniteModel(prior, likelihood), []
    for count in samples.int().tolist():
        codes, share = every_set(q, count)
        estimates = weights(model, q)[codes].mean(1)
        errors.append(((share * estimates).sum() - model.log_evidence().exp()).abs())
    return max(errors)


@recomputes("dlm.law.neglogbias")
def average_of_the_negative_log(prior, likelihood, q, samples):
    """For each number of draws, then the number that they overestimate."""
    model = FiniteModel(prior, likelihood)
    logs = weights(model, q).log()
    bounds = [multi_sample_bound(q, logs, count) for count in samples.int().tolist()]
    return *(-bound for bound in bounds), -model.log_evidence()


@recomputes("dlm.dispute.K1")
def family_of_bounds(cases, codes, samples, seed):
    """Distance of the first from the ELBO; most that one falls or passes the last."""
    first, descents = [], []
    for model, q in models(seeded(seed), cases, codes):
        logs = weights(model, q).log()
        counts = samples.int().tolist()
        bounds = [multi_sample_bound(q, logs, count) for count in counts]
        first.append((bounds[0] - model.elbo_terms(q).elbo).abs())
        rising = torch.stack([*bounds, model.log_evidence()])
        descents.append(-rising.diff().min())
    return max(first), max(descents).clamp(min=0)


@recomputes("dlm.law.nelbo-mc")
def average_of_log_weights(
    cases, codes, samples, seed, noise_variance, x, q_mean, q_variance
):
    """Error over every set of draws from finite q; error of a normal q's integral."""
    errors = []
    for model, q in models(seeded(seed), cases, codes):
        sets, share = every_set(q, samples)
        estimates = weights(model, q).log()[sets].mean(1)
        errors.append(((share * estimates).sum() - model.elbo_terms(q).elbo).abs())
    normal, cloud = GaussianModel(noise_variance), (x, q_mean, q_variance)
    integral = average(normal.log_weights(*cloud, STOPS))
    return max(errors), (normal.elbo_terms(*cloud).elbo - integral).abs()


@recomputes("dlm.law.jensen")
def mean_of_logs(cases, outcomes, seed):
    """Most that it exceeds the log of the mean; their distance if nothing varies."""
    generator = seeded(seed)
    shares = distributions(generator, cases, outcomes)
    values = uniform(generator, cases, outcomes)

    def gap(values):
        return (shares * values).sum(1).log() - (shares * values.log()).sum(1)

    constant = values[:, :1].expand_as(values)
    return (-gap(values)).max().clamp(min=0), gap(constant).abs().max()


@recomputes("dlm.law.nelbo")
def negative_bounds_of_a_grid(prior, likelihood, stops):
    """Most that one is below -log p, the distance of the lowest, and its share of A."""
    model = FiniteModel(prior, likelihood)
    share_of_a = torch.linspace(0, 1, stops, dtype=torch.float64)
    terms = model.elbo_terms(torch.stack([share_of_a, 1 - share_of_a], -1))
    excess = model.log_evidence() - terms.elbo
    return (-excess).max().clamp(min=0), excess.min(), share_of_a[excess.argmin()]


@recomputes("r.elbo.mc-exceeds")
def estimates_from_one_draw(prior, likelihood, q):
    """From code A, from code B, on average; and the log evidence."""
    model = FiniteModel(prior, likelihood)
    logs = weights(model, q).log()
    return *logs, model.elbo_terms(q).elbo, model.log_evidence()
