"""Claims about the way back: the reverse step, its variance, Langevin steps."""

import torch

from genaudit.mixture import GaussianMixture
from genaudit.process import clean_from_noise, ddpm_mean, ddpm_step, langevin_step
from genaudit.schedule import Schedule, linear_schedule
from tests.claims.ledger import recomputes
from tests.claims.recompute.cases import schedules, seeded, uniform


def equal_steps(beta, alpha_bar):
    """A schedule of equal betas that has the given alpha-bar at its last step."""
    steps = round((alpha_bar.log() / (1 - beta).log()).item())
    return Schedule(beta.expand(steps))


@recomputes("rev.alpha", "rev.sigma")
def step_coefficients(beta):
    schedule = Schedule(beta[None])
    return {"alpha": schedule.alpha(1), "sigma": schedule.beta(1).sqrt()}


@recomputes("rev.1-abar")
def noise_share(alpha_bar):
    return 1 - alpha_bar


@recomputes("rev.mean")
def reverse_mean(beta, alpha_bar, x, noise_guess):
    schedule = equal_steps(beta, alpha_bar)
    return ddpm_mean(schedule, x, len(schedule), noise_guess)


@recomputes("rev.x", "rev.pp.z+")
def reverse_step(beta, alpha_bar, x, noise_guess, z):
    schedule = equal_steps(beta, alpha_bar)
    return ddpm_step(schedule, x, len(schedule), noise_guess, z, "beta")


@recomputes("rev.law.meanform", "rev4.law.meanform")
def noise_form(cases, steps, seed):
    generator, errors = seeded(seed), []
    for schedule in schedules(generator, cases, steps):
        x, guess = uniform(generator, 2, 1)
        clean = clean_from_noise(x, schedule.alpha_bar(steps), guess)
        weight_x0, weight_xt, _ = schedule.posterior(steps)
        inserted = weight_x0 * clean + weight_xt * x
        errors.append((ddpm_mean(schedule, x, steps, guess) - inserted).abs())
    return max(errors)


def precision_weighted(before, beta):
    """Prior N(sqrt(before) x0, 1 - before), seen through one step of noise beta."""
    precision = 1 / (1 - before) + (1 - beta) / beta
    weight_x0 = before.sqrt() / (1 - before) / precision
    return weight_x0, (1 - beta).sqrt() / beta / precision, 1 / precision


@recomputes("rev.law.posterior")
def posterior_by_precisions(cases, steps, seed):
    errors = []
    for schedule in schedules(seeded(seed), cases, steps):
        brute = precision_weighted(schedule.alpha_bar(steps - 1), schedule.beta(steps))
        pairs = zip(schedule.posterior(steps), brute, strict=True)
        errors += [(ours - theirs).abs() for ours, theirs in pairs]
    return max(errors)


@recomputes("rev4.law.coeffs")
def every_posterior_by_precisions(steps, first, last):
    """From t = 2 on; at t = 1 the precision of the clean point is infinite."""
    schedule = linear_schedule(steps, first, last)
    t = schedule.timesteps[1:]
    brute = precision_weighted(schedule.alpha_bar(t - 1), schedule.beta(t))
    pairs = zip(schedule.posterior(t), brute, strict=True)
    return max((ours - theirs).abs().max() for ours, theirs in pairs)


@recomputes("rev.law.scoreform")
def step_along_the_score(cases, steps, seed):
    generator, errors = seeded(seed), []
    for schedule in schedules(generator, cases, steps):
        x, score = uniform(generator, 2, 1)
        beta, alpha = schedule.beta(steps), schedule.alpha(steps)
        mean = ddpm_mean(schedule, x, steps, -schedule.noise(steps) * score)
        errors.append((mean - (x + beta * score) / alpha.sqrt()).abs())
    return max(errors)


@recomputes("recap.pp.gd")
def step_up_the_log_density(steps, first, last, weights, means, variance, t):
    """The exact denoiser's step against autograd's gradient of the log density."""
    schedule = linear_schedule(steps, first, last)
    mixture = GaussianMixture(weights, means, variance)
    level, beta, alpha = schedule.alpha_bar(t), schedule.beta(t), schedule.alpha(t)
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)[:, None].requires_grad_()
    log_density = mixture.log_density(x, level)
    [uphill] = torch.autograd.grad(log_density.sum(), x)
    x = x.detach()
    mean = ddpm_mean(schedule, x, t, mixture.noise_mean(x, level))
    return (mean - (x + beta * uphill) / alpha.sqrt()).abs().max()


@recomputes("rev.law.collapse-gauss")
def final_variances(steps, first, last):
    """Each source of x_0, the start and every fresh noise, has its own coordinate."""
    schedule = linear_schedule(steps, first, last)
    source = torch.eye(steps + 1, dtype=torch.float64)

    def final_variance(rule: str):
        x = source[0]
        for t in range(steps, 0, -1):
            # For N(0, 1) data the best guess of the noise is linear in x_t.
            x = ddpm_step(schedule, x, t, schedule.noise(t) * x, source[t], rule)
        return x.square().sum()

    return tuple(final_variance(rule) for rule in ("none", "beta", "beta_tilde"))


@recomputes("rev.law.sigma-choices")
def smaller_variance(steps, first, last, t):
    schedule = linear_schedule(steps, first, last)
    beta = schedule.beta(schedule.timesteps)
    excess = schedule.beta_tilde(schedule.timesteps) - beta
    return (
        schedule.beta_tilde(t) / schedule.beta(t),
        schedule.beta_tilde(1),
        excess.max().clamp(min=0),
    )


@recomputes("rev.ambig.laststep")
def noise_in_the_last_step(beta):
    """What a loop without an exception would add, and what the step here adds."""
    schedule, zero, one = Schedule(beta[None]), torch.zeros(1), torch.ones(1)
    return schedule.beta(1).sqrt(), ddpm_step(schedule, zero, 1, zero, one, "beta")


@recomputes("rev4.t*.*")
def posterior_coefficients(steps, first, last, t):
    weight_x0, weight_xt, variance = linear_schedule(steps, first, last).posterior(t)
    return {
        "cx0": weight_x0,
        "cxt": weight_xt,
        "var": variance,
        "noise": variance.sqrt(),
    }


@recomputes("lang.x3", "lang.pp")
def langevin_on_the_normal_law(x, step_size, z):
    return langevin_step(x, -x, step_size, z)


def langevin_coefficients(step_size):
    """On N(0, 1) the step is a x + b z: return a and b."""
    zero, one = torch.zeros_like(step_size), torch.ones_like(step_size)
    return (
        langevin_step(one, -one, step_size, zero),
        langevin_step(zero, zero, step_size, one),
    )


@recomputes("lang.law.fixed")
def stationary_variance(cases, seed, step_size):
    sizes = 0.01 + 1.9 * uniform(seeded(seed), cases)
    keep, add = langevin_coefficients(sizes)
    fixed = 2 / (2 - sizes)
    residual = (keep**2 * fixed + add**2 - fixed).abs().max()
    keep, add = langevin_coefficients(step_size)
    return residual, add**2 / (1 - keep**2)


@recomputes("lang.law.collapse")
def shrinkage_without_noise(cases, seed):
    sizes = 0.01 + 1.9 * uniform(seeded(seed), cases)
    keep, _ = langevin_coefficients(sizes)
    return (keep**2 - (1 - sizes) ** 2).abs().max()


@recomputes("lang.law.gd")
def drift_is_descent(cases, seed):
    """A noise-free step against gradient descent on x^2 / 2 by autograd."""
    size, x = uniform(seeded(seed), 2, cases)
    x = (6 * x - 3).requires_grad_()
    [slope] = torch.autograd.grad((x**2 / 2).sum(), x)
    normal = GaussianMixture([1.0], [0.0], 1.0)
    x = x.detach()
    drift = langevin_step(x, normal.score(x[:, None])[:, 0], size, torch.zeros_like(x))
    return (drift - (x - size * slope)).abs().max()
