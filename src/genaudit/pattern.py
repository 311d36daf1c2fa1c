"""A flower of 55 small Gaussians in the plane, with a rule that says what hits it.

Thirty petals in two rings, twenty-four seeds in two rings inside them, and one part in
the centre, all equally probable. As a Gaussian mixture its noised density, score, noise
mean and class probabilities are exact, so a sampler that runs on them makes no error
but its own.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from genaudit import _check
from genaudit.mixture import GaussianMixture

SD = 0.04
"""Standard deviation of every part, in each coordinate."""

HIT_RADIUS = 3.0
"""A point hits the flower within this many SDs of a part."""

CLASSES = ("petals", "seeds", "centre")
"""Names of the three kinds of parts."""

# Parts in each ring, its radius, the turn of its first part, and its class.
_RINGS = (
    (15, 1.1, 0.0, 0),
    (15, 1.7, 0.5, 0),
    (8, 0.45, 0.0, 1),
    (16, 0.8, 0.0, 1),
    (1, 0.0, 0.0, 2),
)
LABELS = torch.cat([torch.full((ring[0],), ring[3]) for ring in _RINGS])
"""Class of each part, as an index into CLASSES, shape (55,)."""

RINGS = torch.cat([torch.full((ring[0],), i) for i, ring in enumerate(_RINGS)])
"""Ring of each part, shape (55,): inner petals, outer petals, inner seeds, outer seeds,
centre."""


class Hits(NamedTuple):
    """Which part of the flower each point is nearest to.

    Attributes:
        part: index of the nearest part, 0..54, shape (N,).
        hit: whether it lies within HIT_RADIUS standard deviations, shape (N,).
    """

    part: Tensor
    hit: Tensor

    @property
    def rate(self) -> float:
        """Share of the points that hit the flower."""
        return self.hit.double().mean().item()

    @property
    def covered(self) -> int:
        """Number of parts, of 55, that were hit at least once."""
        return len(self.part[self.hit].unique())

    def share(self, name: str) -> float:
        """Share of all points that hit a part of the named class, one of CLASSES.

        ValueError for another name.
        """
        _check.choice("name", name, CLASSES)
        wanted = LABELS[self.part] == CLASSES.index(name)
        return (wanted & self.hit).double().mean().item()


def part_centres() -> Tensor:
    """Centres of the 55 parts, shape (55, 2), float64, in the order of LABELS."""
    rings = []
    for parts, radius, turn, _ in _RINGS:
        angle = 2 * math.pi * (torch.arange(parts, dtype=torch.float64) + turn) / parts
        rings.append(radius * torch.stack([angle.cos(), angle.sin()], 1))
    return torch.cat(rings)


def flower(name: str | None = None) -> GaussianMixture:
    """The whole flower, or the parts of one class, as a Gaussian mixture in float64.

    ``name`` is one of CLASSES; otherwise ValueError.
    """
    centres = part_centres()
    if name is not None:
        _check.choice("name", name, CLASSES)
        centres = centres[LABELS == CLASSES.index(name)]
    count = len(centres)
    weights = torch.full((count,), 1 / count, dtype=torch.float64)
    return GaussianMixture(weights, centres, SD**2)


def find_hits(points) -> Hits:
    """Hold points, shape (N, 2), against the flower.

    A draw from a part lies within 3 of its SDs with probability 1 - exp(-9/2), which is
    0.9889: no sampler should be asked for more. ValueError for another shape or an
    entry that is not finite.
    """
    points = _check.finite("points", points)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"points has shape {tuple(points.shape)}: it must be (N, 2)")
    nearest = torch.cdist(points.double(), part_centres()).min(1)
    return Hits(nearest.indices, nearest.values < HIT_RADIUS * SD)


def class_probabilities(points, alpha_bar=1.0) -> Tensor:
    """p(class | x_t) for points (..., 2) at a noise level, shape (..., 3), exact.

    ``alpha_bar`` in (0, 1] as in ``GaussianMixture``; 1 is the clean flower.
    """
    parts = flower().responsibilities(points, alpha_bar)
    ones = torch.nn.functional.one_hot(LABELS, len(CLASSES)).to(parts.dtype)
    return parts @ ones
