"""Visible checks of the exercise on the identity behind the game."""

import math

import torch
from scipy.integrate import quad

from genaudit.exercises._say import visible

REAL = torch.tensor([0.3, 1.1, 0.6, 2.0], dtype=torch.float64)
FAKE = torch.tensor([0.9, 0.2, 1.5, 0.4], dtype=torch.float64)


@visible
def best_judgement(answer):
    """best_judgement(a, b) -> shape (K,)."""
    d = answer(REAL, FAKE)
    yield d.shape == (4,), "one belief for each outcome."
    yield (d > 0).all() and (d < 1).all(), "with both masses it is strictly between."
    for nudge in (-1e-3, 1e-3):
        lower = _worth(REAL, FAKE, d + nudge) < _worth(REAL, FAKE, d)
        yield lower.all(), "a little more or less must lower f."
    scaled = answer(7 * REAL, 7 * FAKE)
    yield _near(scaled, d), "seven times the mass on both sides changes nothing."
    ends = answer(torch.tensor([0.0, 3.0]), torch.tensor([2.0, 0.0]))
    yield _near(ends, torch.tensor([0.0, 1.0])), "one kind of mass only: be sure."
    empty = answer(torch.zeros(1), torch.zeros(1))
    yield not empty.isnan().any(), "where there is no mass, return what is asked for."


@visible
def shortfall(answer):
    """shortfall(a, b, d) -> shape (K,)."""
    one, half = torch.ones(1), torch.full((1,), 0.5)
    yield abs(answer(one, one, half)) < 1e-12, "equal masses: one half loses nothing."
    d, other = torch.full((4,), 0.3), torch.full((4,), 0.8)
    loss = answer(REAL, FAKE, d)
    yield loss.shape == (4,), "one number for each outcome."
    yield (loss >= 0).all(), "nobody does better than the best."
    saved = loss - answer(REAL, FAKE, other)
    gain = _worth(REAL, FAKE, other) - _worth(REAL, FAKE, d)
    yield _near(saved, gain), "between two opinions it differs by what f differs."
    doubled = answer(2 * REAL, 2 * FAKE, d)
    yield _near(doubled, 2 * loss), "twice the mass, twice the loss."
    ends = answer(*torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.6, 0.4, 0.2]]))
    yield ends.isfinite().all(), "an outcome without data is no reason for a NaN."
    yield abs(ends[0] - ends[1]) < 1e-12, "the two sides play symmetric parts."
    yield ends[2] == 0, "an outcome without mass loses nothing."


@visible
def jsd(answer):
    """jsd(m) -> number."""
    yield abs(answer(0.0)) < 1e-9, "equal laws are not apart."
    yield abs(answer(1.3) - answer(-1.3)) < 1e-9, "left or right does not matter."
    near, middle, far = answer(1.0), answer(2.0), answer(60.0)
    yield math.isfinite(far), "far apart both densities round to zero somewhere."
    yield 0 < near < middle < far, "it grows with the distance."
    yield abs(far - math.log(2)) < 1e-6, "laws without overlap: the largest JSD."
    growth = answer(0.02) / answer(0.01)
    yield abs(growth - 4) < 1e-2, "for small m it grows like the square of m."
    overlap = math.erf(2 / math.sqrt(8))  # total variation at m = 2
    bounded = overlap**2 / 2 < middle < overlap * math.log(2)
    yield bounded, "not possible for these bells. Is the middle of both laws a bell?"


@visible
def best_line(answer):
    """best_line(m) -> slope, intercept."""
    level = [float(part) for part in answer(0.0)]
    yield level == [0, 0], "equal laws: one half everywhere."
    for m in (1.7, -0.6):
        slope, intercept = (float(part) for part in answer(m))
        yield slope * m < 0, "the belief falls toward the generator."
        at_middle = slope * m / 2 + intercept
        yield abs(at_middle) < 1e-9, "half way between the bells it is one half."
        odds, _ = quad(
            lambda x, a=slope, c=intercept, m=m: (
                math.exp(a * x + c - (x - m) ** 2 / 2) / math.sqrt(2 * math.pi)
            ),
            -15,
            15,
        )
        fair = abs(odds - 1) < 1e-6
        yield fair, "averaged over generated points, the best D / (1 - D) is one."


@visible
def line_value(answer):
    """line_value(m, slope, intercept) -> number."""
    undecided = [float(answer(m, 0.0, 0.0)) for m in (0.0, 2.0, 7.0)]
    yield max(undecided) - min(undecided) < 1e-9, "a constant D ignores the generator."
    yield undecided[0] < 0, "logs of probabilities: the value is negative."
    steep = float(answer(2.0, 9.0, 1.0))
    yield (
        math.isfinite(steep),
        "a judge who is sure loses much, and not infinitely much.",
    )
    here, mirrored = answer(2.0, -0.7, 0.4), answer(2.0, -0.7, 1.4 - 0.4)
    yield abs(here - mirrored) < 1e-9, "data and generator exchanged: the same value."
    sure, surer = answer(2.0, 0.0, 20.0), answer(2.0, 0.0, 30.0)
    yield abs(sure - surer - 10) < 1e-6, "ten more logits of blind trust cost ten nats."
    a, b = answer(2.0, -3.0, 1.0), answer(2.0, 1.0, 1.0)
    yield answer(2.0, -1.0, 1.0) > (a + b) / 2, "the value is concave in the slope."
    right, wrong = answer(2.0, -1.0, 1.0), answer(2.0, 1.0, -1.0)
    yield right > wrong, "who believes in the data's side earns more."


@visible
def fool(answer):
    """fool(real) -> shape (N,)."""
    for real in (3 * REAL, torch.linspace(-8, 9, 60)):
        fake = torch.as_tensor(answer(real))
        yield fake.shape == real.shape, "as many as there are real ones."
        same = abs(fake.mean() - real.mean()) < 1e-9
        yield same, "the gradient of the line judge must vanish."
        distance = (fake[:, None] - real).abs().min()
        yield distance > 1, "none of them may be near a real one."
        yield fake.abs().max() <= 1000, "stay in the range that is allowed."


def _worth(a, b, d) -> torch.Tensor:
    return a * torch.log(d) + b * torch.log1p(-d)


def _near(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.allclose(left, right, rtol=0, atol=1e-9)
