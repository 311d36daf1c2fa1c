"""Hidden checks of the exercise on the forward jump in a batch."""

import torch

from coursework.checks import Check, Exercise, close, misshapen
from genaudit.process import ddpm_step, forward_jump, noise_from_clean
from genaudit.schedule import Schedule, cosine_schedule, linear_schedule


def betas(stream, steps, largest=0.4):
    """Variances of so many steps."""
    return [stream.uniform(largest / 20, largest) for _ in range(steps)]


def block(stream, shape):
    """Standard normal numbers in nested lists."""
    if not shape:
        return stream.gauss(0, 1)
    return [block(stream, shape[1:]) for _ in range(shape[0])]


def batches(stream, blocks):
    """Schedule, timesteps and so many blocks, flat and as pictures.

    The first and the third fit weights along a wrong axis too.
    """
    calls = []
    for shape in [(4, 4), (5, 2), (3, 2, 3, 3), (4, 3, 2, 1)]:
        t = [1, 9, *stream.sample(range(2, 9), shape[0] - 2)]
        stream.shuffle(t)
        data = [block(stream, shape) for _ in range(blocks)]
        calls.append((betas(stream, 9), t, *data))
    return calls


def some_schedules(stream, given):
    """Betas of three lengths."""
    return [(betas(stream, steps),) for steps in (1, 5, 30)]


def jumped(given, beta, t, x0, noise):
    """Each example alone."""
    schedule = Schedule(beta)
    rows = zip(t.tolist(), x0, noise)
    return torch.stack([forward_jump(schedule, x, at, eps) for at, x, eps in rows])


def single_steps(stream, given):
    """Five betas, each with a mean and a variance before the step."""
    return [
        (beta, stream.uniform(-3, 3), stream.uniform(0, 4)) for beta in betas(stream, 5)
    ]


def by_one_jump(given, beta, m, v):
    """Mean and variance after a schedule of one step."""
    level = Schedule([beta]).alpha_bar(1)
    return [level.sqrt() * m, 1 + (v - 1) * level]


def once(stream, given):
    """A single call without arguments."""
    return [()]


def by_steps(given):
    """Mean and variance at half time and at the end, by a loop."""
    m, v, found = given["start_mean"], given["start_variance"], []
    schedule = linear_schedule(given["steps"], last=given["last"])
    for t, beta in enumerate(schedule.beta(schedule.timesteps).tolist(), 1):
        m, v = (1 - beta) ** 0.5 * m, (1 - beta) * v + beta
        if t in (given["steps"] // 2, given["steps"]):
            found += [m, v]
    return found


def pairs_of_levels(stream, given):
    """Levels of an earlier and a later step; once the earlier one is clean."""
    calls = []
    for clean in ([], [1.0], []):
        before = clean + [stream.uniform(0.2, 0.95) for _ in range(4)]
        calls.append((before, [high * stream.uniform(0.1, 0.9) for high in before]))
    return calls


def of_two_steps(given, before, now):
    """The posterior of a schedule whose one or two steps have these levels."""
    rows = []
    for high, low in zip(before.tolist(), now.tolist()):
        first = [] if high == 1 else [1 - high]
        schedule = Schedule([*first, 1 - low / high])
        rows.append(torch.stack(schedule.posterior(len(schedule))))
    return torch.stack(rows, 1)


def stepped(given, beta, t, clean, x, noise):
    """Each example alone, by the noise that the guess implies."""
    schedule, rows = Schedule(beta), []
    for row, at in enumerate(t.tolist()):
        guess = noise_from_clean(x[row], schedule.alpha_bar(at), clean[row])
        rows.append(ddpm_step(schedule, x[row], at, guess, noise[row], "beta"))
    return torch.stack(rows)


def cosines(stream, given):
    """Numbers of steps and offsets."""
    sizes = [(7, 0.0), (30, stream.uniform(0.01, 0.05)), (given["steps"], 0.008)]
    return [*sizes, (101, stream.uniform(0.001, 0.02))]


def cosine(given, steps, offset):
    """The package's betas."""
    schedule = cosine_schedule(steps, offset)
    return schedule.beta(schedule.timesteps)


def sitters(stream, given):
    """Betas that fall below one half: random, rising and cosine."""
    long = cosine_schedule(stream.randint(60, 90))
    rising = linear_schedule(stream.randint(120, 160), last=stream.uniform(0.04, 0.06))
    made = [chosen.beta(chosen.timesteps).tolist() for chosen in (rising, long)]
    return [(betas(stream, 60, 0.08),), (betas(stream, 70, 0.1),), *zip(made)]


def drawn(given, beta):
    """The four numbers from the package's schedule."""
    schedule = Schedule(beta)
    ratio = schedule.snr(schedule.timesteps)
    mixed = int(((ratio - 0.1) * (10 - ratio) >= 0).sum())
    trace = 2 * schedule.signal(len(beta)) / schedule.noise(len(beta))
    return [schedule.first_below(0.5), mixed, beta.max(), trace]


def each(expected, got):
    """Every entry by its own tolerance: counts must not drown small numbers."""
    reason = misshapen(expected, got)
    return reason or next(filter(None, map(close(), expected, got)), None)


exercise = Exercise(
    title="The forward jump, a batch at a time",
    chapter="forward",
    constants={
        "steps": [300, 240, 260, 320, 360, 400],
        "last": [0.04, 0.03, 0.035, 0.045, 0.05],
        "start_mean": [1.5, -2.0, 2.5, -1.2, 0.8],
        "start_variance": [0.25, 0.09, 0.5, 2.5, 4.0],
    },
    checks=[
        Check(
            "products for schedules of three lengths",
            1,
            "levels",
            some_schedules,
            lambda given, beta: Schedule(beta).alpha_bar(torch.arange(len(beta) + 1)),
            "Each step keeps 1 - beta_t of what the step before had left.",
            [
                # The clean level is missing.
                "def levels(beta): return torch.cumprod(1 - beta, 0)",
                # A running mean is no running product.
                "def levels(beta):\n"
                "    count = torch.arange(1, len(beta) + 1)\n"
                "    mean = torch.cumsum(1 - beta, 0) / count\n"
                "    return torch.cat([torch.ones(1), mean])",
                # The roots of the levels.
                "def levels(beta):\n"
                "    root = torch.cumprod((1 - beta).sqrt(), 0)\n"
                "    return torch.cat([torch.ones(1), root])",
                # Betas added up.
                "def levels(beta):\n"
                "    return torch.cat([torch.ones(1), 1 - torch.cumsum(beta, 0)])",
            ],
        ),
        Check(
            "mixed timesteps on vectors and pictures",
            3,
            "jump",
            lambda stream, given: batches(stream, 2),
            jumped,
            "Which entry belongs to timestep t? Which axis do the weights run along, "
            "in vectors and in pictures? What adds to one, they or their squares?",
            [
                # The weights run along the last axis.
                "def jump(beta, t, x0, noise):\n"
                "    level = levels(beta)[t]\n"
                "    return level.sqrt() * x0 + (1 - level).sqrt() * noise",
                # Timestep 1 read at entry 0.
                "def jump(beta, t, x0, noise):\n"
                "    level = levels(beta)[t - 1].reshape(-1, *[1] * (x0.ndim - 1))\n"
                "    return level.sqrt() * x0 + (1 - level).sqrt() * noise",
                # One timestep for all.
                "def jump(beta, t, x0, noise):\n"
                "    level = levels(beta)[t[0]]\n"
                "    return level.sqrt() * x0 + (1 - level).sqrt() * noise",
                # Weights that add to one; their squares should.
                "def jump(beta, t, x0, noise):\n"
                "    root = levels(beta)[t].sqrt().reshape(-1, *[1] * (x0.ndim - 1))\n"
                "    return root * x0 + (1 - root) * noise",
                # One step of size beta_t in place of t steps.
                "def jump(beta, t, x0, noise):\n"
                "    share = beta[t - 1].reshape(-1, *[1] * (x0.ndim - 1))\n"
                "    return (1 - share).sqrt() * x0 + share.sqrt() * noise",
                # An axis too few: right for vectors, wrong for pictures.
                "def jump(beta, t, x0, noise):\n"
                "    level = levels(beta)[t][:, None]\n"
                "    return level.sqrt() * x0 + (1 - level).sqrt() * noise",
            ],
        ),
        Check(
            "one step from five kinds of data",
            2,
            "moments_by_step",
            single_steps,
            by_one_jump,
            "A factor changes the mean by itself and the variance by its square; then "
            "comes the noise.",
            [
                # The mean shrinks like a variance.
                "def moments_by_step(beta_t, m, v):\n"
                "    return (1 - beta_t) * m, (1 - beta_t) * v + beta_t",
                # The variance shrinks like a mean.
                "def moments_by_step(beta_t, m, v):\n"
                "    keep = (1 - beta_t) ** 0.5\n"
                "    return keep * m, keep * v + beta_t",
                # Noise is added and nothing shrinks.
                "def moments_by_step(beta_t, m, v):\n"
                "    return (1 - beta_t) ** 0.5 * m, v + beta_t",
                # Noise of standard deviation beta_t.
                "def moments_by_step(beta_t, m, v):\n"
                "    return (1 - beta_t) ** 0.5 * m, (1 - beta_t) * v + beta_t**2",
            ],
        ),
        Check(
            "moments at half time and at the end",
            2,
            "moments_by_jump",
            once,
            by_steps,
            "Look at the weights of the jump, at what each does to a mean and to a "
            "variance, at the entry that belongs to t, and at the order asked for.",
            [
                # The variance of x_t given x_0 only.
                "def moments_by_jump():\n"
                "    a, b = levels(linear)[[steps // 2, steps]]\n"
                "    m = start_mean\n"
                "    return [a.sqrt() * m, 1 - a, b.sqrt() * m, 1 - b]",
                # Half time one step early.
                "def moments_by_jump():\n"
                "    a, b = levels(linear)[[steps // 2 - 1, steps - 1]]\n"
                "    m, v = start_mean, start_variance\n"
                "    return [a.sqrt() * m, a * v + 1 - a, b.sqrt() * m, b * v + 1 - b]",
                # The level in place of its root.
                "def moments_by_jump():\n"
                "    a, b = levels(linear)[[steps // 2, steps]]\n"
                "    m, v = start_mean, start_variance\n"
                "    return [a * m, a * v + 1 - a, b * m, b * v + 1 - b]",
                # Means first, then variances.
                "def moments_by_jump():\n"
                "    a, b = levels(linear)[[steps // 2, steps]]\n"
                "    m, v = start_mean, start_variance\n"
                "    return [a.sqrt() * m, b.sqrt() * m, a * v + 1 - a, b * v + 1 - b]",
            ],
        ),
        Check(
            "two weights and a variance between distant levels",
            3,
            "reverse_posterior",
            pairs_of_levels,
            of_two_steps,
            "Which level has the jump from s to t alone? And what is known at s = 0?",
            [
                # The level of the whole walk in place of the part from s to t.
                "def reverse_posterior(before, now):\n"
                "    share = (1 - now) / (1 - now)\n"
                "    weight = now.sqrt() * (1 - before) / (1 - now)\n"
                "    return before.sqrt() * share, weight, (1 - before) * share",
                # The variance of the step forward.
                "def reverse_posterior(before, now):\n"
                "    ratio = now / before\n"
                "    first = before.sqrt() * (1 - ratio) / (1 - now)\n"
                "    second = ratio.sqrt() * (1 - before) / (1 - now)\n"
                "    return first, second, 1 - ratio",
                # Precisions added as written: 0 times infinity at s = 0.
                "def reverse_posterior(before, now):\n"
                "    ratio = now / before\n"
                "    variance = 1 / (1 / (1 - before) + ratio / (1 - ratio))\n"
                "    first = variance * before.sqrt() / (1 - before)\n"
                "    return first, variance * ratio.sqrt() / (1 - ratio), variance",
                # The two weights exchanged.
                "def reverse_posterior(before, now):\n"
                "    ratio = now / before\n"
                "    first = before.sqrt() * (1 - ratio) / (1 - now)\n"
                "    second = ratio.sqrt() * (1 - before) / (1 - now)\n"
                "    variance = (1 - before) * (1 - ratio) / (1 - now)\n"
                "    return second, first, variance",
                # A standard deviation.
                "def reverse_posterior(before, now):\n"
                "    ratio = now / before\n"
                "    first = before.sqrt() * (1 - ratio) / (1 - now)\n"
                "    second = ratio.sqrt() * (1 - before) / (1 - now)\n"
                "    variance = (1 - before) * (1 - ratio) / (1 - now)\n"
                "    return first, second, variance.sqrt()",
            ],
        ),
        Check(
            "reverse move with finished and unfinished examples",
            3,
            "step_back",
            lambda stream, given: batches(stream, 3),
            stepped,
            "Take it apart: the mean, with the noise at zero; then the size of the "
            "noise, a root of the variance asked for; then who gets any.",
            [
                # Noise at the last step too.
                "def step_back(beta, t, clean, x, noise):\n"
                "    level, shape = levels(beta), (-1, *[1] * (x.ndim - 1))\n"
                "    a, b, _ = reverse_posterior(level[t - 1], level[t])\n"
                "    mean = a.reshape(shape) * clean + b.reshape(shape) * x\n"
                "    return mean + beta[t - 1].sqrt().reshape(shape) * noise",
                # One finished example silences the whole batch.
                "def step_back(beta, t, clean, x, noise):\n"
                "    level, shape = levels(beta), (-1, *[1] * (x.ndim - 1))\n"
                "    a, b, _ = reverse_posterior(level[t - 1], level[t])\n"
                "    mean = a.reshape(shape) * clean + b.reshape(shape) * x\n"
                "    if (t == 1).any():\n"
                "        return mean\n"
                "    return mean + beta[t - 1].sqrt().reshape(shape) * noise",
                # The variance in place of the standard deviation.
                "def step_back(beta, t, clean, x, noise):\n"
                "    level, shape = levels(beta), (-1, *[1] * (x.ndim - 1))\n"
                "    a, b, _ = reverse_posterior(level[t - 1], level[t])\n"
                "    mean = a.reshape(shape) * clean + b.reshape(shape) * x\n"
                "    added = torch.where(t > 1, beta[t - 1], 0.0)\n"
                "    return mean + added.reshape(shape) * noise",
                # The posterior's variance in place of beta_t.
                "def step_back(beta, t, clean, x, noise):\n"
                "    level, shape = levels(beta), (-1, *[1] * (x.ndim - 1))\n"
                "    a, b, v = reverse_posterior(level[t - 1], level[t])\n"
                "    mean = a.reshape(shape) * clean + b.reshape(shape) * x\n"
                "    return mean + v.sqrt().reshape(shape) * noise",
                # The beta of the step after.
                "def step_back(beta, t, clean, x, noise):\n"
                "    level, shape = levels(beta), (-1, *[1] * (x.ndim - 1))\n"
                "    a, b, _ = reverse_posterior(level[t - 1], level[t])\n"
                "    mean = a.reshape(shape) * clean + b.reshape(shape) * x\n"
                "    next_beta = beta[t.clamp(max=len(beta) - 1)]\n"
                "    added = torch.where(t > 1, next_beta, 0.0)\n"
                "    return mean + added.sqrt().reshape(shape) * noise",
            ],
        ),
        Check(
            "squared cosine at four lengths",
            2,
            "cosine_betas",
            cosines,
            cosine,
            "Betas come from ratios of neighbouring levels. Mind square and cut.",
            [
                # The cosine without its square.
                "def cosine_betas(steps, offset):\n"
                "    time = torch.arange(steps + 1) / steps\n"
                "    f = (torch.pi / 2 * (time + offset) / (1 + offset)).cos()\n"
                "    return (1 - f[1:] / f[:-1]).clamp(max=0.999)",
                # The offset left out.
                "def cosine_betas(steps, offset):\n"
                "    f = (torch.pi / 2 * torch.arange(steps + 1) / steps).cos() ** 2\n"
                "    return (1 - f[1:] / f[:-1]).clamp(max=0.999)",
                # No cut.
                "def cosine_betas(steps, offset):\n"
                "    time = torch.arange(steps + 1) / steps\n"
                "    f = (torch.pi / 2 * (time + offset) / (1 + offset)).cos() ** 2\n"
                "    return 1 - f[1:] / f[:-1]",
                # f(0) taken for 1 in the first step.
                "def cosine_betas(steps, offset):\n"
                "    time = torch.arange(1, steps + 1) / steps\n"
                "    f = (torch.pi / 2 * (time + offset) / (1 + offset)).cos() ** 2\n"
                "    before = torch.cat([torch.ones(1), f[:-1]])\n"
                "    return (1 - f / before).clamp(max=0.999)",
                # One minus the level.
                "def cosine_betas(steps, offset):\n"
                "    time = torch.arange(steps + 1) / steps\n"
                "    f = (torch.pi / 2 * (time + offset) / (1 + offset)).cos() ** 2\n"
                "    return (1 - f[1:] / f[0]).clamp(max=0.999)",
            ],
            close(1e-7),
        ),
        Check(
            "four numbers for four unseen schedules",
            2,
            "portrait",
            sitters,
            drawn,
            "Count from step 1, use variances in the ratio, look at all betas, and "
            "divide by the noise.",
            [
                # Counted from 0.
                "def portrait(beta):\n"
                "    level = levels(beta)[1:]\n"
                "    ratio = level / (1 - level)\n"
                "    mixed = ((ratio >= 0.1) & (ratio <= 10)).sum()\n"
                "    half = (level >= 0.5).sum()\n"
                "    return [half, mixed, beta.max(), 2 * ratio[-1].sqrt()]",
                # Weights in place of variances.
                "def portrait(beta):\n"
                "    level = levels(beta)[1:]\n"
                "    ratio = level / (1 - level)\n"
                "    mixed = ((ratio.sqrt() >= 0.1) & (ratio.sqrt() <= 10)).sum()\n"
                "    half = 1 + (level >= 0.5).sum()\n"
                "    return [half, mixed, beta.max(), 2 * ratio[-1].sqrt()]",
                # The distance of the means, not divided.
                "def portrait(beta):\n"
                "    level = levels(beta)[1:]\n"
                "    ratio = level / (1 - level)\n"
                "    mixed = ((ratio >= 0.1) & (ratio <= 10)).sum()\n"
                "    half = 1 + (level >= 0.5).sum()\n"
                "    return [half, mixed, beta.max(), 2 * level[-1].sqrt()]",
                # Half of the weight in place of half of the variance.
                "def portrait(beta):\n"
                "    level = levels(beta)[1:]\n"
                "    ratio = level / (1 - level)\n"
                "    mixed = ((ratio >= 0.1) & (ratio <= 10)).sum()\n"
                "    half = 1 + (level.sqrt() >= 0.5).sum()\n"
                "    return [half, mixed, beta.max(), 2 * ratio[-1].sqrt()]",
                # The last beta, which need not be the largest.
                "before = portrait\n"
                "def portrait(beta):\n"
                "    half, mixed, _, trace = before(beta)\n"
                "    return [half, mixed, beta[-1], trace]",
            ],
            each,
        ),
    ],
)
