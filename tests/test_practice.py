"""Practice problems: what is right, close and wrong; hints give nothing away."""

import re

import pytest

from genaudit.practice import _PROBLEMS, check, print_answers
from tests.claims.ledger import read

PARTS = [
    (number, name) for number, problem in enumerate(_PROBLEMS, 1) for name in problem()
]
# Parts whose number stands in the ledger under another name.
ROWS = {
    (1, "light"): "pr01.a.z-2",
    (1, "heavy"): "pr01.a.z+1.5",
    (1, "z"): "pr01.b",
    (2, "late"): "pr02.b.75",
    (2, "early"): "pr02.b.20",
    (3, "mean"): "pr03.a.mean",
    (3, "sd"): "pr03.a.sd",
    (3, "variance"): "pr03.b",
    (3, "sum"): "pr03.c",
    (4, "price"): "pr04.a",
    (5, "by_sd"): "pr05.b.sig",
    (6, "leaning_rebuilt"): "pr06.c.rec",
    (6, "leaning_kl"): "pr06.c.kl",
    (6, "leaning_elbo"): "pr06.c.elbo",
    (6, "leaning_gap"): "pr06.c.gap",
    (6, "even_gap"): "pr06.b.gap",
    (7, "alpha_bar"): "pr07.a",
    (7, "point"): "pr07.c",
    (8, "half"): "pr08.b.t",
    (8, "tenth"): "pr08.c.t",
    (9, "clean"): "pr09.a",
    (9, "noise"): "pr09.b.eps",
    (9, "loss"): "pr09.b.loss",
    (9, "gain"): "pr09.remember",
    (10, "score"): "pr10.b.score",
    (10, "noise"): "pr10.b.eps",
    (11, "variance"): "pr11.a.var",
    (11, "score"): "pr11.c.score",
    (12, "share"): "pr12.share",
    (12, "mean"): "pr12.a",
    (12, "point"): "pr12.c",
    (13, "drift"): "pr13.drift",
    (13, "point"): "pr13.x",
    (14, "clean"): "pr14.a",
    (14, "point"): "pr14.b",
    (14, "all_the_way"): "pr14.c",
    (15, "scale"): "pr15.b",
    (16, "before"): "pr16.a.before",
    (16, "after"): "pr16.a.after",
    (16, "other"): "pr16.b.f16",
}


def part_of(number, name):
    return _PROBLEMS[number - 1]()[name]


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
    (found,) = [each for each in read() if each.id == row]
    assert abs(part.value - float(found.values[0])) <= 0.5 * 10.0**-part.places


@pytest.mark.parametrize(("number", "name"), PARTS)
def test_right_close_and_wrong(number, name, capsys):
    part = part_of(number, name)
    unit = 10.0**-part.places
    asked = round(part.value, part.places)
    assert said(capsys, number, **{name: asked}) == [f"{name}: right"]
    assert said(capsys, number, **{name: ...}) == [f"{name}: no answer yet"]
    (close,) = said(capsys, number, **{name: part.value + 1.2 * unit})
    assert (
        close == f"{name}: close: round only at the end; decimals asked: {part.places}"
    )
    (wrong,) = said(capsys, number, **{name: part.value + 7 * unit + abs(part.value)})
    assert wrong == f"{name}: not yet: {part.hint}"


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


@pytest.mark.parametrize("answer", ["0.5", None, float("nan"), float("inf"), [1.0], 1j])
def test_what_is_no_number_is_said(answer, capsys):
    assert said(capsys, 3, sum=answer) == [f"sum: not a number: {answer!r}"]


def test_whole_numbers_and_several_parts(capsys):
    lines = said(capsys, 8, half=69, tenth=229)
    assert lines == [
        "half: right",
        "tenth: close: round only at the end; decimals asked: 0",
    ]


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
