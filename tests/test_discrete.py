"""Short texts: every conditional, bound and likelihood against its sum by hand."""

import math
import re
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from genaudit.discrete import (
    MASK,
    FiniteDiffusion,
    TextLaw,
    all_texts,
    exact_reverse,
    independent_tokens,
    masked_elbo,
    masked_losses,
    orders,
    reveal_log_likelihoods,
    uniform_corruption,
    unmask,
)
from genaudit.divergence import kl_finite
from genaudit.latent import multi_sample_bound
from tests.strategies import exact, numbers

LN2 = math.log(2)
TWINS = TextLaw([[0.5, 0.0], [0.0, 0.5]])  # the texts 00 and 11
SIZES = [(2, 1), (1, 2), (2, 2), (3, 2), (2, 3), (3, 3)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@st.composite
def laws(draw):
    """A law on texts of one of a few sizes; any text may have probability zero."""
    vocabulary, length = draw(st.sampled_from(SIZES))
    size = vocabulary**length
    mass = numbers(0.01, 1) | st.just(0.0)
    drawn = draw(st.lists(mass, min_size=size, max_size=size).filter(any))
    masses = exact(drawn).reshape([vocabulary] * length)
    return TextLaw(masses / masses.sum())


def table(vocabulary: int, length: int, seed: int):
    """A denoiser that knows a law for each masked text, of no common law of texts."""
    shape = [vocabulary + 1] * length + [length, vocabulary]
    scores = 2 * torch.randn(shape, dtype=torch.float64, generator=generator(seed))
    known = scores.log_softmax(-1)
    return lambda texts: known[tuple((texts + 1).T)]


@st.composite
def tables(draw):
    """A size and a denoiser of that size, consistent with nothing."""
    vocabulary, length = draw(st.sampled_from(SIZES))
    return vocabulary, length, table(vocabulary, length, draw(st.integers(0, 999)))


def matrix(rows: int, columns: int, zeros: float, draw: torch.Generator):
    """Random rows of probabilities, each entry zero with a chance."""
    mass = torch.rand(rows, columns, dtype=torch.float64, generator=draw)
    kept = torch.rand(rows, columns, generator=draw) >= zeros
    kept[torch.arange(rows), torch.randint(columns, (rows,), generator=draw)] = True
    return mass * kept / (mass * kept).sum(1, keepdim=True)


@st.composite
def diffusions(draw):
    """Data and matrices of a diffusion whose reverse knows nothing of its forward."""
    states, steps = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    zeros, drawn = draw(st.sampled_from([0, 0.4])), generator(draw(st.integers(0, 999)))
    matrices = [matrix(states, states, zeros, drawn) for _ in range(2 * steps)]
    final, data = (matrix(1, states, each, drawn)[0] for each in (0, zeros))
    return data, FiniteDiffusion(matrices[:steps], matrices[steps:], final)


@pytest.mark.parametrize("vocabulary, length", [*SIZES, (1, 1), (10, 2)])
def test_all_texts_in_the_order_of_a_dictionary(vocabulary, length):
    texts = all_texts(vocabulary, length)
    assert texts.dtype == torch.int64
    assert texts.tolist() == [
        list(t) for t in product(range(vocabulary), repeat=length)
    ]


def test_every_order_once():
    assert orders(1).tolist() == [[0]]
    assert sorted(map(tuple, orders(4).tolist())) == sorted(permutations(range(4)))


@given(laws())
def test_conditionals_by_brute_force(law):
    texts = list(product(range(law.vocabulary), repeat=law.length))
    mass = dict(zip(texts, law.probabilities.tolist()))
    contexts = list(product([MASK, *range(law.vocabulary)], repeat=law.length))
    answers = law.denoise(torch.tensor(contexts)).exp()
    for context, answer in zip(contexts, answers.tolist()):
        places = range(law.length)
        fitting = [
            text for text in texts if all(context[i] in (MASK, text[i]) for i in places)
        ]
        total = sum(mass[text] for text in fitting)
        for place in places:
            for token in range(law.vocabulary):
                joint = sum(mass[text] for text in fitting if text[place] == token)
                right = joint / total if total else 1 / law.vocabulary
                assert abs(answer[place][token] - right) < 1e-14


@given(laws())
def test_conditionals_multiply_to_the_law(law):
    logs = law.log_probability(law.texts)
    assert torch.allclose(logs.exp(), law.probabilities, rtol=1e-14, atol=0)
    chain = torch.zeros(len(law.texts)).double()
    for place in range(law.length):
        seen = law.texts.clone()
        seen[:, place:] = MASK
        chain += law.denoise(seen)[:, place].gather(1, law.texts[:, [place]])[:, 0]
    assert torch.allclose(chain, logs, atol=1e-13)


@given(laws())
def test_entropy_against_scipy(law):
    assert abs(law.entropy() - stats.entropy(law.probabilities)) < 1e-14


def test_a_law_by_hand():
    law = TextLaw([[0.1, 0.2], [0.3, 0.4]])
    assert (law.vocabulary, law.length) == (2, 2)
    texts = torch.tensor([[1, 0], [0, 1]])
    assert torch.equal(law.log_probability(texts).exp(), exact([0.3, 0.2]))
    known = law.denoise(torch.tensor([[MASK, 0], [MASK, MASK]])).exp()
    assert torch.allclose(known[0], exact([[0.25, 0.75], [1, 0]]))
    assert torch.allclose(known[1], exact([[0.3, 0.7], [0.4, 0.6]]))


def test_a_rare_context_is_not_an_impossible_one():
    law = TextLaw([[1.0, 0.0], [2e-308, 6e-308]])
    rare = law.denoise(torch.tensor([[1, MASK]]))[0, 1]
    assert torch.allclose(rare.exp(), exact([0.25, 0.75]))
    assert TWINS.denoise(torch.tensor([[0, 1]])).exp().tolist() == [[[0.5, 0.5]] * 2]


def test_draws_follow_the_law():
    law = TextLaw(exact([[0.1, 0.2, 0.0], [0.3, 0.05, 0.05], [0.0, 0.1, 0.2]]))
    texts = law.sample(20_000, generator(1))
    assert texts.shape == (20_000, 2)
    counts = Counter(map(tuple, texts.tolist()))
    seen = exact([counts[tuple(text)] for text in law.texts.tolist()])
    some = law.probabilities > 0
    assert (seen[~some] == 0).all()
    assert stats.chisquare(seen[some], 20_000 * law.probabilities[some]).pvalue > 0.01
    assert torch.equal(law.sample(50, generator(7)), law.sample(50, generator(7)))


def losses_by_mask(denoise, texts):
    """Cross-entropy of the masked places for each mask: pairs (mask size, (B,))."""
    for mask in product([False, True], repeat=texts.shape[1]):
        known = denoise(texts.masked_fill(torch.tensor(mask), MASK))
        loss = torch.zeros(len(texts)).double()
        for place, hidden in enumerate(mask):
            if hidden:
                loss -= known[torch.arange(len(texts)), place, texts[:, place]]
        yield sum(mask), loss


NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
TIMES = list(zip((NODES + 1) / 2, NODE_WEIGHTS / 2))  # exact to degree 15 on (0, 1)


@given(tables())
def test_the_bound_is_the_weighted_integral_over_time(case):
    vocabulary, length, denoise = case
    texts = all_texts(vocabulary, length)
    bound = torch.zeros(len(texts)).double()
    for size, loss in losses_by_mask(denoise, texts):
        for t, weight in TIMES:
            bound -= weight / t * t**size * (1 - t) ** (length - size) * loss
    assert torch.allclose(masked_elbo(denoise, texts), bound, rtol=1e-13, atol=1e-13)


@given(tables())
def test_losses_average_over_the_masks_of_one_size(case):
    vocabulary, length, denoise = case
    texts = all_texts(vocabulary, length)
    sums, counts = torch.zeros(length + 1, len(texts)).double(), Counter()
    for size, loss in losses_by_mask(denoise, texts):
        sums[size] += loss
        counts[size] += 1
    means = torch.stack([sums[m] / counts[m] for m in range(1, length + 1)], 1)
    assert torch.allclose(masked_losses(denoise, texts), means, rtol=1e-13)


@given(tables())
def test_the_bound_is_the_mean_over_orders(case):
    vocabulary, length, denoise = case
    texts = all_texts(vocabulary, length)
    each = reveal_log_likelihoods(denoise, texts, orders(length))
    assert torch.allclose(masked_elbo(denoise, texts), each.mean(1), rtol=1e-13)


@given(laws())
def test_exact_conditionals_leave_no_gap_whatever_the_order(law):
    logs = law.log_probability(law.texts)
    assert torch.allclose(masked_elbo(law.denoise, law.texts), logs, atol=1e-13)
    each = reveal_log_likelihoods(law.denoise, law.texts, orders(law.length))
    assert torch.allclose(each, logs[:, None].expand_as(each), atol=1e-13)


@given(tables(), st.data())
def test_any_schedule_is_a_law_of_texts(case, data):
    vocabulary, length, denoise = case
    step = st.lists(st.integers(0, 4), min_size=length, max_size=length)
    schedules = torch.tensor(data.draw(st.lists(step, min_size=1, max_size=3)))
    texts = all_texts(vocabulary, length)
    each = reveal_log_likelihoods(denoise, texts, schedules)
    assert torch.allclose(each.exp().sum(0), torch.ones(len(schedules)).double())


def test_places_of_one_step_do_not_see_each_other():
    denoise, text = table(3, 3, 5), torch.tensor([[2, 0, 1]])
    first = denoise(torch.tensor([[MASK, MASK, MASK]]))[0]
    second = denoise(torch.tensor([[MASK, 0, MASK]]))[0]
    right = first[1, 0] + second[0, 2] + second[2, 1]
    schedules = torch.tensor([[7, 2, 7], [0, 0, 0]])
    logs = reveal_log_likelihoods(denoise, text, schedules)
    assert logs.shape == (1, 2)
    assert abs(logs[0, 0] - right) < 1e-15
    assert abs(logs[0, 1] - (first[0, 2] + first[1, 0] + first[2, 1])) < 1e-15


def evidence_and_bounds(denoise, texts, schedules, samples):
    """log p(text) and bounds, the schedule the latent variable, drawn uniformly."""
    logs = reveal_log_likelihoods(denoise, texts, schedules)
    q = torch.full_like(logs, 1 / len(schedules))
    bounds = torch.stack([multi_sample_bound(q, logs, count) for count in samples])
    return logs.logsumexp(1) - math.log(len(schedules)), bounds


@given(tables())
def test_more_samples_rise_from_the_bound_to_the_likelihood(case):
    vocabulary, length, denoise = case
    texts = all_texts(vocabulary, length)
    samples = [1, 2, 5, 50, 10**9]
    evidence, bounds = evidence_and_bounds(denoise, texts, orders(length), samples)
    assert torch.allclose(bounds[0], masked_elbo(denoise, texts), atol=1e-12)
    assert (bounds.diff(dim=0) > -1e-12).all()
    assert (bounds <= evidence + 1e-12).all()
    assert torch.allclose(bounds[-1], evidence, atol=1e-6)
    assert abs(evidence.exp().sum() - 1) < 1e-12


def test_two_tokens_pay_their_entropy_and_not_two_thirds_of_it():
    texts = torch.tensor([[0, 0], [1, 1]])
    bound = masked_elbo(TWINS.denoise, texts)
    assert torch.allclose(bound, exact([-LN2, -LN2]), rtol=1e-15)
    assert abs(TWINS.entropy() - LN2) < 1e-15
    losses = masked_losses(TWINS.denoise, texts)
    assert torch.allclose(losses, exact([[0, 2 * LN2]] * 2), rtol=1e-15)
    unweighted = sum(
        weight * t**size * (1 - t) ** (2 - size) * loss
        for size, loss in losses_by_mask(TWINS.denoise, texts)
        for t, weight in TIMES
    )
    assert torch.allclose(unweighted, exact([2 / 3 * LN2] * 2), rtol=1e-14)


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_two_tokens_at_once_make_impossible_pairs(steps):
    schedules = all_texts(steps, 2)
    each = reveal_log_likelihoods(TWINS.denoise, TWINS.texts, schedules)
    pairs = each.exp().mean(1)
    assert abs(pairs[1] + pairs[2] - 1 / (2 * steps)) < 1e-15
    assert abs(pairs.sum() - 1) < 1e-15
    bounds = -each[[0, 3]].mean(1)
    assert torch.allclose(bounds, exact([LN2 * (1 + 1 / steps)] * 2), rtol=1e-14)


def test_a_bound_on_an_impossible_text_is_minus_infinity():
    bound = masked_elbo(TWINS.denoise, TWINS.texts)
    assert bound.isinf().tolist() == [False, True, True, False]
    assert (bound < 0).all()
    each = reveal_log_likelihoods(TWINS.denoise, TWINS.texts, orders(2))
    assert each[1].tolist() == [-math.inf, -math.inf]


def shares_of_draws(texts, vocabulary):
    place = vocabulary ** torch.arange(texts.shape[1] - 1, -1, -1)
    counts = (texts * place).sum(1).bincount(minlength=vocabulary ** texts.shape[1])
    return counts / len(texts)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("denoise", [TWINS.denoise, table(2, 2, 3)])
def test_draws_follow_the_mean_over_schedules(denoise, steps):
    schedules = all_texts(steps, 2)
    each = reveal_log_likelihoods(denoise, all_texts(2, 2), schedules)
    law = each.exp().mean(1)
    texts = unmask(denoise, 40_000, 2, steps, generator(steps))
    assert texts.shape == (40_000, 2)
    error = (law * (1 - law) / len(texts)).sqrt()
    assert ((shares_of_draws(texts, 2) - law).abs() <= 4 * error).all()


def test_draws_of_longer_texts_from_more_tokens():
    denoise = table(3, 3, 8)
    logs = reveal_log_likelihoods(denoise, all_texts(3, 3), all_texts(2, 3))
    law = logs.exp().mean(1)
    counts = shares_of_draws(unmask(denoise, 40_000, 3, 2, generator(2)), 3) * 40_000
    assert stats.chisquare(counts.double(), 40_000 * law).pvalue > 0.01


def test_greedy_draws_differ_in_nothing_but_their_schedule():
    denoise = table(3, 3, 4)
    once = unmask(denoise, 50, 3, 1, generator(), greedy=True)
    best = denoise(torch.full((1, 3), MASK)).argmax(-1)
    assert (once == best).all()
    law = torch.zeros(27)
    for schedule in all_texts(2, 3):
        seen = torch.where(schedule == 0, best, MASK)
        last = torch.where(schedule == 1, denoise(seen).argmax(-1), seen)
        law += shares_of_draws(last, 3) / 8
    assert (law > 0).sum() > 1
    texts = unmask(denoise, 10_000, 3, 2, generator(3), greedy=True)
    error = (law * (1 - law) / len(texts)).sqrt()
    assert ((shares_of_draws(texts, 3) - law).abs() <= 4 * error).all()


def test_a_vocabulary_of_one_token_has_one_text():
    denoise = table(1, 3, 0)
    for greedy in (False, True):
        assert (unmask(denoise, 4, 3, 2, generator(), greedy) == 0).all()
    assert masked_elbo(denoise, torch.zeros(1, 3).long()) == 0


def test_one_seed_one_set_of_texts():
    one, same, other = (
        unmask(table(3, 3, 4), 60, 3, 3, generator(s)) for s in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_coarse_denoiser_is_welcome_and_its_sums_are_fine(dtype):
    fine, texts = table(3, 2, 6), all_texts(3, 2)
    for score in (
        masked_elbo,
        lambda denoise, texts: reveal_log_likelihoods(denoise, texts, orders(2)),
    ):
        coarse = score(lambda seen: fine(seen).to(dtype), texts)
        assert coarse.dtype == torch.float64
        rounded = score(lambda seen: fine(seen).to(dtype).double(), texts)
        assert torch.allclose(coarse, rounded, rtol=2 * torch.finfo(dtype).eps)
    law = TextLaw(torch.tensor([[0.5, 0.25], [0.0, 0.25]], dtype=dtype))
    assert law.denoise(texts.clamp(max=1)).dtype == dtype
    assert law.entropy().dtype == dtype


@pytest.mark.parametrize("vocabulary, length", SIZES)
def test_uniform_corruption_token_by_token(vocabulary, length):
    step = uniform_corruption(vocabulary, length, 0.3)
    texts = list(product(range(vocabulary), repeat=length))
    for before, row in zip(texts, step.tolist()):
        for after, chance in zip(texts, row):
            right = 1.0
            for old, new in zip(before, after):
                right *= (0.7 if old == new else 0) + 0.3 / vocabulary
            assert abs(chance - right) < 1e-15


@given(numbers(0.01, 0.99), numbers(0.01, 0.99))
def test_two_corruptions_are_one(first, second):
    step = uniform_corruption(3, 2, first)
    both = step @ uniform_corruption(3, 2, exact(second))
    once = uniform_corruption(3, 2, 1 - (1 - first) * (1 - second))
    assert torch.allclose(both, once, atol=1e-15)
    for axis in (0, 1):
        assert torch.allclose(step.sum(axis), torch.ones(9).double())


def test_the_dtype_of_beta_is_the_dtype_of_the_step():
    step = uniform_corruption(3, 2, torch.tensor(0.3))
    assert step.dtype == torch.float32
    assert torch.allclose(step.double(), uniform_corruption(3, 2, 0.3))


@given(diffusions())
def test_likelihood_and_bound_are_sums_over_paths(case):
    _, model = case
    logs, bounds = model.log_likelihood(), model.elbo()
    assert logs.shape == bounds.shape == model.final.shape
    assert abs(logs.exp().sum() - 1) < 1e-14
    assert (bounds <= logs + 1e-13).all()
    for state in range(len(logs)):
        log_q, log_p = model.paths(state)
        assert log_q.shape == log_p.shape == (len(logs) ** len(model.forward),)
        assert abs(log_q.exp().sum() - 1) < 1e-14
        assert torch.allclose(log_p.logsumexp(0), logs[state], atol=1e-13)
        possible = log_q > -math.inf
        gaps = (log_p - log_q)[possible]
        mean = (log_q[possible].exp() * gaps).sum()
        assert torch.allclose(mean, bounds[state], atol=1e-13)
        several = [
            multi_sample_bound(log_q.exp(), log_p - log_q, count)
            for count in (1, 2, 1000)
        ]
        assert torch.allclose(several[0], bounds[state], atol=1e-12)
        assert several[0] <= several[1] + 1e-12
        assert several[1] <= several[2] + 1e-12
        assert several[2] <= logs[state] + 1e-12


def test_paths_by_hand():
    forward = [exact([[0.9, 0.1], [0.2, 0.8]]), exact([[0.7, 0.3], [0.4, 0.6]])]
    reverse = [exact([[0.55, 0.45], [0.35, 0.65]]), exact([[0.85, 0.15], [0.25, 0.75]])]
    model = FiniteDiffusion(forward, reverse, [0.6, 0.4])
    log_q, log_p = model.paths(1)  # x_1 x_2 = 00, 01, 10, 11
    q = exact([0.2 * 0.7, 0.2 * 0.3, 0.8 * 0.4, 0.8 * 0.6])
    p = exact(
        [0.6 * 0.85 * 0.45, 0.4 * 0.25 * 0.45, 0.6 * 0.15 * 0.65, 0.4 * 0.75 * 0.65]
    )
    assert torch.allclose(log_q.exp(), q, rtol=1e-14)
    assert torch.allclose(log_p.exp(), p, rtol=1e-14)


@given(diffusions())
def test_the_true_reversal_by_bayes_rule(case):
    data, model = case
    law = data
    for step, back in zip(model.forward, exact_reverse(model.forward, data)):
        after = law @ step
        for here in range(len(law)):
            for before in range(len(law)):
                right = 1 / len(law)
                if after[here] > 0:
                    right = law[before] * step[before, here] / after[here]
                assert abs(back[here, before] - right) < 1e-15
        law = after


@given(diffusions())
def test_the_true_reversal_pays_the_entropy_and_the_wrong_end(case):
    data, model = case
    reverse, law = exact_reverse(model.forward, data), data
    for step in model.forward:
        law = law @ step
    entropy = stats.entropy(data)
    right_end = FiniteDiffusion(model.forward, reverse, law / law.sum())
    logs = right_end.log_likelihood()
    assert torch.allclose(logs.exp(), data, atol=1e-14)
    wrong_end = FiniteDiffusion(model.forward, reverse, model.final)
    for each, price in [(right_end, 0), (wrong_end, kl_finite(law, model.final))]:
        # Only states with data: the reversal has never seen the others.
        mean = (data * each.elbo())[data > 0].sum()
        assert abs(mean + entropy + price) < 1e-13


def test_a_bound_of_minus_infinity_is_not_nan():
    """The reverse rules out what the forward does; where it does not, all is finite."""
    stay, mix = exact([[1.0, 0.0], [0.0, 1.0]]), exact([[1.0, 0.0], [0.5, 0.5]])
    model = FiniteDiffusion([mix, stay], [stay, stay], [0.5, 0.5])
    assert model.elbo().tolist() == [-LN2, -math.inf]
    assert model.log_likelihood().tolist() == [-LN2, -LN2]
    certain = FiniteDiffusion([stay], [stay], [1.0, 0.0])
    assert certain.elbo().tolist() == [0, -math.inf]
    assert certain.log_likelihood().tolist() == [0, -math.inf]
    assert exact_reverse([stay], [1.0, 0.0])[0].tolist() == [[1, 0], [0.5, 0.5]]


@st.composite
def rows_and_products(draw):
    """A size, rows of probabilities over its texts, and any product of token laws."""
    vocabulary, length = draw(st.sampled_from(SIZES))
    drawn = generator(draw(st.integers(0, 999)))
    rows = matrix(4, vocabulary**length, draw(st.sampled_from([0, 0.5])), drawn)
    return vocabulary, length, rows, matrix(length, vocabulary, 0, drawn)


@given(rows_and_products())
def test_no_product_of_tokens_is_closer_than_the_marginals(case):
    """KL to any product = KL to the product of marginals + KL of each marginal."""
    vocabulary, length, rows, factors = case
    near = independent_tokens(rows, vocabulary, length)
    assert torch.allclose(near.sum(1), torch.ones(4).double())
    any_product = factors[0]
    for factor in factors[1:]:
        any_product = (any_product[:, None] * factor).flatten()
    surplus = kl_finite(rows, any_product.expand_as(rows)) - kl_finite(rows, near)
    texts = [vocabulary] * length
    shift = torch.zeros(4).double()
    for place, factor in enumerate(factors):
        others = [1 + axis for axis in range(length) if axis != place]
        old, new = (each.reshape(4, *texts) for each in (rows, near))
        if others:
            old, new = old.sum(others), new.sum(others)
        assert torch.allclose(old, new, atol=1e-15)
        shift += kl_finite(old, factor.expand_as(old))
    assert torch.allclose(surplus, shift, atol=1e-13)
    assert (surplus > -1e-14).all()


def test_independent_tokens_by_hand():
    twins, even = [0.5, 0.0, 0.0, 0.5], [0.25] * 4
    skewed, its_own = [0.2, 0.4, 0.1, 0.3], [0.18, 0.42, 0.12, 0.28]
    near = independent_tokens(exact([twins, skewed]), 2, 2)
    assert torch.allclose(near, exact([even, its_own]))


def test_a_few_hundred_states_pass_their_own_checks():
    """Rounding adds up: matrices made here are probabilities to those who check."""
    drawn = generator(4)
    data = matrix(1, 256, 0.5, drawn)[0]
    forward = [uniform_corruption(4, 4, beta) for beta in (0.1, 0.5, 0.9)]
    reverse = exact_reverse(forward, data)
    parallel = [independent_tokens(step, 4, 4) for step in reverse]
    uniform = torch.full((256,), 1 / 256, dtype=torch.float64)
    bounds = [FiniteDiffusion(forward, each, uniform) for each in (reverse, parallel)]
    some = data > 0
    best, coarse = (data[some] @ each.elbo()[some] for each in bounds)
    assert coarse < best < -stats.entropy(data)
    assert abs(bounds[1].log_likelihood().exp().sum() - 1) < 1e-12


TEXTS, STAY = torch.tensor([[0, 1]]), torch.eye(2).double()
ROOM = TextLaw([[0.1, 0.2], [0.3, 0.4]])


def raw_scores(texts):
    return torch.ones(*texts.shape, 2)


def one_text_too_many(texts):
    return TWINS.denoise(torch.cat([texts, texts]))


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: all_texts(0, 2),
            "vocabulary = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: all_texts(2, 0),
            "length = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: orders(0),
            "length = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: orders(2.0),
            "length = 2.0: must be a whole number, 1 or more",
        ),
        (
            lambda: TextLaw(1.0),
            "probabilities has shape (): needs one axis of the size of the vocabulary "
            "for each place",
        ),
        (
            lambda: TextLaw([[0.5, 0.25, 0.25], [0.0, 0.0, 0.0]]),
            "probabilities has shape (2, 3): needs one axis of the size of the "
            "vocabulary for each place",
        ),
        (
            lambda: TextLaw([[0.5, 0.5], [0.5, 0.5]]),
            "probabilities sums to 2: probabilities must sum to 1",
        ),
        (
            lambda: TextLaw([0.5, math.nan]),
            "probabilities = [0.5, nan]: every entry must be finite",
        ),
        (
            lambda: ROOM.log_probability(torch.tensor([0, 1])),
            "texts has shape (2,): must be (B, 2)",
        ),
        (
            lambda: ROOM.log_probability(torch.tensor([[0, 1, 1]])),
            "texts has shape (1, 3): must be (B, 2)",
        ),
        (
            lambda: ROOM.log_probability(torch.tensor([[0, MASK]])),
            "texts = [0, -1]: every entry must be in 0..1",
        ),
        (
            lambda: ROOM.log_probability(torch.tensor([[0, 2]])),
            "texts = [0, 2]: every entry must be in 0..1",
        ),
        (
            lambda: ROOM.log_probability(exact([[0, 0.5]])),
            "texts has dtype torch.float64: must be torch.int64",
        ),
        (
            lambda: ROOM.denoise(torch.tensor([[0, -2]])),
            "texts = [0, -2]: every entry must be in -1..1",
        ),
        (
            lambda: ROOM.denoise(torch.tensor([[2, MASK]])),
            "texts = [2, -1]: every entry must be in -1..1",
        ),
        (
            lambda: ROOM.denoise(torch.tensor([[0]])),
            "texts has shape (1, 1): must be (B, 2)",
        ),
        (
            lambda: ROOM.sample(0, generator()),
            "count = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: reveal_log_likelihoods(ROOM.denoise, TEXTS[0], orders(2)),
            "texts has shape (2,): must be (B, L)",
        ),
        (
            lambda: reveal_log_likelihoods(ROOM.denoise, TEXTS.int(), orders(2)),
            "texts has dtype torch.int32: must be torch.int64",
        ),
        (
            lambda: reveal_log_likelihoods(
                ROOM.denoise, torch.tensor([[MASK, 0]]), orders(2)
            ),
            "texts = [-1, 0]: every entry must be 0 or more",
        ),
        (
            lambda: reveal_log_likelihoods(
                ROOM.denoise, torch.tensor([[2, 0]]), orders(2)
            ),
            "texts = [2, 0]: every entry must be in 0..1",
        ),
        (
            lambda: reveal_log_likelihoods(ROOM.denoise, TEXTS, torch.tensor([0, 1])),
            "schedules has shape (2,): must be (B, 2)",
        ),
        (
            lambda: reveal_log_likelihoods(ROOM.denoise, TEXTS, orders(3)),
            "schedules has shape (6, 3): must be (B, 2)",
        ),
        (
            lambda: reveal_log_likelihoods(ROOM.denoise, TEXTS, orders(2) - 1),
            "schedules = [-1, 0, 0, -1]: every entry must be 0 or more",
        ),
        (
            lambda: reveal_log_likelihoods(ROOM.denoise, TEXTS, orders(2).double()),
            "schedules has dtype torch.float64: must be torch.int64",
        ),
        (
            lambda: masked_losses(ROOM.denoise, TEXTS[0]),
            "texts has shape (2,): must be (B, L)",
        ),
        (
            lambda: masked_losses(ROOM.denoise, torch.tensor([[MASK, 0]])),
            "texts = [-1, 0]: every entry must be 0 or more",
        ),
        (
            lambda: masked_elbo(ROOM.denoise, torch.tensor([[0, 2]])),
            "texts = [0, 2]: every entry must be in 0..1",
        ),
        (
            lambda: masked_elbo(raw_scores, TEXTS),
            "denoise gave probabilities that sum to [5.43656, 5.43656]: they must sum "
            "to 1",
        ),
        (
            lambda: masked_elbo(one_text_too_many, TEXTS),
            "denoise gave shape (2, 2, 2) for texts of shape (1, 2): "
            "it must be (B, L, V)",
        ),
        (
            lambda: masked_elbo(lambda texts: ROOM.denoise(texts)[0], TEXTS),
            "denoise gave shape (2, 2) for texts of shape (1, 2): it must be (B, L, V)",
        ),
        (
            lambda: reveal_log_likelihoods(raw_scores, TEXTS, orders(2)),
            "denoise gave probabilities that sum to [5.43656, 5.43656]: they must sum "
            "to 1",
        ),
        (
            lambda: unmask(lambda texts: raw_scores(texts).log(), 1, 2, 1, generator()),
            "denoise gave probabilities that sum to [2, 2]: they must sum to 1",
        ),
        (
            lambda: unmask(one_text_too_many, 1, 2, 1, generator()),
            "denoise gave shape (2, 2, 2) for texts of shape (1, 2): "
            "it must be (B, L, V)",
        ),
        (
            lambda: unmask(ROOM.denoise, 0, 2, 1, generator()),
            "count = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: unmask(ROOM.denoise, 1, 0, 1, generator()),
            "length = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: unmask(ROOM.denoise, 1, 2, 0, generator()),
            "steps = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: uniform_corruption(2, 2, 1.0),
            "beta = 1: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: uniform_corruption(2, 2, 0.0),
            "beta = 0: every entry must lie strictly between 0 and 1",
        ),
        (
            lambda: uniform_corruption(2, 2, [0.1, 0.2]),
            "beta has shape (2,): it must be one number",
        ),
        (
            lambda: uniform_corruption(0, 2, 0.5),
            "vocabulary = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: uniform_corruption(2, 0, 0.5),
            "length = 0: must be a whole number, 1 or more",
        ),
        (
            lambda: exact_reverse([STAY], [0.5, 0.6]),
            "data sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: exact_reverse([STAY], STAY),
            "data has shape (2, 2): it must be (S,)",
        ),
        (
            lambda: exact_reverse([STAY, 2 * STAY], [0.5, 0.5]),
            "forward sums to [2, 2]: probabilities must sum to 1",
        ),
        (
            lambda: exact_reverse([STAY[:1]], [0.5, 0.5]),
            "forward has a step of shape (1, 2): it must be (S, S) with S = 2",
        ),
        (
            lambda: independent_tokens(STAY, 2, 2),
            "step has shape (2, 2): a row must have V^L = 4 entries",
        ),
        (
            lambda: independent_tokens(STAY[0], 2, 1),
            "step has shape (2,): a row must have V^L = 2 entries",
        ),
        (
            lambda: independent_tokens(2 * STAY, 2, 1),
            "step sums to [2, 2]: probabilities must sum to 1",
        ),
        (
            lambda: FiniteDiffusion([STAY], [STAY], [0.5, 0.6]),
            "final sums to 1.1: probabilities must sum to 1",
        ),
        (
            lambda: FiniteDiffusion([STAY], [STAY], STAY),
            "final has shape (2, 2): it must be (S,)",
        ),
        (
            lambda: FiniteDiffusion([2 * STAY], [STAY], [0.5, 0.5]),
            "forward sums to [2, 2]: probabilities must sum to 1",
        ),
        (
            lambda: FiniteDiffusion([STAY], [2 * STAY], [0.5, 0.5]),
            "reverse sums to [2, 2]: probabilities must sum to 1",
        ),
        (
            lambda: FiniteDiffusion([STAY, STAY[:1]], [STAY, STAY], [0.5, 0.5]),
            "forward has a step of shape (1, 2): it must be (S, S) with S = 2",
        ),
        (
            lambda: FiniteDiffusion([STAY], [torch.eye(3)], [0.5, 0.5]),
            "reverse has a step of shape (3, 3): it must be (S, S) with S = 2",
        ),
        (
            lambda: FiniteDiffusion([STAY], [STAY, STAY], [0.5, 0.5]),
            "forward has 1 steps, reverse 2: the numbers must be equal",
        ),
        (
            lambda: FiniteDiffusion([STAY], [STAY], [0.5, 0.5]).paths(2),
            "state = 2: must be a whole number, 0..1",
        ),
        (
            lambda: FiniteDiffusion([STAY], [STAY], [0.5, 0.5]).paths(-1),
            "state = -1: must be a whole number, 0..1",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
