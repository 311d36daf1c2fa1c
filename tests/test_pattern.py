"""The flower: its parts, its hit rule, and its probabilities by other routes."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, ncx2

from genaudit.pattern import (
    CLASSES,
    HIT_RADIUS,
    LABELS,
    RINGS,
    SD,
    class_probabilities,
    find_hits,
    flower,
    part_centres,
)
from genaudit.process import guided_noise, score_from_noise
from tests.strategies import exact, levels, numbers, vectors

CENTRES = part_centres()
SIZES = {"petals": 30, "seeds": 24, "centre": 1}
names = st.sampled_from(CLASSES)


def test_the_rings_are_those_of_the_drawing():
    assert CENTRES.dtype == torch.float64
    assert CENTRES.shape == (55, 2)
    spots = torch.view_as_complex(CENTRES)
    for ring, (parts, radius, first) in enumerate(
        [(15, 1.1, 0), (15, 1.7, 12), (8, 0.45, 0), (16, 0.8, 0), (1, 0, 0)]
    ):
        angle = torch.arange(parts).double() * 360 / parts + first
        right = torch.polar(torch.full((parts,), radius).double(), angle.deg2rad())
        assert torch.allclose(spots[RINGS == ring], right, atol=1e-14)


def test_two_rings_of_petals_two_of_seeds_and_a_centre():
    assert CLASSES == tuple(SIZES)
    assert [(LABELS == label).sum() for label in range(3)] == list(SIZES.values())
    assert LABELS.shape == RINGS.shape == (55,)
    for ring, label in enumerate([0, 0, 1, 1, 2]):
        assert (LABELS[RINGS == ring] == label).all()


def test_no_disc_of_hits_touches_another():
    apart = torch.pdist(CENTRES).min()
    assert abs(apart - 0.3) < 1e-12  # 1.1 to 0.8, along the first ray
    assert apart > 2 * HIT_RADIUS * SD


def test_all_parts_are_equal():
    mixture = flower()
    assert mixture.means.dtype == mixture.weights.dtype == torch.float64
    assert torch.equal(mixture.means, CENTRES)
    assert torch.equal(mixture.weights, exact([1 / 55] * 55))
    assert torch.equal(mixture.variance, exact([0.04**2] * 55))


def hit_rate():
    """Exact: a part's own disc and what it sends into each of the others."""
    squares = (torch.cdist(CENTRES, CENTRES) / SD).square().numpy()
    return ncx2.cdf(HIT_RADIUS**2, 2, squares).sum() / 55


def test_the_exact_law_hits_as_often_as_the_rule_says():
    rate = hit_rate()
    assert 0 < rate - (1 - math.exp(-9 / 2)) < 1e-6  # from neighbours
    assert abs(rate - 0.98889) < 5e-6
    count = 200_000
    hits = find_hits(flower().sample(count, torch.Generator().manual_seed(1)))
    assert abs(hits.rate - rate) < 4 * math.sqrt(rate * (1 - rate) / count)
    assert hits.covered == 55
    for name, size in SIZES.items():
        share = size / 55 * rate
        spread = math.sqrt(share * (1 - share) / count)
        assert abs(hits.share(name) - share) < 4 * spread


def test_a_centre_hits_its_own_part():
    hits = find_hits(CENTRES)
    assert torch.equal(hits.part, torch.arange(55))
    assert hits.hit.all()
    assert [hits.rate, hits.covered] == [1, 55]
    for name, size in SIZES.items():
        assert abs(hits.share(name) - size / 55) < 1e-15


@given(st.integers(0, 54), numbers(0, 2 * math.pi), st.integers(0, 1))
def test_a_hit_is_within_three_standard_deviations(part, angle, inside):
    reach = (3 - 1e-9 if inside else 3 + 1e-9) * 0.04
    point = CENTRES[part] + reach * exact([math.cos(angle), math.sin(angle)])
    hits = find_hits(point[None])
    assert hits.part == part
    assert hits.hit == bool(inside)


def test_misses_are_nobodys_share():
    points = torch.cat([CENTRES[[0, 20, 20, 54]], exact([[9.0, 0.0], [0.0, -9.0]])])
    hits = find_hits(points)
    assert hits.hit.tolist() == [True] * 4 + [False] * 2
    assert hits.part[:4].tolist() == [0, 20, 20, 54]
    assert (RINGS[hits.part[4:]] == 1).all()
    assert hits.covered == 3
    assert hits.rate == 4 / 6
    assert [hits.share(name) for name in CLASSES] == [3 / 6, 0, 1 / 6]


def test_points_of_any_type_are_held_against_it():
    for points in ([[0, 0], [5, 0]], np.zeros((2, 2)), torch.zeros(2, 2).half()):
        hits = find_hits(points)
        assert hits.part[0] == 54
        assert hits.hit[0]
    for coarse in (CENTRES.float(), CENTRES.float().numpy()):
        assert find_hits(coarse).covered == 55


def bayes(point, level):
    """p(class | x_t) from scipy's normal densities, part by part."""
    spread = level * 0.04**2 + 1 - level
    joint = np.array(
        [
            multivariate_normal(math.sqrt(level) * centre, spread).pdf(point)
            for centre in CENTRES.numpy()
        ]
    )
    classes = [joint[:30].sum(), joint[30:54].sum(), joint[54:].sum()]
    return np.array(classes) / joint.sum()


@given(vectors(2, -2, 2), numbers(0.01, 0.97))
def test_class_probabilities_are_bayes_rule(point, level):
    found = class_probabilities(point, level)
    np.testing.assert_allclose(found, bayes(point.numpy(), level), atol=1e-11)


def test_clean_points_belong_to_the_part_they_lie_on():
    found = class_probabilities(CENTRES)
    assert torch.allclose(found, torch.eye(3).double()[LABELS], atol=1e-10)
    assert torch.equal(found, class_probabilities(CENTRES, 1.0))


@given(vectors(6, -1000, 1000), levels)
def test_class_probabilities_sum_to_one_wherever_the_point(points, level):
    found = class_probabilities(points.reshape(3, 1, 2), level)
    assert found.shape == (3, 1, 3)
    assert found.dtype == torch.float64
    assert torch.allclose(found.sum(-1), torch.ones(3, 1).double(), atol=1e-12)
    each = class_probabilities(points.reshape(3, 2), exact([level, 1.0, 0.5]))
    assert torch.allclose(each[0], found[0, 0], atol=1e-12)


def test_class_probabilities_keep_the_dtype_of_the_points():
    assert class_probabilities(CENTRES.float(), 0.5).dtype == torch.float32


@given(vectors(2, -2, 2), levels)
def test_the_classes_make_up_the_flower(point, level):
    """Densities combine by weights; a class's is the flower's given the class."""
    log_all = flower().log_density(point, level)
    log_weighted = torch.stack(
        [
            math.log(size / 55) + flower(name).log_density(point, level)
            for name, size in SIZES.items()
        ]
    )
    assert torch.allclose(log_weighted.logsumexp(0), log_all, atol=1e-11)
    shares = (log_weighted - log_all).exp()
    assert torch.allclose(shares, class_probabilities(point, level), atol=1e-11)


@given(vectors(2, -2, 2), numbers(0.01, 0.97), numbers(0, 6), names)
def test_guidance_climbs_the_class_probability(point, level, scale, name):
    """The guided score is that of log p(x) + scale log p(class | x)."""
    guided = guided_noise(
        flower().noise_mean(point, level), flower(name).noise_mean(point, level), scale
    )
    x = point.requires_grad_()
    share = class_probabilities(x, level)[CLASSES.index(name)]
    climb = flower().log_density(x, level) + scale * share.log()
    (gradient,) = torch.autograd.grad(climb, x)
    score = score_from_noise(level, guided)
    assert torch.allclose(score, gradient, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: flower("lamps"),
            "name = 'lamps': must be one of petals, seeds, centre",
        ),
        (
            lambda: flower(""),
            "name = '': must be one of petals, seeds, centre",
        ),
        (
            lambda: find_hits(CENTRES).share("Petals"),
            "name = 'Petals': must be one of petals, seeds, centre",
        ),
        (
            lambda: find_hits(exact([0.0, 1.0])),
            "points has shape (2,): it must be (N, 2)",
        ),
        (
            lambda: find_hits(torch.zeros(4, 3)),
            "points has shape (4, 3): it must be (N, 2)",
        ),
        (
            lambda: find_hits(torch.zeros(4, 2, 2)),
            "points has shape (4, 2, 2): it must be (N, 2)",
        ),
        (
            lambda: find_hits([[0.0, math.nan]]),
            "points = [0, nan]: every entry must be finite",
        ),
        (
            lambda: class_probabilities(exact([0.0, math.inf])),
            "x = [0, inf]: every entry must be finite",
        ),
        (
            lambda: class_probabilities(torch.zeros(2, 3)),
            "x has shape (2, 3): the last axis must be D = 2",
        ),
        (
            lambda: class_probabilities(torch.zeros(2), 0.0),
            "alpha_bar = 0: every entry must satisfy 0 < alpha_bar <= 1",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
