"""Visible checks of the exercise on the forward jump in a batch."""

import torch

from genaudit.exercises._say import visible

BETA = torch.tensor([0.05, 0.3, 0.1, 0.2, 0.15, 0.25], dtype=torch.float64)
TIMES = torch.tensor([3, 1, 6, 4])


@visible
def levels(answer):
    """levels(beta) -> shape (T + 1,)."""
    level = answer(BETA)
    yield level.shape == (7,), "one entry for t = 0 and one for each of the T steps."
    yield level[0] == 1, "before the first step nothing is lost."
    yield (level.diff() < 0).all() and level[-1] > 0, "they fall and stay positive."
    kept = 1 - level[1:] / level[:-1]
    yield _near(kept, BETA), "step t takes the share beta_t of what was left."


@visible
def jump(answer):
    """jump(beta, t, x0, noise) -> x_t, of the shape of x0."""
    for shape in [(4, 4), (4, 3), (4, 1, 5, 4)]:
        x0, noise = _draws(2, *shape)
        batch = answer(BETA, TIMES, x0, noise)
        yield batch.shape == shape, "the result has the shape of the data."
        alone = [answer(BETA, TIMES[[k]], x0[[k]], noise[[k]])[0] for k in range(4)]
        yield _near(batch, torch.stack(alone)), "an example alone gives the same."
    one, none = torch.ones(4, 2), torch.zeros(4, 2)
    signal, spread = answer(BETA, TIMES, one, none), answer(BETA, TIMES, none, one)
    yield _near(signal**2 + spread**2, one), "variance 1 in, variance 1 out."
    first = answer(BETA, TIMES[[1]], none[:1], one[:1])
    yield _near(first**2, BETA[0]), "the first step adds noise of variance beta_1."
    part = answer(BETA, TIMES[[0]], one[:1], none[:1])
    rest = answer(BETA[3:], torch.tensor([3]), part, none[:1])
    yield _near(rest, signal[[2]]), "a jump and a jump on are one jump."


@visible
def moments_by_step(answer):
    """moments_by_step(beta_t, m, v) -> mean, variance."""
    mean, variance = answer(0.3, 0.6, 0.64)
    yield 0 < mean < 0.6, "the mean fades."
    second = mean**2 + variance
    yield abs(second - 1) < 1e-9, "E[x^2] = 1 before the step is 1 after it."
    _, variance = answer(0.3, 2.0, 0.0)
    yield abs(variance - 0.3) < 1e-9, "a single point has the noise's variance only."


@visible
def reverse_posterior(answer):
    """reverse_posterior(before, now) -> weight of x_0, weight of x_t, variance."""
    before, now = torch.tensor([0.9, 0.6, 0.3]), torch.tensor([0.5, 0.59, 1e-9])
    parts = answer(before, now)
    whole = len(parts) == 3 and all(part.shape == (3,) for part in parts)
    yield whole, "three tensors, each of the shape of its arguments."
    weight_x0, weight_xt, variance = parts
    narrow = (variance > 0).all() and (variance < 1 - before + 1e-8).all()
    yield narrow, "a variance is positive, and to know x_t too can only help."
    mean = weight_x0 + weight_xt * now.sqrt()
    yield _near(mean, before.sqrt()), "where x_t is at its mean, x_s is at its own."
    total = weight_xt**2 * (1 - now) + variance
    yield _near(total, 1 - before), "averaged over x_t, the variance of x_s returns."
    useless = weight_xt[2] < 1e-3
    yield useless, "an x_t that is pure noise says nothing about x_s."
    clean = answer(torch.ones(2), torch.tensor([0.7, 0.2]))
    known = [torch.ones(2), torch.zeros(2), torch.zeros(2)]
    yield all(map(_near, clean, known)), "at s = 0 the clean point is asked for."


@visible
def step_back(answer):
    """step_back(beta, t, clean, x, noise) -> x_{t-1}, of the shape of x."""
    for shape in [(4, 4), (4, 3), (4, 1, 5, 4)]:
        clean, x, noise = _draws(3, *shape)
        batch = answer(BETA, TIMES, clean, x, noise)
        yield batch.shape == shape, "the result has the shape of the batch."
        known = batch[1].isfinite().all()
        yield known, "NaN at t = 1: what does your posterior say at s = 0?"
        rows = [[part[[k]] for part in (TIMES, clean, x, noise)] for k in range(4)]
        alone = torch.cat([answer(BETA, *row) for row in rows])
        yield _near(batch, alone), "an example alone gives the same."
        yield _near(batch[1], clean[1]), "the last step ends at the clean guess."
    pinch = batch - answer(BETA, TIMES, clean, x, torch.zeros(shape))
    share = (pinch / noise) ** 2
    spread = share.flatten(1).std(1).max()
    yield spread < 1e-9, "within an example every entry gets noise of the same size."
    yield _near(share[[0, 2, 3], 0, 0, 0], BETA[[2, 5, 3]]), "its variance is beta_t."


@visible
def cosine_betas(answer):
    """cosine_betas(steps, offset) -> shape (steps,)."""
    beta = answer(40, 0.0)
    yield beta.shape == (40,), "one beta for each step."
    yield (beta > 0).all() and (beta < 1).all(), "a beta lies between 0 and 1."
    yield (beta.diff() > 0).all(), "the betas rise."
    for t in (4, 11, 20):
        early, late = (1 - beta[:t]).prod(), (1 - beta[: 40 - t]).prod()
        balanced = abs(early + late - 1) < 1e-9
        yield balanced, "without an offset alpha-bar_t and alpha-bar_{T-t} add to one."
    yield answer(40, 0.02)[0] > beta[0], "the offset makes the first steps larger."
    cut = answer(40, 0.02)[-1] == beta[-1]
    yield cut, "the last beta is cut, whatever the offset."


@visible
def portrait(answer):
    """portrait(beta) -> half-life, mixed steps, largest beta, trace."""
    beta = torch.linspace(0.01, 0.12, 60)
    sitter = [float(number) for number in answer(beta)]
    yield len(sitter) == 4, "four numbers."
    half_life, mixed, largest, trace = sitter
    yield half_life % 1 == mixed % 1 == 0, "the first two are whole numbers."
    yield 1 < half_life < 60 and 1 < mixed < 60, "both lie between 1 and T."
    h = int(half_life)
    first = (1 - beta[:h]).prod() < 0.5 <= (1 - beta[: h - 1]).prod()
    yield first, "at the half-life less than half is left, and one step before not yet."
    yield largest in beta, "the third is one of the betas."
    yield trace > 0, "alpha-bar never reaches zero: something is left."
    _, _, largest_1, trace_1 = map(float, answer(beta.flip(0)))
    yield largest_1 == largest, "the same betas in reverse order: the same largest."
    yield abs(trace_1 - trace) < 1e-9, "and the same trace at the end."
    halves = (1 - (1 - beta).sqrt()).repeat_interleave(2)
    half_life_2, mixed_2, largest_2, trace_2 = map(float, answer(halves))
    doubled = half_life_2 in (2 * half_life - 1, 2 * half_life)
    yield doubled, "each step cut in two equal ones: twice as many to the half-life."
    yield abs(mixed_2 - 2 * mixed) <= 2, "and about twice as many mixed steps."
    yield largest_2 < largest, "and a smaller largest beta."
    yield abs(trace_2 - trace) < 1e-9, "and again the same trace."
    faint = float(answer(torch.tensor([0.9999]))[3])
    loud = float(answer(torch.tensor([0.5001]))[3])
    yield faint < loud, "the more noise, the smaller the trace."
    yield abs(loud - 2) < 1e-3, "equal shares: the means are two noises apart."


def _draws(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(6050))


def _near(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.allclose(left, right, rtol=0, atol=1e-9)
