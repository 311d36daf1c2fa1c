"""Visible checks of the exercise on steps by hand."""

import itertools

import torch
from torch.distributions import Normal

from genaudit.exercises._say import visible

LEVELS = [0.05, 0.4, 0.9]


@visible
def four_guesses(answer):
    """four_guesses(kind, value, x, alpha_bar) -> noise, clean, score, velocity."""
    x, value = _draws(2)
    point = x.clone()
    kinds = ["noise", "clean", "score", "velocity"]
    for level in LEVELS:
        for place, kind in enumerate(kinds):
            four = answer(kind, value, x, level)
            yield (
                torch.equal(x, point),
                "x comes back changed: `-=` and its kin write into what was handed in.",
            )
            yield len(four) == 4, "four guesses come back, whatever went in."
            yield (
                all(torch.as_tensor(guess).shape == x.shape for guess in four),
                "each guess has the shape of x.",
            )
            yield _near(four[place], value), f"what goes in as {kind} comes out again."
            noise, clean, score, speed = four
            again = _jump(clean, noise, level)
            yield _near(again, x), f"from {kind}: clean and noise guess make x again."
            law = Normal(level**0.5 * clean.detach(), (1 - level) ** 0.5)
            free = x.clone().requires_grad_()
            slope = torch.autograd.grad(law.log_prob(free).sum(), free)[0]
            yield _near(score, slope), f"from {kind}: the score is the slope of log p."
            yield (
                _near(x**2 + speed**2, clean**2 + noise**2),
                f"from {kind}: point and velocity are a turned pair, and turns keep "
                "lengths.",
            )
    noise, _, _, speed = answer("noise", value, x, 1 - 1e-10)
    yield _near(speed, noise, 1e-3), "where hardly any noise is left, v is the noise."


@visible
def ddpm_step(answer):
    """ddpm_step(x, t, beta, alpha_bar, guess, fresh, rule) -> point at t - 1."""
    x, noise, fresh = _draws(3)
    zero, one = torch.zeros(1), torch.ones(1)
    twice = [answer(x, 3, 0.2, 0.4, noise, fresh, "beta") for _ in range(2)]
    yield _near(*twice), "use the `fresh` you are handed: draw nothing of your own."
    # The second schedule is rounded so that the narrow variance falls below nought.
    schedules = [(0.3, 0.7), (0.066, 0.934)]
    for rule, (beta, level) in itertools.product(["beta", "tilde"], schedules):
        first = _jump(x, noise, level)
        ends = [
            answer(first, 1, beta, level, noise, z, rule) for z in (fresh, 0 * fresh)
        ]
        yield ends[0].shape == x.shape, "the new point has the shape of x."
        yield (
            not torch.is_complex(ends[0]) and not ends[0].isnan().any(),
            f"rule {rule}: in the last step rounding may bring a variance of nought "
            "below nought, where no root helps.",
        )
        yield _near(*ends), f"rule {rule}: the last step adds no noise."
        yield _near(ends[0], x), f"rule {rule}: the last step lands on the clean guess."
    wide, narrow = (
        answer(zero, 3, 0.2, 0.4, zero, one, rule) for rule in ("beta", "tilde")
    )
    yield wide > narrow > 0, "before the last step both rules add noise, tilde less."
    # Standard normal data stay so under the wide rule: V = 1 at every level.
    scale = answer(one, 3, 0.2, 0.4, 0.6**0.5 * one, zero, "beta")
    yield (
        _near(scale**2 + wide**2, one),
        "rule beta: standard normal data keep their variance.",
    )
    # One known datum at zero: the law of one level becomes that of the next.
    shrunk = answer(0.6**0.5 * one, 3, 0.2, 0.4, one, zero, "tilde")
    yield (
        _near(shrunk**2 + narrow**2, one - 0.4 / 0.8),
        "rule tilde: a single known datum keeps the noise of the earlier timestep.",
    )


@visible
def ddim_step(answer):
    """ddim_step(x, alpha_bar, alpha_bar_earlier, guess) -> point."""
    clean, noise = _draws(2)
    clean = 3 * clean  # nothing in this exercise keeps data within +-1
    for level in LEVELS:
        x = _jump(clean, noise, level)
        end = answer(x, level, 1.0, noise)
        yield end.shape == x.shape, "the landing has the shape of x."
        yield _near(end, clean), "a jump to the clean end lands on the clean guess."
        near = answer(x, level, level + 0.01, noise)
        yield (
            _near(near, x, 0.2) and not _near(near, x, 1e-6),
            "a short jump moves the point, and only a little.",
        )
        made = _jump(clean, noise, level + 0.08)
        yield (
            _near(answer(x, level, level + 0.08, noise), made),
            "for a perfect guess the landing is the datum with the same noise.",
        )
    single = answer(float(x[0]), LEVELS[-1], 1.0, float(noise[0]))
    yield _near(single, clean[0]), "a plain number lands where it does in a tensor."


@visible
def ddim_factor(answer):
    """ddim_factor(levels, variance) -> number."""
    for variance in [0.2, 1.0, 4.0]:
        true = (variance / (variance * 0.05 + 0.95)) ** 0.5
        fine = torch.cos(torch.linspace(torch.tensor(0.05).sqrt().acos(), 0, 2001)) ** 2
        limit = answer(fine, variance)
        yield (
            torch.as_tensor(limit).numel() == 1,
            "a walk has one number as its factor.",
        )
        yield (
            abs(limit / true - 1) < 0.01,
            "many short jumps carry the law at the start to that of the data. If you "
            "call your DDIM step, does that one pass?",
        )
        once = answer(torch.tensor([0.05, 1.0]), variance)
        yield (
            once < 0.99 * true,
            "a single long jump does not reach the law of the data.",
        )
        parts = [
            answer(torch.tensor(stops), variance)
            for stops in ([0.05, 0.3], [0.3, 1.0], [0.05, 0.3, 1.0])
        ]
        yield (
            abs(parts[0] * parts[1] - parts[2]) < 1e-9,
            "the factors of two walks, one after the other, multiply.",
        )


@visible
def langevin_step(answer):
    """langevin_step(x, alpha_bar, guess, eta, fresh) -> point."""
    x, guess, fresh = _draws(3)
    still = answer(x, 0.5, 0 * guess, 0.1, 0 * fresh)
    yield torch.as_tensor(still).shape == x.shape, "the new point has the shape of x."
    yield (
        _near(still, x),
        "nothing guessed, and `fresh` is all nought: the point stays.",
    )
    moved = answer(x, 0.5, guess, 0.1, 0 * fresh) - x
    yield (moved * guess < 0).all(), "the push goes against the guessed noise."
    twice = answer(x, 0.5, guess, 0.2, 0 * fresh) - x
    yield _near(twice, 2 * moved), "a step twice as large pushes twice as far."
    jolts = [answer(x, 0.5, 0 * guess, eta, fresh) - x for eta in (0.1, 0.4)]
    yield _near(jolts[1], 2 * jolts[0]), "the jolt grows with the root of the step."
    # For standard normal data the law of every level is standard normal.
    one, zero = torch.ones(1), torch.zeros(1)
    for level in LEVELS:
        pull = answer(one, level, (1 - level) ** 0.5 * one, 1e-5, zero)
        jolt = answer(zero, level, zero, 1e-5, one)
        yield (
            abs((1 - pull**2) / jolt**2 - 1) < 1e-3,
            "for standard normal data the push takes off what the jolt puts on.",
        )
        noise = 1 - level  # the variance of the law if all data are one point, nought
        end = answer(x, level, x / noise**0.5, noise, 0 * fresh)
        yield (
            _near(end, 0 * x),
            "a single datum at nought, and a step as large as the variance around it: "
            "the push ends on the datum.",
        )


@visible
def settled_variance(answer):
    """settled_variance(eta, variance) -> number."""
    for variance in [0.3, 1.0, 5.0]:
        tiny = answer(1e-7, variance)
        yield abs(tiny / variance - 1) < 1e-6, "tiny steps settle on the law itself."
        small, large = (answer(eta * variance, variance) for eta in (0.2, 1.0))
        yield variance < small < large, "larger steps settle wider."
        forgotten = answer(variance, variance)
        yield (
            abs(forgotten - 2 * variance) < 1e-9,
            "a step as large as the variance forgets the point: only its jolt is left.",
        )
        edge = answer(1.9999 * variance, variance)
        yield edge > 1000 * variance, "near the forbidden step the variance runs away."
        units = answer(7 * 0.2 * variance, 7 * variance)
        yield (
            abs(units / (7 * small) - 1) < 1e-9,
            "step and variance are squared lengths: other units change nothing.",
        )


@visible
def guided_guess(answer):
    """guided_guess(without, asked, amount, custom) -> guess."""
    without, asked = _draws(2)
    for amount, custom, name in [(1, "scale", "scale"), (0, "extra", "extra")]:
        plain = answer(without, asked, amount, custom)
        yield (
            torch.as_tensor(plain).shape == asked.shape,
            "the guess has the shape of the two guesses.",
        )
        yield _near(plain, asked), f"custom {name}: no guidance is the plain request."
    for amount, custom, name in [(0, "scale", "scale"), (-1, "extra", "extra")]:
        ignored = answer(without, asked, amount, custom)
        yield _near(ignored, without), f"custom {name}: here the request is ignored."
    same = answer(asked, asked, 5, "scale")
    yield _near(same, asked), "two equal guesses leave nothing to exaggerate."
    for custom in ["scale", "extra"]:
        low, mid, high = (answer(without, asked, a, custom) for a in (0.5, 2, 3.5))
        yield _near(low + high, 2 * mid), "the guess moves in equal steps."
        gone = (mid - asked) * (asked - without)
        yield (gone > 0).all(), "more than no guidance goes beyond the plain request."
        single = answer(float(without[0]), float(asked[0]), 2, custom)
        yield _near(single, mid[0]), "plain numbers come out as in a tensor."


def _draws(count: int) -> torch.Tensor:
    """Rows of four draws, none of them near zero."""
    draws = torch.randn(count, 4, generator=torch.Generator().manual_seed(6050))
    return draws + 0.1 * draws.sign()


def _jump(clean, noise, level):
    return level**0.5 * clean + (1 - level) ** 0.5 * noise


def _near(got, wanted, slack=1e-8) -> bool:
    return bool((torch.as_tensor(got - wanted).abs() < slack).all())
