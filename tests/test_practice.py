"""Practice problems: what is right, close and wrong; hints give nothing away."""

import re

import pytest
import torch
from scipy import stats

from genaudit.practice import _PROBLEMS, check, print_answers
from tests.claims.ledger import read

PARTS = [
    (number, name) for number, problem in enumerate(_PROBLEMS, 1) for name in problem()
]
# The row of the ledger that has a part's number; of several numbers, which, from 0.
ROWS = {
    (1, "light"): "pr01.a.z-2",
    (1, "middling"): "pr01.a.z+0.4",
    (1, "heavy"): "pr01.a.z+1.5",
    (1, "z"): "pr01.b",
    (2, "late"): "pr02.b.75",
    (2, "early"): "pr02.b.20",
    (2, "median"): "pr02.c:1",
    (3, "mean"): "pr03.a.mean",
    (3, "sd"): "pr03.a.sd",
    (3, "variance"): "pr03.b",
    (3, "sum"): "pr03.c",
    (4, "price"): "pr04.a",
    (4, "narrow"): "pr04.b",
    (4, "wide"): "pr04.c",
    (5, "draw"): "pr05.a",
    (5, "by_mean"): "pr05.b.mu",
    (5, "by_sd"): "pr05.b.sig",
    (6, "evidence"): "pr06.a.px",
    (6, "log_evidence"): "pr06.a.log",
    (6, "posterior"): "pr06.a.post:0",
    (6, "leaning_rebuilt"): "pr06.c.rec",
    (6, "leaning_kl"): "pr06.c.kl",
    (6, "leaning_elbo"): "pr06.c.elbo",
    (6, "leaning_gap"): "pr06.c.gap",
    (6, "even_rebuilt"): "pr06.b.rec",
    (6, "even_kl"): "pr06.b.kl",
    (6, "even_elbo"): "pr06.b.elbo",
    (6, "even_gap"): "pr06.b.gap",
    (7, "alpha_bar"): "pr07.a",
    (7, "signal"): "pr07.b:0",
    (7, "noise"): "pr07.b:1",
    (7, "point"): "pr07.c",
    (8, "half"): "pr08.b.t",
    (8, "tenth"): "pr08.c.t",
    (9, "clean"): "pr09.a",
    (9, "noise"): "pr09.b.eps",
    (9, "loss"): "pr09.b.loss",
    (9, "gain"): "pr09.remember",
    (10, "right_of_it"): "pr10.a.0",
    (10, "left_of_it"): "pr10.a.-2",
    (10, "centre"): "pr10.b.centre:0",
    (10, "variance"): "pr10.b.centre:1",
    (10, "score"): "pr10.b.score",
    (10, "noise"): "pr10.b.eps",
    (11, "centre"): "pr11.a.centres",
    (11, "variance"): "pr11.a.var",
    (11, "right"): "pr11.b.resp:1",
    (11, "score"): "pr11.c.score",
    (12, "share"): "pr12.share",
    (12, "mean"): "pr12.a",
    (12, "sd"): "pr12.b",
    (12, "point"): "pr12.c",
    (13, "score"): "pr13.score",
    (13, "drift"): "pr13.drift",
    (13, "point"): "pr13.x",
    (14, "clean"): "pr14.a",
    (14, "point"): "pr14.b",
    (14, "all_the_way"): "pr14.c",
    (15, "first"): "pr15.a:0",
    (15, "second"): "pr15.a:1",
    (15, "scale"): "pr15.b",
    (16, "before"): "pr16.a.before",
    (16, "after"): "pr16.a.after",
    (16, "factor"): "pr16.a.factor",
    (16, "other"): "pr16.b.f16",
}


def part_of(number, name):
    return _PROBLEMS[number - 1]()[name]


def close(name, part):
    return f"{name}: close: round only at the end; decimals asked: {part.places}"


def said(capsys, number, **answers):
    capsys.readouterr()
    check(number, **answers)
    return capsys.readouterr().out.splitlines()


def test_there_are_sixteen():
    assert len(_PROBLEMS) == 16
    assert len(PARTS) == 65


@pytest.mark.parametrize(("key", "row"), ROWS.items(), ids=str)
def test_an_answer_is_that_of_the_ledger(key, row):
    part = part_of(*key)
    row_id, _, which = row.partition(":")
    (found,) = [each for each in read() if each.id == row_id]
    (number,) = [found.values[int(which)]] if which else found.values
    assert abs(part.value - float(number)) <= 0.5 * 10.0**-part.places


def test_every_part_has_a_row():
    assert ROWS.keys() == set(PARTS)


def test_a_heavier_loaf_by_the_inverse_of_the_normal_law():
    share = stats.norm.cdf(0.4)
    assert abs(part_of(1, "middling").value - stats.norm(200, 15).ppf(share)) < 1e-12


def test_a_share_of_two_bells_by_their_densities():
    left, right = (stats.norm(m, 0.6544**0.5).pdf(0.2) for m in (-0.6, 0.6))
    assert abs(part_of(11, "right").value - right / (left + right)) < 1e-12


def test_a_score_by_a_difference_of_log_densities():
    """Exact for any width, since the logarithm of a normal density is a parabola."""
    below, above = stats.norm(1, 0.5).logpdf([1.5, 2.5])
    assert abs(part_of(13, "score").value - (above - below)) < 1e-12


@pytest.mark.parametrize(("number", "name"), PARTS)
def test_right_close_and_wrong(number, name, capsys):
    part = part_of(number, name)
    unit = 10.0**-part.places
    asked = round(part.value, part.places)
    assert said(capsys, number, **{name: asked}) == [f"{name}: right"]
    assert said(capsys, number, **{name: ...}) == [f"{name}: no answer yet"]
    reach = unit * {0: 0, 1: 1, 2: 1}.get(part.places, 5)
    if reach:
        (near,) = said(capsys, number, **{name: part.value + 0.9 * reach})
        assert near == close(name, part)
    (wrong,) = said(capsys, number, **{name: part.value + 1.1 * (reach or 0.03)})
    assert wrong == f"{name}: not yet: {part.hint}"


@pytest.mark.parametrize(
    ("number", "name", "answer"),
    [
        (1, "z", 2.6),
        (3, "variance", 3.2),  # the added 0.2 forgotten
        (3, "variance", 3.78),  # the factor not squared
        (5, "by_sd", 0.03),  # half of the slope
        (7, "alpha_bar", 0.4),  # 0.8 times 0.5, one step forgotten
        (8, "half", 68),
        (8, "half", 68.97),
        (8, "half", 70),
        (8, "tenth", 229),
        (9, "loss", 0),
        (12, "share", 0.06),  # beta times the guess
        (12, "share", 0.075),  # over the signal
        (12, "share", 1 / 3),  # without the guess
        (15, "scale", 4.33),  # 1.3 over the difference
        (16, "factor", 44),
        (16, "factor", 50),
    ],
)
def test_an_error_of_thought_is_not_close(number, name, answer, capsys):
    hint = part_of(number, name).hint
    assert said(capsys, number, **{name: answer}) == [f"{name}: not yet: {hint}"]


@pytest.mark.parametrize(
    ("number", "name", "answer"),
    [(2, "late", 0.69), (2, "late", 0.693), (3, "mean", -0.89), (9, "clean", 1.38)],
)
def test_fewer_decimals_are_close(number, name, answer, capsys):
    part = part_of(number, name)
    assert said(capsys, number, **{name: answer}) == [close(name, part)]


def test_one_decimal_of_four_is_not_close(capsys):
    part = part_of(2, "late")
    assert said(capsys, 2, late=0.7) == [f"late: not yet: {part.hint}"]


@pytest.mark.parametrize(("number", "name"), PARTS)
def test_a_sign_is_named(number, name, capsys):
    part = part_of(number, name)
    if abs(part.value) < 10.0**-part.places:  # zero has no sign
        return
    (line,) = said(capsys, number, **{name: -part.value})
    assert line == f"{name}: not yet: the size is right, the sign is not"


@pytest.mark.parametrize(("number", "name"), PARTS)
def test_a_hint_does_not_hold_its_answer(number, name):
    part = part_of(number, name)
    answer = f"{abs(part.value):.{part.places}f}".rstrip("0").rstrip(".")
    assert answer not in re.findall(r"\d+(?:\.\d+)?", part.hint)


@pytest.mark.parametrize(
    "answer",
    [
        *["0.5", None, float("nan"), float("inf"), [1.0], 1j, True],
        *map(torch.tensor, [[1.0, 2.0], [], True, float("nan"), 1j]),
    ],
)
def test_what_is_no_number_is_said(answer, capsys):
    assert said(capsys, 3, sum=answer) == [f"sum: not a number: {answer!r}"]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_tensor_of_one_number_is_that_number(shape, dtype, capsys):
    answer = torch.full(shape, 170, dtype=dtype)
    assert said(capsys, 1, light=answer) == ["light: right"]


def test_several_parts(capsys):
    hint = part_of(8, "tenth").hint
    lines = said(capsys, 8, half=69, tenth=229)
    assert lines == ["half: right", f"tenth: not yet: {hint}"]


@pytest.mark.parametrize("number", [0, 17, 1.0, True])
def test_a_problem_that_does_not_exist(number):
    with pytest.raises(ValueError, match="problem = .*1..16"):
        check(number)


def test_a_part_that_does_not_exist():
    with pytest.raises(ValueError, match="part = 'heave'.*light, middling, heavy, z"):
        check(1, heave=3)


def test_the_printed_answers_are_right(capsys):
    print_answers()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == len(PARTS)
    for row in rows:
        number, name, answer = row.split()
        assert said(capsys, int(number), **{name: float(answer)}) == [f"{name}: right"]
