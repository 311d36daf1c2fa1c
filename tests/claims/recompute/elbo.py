"""Claims about the evidence and its lower bound."""

import torch
from scipy.optimize import minimize_scalar

from genaudit.latent import FiniteModel, GaussianModel
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import distributions, seeded, uniform


def two_codes(share_of_a):
    """Distributions over the codes A and B, from the share of A."""
    return torch.stack([share_of_a, 1 - share_of_a], -1)


@recomputes("vae.rebuild-weight", "vae.s2")
def gaussian_decoder(s):
    return {"rebuild-weight": 1 / (2 * s**2), "s2": s**2}


@recomputes("elbo2.px", "elbo2.logpx", "elbo2.try08.evidence")
def finite_evidence(prior, likelihood):
    log_evidence = FiniteModel(prior, likelihood).log_evidence()
    return {
        "px": log_evidence.exp(),
        "logpx": log_evidence,
        "evidence": log_evidence,
    }


@recomputes("elbo2.postA", "elbo2.postB", "elbo2.ratio3")
def finite_posterior(prior, likelihood):
    a, b = FiniteModel(prior, likelihood).posterior()
    return {"postA": a, "postB": b, "ratio3": a / b}


@recomputes("elbo2.joint")
def joint_mass(prior, likelihood):
    return prior[0] * likelihood[0]


@recomputes("elbo2.q*")
def finite_terms(prior, likelihood, q):
    terms = FiniteModel(prior, likelihood).elbo_terms(q)
    return {
        "rec": terms.reconstruction,
        "kl": terms.kl,
        "elbo": terms.elbo,
        "gap": terms.gap,
        "sum": terms.elbo + terms.gap,
    }


@recomputes("elbo2.pp.q10")
def all_terms_at_once(prior, likelihood, q):
    terms = FiniteModel(prior, likelihood).elbo_terms(q)
    return terms.reconstruction, terms.kl, terms.elbo, terms.gap


@recomputes("elbo2.try08.bestq")
def searched_q(prior, likelihood):
    model = FiniteModel(prior, likelihood)

    def negative_elbo(share_of_a: float) -> float:
        q = two_codes(torch.tensor(share_of_a, dtype=torch.float64))
        return -model.elbo_terms(q).elbo.item()

    best = minimize_scalar(
        negative_elbo, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}
    )
    return best.x


@recomputes("elbo2.pp.08")
def better_decoder(prior, likelihood):
    model = FiniteModel(prior, likelihood)
    return model.posterior()[0], model.log_evidence()


@recomputes("elbo2.pp.gap")
def elbo_and_gap(reconstruction, kl, log_evidence):
    elbo = reconstruction - kl
    return elbo, log_evidence - elbo


@recomputes("elbo.law.identity", "r.elbo.identity")
def finite_identity(cases, codes, seed):
    """Largest error of the identity, and the most negative gap, over random models."""
    generator = seeded(seed)
    prior, q = distributions(generator, 2, cases, codes)
    likelihood = uniform(generator, cases, codes)
    errors, gaps = [], []
    for one_prior, one_likelihood, one_q in zip(prior, likelihood, q, strict=True):
        model = FiniteModel(one_prior, one_likelihood)
        terms = model.elbo_terms(one_q)
        errors.append((terms.elbo + terms.gap - model.log_evidence()).abs())
        gaps.append(terms.gap)
    return max(errors), max(0, -min(gaps))


@recomputes("elbo.law.max", "r.elbo.loss-sign")
def best_of_a_grid(prior, likelihood, stops):
    model = FiniteModel(prior, likelihood)
    share_of_a = torch.linspace(0, 1, stops, dtype=torch.float64)
    elbo = model.elbo_terms(two_codes(share_of_a)).elbo
    touches = (model.log_evidence() - elbo.max()).abs()
    return {
        "max": (share_of_a[elbo.argmax()], touches),
        "loss-sign": share_of_a[(-elbo).argmin()],
    }


@recomputes("elbo.law.bestrec-not-best")
def two_winners(prior, likelihood, q_of_a):
    terms = FiniteModel(prior, likelihood).elbo_terms(two_codes(q_of_a))
    return q_of_a[terms.reconstruction.argmax()], q_of_a[terms.elbo.argmax()]


@recomputes("elbo.law.gaussdec")
def decoder_is_squared_error(cases, pixels, seed):
    """Relative, since the log-likelihoods run into the thousands."""
    generator = seeded(seed)
    x, decoded = uniform(generator, 2, cases, pixels)
    s = 0.1 + uniform(generator, cases)
    normal = torch.distributions.Normal(decoded, s[:, None])
    log_likelihood = normal.log_prob(x).sum(1)
    constant = -pixels / 2 * (2 * torch.pi * s**2).log()
    formula = constant - (x - decoded).square().sum(1) / (2 * s**2)
    return ((formula - log_likelihood) / log_likelihood).abs().max()


@recomputes("r.elbo.gapzero")
def gap_here_and_there(prior, likelihood, q_of_a):
    return tuple(FiniteModel(prior, likelihood).elbo_terms(two_codes(q_of_a)).gap.abs())


@recomputes("r.elbo.encoderonly")
def encoder_alone(prior, likelihood, q_of_a):
    model = FiniteModel(prior, likelihood)
    before, after = model.elbo_terms(two_codes(q_of_a)).elbo
    return before, after, model.log_evidence()


@recomputes("gvae.pmean", "gvae.pvar", "gvae.pmean6")
def gaussian_posterior(noise_variance, x):
    mean, variance = GaussianModel(noise_variance).posterior(x)
    return {"pmean": mean, "pvar": variance, "pmean6": (mean, variance)}


@recomputes("gvae.logev")
def gaussian_evidence(noise_variance, x):
    return GaussianModel(noise_variance).log_evidence(x)


@recomputes("gvae.elbo.exact")
def gaussian_elbo_at_the_posterior(noise_variance, x):
    model = GaussianModel(noise_variance)
    return model.elbo_terms(x, *model.posterior(x)).elbo


@recomputes("gvae.elbo.mis", "gvae.diff", "gvae.gap", "gvae.almost1")
def gaussian_mismatch(noise_variance, x, q_mean, q_variance):
    model = GaussianModel(noise_variance)
    terms = model.elbo_terms(x, q_mean, q_variance)
    return {
        "mis": terms.elbo,
        "diff": model.log_evidence(x) - terms.elbo,
        "gap": terms.gap,
        "almost1": terms.gap,
    }


@recomputes("gvae.evvar")
def marginal_variance(prior_variance, noise_variance):
    return prior_variance + noise_variance


@recomputes("gvae.law.gap")
def gaussian_identity(noise_variance, x, cases, seed):
    mean, variance = uniform(seeded(seed), 2, cases)
    model = GaussianModel(noise_variance)
    terms = model.elbo_terms(x, 4 * mean - 2, variance + 0.1)
    return (model.log_evidence(x) - terms.elbo - terms.gap).abs().max()
