"""Drawn faces pixel by pixel, their factors recovered, and what the rule turns away."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats
from scipy.special import expit

from genaudit.faces import (
    PIXELS,
    SIDE,
    SIZES,
    SMILES,
    TOLERANCE,
    draw_faces,
    draw_factors,
    is_face,
    nearest_face,
)
from tests.strategies import exact, numbers, seeded

SIZE_STEP, SMILE_STEP = 0.4 / 80, 2 / 80
CENTRES = -0.95 + 0.1 * np.arange(20)  # of pixels, in half-widths of the picture


def evenly(low, high, count):
    return torch.linspace(low, high, count, dtype=torch.float64)


def fresh_faces(count=1000, seed=7):
    factors = draw_factors(count, seeded(seed))
    return factors, draw_faces(*factors.T)


def framed(pictures):
    return pictures.unflatten(-1, (SIDE, SIDE))


def plain_face(size, smile):
    """One pixel at a time, in half-widths of the picture instead of radii."""

    def inside(depth):  # depth under the edge, negative outside
        return expit(depth / 0.05)

    pixels = []
    for up in -CENTRES:
        for right in CENTRES:
            to_eye = math.hypot(abs(right) - 0.36 * size, up - 0.32 * size)
            bend = 0.46 * smile * (right**2 / (0.36 * size) - size / 2)
            to_mouth = abs(up + 0.38 * size - bend)
            mouth = inside(0.6 * size - abs(right)) * inside(0.13 * size - to_mouth)
            light = inside(size - math.hypot(right, up)) * inside(to_eye - 0.15 * size)
            pixels.append(light * (1 - mouth))
    return exact(pixels)


@pytest.mark.parametrize(
    "size, smile", [(0.55, -1.0), (0.55, 0.3), (0.7, 0.0), (0.83, -0.6), (0.95, 1.0)]
)
def test_a_face_pixel_by_pixel(size, smile, usual_dtype):
    face = draw_faces(size, smile)
    assert face.dtype == torch.float64
    assert (face - plain_face(size, smile)).abs().max() < 1e-14


@given(numbers(*SIZES), numbers(*SMILES))
def test_pixels_stay_in_range_and_left_mirrors_right(size, smile):
    face = draw_faces(size, smile)
    assert face.shape == (PIXELS,) == (400,)
    assert 0 <= face.min() < 0.01
    assert 0.9 < face.max() <= 1
    assert (framed(face) - framed(face).flip(-1)).abs().max() < 1e-14


@pytest.mark.parametrize("size", [0.55, 0.65, 0.75, 0.85, 0.95])
def test_frown_and_grin_differ_in_the_rows_of_the_mouth(size):
    frown, grin = framed(draw_faces(size, exact([-1.0, 1.0])))
    up, right = -exact(CENTRES)[:, None], exact(CENTRES)
    change = (grin - frown).abs()
    # From the lowest to the highest edge of the mouth, and five softnesses around.
    rows = (up > -0.74 * size - 0.25) & (up < -0.02 * size + 0.25)
    assert change[~rows.squeeze()].max() < 0.03
    assert change[rows.squeeze()].max() > 0.6
    # A grin is dark above its middle line at the corners and below it between them.
    corner, above = right.abs() > 0.43 * size, up > -0.38 * size
    for place, sign in [(corner & above, -1), (corner & ~above, 1)]:
        assert sign * (grin - frown)[place].sum() > 0.5
    for place, sign in [(~corner & above, 1), (~corner & ~above, -1)]:
        assert sign * (grin - frown)[place].sum() > 0.5


def test_a_bigger_face_has_more_light():
    faces = draw_faces(evenly(*SIZES, 81)[:, None], evenly(*SMILES, 21))
    assert (faces.sum(-1).diff(dim=0) > 1).all()


def test_factors_broadcast():
    sizes, smiles = exact([[0.6], [0.7], [0.9]]), exact([-0.5, 0.8])
    faces = draw_faces(sizes, smiles)
    assert faces.shape == (3, 2, 400)
    for row, size in enumerate((0.6, 0.7, 0.9)):
        for column, smile in enumerate((-0.5, 0.8)):
            assert torch.equal(faces[row, column], draw_faces(size, smile))
    assert draw_faces([0.6, 0.7], 1).shape == (2, 400)
    assert draw_faces(exact([]), 0.0).shape == (0, 400)


def test_single_precision_goes_through():
    factors, faces = fresh_faces(300)
    single = draw_faces(*factors.float().T)
    assert single.dtype == torch.float32
    assert (single - faces).abs().max() < 1e-5
    rough, fine = nearest_face(single), nearest_face(faces)
    assert rough.factors.dtype == rough.error.dtype == torch.float64
    assert (rough.factors - fine.factors).abs().max() < SMILE_STEP + 1e-9
    assert (rough.error - fine.error).abs().max() < 1e-5
    assert is_face(single).all()
    ends = torch.tensor([SIZES, SMILES], dtype=torch.float32)
    assert draw_faces(*ends).dtype == torch.float32


def test_factors_are_uniform_and_independent():
    factors = draw_factors(20000, seeded(3))
    assert factors.shape == (20000, 2)
    size, smile = factors.T.numpy()
    assert stats.kstest(size, stats.uniform(0.55, 0.4).cdf).pvalue > 0.01
    assert stats.kstest(smile, stats.uniform(-1, 2).cdf).pvalue > 0.01
    cells = np.histogram2d(size, smile, bins=10)[0]
    assert stats.chisquare(cells.ravel()).pvalue > 0.01
    assert 0.55 <= size.min() < size.max() <= 0.95
    assert -1 <= smile.min() < smile.max() <= 1


def test_a_seed_makes_the_factors_whatever_the_default_dtype(usual_dtype):
    before = torch.get_rng_state()
    factors = draw_factors(50, seeded(3))
    assert factors.dtype == torch.float64
    unit = torch.rand(50, 2, generator=seeded(3), dtype=torch.float64)
    right = torch.stack([0.55 + 0.4 * unit[:, 0], 2 * unit[:, 1] - 1], 1)
    assert (factors - right).abs().max() < 1e-15
    assert torch.equal(factors, draw_factors(50, seeded(3)))
    assert not torch.equal(factors, draw_factors(50, seeded(4)))
    assert torch.equal(torch.get_rng_state(), before)


def test_faces_of_the_grid_are_their_own_nearest():
    sizes, smiles = evenly(*SIZES, 81), evenly(*SMILES, 81)
    factors = torch.cat(
        [
            torch.cartesian_prod(sizes, smiles[::40]),
            torch.cartesian_prod(sizes[::40], smiles),
        ]
    )
    nearest = nearest_face(draw_faces(*factors.T))
    assert (nearest.factors - factors).abs().max() < 1e-12
    assert nearest.error.max() < 1e-10


def test_between_neighbours_of_the_grid_the_error_is_small():
    middles = (torch.arange(80, dtype=torch.float64) + 0.5) / 80
    for middle in middles.split(20):
        size, smile = torch.cartesian_prod(0.55 + 0.4 * middle, 2 * middles - 1).T
        assert nearest_face(draw_faces(size, smile)).error.max() < 0.02


def test_factors_of_clean_faces_are_recovered():
    factors, faces = fresh_faces(2100)
    nearest = nearest_face(faces)
    away = (nearest.factors - factors).abs()
    # A size between two stops is made up for, in part, by a bend of the mouth: the
    # nearest face is then not at the nearest stop of the smile.
    assert away[:, 0].max() < 0.525 * SIZE_STEP
    assert away[:, 1].max() < 0.8 * SMILE_STEP
    assert nearest.error.max() < 0.02
    distance = (faces - draw_faces(*nearest.factors.T)).square().sum(1)
    assert (nearest.error - distance).abs().max() < 1e-10


def test_the_nearest_of_all_by_trying_each():
    pictures = torch.rand(4, PIXELS, generator=seeded(5), dtype=torch.float64)
    pictures = pictures * exact([1.0, 0.3, 3.0, -1.0])[:, None]
    nearest = nearest_face(pictures)
    assert nearest.factors.shape == (4, 2)
    assert nearest.error.shape == (4,)
    grid = torch.cartesian_prod(evenly(*SIZES, 81), evenly(*SMILES, 81))
    drawn = draw_faces(*grid.T)
    for picture, factors, error in zip(pictures, *nearest):
        errors = (drawn - picture).square().sum(1)
        assert (factors - grid[errors.argmin()]).abs().max() < 1e-12
        assert abs(error - errors.min()) < 1e-9


def test_factors_scaled_to_the_unit_square(usual_dtype):
    ends = draw_faces(exact([[SIZES[0]], [SIZES[1]]]), exact(SMILES))
    corners = nearest_face(ends.flatten(0, 1)).scaled
    assert corners.dtype == torch.float64
    assert corners.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    _, faces = fresh_faces(50)
    nearest = nearest_face(faces)
    size, smile = nearest.factors.T
    right = torch.stack([(size - 0.55) / 0.4, (smile + 1) / 2], 1)
    assert (nearest.scaled - right).abs().max() < 1e-14


def test_a_picture_is_judged_alone():
    _, faces = fresh_faces(30)
    faces[::2] = faces[::2].flip(1)
    assert is_face(faces).tolist() == [False, True] * 15
    assert [is_face(face[None]).item() for face in faces[:4]] == [False, True] * 2
    assert is_face(faces[:0]).shape == (0,)
    assert nearest_face(faces[:0]).factors.shape == (0, 2)


def test_fresh_faces_are_faces():
    _, faces = fresh_faces()
    verdict = is_face(faces)
    assert verdict.shape == (1000,)
    assert verdict.dtype == torch.bool
    assert verdict.all()


def test_the_tolerance_is_a_squared_error_of_one_half():
    face = draw_faces(exact([0.55, 0.75, 0.95]), exact([1.0, 0.0, -1.0]))
    for square, verdict in [(0.495, True), (0.505, False)]:
        spotted = face.clone()
        spotted[:, 0] += math.sqrt(square)  # the corner, black in every face
        assert (nearest_face(spotted).error - square).abs().max() < 0.002
        assert (is_face(spotted) == verdict).all()
    assert TOLERANCE == 0.5


def test_a_little_noise_leaves_a_face_and_more_does_not():
    _, faces = fresh_faces(200)
    noise = torch.randn(200, PIXELS, generator=seeded(6), dtype=torch.float64)
    # The expected squared error is 400 variances: half of TOLERANCE, and twice.
    assert is_face(faces + math.sqrt(0.25 / 400) * noise).all()
    assert not is_face(faces + math.sqrt(1.0 / 400) * noise).any()


def average_of(size, smile, other_size, other_smile):
    return (draw_faces(size, smile) + draw_faces(other_size, other_smile)) / 2


@pytest.mark.parametrize("gap", [0.15, 0.2, 0.4])
def test_an_average_of_two_sizes_is_no_face_whatever_the_mouths(gap):
    share, smile, other = torch.cartesian_prod(
        evenly(0, 1, 5), evenly(*SMILES, 9), evenly(*SMILES, 9)
    ).T
    smaller = 0.55 + (0.4 - gap) * share
    bigger = (smaller + gap).clamp(max=0.95)
    assert not is_face(average_of(smaller, smile, bigger, other)).any()


@pytest.mark.parametrize("gap", [1.8, 2.0])
def test_an_average_of_frown_and_grin_is_no_face_at_any_size(gap):
    frowns = evenly(-1, 1 - gap, 3)
    size, smile = torch.cartesian_prod(evenly(*SIZES, 81), frowns).T
    grin = (smile + gap).clamp(max=1)
    assert not is_face(average_of(size, smile, size, grin)).any()


def test_an_average_of_alike_faces_is_a_face():
    factors, faces = fresh_faces(100)
    size, smile = factors.T
    alike = draw_faces((size + 0.02).clamp(max=0.95), 0.9 * smile)
    assert is_face((faces + alike) / 2).all()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda faces: 1 - faces,
        lambda faces: framed(faces).flip(-2).flatten(-2),
        lambda faces: framed(faces).mT.flatten(-2),
        lambda faces: framed(faces).roll(1, -1).flatten(-2),
        lambda faces: framed(faces).roll(-1, -2).flatten(-2),
        lambda faces: faces[:, torch.randperm(PIXELS, generator=seeded(8))],
        lambda faces: 0.85 * faces,
        lambda faces: faces.mean(0, keepdim=True),
        lambda faces: framed(faces).mean((-2, -1))[:, None].expand_as(faces),
        lambda faces: torch.rand(faces.shape, generator=seeded(9)),
        lambda faces: torch.linspace(0, 1, 11)[:, None].expand(-1, PIXELS),
    ],
    ids=[
        "inverted",
        "upside down",
        "on its side",
        "one pixel right",
        "one pixel up",
        "shuffled",
        "dimmed",
        "mean of all",
        "mean light",
        "noise",
        "blank",
    ],
)
def test_no_face_at_all(spoil):
    _, faces = fresh_faces(300)
    assert not is_face(spoil(faces)).any()


NAN, FACES = math.nan, torch.zeros(2, PIXELS, dtype=torch.float64)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: draw_faces(0.549, 0.0),
            "size = 0.549: every entry must lie in [0.55, 0.95]",
        ),
        (
            lambda: draw_faces([0.6, 0.951], 0.0),
            "size = [0.6, 0.951]: every entry must lie in [0.55, 0.95]",
        ),
        (
            lambda: draw_faces(0.6, -1.001),
            "smile = -1.001: every entry must lie in [-1, 1]",
        ),
        (
            lambda: draw_faces(0.6, [0.0, 1.001]),
            "smile = [0, 1.001]: every entry must lie in [-1, 1]",
        ),
        (lambda: draw_faces(NAN, 0.0), "size = nan: every entry must be finite"),
        (lambda: draw_faces(0.6, [0, NAN]), "smile = [0, nan]: every entry must be"),
        (
            lambda: nearest_face(FACES[0]),
            "pictures has shape (400,): it must be (N, 400)",
        ),
        (
            lambda: is_face(FACES[:, 1:]),
            "pictures has shape (2, 399): it must be (N, 400)",
        ),
        (
            lambda: is_face(framed(FACES)),
            "pictures has shape (2, 20, 20): it must be (N, 400)",
        ),
        (
            lambda: is_face(FACES + exact([[0.0], [NAN]])),
            "pictures = [0, 0, 0, 0, 0, 0, ... (800 entries)]: every entry must be",
        ),
        (
            lambda: draw_factors(0, seeded(0)),
            "count = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: draw_factors(2.0, seeded(0)),
            "count = 2.0: must be a whole number, 1 or more",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
