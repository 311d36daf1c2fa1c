"""Draw the book's own pictures: the title, the card for links, the symbol of a tab.

    python -m tools.pictures

The title shows what the book is about, computed: two bells whose density dissolves into
one bell of noise from left to right, and a few walkers who take the same way.
"""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure

from genaudit.mixture import GaussianMixture
from genaudit.process import forward_step
from genaudit.schedule import cosine_schedule

FOLDER = Path(__file__).resolve().parents[1] / "chapters" / "_static"
BLUE, ORANGE, DARK = "#0072b2", "#e69f00", "#00204d"
STEPS, REACH, DPI = 240, 3.2, 100


def title() -> Figure:
    """Return the picture at the head of the first page, 1280 by 320 pixels."""
    figure = plt.figure(figsize=(12.8, 3.2), layout="none")
    dissolve(figure.add_axes((0, 0, 1, 1)))
    return figure


def card() -> Figure:
    """Return the picture that stands beside a shared link, 1200 by 630 pixels."""
    figure = plt.figure(figsize=(12, 6.3), layout="none", facecolor=DARK)
    dissolve(figure.add_axes((0, 0, 1, 0.62)))
    figure.text(0.05, 0.8, "Generative Models, Audited", color="white", size=48)
    words = "Every number on the page is computed, checked, and checked again."
    figure.text(0.05, 0.69, words, color="#d9d9d9", size=22)
    return figure


def dissolve(axes: plt.Axes) -> None:
    """Fill the axes with the exact density at every step and with eight walks."""
    schedule = cosine_schedule(STEPS)
    data = GaussianMixture([0.6, 0.4], [-1.4, 1.6], 0.03)
    x = torch.linspace(-REACH, REACH, 300)
    columns = [
        data.log_density(x[:, None], schedule.alpha_bar(t)).exp()
        for t in range(STEPS + 1)
    ]
    density = torch.stack([column / column.max() for column in columns], dim=1)
    extent = (0, STEPS, -REACH, REACH)
    axes.imshow(
        density.sqrt().numpy(),
        extent=extent,
        aspect="auto",
        origin="lower",
        cmap="cividis",
        interpolation="bilinear",
    )
    stream = torch.Generator().manual_seed(3)
    walk = [data.sample(8, stream)]
    for t in schedule.timesteps:
        noise = torch.randn(8, 1, generator=stream, dtype=walk[0].dtype)
        walk.append(forward_step(schedule, walk[-1], t, noise))
    axes.plot(torch.cat(walk, dim=1).T.numpy(), color="white", linewidth=1, alpha=0.75)
    axes.axis("off")
    axes.set(xlim=(0, STEPS), ylim=(-REACH, REACH))


def symbol() -> str:
    """Return the symbol in a browser's tab: a bell with a tick below its curve."""
    xs = [4 + step for step in range(57)]
    curve = [f"{x},{54 - 44 * math.exp(-(((x - 32) / 11) ** 2) / 2):.2f}" for x in xs]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">\n'
        f'<rect width="64" height="64" rx="12" fill="{DARK}"/>\n'
        f'<polygon points="4,54 {" ".join(curve)} 60,54" fill="{BLUE}"/>\n'
        f'<polyline points="{" ".join(curve)}" fill="none" stroke="#fff" '
        'stroke-width="3"/>\n'
        f'<polyline points="23,41 30,48 43,31" fill="none" stroke="{ORANGE}" '
        'stroke-width="6" stroke-linecap="round" stroke-linejoin="round"/>\n'
        "</svg>\n"
    )


def main(folder: Path = FOLDER) -> None:
    """Write the three files; places that show links may know no WebP."""
    for draw, name in ((title, "title.webp"), (card, "card.jpg")):
        with plt.style.context("genaudit.book"):
            figure = draw()
            figure.savefig(folder / name, dpi=DPI, pil_kwargs={"quality": 80})
            plt.close(figure)
    (folder / "symbol.svg").write_text(symbol(), encoding="utf8")


if __name__ == "__main__":
    main()
