"""Drawn faces with two known factors, and a rule that says what is a face.

A face is a bright disc on black, with two dark eyes and a dark mouth: 20 x 20 grey
pixels in [0, 1]. Two numbers make it, the size of the disc and the bend of the mouth.
The data are made here, so what a model learns can be held against the truth.
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from genaudit import _check

SIDE = 20
"""Pixels along each side of a picture."""

PIXELS = SIDE * SIDE
"""Numbers in a picture."""

SIZES = (0.55, 0.95)
"""Smallest and largest radius of the disc, in half-widths of the picture."""

SMILES = (-1.0, 1.0)
"""Bend of the mouth, from a frown to a grin."""

TOLERANCE = 0.5
"""Largest squared error, summed over pixels, of what counts as a face."""

_LOW, _HIGH = torch.tensor([SIZES, SMILES], dtype=torch.float64).T
_EDGE = 0.05  # softness of every edge, half the width of a pixel
_GRID = 81  # drawn faces along each factor that the rule compares with


class NearestFace(NamedTuple):
    """The drawn face that is nearest to a picture.

    Attributes:
        factors: its size and smile, shape (N, 2).
        error: squared distance to it, summed over pixels, shape (N,).
    """

    factors: Tensor
    error: Tensor

    @property
    def scaled(self) -> Tensor:
        """The factors, each scaled to [0, 1] over its range, shape (N, 2)."""
        return (self.factors - _LOW) / (_HIGH - _LOW)


def draw_factors(count: int, generator: torch.Generator) -> Tensor:
    """``count`` independent pairs (size, smile), uniform on SIZES and SMILES, (N, 2).

    ValueError unless ``count`` is 1 or more.
    """
    _check.whole("count", count, 1)
    return _spread(torch.rand(count, 2, generator=generator, dtype=torch.float64))


def draw_faces(size, smile) -> Tensor:
    """Draw faces, shape (..., 400) in [0, 1], row by row from the top left.

    Args:
        size: radius of the disc in half-widths of the picture, in [0.55, 0.95].
        smile: bend of the mouth, from -1 (frown) to 1 (grin). Broadcasts with size.

    ValueError for a factor outside its range.
    """
    size, smile = torch.broadcast_tensors(
        _within("size", size, *SIZES), _within("smile", smile, *SMILES)
    )
    axis = (torch.arange(SIDE, dtype=size.dtype) + 0.5) * 2 / SIDE - 1
    down, right = torch.meshgrid(axis, axis, indexing="ij")
    # Coordinates in radii of the disc: every part of the face grows with it.
    radius = size[..., None, None]
    x, y, bend = right / radius, -down / radius, smile[..., None, None]
    soft = _EDGE / radius
    disc = torch.sigmoid((1 - torch.hypot(x, y)) / soft)
    eye = torch.sigmoid((0.15 - torch.hypot(x.abs() - 0.36, y - 0.32)) / soft)
    curve = -0.38 + 0.46 * bend * ((x / 0.6).square() - 0.5)
    across = torch.sigmoid((0.6 - x.abs()) / soft)
    mouth = across * torch.sigmoid((0.13 - (y - curve).abs()) / soft)
    return (disc * (1 - eye) * (1 - mouth)).flatten(-2)


def nearest_face(pictures) -> NearestFace:
    """Compare pictures, shape (N, 400), with 81 x 81 drawn faces, evenly spaced.

    Between two neighbours of that grid the error of a drawn face stays below 0.02.
    ValueError for another shape or an entry that is not finite.
    """
    pictures = _check.finite("pictures", pictures)
    if pictures.ndim != 2 or pictures.shape[1] != PIXELS:
        raise ValueError(
            f"pictures has shape {tuple(pictures.shape)}: it must be (N, {PIXELS})"
        )
    factors, drawn = _grid()
    # A thousand pictures at a time: the table of all distances can be large.
    parts = [torch.cdist(part, drawn).min(1) for part in pictures.double().split(1000)]
    nearest = torch.cat([part.indices for part in parts])
    return NearestFace(
        factors[nearest], torch.cat([part.values for part in parts]).square()
    )


def is_face(pictures) -> Tensor:
    """Whether each picture, shape (N, 400), is within TOLERANCE of a drawn face."""
    return nearest_face(pictures).error < TOLERANCE


@functools.cache
def _grid() -> tuple[Tensor, Tensor]:
    """Factors and pictures of the drawn faces that the rule compares with."""
    unit = torch.linspace(0, 1, _GRID, dtype=torch.float64)
    factors = _spread(torch.cartesian_prod(unit, unit))
    return factors, draw_faces(*factors.T)


def _spread(unit: Tensor) -> Tensor:
    """Stretch pairs from the unit square over the ranges of the factors."""
    return _LOW + (_HIGH - _LOW) * unit


def _within(name: str, value, low: float, high: float) -> Tensor:
    tensor = _check.finite(name, value)
    if not ((tensor >= low) & (tensor <= high)).all():
        raise ValueError(
            f"{name} = {_check.short(tensor)}: every entry must lie in "
            f"[{low:g}, {high:g}]"
        )
    return tensor
