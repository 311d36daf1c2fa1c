"""Scores held against enumeration, whole numbers, plain loops and other libraries."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial import KDTree
from torch.nn import functional

from genaudit.metrics import (
    bits_per_character,
    bits_per_dimension,
    coverage,
    energy_distance,
    nearer_to_training,
    pass_at_k,
    perplexity,
    precision,
    recall,
)
from tests.strategies import exact, numbers, seeded, vectors

INF, NAN = math.inf, math.nan
SCORES = precision, recall, coverage


def by_binomials(n, c, k):
    """1 - C(n-c, k) / C(n, k) without any rounding."""
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


@st.composite
def attempts(draw, most=40, fewest_passes=0):
    n = draw(st.integers(1, most))
    return n, draw(st.integers(fewest_passes, n)), draw(st.integers(1, n))


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_choices_that_hold_a_pass(n):
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        choices = list(itertools.combinations(range(n), k))
        passing = sum(min(chosen) < c for chosen in choices)  # the first c passed
        assert abs(pass_at_k(n, c, k) - passing / len(choices)) < 1e-15


@given(attempts())
def test_pass_at_k_is_the_formula_of_binomials(case):
    assert math.isclose(pass_at_k(*case), by_binomials(*case), rel_tol=1e-14)


@given(st.integers(400, 10**6), st.integers(1, 200), numbers(0, 1), st.booleans())
@example(10**6, 1, 1e-6, False)  # 1e-6: nothing left of it in 1 - (1 - 1e-6)
@example(10**6, 200, 0.5, False)
@example(10**6, 200, 1e-3, True)
def test_pass_at_k_of_a_million_attempts_keeps_its_digits(n, few, share, nearly_all):
    k = n - few if nearly_all else few
    for c in {1, few, n - few, int(share * n)}:
        right = by_binomials(n, c, k)
        assert math.isclose(pass_at_k(n, c, k), right, rel_tol=1e-13)


def test_pass_at_k_where_no_binomial_fits_a_float():
    """Half of a million attempts: the first three factors leave 1/8 of failures."""
    half = 500_000
    assert pass_at_k(10**6, half, half) == 1
    right = 1 - Fraction(math.perm(half, 3), math.perm(10**6, 3))
    assert math.isclose(pass_at_k(10**6, 3, half), right, rel_tol=1e-15)
    assert math.isclose(pass_at_k(10**6, half, 3), right, rel_tol=1e-15)


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("p", [0.1, 0.3, 0.7])
def test_the_mean_of_pass_at_k_is_the_chance_of_a_pass(n, p):
    c, k = torch.arange(n + 1), torch.arange(1, n + 1)
    chances = exact(stats.binom.pmf(c, n, p))
    mean = chances @ pass_at_k(n, c[:, None], k)
    assert torch.allclose(mean, 1 - (1 - p) ** k.double(), rtol=0, atol=1e-14)


@given(attempts(10**4, fewest_passes=1))
def test_passes_and_grants_can_be_exchanged(case):
    n, c, k = case
    assert pass_at_k(n, c, k) == pass_at_k(n, k, c)


@given(attempts(100))
def test_pass_at_k_rises_with_passes_and_with_grants(case):
    n, c, k = case
    value = pass_at_k(n, c, k)
    assert value >= c / n - 1e-15  # one grant; the more, the better
    assert pass_at_k(n, min(c + 1, n), k) >= value - 1e-15
    assert pass_at_k(n, c, min(k + 1, n)) >= value - 1e-15
    assert (value == 0) == (c == 0)
    assert value == 1 or n - c >= k


def test_pass_at_k_broadcasts_whole_numbers_of_any_type():
    c, k = torch.tensor([[0], [1], [4]]), np.array([1, 3])
    found = pass_at_k(4, c, k)
    assert found.dtype == torch.float64
    right = [[0, 0], [1 / 4, 3 / 4], [1, 1]]
    assert torch.allclose(found, exact(right), rtol=1e-15)
    small = torch.tensor([200, 100, 2], dtype=torch.uint8)
    assert abs(pass_at_k(*small) - float(by_binomials(200, 100, 2))) < 1e-15
    assert pass_at_k([5, 5], [2, 5], [1, 1]).tolist() == pytest.approx([0.4, 1])
    assert pass_at_k(4, torch.empty(2, 0).long(), 1).shape == (2, 0)


probabilities = st.lists(numbers(1e-300, 1), min_size=1, max_size=8).map(exact)


@given(probabilities)
def test_perplexity_is_one_over_the_geometric_mean(p):
    assert math.isclose(perplexity(p.log()), 1 / stats.gmean(p), rel_tol=1e-12)


def padded_batch():
    """Log-probabilities in three texts of 5, 2 and 1 tokens, and where they stand."""
    logs = -torch.rand(3, 5, generator=seeded(), dtype=torch.float64)
    return logs, torch.arange(5) < torch.tensor([5, 2, 1])[:, None]


@pytest.mark.parametrize("padding", [NAN, -INF, INF, 1.0, -100.0])
def test_padding_may_hold_anything(padding):
    logs, mask = padded_batch()
    total, count = 0.0, 0
    for row, length in zip(logs.tolist(), [5, 2, 1], strict=True):
        for log in row[:length]:
            total, count = total + log, count + 1
    padded = torch.where(mask, logs, padding)
    for each in (mask, mask.long(), mask.double(), mask.numpy(), mask.tolist()):
        assert math.isclose(perplexity(padded, each), math.exp(-total / count))
        bits = bits_per_character(padded, 11, each)
        assert math.isclose(bits, -total / math.log(2) / 11)


def test_perplexity_is_the_exponential_of_torchs_cross_entropy():
    logits = torch.randn(3, 5, 7, generator=seeded(1), dtype=torch.float64)
    tokens = torch.randint(7, (3, 5), generator=seeded(2))
    _, mask = padded_batch()
    logs = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
    ignored = torch.where(mask, tokens, -100).flatten()
    loss = functional.cross_entropy(logits.flatten(0, 1), ignored)
    assert math.isclose(perplexity(logs, mask), loss.exp(), rel_tol=1e-14)


def test_texts_are_pooled_and_not_averaged():
    logs = exact([[0.5, 1, 1], [0.25, 0.25, 0.25]]).log()
    mask = torch.tensor([[True, False, False], [True, True, True]])
    assert math.isclose(perplexity(logs, mask), 2 ** (7 / 4))
    each = torch.stack([perplexity(*text) for text in zip(logs, mask, strict=True)])
    assert torch.allclose(each, exact([2, 4]))
    assert not math.isclose(each.mean(), 2 ** (7 / 4))
    assert not math.isclose(each.log().mean().exp(), 2 ** (7 / 4))


def test_perplexities_by_hand():
    assert abs(perplexity(exact([0.25] * 6).log()) - 4) < 1e-14
    assert abs(perplexity(exact([0.5, 0.2, 0.1]).log()) - 100 ** (1 / 3)) < 1e-14
    assert perplexity([0.0, 0.0]) == 1
    assert perplexity(0.0) == perplexity(torch.zeros(2, 1, 3).int()) == 1
    assert bits_per_character([0.0], 1) == 0


def test_a_token_of_probability_zero_makes_it_infinite():
    logs = exact([0.5, 0.0, 1.0]).log()
    assert perplexity(logs) == bits_per_character(logs, 3) == INF
    assert perplexity(logs, [True, False, True]) < 2


@given(st.lists(numbers(-1400, -800), min_size=1, max_size=6))
def test_far_tails_keep_their_digits(tails):
    """Probabilities that no float64 holds, each beside a token that was certain."""
    logs = tails + [0.0] * len(tails)
    nats = -math.fsum(tails)
    assert math.isclose(perplexity(logs).log(), nats / len(logs), rel_tol=1e-13)
    bits = bits_per_character(logs, 3)
    assert math.isclose(bits, nats / math.log(2) / 3, rel_tol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_logs_are_summed_in_float64(dtype):
    logs = torch.linspace(-3, 0, 30_000).to(dtype)
    total = math.fsum(logs.tolist())
    found, bits = perplexity(logs), bits_per_character(logs, 7)
    assert found.dtype == bits.dtype == torch.float64
    assert math.isclose(found, math.exp(-total / 30_000), rel_tol=1e-13)
    assert math.isclose(bits, -total / math.log(2) / 7, rel_tol=1e-13)


def test_python_numbers_are_not_rounded_to_float32():
    assert abs(perplexity([-0.1]) - math.exp(0.1)) < 1e-15
    assert abs(bits_per_dimension(-0.1, 1, 0.1) - math.log2(10 * math.e**0.1)) < 1e-15


@given(st.lists(numbers(-20, 0), min_size=2, max_size=8), st.integers(1, 100))
def test_bits_per_character_do_not_ask_how_a_text_was_cut(logs, characters):
    """A pair of tokens made one has the product of their probabilities."""
    merged = [logs[0] + logs[1], *logs[2:]]
    bits = bits_per_character(logs, characters)
    assert math.isclose(bits_per_character(merged, characters), bits, rel_tol=1e-12)
    by_token = perplexity(logs).log2() * len(logs) / characters
    assert math.isclose(bits, by_token, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.parametrize("dimensions", [1, 12, 3072])
def test_equal_chances_for_256_levels_cost_8_bits_in_any_range(dimensions):
    for length in (1, 2, 255, 256):  # [0, 1], [-1, 1], whole levels
        log_density = -dimensions * math.log(length)
        bits = bits_per_dimension(log_density, dimensions, length / 256)
        assert abs(bits - 8) < 1e-13


@given(numbers(-1e4, 1e4), st.integers(1, 1000), numbers(0.001, 1), numbers(0.01, 100))
def test_other_units_cost_no_bits(log_density, dimensions, width, unit):
    bits = bits_per_dimension(log_density, dimensions, width)
    rescaled = log_density - dimensions * math.log(unit)
    found = bits_per_dimension(rescaled, dimensions, width * unit)
    assert abs(found - bits) < 1e-12 * (1 + abs(bits))


@given(vectors(3, -2, 2), numbers(0.3, 3))
def test_bits_are_those_of_a_bins_mass(x, sd):
    """Up to the bin's curvature: a share of (width / sd)^2 |x^2 - 1| / 24."""
    law, width = stats.norm(0, sd), sd / 512
    mass = law.cdf(x * sd + width / 2) - law.cdf(x * sd - width / 2)
    bits = bits_per_dimension(law.logpdf(x * sd).sum(), 3, width)
    assert abs(bits + np.log2(mass).mean()) < 1e-6


def test_bits_per_dimension_of_a_batch():
    logs = torch.tensor([[-7000.0, 0.0], [3.5, 60_000.0]])
    for dtype in (torch.float16, torch.float32, torch.float64):
        coarse = logs.to(dtype)
        bits = bits_per_dimension(coarse, 3, 0.25)
        assert bits.dtype == torch.float64
        right = [[2 - log / math.log(2) / 3 for log in row] for row in coarse.tolist()]
        assert torch.allclose(bits, exact(right), rtol=1e-15)


def apart(a, b):
    """The squared distance of two points: whole, so equal ones are equal."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def reach(points, neighbours):
    """Squared radii of the balls, by sorting what lies around each point."""
    return [
        sorted(apart(point, other) for j, other in enumerate(points) if j != i)[
            neighbours - 1
        ]
        for i, point in enumerate(points)
    ]


def share_in_a_ball(points, centres, neighbours):
    balls = list(zip(centres, reach(centres, neighbours), strict=True))
    inside = [any(apart(p, centre) <= far for centre, far in balls) for p in points]
    return sum(inside) / len(points)


def share_of_balls(centres, points, neighbours):
    balls = zip(centres, reach(centres, neighbours), strict=True)
    filled = [any(apart(p, centre) <= far for p in points) for centre, far in balls]
    return sum(filled) / len(centres)


@st.composite
def clouds(draw, count=2, fewest=2, most=7):
    """Few whole coordinates, so that distances tie and points come twice."""
    axes = draw(st.integers(1, 3))
    point = st.tuples(*[st.integers(-3, 3)] * axes)
    lengths = [draw(st.integers(fewest, most)) for _ in range(count)]
    return [draw(st.lists(point, min_size=n, max_size=n)) for n in lengths]


@given(clouds(), st.data())
def test_balls_are_those_of_plain_loops(pair, data):
    real, generated = pair
    for score, by_loops, centres, points in [
        (precision, share_in_a_ball, real, generated),
        (recall, share_in_a_ball, generated, real),
    ]:
        k = data.draw(st.integers(1, len(centres) - 1))
        assert abs(score(real, generated, k) - by_loops(points, centres, k)) < 1e-15
    k = data.draw(st.integers(1, len(real) - 1))
    right = share_of_balls(real, generated, k)
    assert abs(coverage(real, generated, k) - right) < 1e-15


@pytest.mark.parametrize("neighbours", [1, 3, 5])
def test_balls_are_those_of_a_search_tree(neighbours):
    real = torch.randn(150, 6, generator=seeded(1), dtype=torch.float64)
    generated = 1.2 * torch.randn(90, 6, generator=seeded(2), dtype=torch.float64)
    trees = KDTree(real), KDTree(generated)
    radius, other = (tree.query(tree.data, neighbours + 1)[0][:, -1] for tree in trees)
    between = torch.cdist(real, generated).numpy()
    in_real, in_generated = between <= radius[:, None], between <= other
    scores = [score(real, generated, neighbours) for score in SCORES]
    right = [in_real.any(0), in_generated.any(1), in_real.any(1)]
    assert scores == pytest.approx([each.mean() for each in right], abs=1e-15)
    assert 0.1 < min(scores)
    assert max(scores) < 0.99


def test_five_neighbours_unless_told():
    real, generated = torch.randn(2, 30, 2, generator=seeded(8), dtype=torch.float64)
    for score in SCORES:
        four, five, six = (score(real, 1.5 + generated, k) for k in (4, 5, 6))
        assert four < five < six
        assert score(real, 1.5 + generated) == five


@given(clouds(1), st.data())
def test_a_set_covers_itself(cloud, data):
    [points] = cloud
    k = data.draw(st.integers(1, len(points) - 1))
    for score in SCORES:
        assert score(points, points, k) == 1
        assert score(points, points[::-1] + points[:1], k) == 1


@given(clouds(fewest=3), st.data())
def test_more_neighbours_lower_no_share(pair, data):
    k = data.draw(st.integers(1, min(map(len, pair)) - 2))
    for score in SCORES:
        assert score(*pair, k + 1) >= score(*pair, k)


def test_points_that_come_twice_have_a_ball_of_radius_zero():
    """Also where a fast product of matrices would lose all digits of a distance."""
    points = torch.randint(-9, 10, (40, 3), generator=seeded()).double() + 2**40 + 0.1
    twice = points.repeat(2, 1)
    for score in SCORES:
        assert score(twice, points.repeat(2, 1), 1) == 1
        assert score(twice, twice + 2**-12, 1) == 0


def test_the_border_belongs_to_the_ball():
    real = exact([[0.0], [1.0]])
    for generated, right in [([[2.0], [9.0]], 0.5), ([[2.001], [9.0]], 0)]:
        assert precision(real, generated, 1) == right
        assert coverage(real, generated, 1) == right


def test_a_far_generated_point_buys_recall_and_no_coverage():
    real = torch.arange(10).double()[:, None]
    stuck = exact([[0.0], [0.25], [0.5]])
    stray = torch.cat([stuck, exact([[1000.0]])])
    assert recall(real, stuck, 1) == 0.1
    assert coverage(real, stuck, 1) == 0.2
    assert precision(real, stuck, 1) == 1
    assert recall(real, stray, 1) == 1
    assert coverage(real, stray, 1) == 0.2
    assert precision(real, stray, 1) == 0.75


def test_a_dropped_mode_is_missed_and_not_punished():
    left, right = exact([[-50.0], [-51], [-53]]), exact([[50.0], [52]])
    real = torch.cat([left, right])
    scores = [score(real, left, 1) for score in SCORES]
    assert scores == pytest.approx([1, 3 / 5, 3 / 5])
    assert [score(left, real, 1) for score in SCORES] == pytest.approx([0.6, 1, 1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_coarse_points_are_compared_in_float64(dtype):
    """300 squared is beyond half precision, and 1e30 squared beyond float32."""
    scale = 1e30 if dtype == torch.float32 else 300
    real, generated, other = (
        (scale * (seed / 2 + torch.randn(12, 2, generator=seeded(seed)))).to(dtype)
        for seed in range(3)
    )
    for score in SCORES:
        coarse = score(real, generated, 2)
        assert coarse == score(real.double(), generated.double(), 2)
        assert 0 < coarse < 1
    apart = energy_distance(real, generated)
    assert apart == energy_distance(real.double(), generated.double())
    assert 0 < apart < INF
    share = nearer_to_training(generated, real, other)
    assert share == nearer_to_training(*(x.double() for x in (generated, real, other)))
    assert 0 < share < 1


def energy_by_loops(a, b):
    within = [
        math.fsum(math.dist(*pair) for pair in itertools.combinations(cloud, 2))
        / math.comb(len(cloud), 2)
        for cloud in (a, b)
    ]
    between = math.fsum(math.dist(*pair) for pair in itertools.product(a, b))
    return 2 * between / (len(a) * len(b)) - sum(within)


@given(clouds())
def test_energy_distance_is_a_mean_over_pairs(pair):
    a, b = pair
    right = energy_by_loops(a, b)
    assert abs(energy_distance(a, b) - right) < 1e-13
    assert abs(energy_distance(b, a) - right) < 1e-13
    assert abs(energy_distance(a, b[::-1]) - right) < 1e-13


def test_energy_distances_by_hand():
    assert energy_distance([[0.0], [0.0]], [[3.0], [3.0]]) == 6
    assert energy_distance([[0.0], [1.0]], [[0.0], [1.0]]) == -1
    assert energy_distance([[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0]] * 3) == 0
    assert energy_distance([[0.0], [2.0], [4.0]], [[1.0], [9.0]]) == -2


@pytest.mark.parametrize("sizes", [(2, 2), (2, 30), (400, 150)])
def test_energy_distance_is_scipys_without_its_bias(sizes):
    """On a line: the square of scipy's counts each point's distance to itself."""
    a, b = (exact(stats.norm.rvs(size=n, random_state=n)) for n in sizes)
    within = [(x[:, None] - x).abs().sum() / len(x) ** 2 / (len(x) - 1) for x in (a, b)]
    right = stats.energy_distance(a, b) ** 2 - sum(within)
    assert abs(energy_distance(a[:, None], b[:, None]) - right) < 1e-13


def mean_miss(estimate, law, other, sizes):
    """Expected estimate over all clouds that two finite laws can make, less the truth.

    A law is a list of pairs: a point and its probability.
    """

    def mean(function, *laws):
        """The expectation of a function of independent draws."""
        total = []
        for draws in itertools.product(*laws):
            points, chances = zip(*draws, strict=True)
            total.append(math.prod(chances) * function(*points))
        return math.fsum(total)

    between, first, second = (
        mean(math.dist, *pair) for pair in [(law, other), (law, law), (other, other)]
    )
    n, m = sizes
    estimated = mean(
        lambda *points: estimate(points[:n], points[n:]), *[law] * n, *[other] * m
    )
    return estimated - (2 * between - first - second)


def biased_energy(a, b):
    """The estimate that counts each point's distance of 0 to itself."""
    return sum(
        sign * torch.cdist(exact(x), exact(y)).mean().item()
        for sign, x, y in [(2, a, b), (-1, a, a), (-1, b, b)]
    )


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (4, 2)])
@pytest.mark.parametrize("alike", [True, False])
def test_energy_distance_is_right_on_average_and_the_biased_one_is_not(sizes, alike):
    law = [((0.0, 0.0), 0.5), ((1.0, 0.0), 0.3), ((0.0, 3.0), 0.2)]
    other = law if alike else [((0.0, 0.0), 0.1), ((2.0, 2.0), 0.9)]
    assert abs(mean_miss(energy_distance, law, other, sizes)) < 1e-14
    assert mean_miss(biased_energy, law, other, sizes) > 0.1


@given(clouds(), numbers(0.1, 10), numbers(0, 6), vectors(3))
def test_moving_both_clouds_changes_no_energy_distance(pair, factor, angle, shift):
    a, b = map(exact, pair)
    turn = torch.eye(a.shape[1], dtype=torch.float64)
    if a.shape[1] > 1:
        cosine, sine = math.cos(angle), math.sin(angle)
        turn[:2, :2] = exact([[cosine, -sine], [sine, cosine]])
    moved = (factor * cloud @ turn + shift[: a.shape[1]] for cloud in (a, b))
    assert abs(energy_distance(*moved) - factor * energy_distance(a, b)) < 1e-12


def test_energy_distance_keeps_its_digits_far_from_the_origin():
    a, b = torch.randint(-9, 10, (2, 40, 3), generator=seeded()).double()
    right = energy_by_loops(a.tolist(), b.tolist())
    assert abs(energy_distance(a + 2**40, b + 2**40) - right) < 1e-13


@st.composite
def samples_and_two_sets(draw):
    size = draw(st.integers(1, 6))
    training, held_out, samples = draw(clouds(3, size, size))
    return (samples * 2)[: draw(st.integers(1, 2 * size))], training, held_out


def nearer_by_loops(samples, training, held_out):
    count = 0.0
    for sample in samples:
        here, there = (
            min(apart(sample, point) for point in points)
            for points in (training, held_out)
        )
        count += 1 if here < there else 0.5 if here == there else 0
    return count / len(samples)


@given(samples_and_two_sets())
def test_nearer_to_training_is_a_plain_count(case):
    samples, training, held_out = case
    share = nearer_to_training(*case)
    assert abs(share - nearer_by_loops(*case)) < 1e-15
    assert abs(share + nearer_to_training(samples, held_out, training) - 1) < 1e-15


@pytest.mark.parametrize("offset", [0, 2**27, 2**40])
def test_nearer_to_training_among_many_wherever_they_lie(offset):
    """From 26 points on, torch takes a distance from a product of matrices."""
    for seed in range(5):
        case = torch.randint(-9, 10, (3, 40, 3), generator=seeded(seed))
        right = nearer_by_loops(*case.tolist())
        assert abs(nearer_to_training(*case.double() + offset) - right) < 1e-15


def test_a_copier_is_found():
    training, held_out, samples = (
        torch.randn(40, 2, generator=seeded(seed)) for seed in range(3)
    )
    assert nearer_to_training(training[:7], training, held_out) == 1
    assert nearer_to_training(held_out, training, held_out) == 0
    assert nearer_to_training(samples, training, training.flip(0)) == 0.5
    assert 0.3 < nearer_to_training(samples, training, held_out) < 0.7


def test_a_fair_model_scores_one_half_on_average():
    """Over every way to deal six points out into training and held-out sets."""
    points = torch.randn(6, 2, generator=seeded(3), dtype=torch.float64)
    samples = exact([[0.0, 0.0], [5.0, 1.0], [0.3, -0.2]])
    shares = []
    for chosen in itertools.combinations(range(6), 3):
        rest = [i for i in range(6) if i not in chosen]
        shares.append(nearer_to_training(samples, points[list(chosen)], points[rest]))
    assert len(set(shares)) > 1
    assert abs(sum(shares) / 20 - 0.5) < 1e-15


FIVE, FLAT = torch.zeros(5, 2), torch.zeros(5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: pass_at_k(4.0, 1, 1), "n = 4.0: it must be a whole number"),
        (lambda: pass_at_k(4, True, 1), "c = True: it must be a whole number"),
        (lambda: pass_at_k(4, 1, 1j), "k = 1j: it must be a whole number"),
        (
            lambda: pass_at_k(4, torch.tensor([1.0]), 1),
            "c = tensor([1.]): it must be a whole number",
        ),
        (lambda: pass_at_k(4, 5, 1), "c = 5 with n = 4: it must lie in 0..n"),
        (lambda: pass_at_k(4, -1, 1), "c = -1 with n = 4: it must lie in 0..n"),
        (lambda: pass_at_k(4, 1, 5), "k = 5 with n = 4: it must lie in 1..n"),
        (lambda: pass_at_k(4, 1, 0), "k = 0 with n = 4: it must lie in 1..n"),
        (lambda: pass_at_k(0, 0, 1), "k = 1 with n = 0: it must lie in 1..n"),
        (
            lambda: pass_at_k([[9], [3]], 1, [2, 4, 5]),
            "k = 4 with n = 3: it must lie in 1..n",
        ),
        (
            lambda: perplexity([-1.0, 0.5]),
            "log_probabilities = [-1, 0.5]: every one must be <= 0",
        ),
        (
            lambda: perplexity([[-1.0], [NAN]]),
            "log_probabilities = [-1, nan]: every one must be <= 0",
        ),
        (
            lambda: bits_per_character([-1.0, 2.0, 3.0], 9, [1, 0, 1]),
            "log_probabilities = [-1, 3]: every one must be <= 0",
        ),
        (lambda: perplexity([]), "log_probabilities holds no token that counts"),
        (
            lambda: bits_per_character([-1.0], 9, [False]),
            "log_probabilities holds no token that counts",
        ),
        (
            lambda: perplexity([-1.0, -2.0], [True]),
            "mask has shape (1,), log_probabilities has shape (2,): "
            "the shapes must be equal",
        ),
        (
            lambda: bits_per_character([-1.0], 0),
            "characters = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: bits_per_dimension(0.0, 0, 0.5),
            "dimensions = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: bits_per_dimension(0.0, 2.5, 0.5),
            "dimensions = 2.5: must be a whole number, 1 or more",
        ),
        (
            lambda: bits_per_dimension(0.0, 1, 0.0),
            "bin_width = 0: every entry must be > 0",
        ),
        (
            lambda: bits_per_dimension([1.0, -INF], 1, 0.5),
            "log_density = [1, -inf]: every entry must be finite",
        ),
        (
            lambda: precision(FLAT, FIVE),
            "real has shape (5,): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: recall(FIVE, FLAT),
            "generated has shape (5,): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: coverage(FIVE, torch.zeros(5, 3)),
            "generated has shape (5, 3): it must be (N, 2)",
        ),
        (
            lambda: precision(FIVE, torch.zeros(0, 2)),
            "generated has shape (0, 2): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: recall(0.0, FIVE),
            "real has shape (): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: precision(FIVE[:, :0], FIVE[:, :0]),
            "real has shape (5, 0): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: coverage(FIVE, [[NAN, 0.0]]),
            "generated = [nan, 0]: every entry must be finite",
        ),
        (
            lambda: precision([[INF, 0.0]], FIVE),
            "real = [inf, 0]: every entry must be finite",
        ),
        (
            lambda: precision(FIVE, torch.zeros(9, 2), 5),
            "neighbours = 5: must be a whole number, 1..4",
        ),
        (
            lambda: recall(FIVE, torch.zeros(9, 2), 9),
            "neighbours = 9: must be a whole number, 1..8",
        ),
        (
            lambda: coverage(FIVE, torch.zeros(9, 2), 0),
            "neighbours = 0: must be a whole number, 1..4",
        ),
        (
            lambda: nearer_to_training(FIVE, FIVE, torch.zeros(4, 2)),
            "held_out has shape (4, 2), training has shape (5, 2): "
            "the shapes must be equal",
        ),
        (
            lambda: nearer_to_training(torch.zeros(5, 3), FIVE, FIVE),
            "training has shape (5, 2): it must be (N, 3)",
        ),
        (
            lambda: nearer_to_training(FIVE, FIVE, FLAT),
            "held_out has shape (5,): it must be (N, D), with N and D 1 or more",
        ),
        (
            lambda: nearer_to_training([[0.0, -INF]], FIVE, FIVE),
            "samples = [0, -inf]: every entry must be finite",
        ),
        (
            lambda: energy_distance(FIVE[:1], FIVE),
            "number of points in a = 1: must be a whole number, 2 or more",
        ),
        (
            lambda: energy_distance(FIVE, FIVE[:1]),
            "number of points in b = 1: must be a whole number, 2 or more",
        ),
        (
            lambda: energy_distance(FIVE, torch.zeros(5, 3)),
            "b has shape (5, 3): it must be (N, 2)",
        ),
        (
            lambda: energy_distance([[NAN], [0.0]], [[0.0], [1.0]]),
            "a = [nan, 0]: every entry must be finite",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
