"""The examination of one notebook, with a process that does as it is told."""

import random
import time
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coursework.checks import Check, close, same, within
from coursework.exam import PATIENCE, PROCESSES, Call, calls_of, examine
from coursework.sandbox import Ended, Garbled

LATE = Ended("timeout", "no answer within the time allowed")
DEAD = Ended("killed", "the notebook's process ended")
FULL = Ended("memory", "more than 2 GiB of memory")
NOISE = Garbled("the reply is not what a function can return")
OFTEN = "the notebook's process ended too often"


class Desk:
    """Opens processes, and notes what each was asked.

    ``cells`` and ``functions`` say what happens at a source or a name: an exception
    ends the process, a dictionary is the reply; cells run and functions return 1.0
    otherwise.
    """

    def __init__(self, cells=None, functions=None):
        self.cells, self.functions = cells or {}, functions or {}
        self.asked, self.ended = [], True

    @contextmanager
    def session(self):
        assert self.ended, "the last process still runs"
        self.asked.append([])
        self.ended, self.usable = False, True
        try:
            yield self
        finally:
            self.ended = True

    def ask(self, seconds, **request):
        assert self.usable, "this process is over"
        assert seconds == 7
        self.asked[-1].append(request)
        if request["do"] == "run":
            reply = self.cells.get(request["source"], {})
        else:
            reply = self.functions.get(request["function"], {"value": 1.0})
        if isinstance(reply, Exception):
            self.usable = False
            raise reply
        return reply

    def ran(self, number):
        """Sources of the cells that a process ran."""
        return [each["source"] for each in self.asked[number] if each["do"] == "run"]

    def called(self, number):
        """Names of the functions that a process called."""
        return [each["function"] for each in self.asked[number] if each["do"] == "call"]


def checks_of(*names, verdict=None):
    """A check for each name, which is "function" or "function again"."""
    return [
        Check(name, 1, name.split()[0], None, None, "", [], verdict or close())
        for name in names
    ]


def exam_of(desk, checks, cells=("a", "b", "c"), expected=1.0, stubs=()):
    calls = {check.name: [Call([2.0], 6050, expected)] for check in checks}
    return examine(desk.session, cells, checks, calls, 7, stubs)


def test_one_process_does_for_a_notebook_in_order():
    desk = Desk(functions={"g": {"value": 2.0}})
    exam = exam_of(desk, checks_of("f", "g", "f again"))
    assert (exam.status, exam.problems) == ("ok", {})
    wrong = "the value is not right"
    assert exam.reasons == {"f": None, "g": wrong, "f again": None}
    assert len(desk.asked) == 1
    assert desk.ran(0) == ["a", "b", "c"]
    assert desk.called(0) == ["f", "g", "f"]


def test_a_function_gets_the_inputs_and_seed_of_each_call():
    desk = Desk()
    (check,) = checks_of("f")
    calls = [Call([1.5, "up"], 3, 1.0), Call([[1, 2]], 4, 1.0)]
    examine(desk.session, [], [check], {"f": calls}, 7)
    common = {"do": "call", "function": "f"}
    assert desk.asked[0] == [
        {**common, "arguments": [1.5, "up"], "seed": 3},
        {**common, "arguments": [[1, 2]], "seed": 4},
    ]


def test_one_wrong_call_is_enough():
    (check,) = checks_of("f")
    calls = [Call([], 0, 1.0), Call([], 0, 2.0), Call([], 0, 1.0)]
    exam = examine(Desk().session, [], [check], {"f": calls}, 7)
    assert exam.reasons == {"f": "the value is not right"}


def test_cells_that_stayed_as_they_were_are_marked():
    desk = Desk()
    exam_of(desk, [], cells=["a", "\nb\n", "c"], stubs={"b"})
    assert [each["stub"] for each in desk.asked[0]] == [False, True, False]


def test_a_cell_that_raises_is_noted_and_the_rest_runs():
    desk = Desk(cells={"b": {"error": "NameError: x"}})
    exam = exam_of(desk, checks_of("f"))
    assert exam.problems == {2: "NameError: x"}
    assert (exam.status, exam.reasons) == ("ok", {"f": None})
    assert desk.ran(0) == ["a", "b", "c"]
    assert len(desk.asked) == 1


@pytest.mark.parametrize(
    ("end", "status"),
    [(LATE, "timeout"), (DEAD, "killed"), (FULL, "memory"), (NOISE, "ok")],
)
def test_a_stuck_cell_is_left_out_and_the_rest_runs(end, status):
    desk = Desk(cells={"b": end})
    exam = exam_of(desk, checks_of("f"))
    assert (exam.status, exam.problems) == (status, {2: str(end)})
    assert exam.reasons == {"f": None}
    assert [desk.ran(0), desk.ran(1)] == [["a", "b"], ["a", "c"]]


@pytest.mark.parametrize(
    ("end", "status"),
    [(LATE, "timeout"), (DEAD, "killed"), (FULL, "memory"), (NOISE, "ok")],
)
def test_a_stuck_function_costs_its_own_checks_alone(end, status):
    desk = Desk(functions={"f": end})
    exam = exam_of(desk, checks_of("e", "f", "g", "f again", "h"))
    assert (exam.status, exam.problems) == (status, {})
    said = str(end)
    expected = {"e": None, "f": said, "g": None, "f again": said, "h": None}
    assert exam.reasons == expected
    assert [desk.called(0), desk.called(1)] == [["e", "f"], ["g", "h"]]
    assert desk.ran(1) == ["a", "b", "c"]


def test_what_a_stuck_function_earned_before_stays():
    replies = iter([{"value": 1.0}, LATE])
    desk = Desk()
    desk.functions = _Each(replies)
    exam = exam_of(desk, checks_of("f", "f again"))
    assert exam.reasons == {"f": None, "f again": str(LATE)}


class _Each:
    """Gives one reply after the other, whatever is called."""

    def __init__(self, replies):
        self.replies = replies

    def get(self, name, otherwise):
        return next(self.replies, otherwise)


def test_the_first_end_is_the_status():
    desk = Desk(cells={"b": FULL}, functions={"f": LATE, "g": DEAD})
    exam = exam_of(desk, checks_of("f", "g"))
    assert exam.status == "memory"
    assert exam.problems == {2: str(FULL)}


def test_a_notebook_gets_so_many_processes_and_no_more():
    names = [f"f{number}" for number in range(PROCESSES + 2)]
    desk = Desk(functions=dict.fromkeys(names, LATE))
    exam = exam_of(desk, checks_of(*names))
    assert len(desk.asked) == PROCESSES
    assert list(exam.reasons.values()) == [str(LATE)] * PROCESSES + [OFTEN] * 2


def test_cells_without_end_leave_no_process_for_the_checks():
    cells = [f"c{number}" for number in range(PROCESSES + 2)]
    desk = Desk(cells=dict.fromkeys(cells, LATE))
    exam = exam_of(desk, checks_of("f", "g"), cells)
    assert len(desk.asked) == PROCESSES
    assert exam.reasons == {"f": OFTEN, "g": OFTEN}
    assert exam.status == "timeout"


class Slow(Desk):
    """Takes some seconds for everything, by a clock that only it moves."""

    def __init__(self, monkeypatch, takes, **happens):
        super().__init__(**happens)
        self.now, self.takes, self.allowed = time.monotonic(), takes, []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def ask(self, seconds, **request):
        self.allowed.append(seconds)
        self.now += self.takes
        return super().ask(7, **request)


def test_a_notebook_that_is_slow_everywhere_is_given_up(monkeypatch):
    desk = Slow(monkeypatch, 6)
    names = [f"f{number}" for number in range(30)]
    exam = exam_of(desk, checks_of(*names))
    # Three cells and the calls that begin within the patience for all of it.
    done = -(-PATIENCE * 7 // 6) - 3
    given = list(exam.reasons.values())
    assert given[:done] == [None] * done
    assert given[done] == "all of it together takes too long"
    assert set(given[done + 1 :]) == {"the notebook took too long"}
    assert exam.status == "timeout"
    assert len(desk.asked) == 1
    assert desk.allowed[0] == 7
    assert 0 < desk.allowed[-1] < 7


def test_a_notebook_that_is_slow_in_its_cells_is_given_up(monkeypatch):
    desk = Slow(monkeypatch, PATIENCE * 7 + 1)
    exam = exam_of(desk, checks_of("f", "g"))
    assert exam.problems == {2: "all of it together takes too long"}
    assert set(exam.reasons.values()) == {"the notebook took too long"}
    assert (exam.status, len(desk.asked)) == ("timeout", 1)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"kind": "absent", "error": "?"}, "there is no function of this name"),
        ({"kind": "stub", "error": "?"}, "still to be written"),
        ({"kind": "memory", "error": "?"}, "it needs too much memory"),
        (
            {"kind": "unfit", "error": "?"},
            "it returned something other than numbers, words and lists",
        ),
        # Its text may hold the inputs.
        ({"kind": "raised", "error": "KeyError: 1.25"}, "raised KeyError"),
        ({"kind": "odd", "error": "KeyError: 1.25"}, "raised KeyError"),
        ({"error": "KeyboardInterrupt"}, "raised KeyboardInterrupt"),
        ({"error": "X1_25Error: "}, "raised an error of its own"),
        ({"error": "print: "}, "raised an error of its own"),
        ({}, "raised an error of its own"),
        (
            {"error": "ImportError: genaudit.latent.elbo is not part of this"},
            "used what is not part of this exercise: write it yourself",
        ),
        ({"error": "ImportError: cellar"}, "raised ImportError"),
    ],
)
def test_no_answer_is_said_in_words(reply, reason):
    exam = exam_of(Desk(functions={"f": reply}), checks_of("f", "g"))
    assert exam.reasons == {"f": reason, "g": None}
    assert exam.status == "ok"


def deep(depth):
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


def second(expected, got):
    return None if got[1] == expected[1] else "wrong"


def inverse(expected, got):
    return None if 1 / got == expected else "wrong"


VERDICTS = [close(), within(), same, second, inverse]
FORMS = [None, True, 0, 0.0, "", "up", [], [[]], {}, {"a": 1}, deep(900), 10**400]


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("got", FORMS, ids=range(len(FORMS)))
def test_no_answer_upsets_a_verdict(verdict, got):
    desk = Desk(functions={"f": {"value": got}, "g": {"value": [50.0, 2.0]}})
    checks = checks_of("f", verdict=verdict) + checks_of("g")
    exam = exam_of(desk, checks, expected=[50.0, 2.0])
    assert exam.reasons["f"] is not None
    assert exam.reasons["g"] is None
    assert exam.status == "ok"


ENDS = st.sampled_from([LATE, DEAD, FULL, NOISE])
CELLS = st.sampled_from([{}, {"error": "E: ?"}]) | ENDS
REPLIES = st.sampled_from([{"value": 1.0}, {"value": 2.0}, {"error": "E: ?"}]) | ENDS


@given(st.lists(CELLS, max_size=8), st.lists(REPLIES, max_size=9), st.data())
def test_every_check_gets_what_its_own_function_deserves(cells, replies, data):
    sources = [f"c{number}" for number in range(len(cells))]
    names = [f"f{number}" for number in range(len(replies))]
    desk = Desk(dict(zip(sources, cells)), dict(zip(names, replies)))
    checks = data.draw(st.permutations(checks_of(*names)))
    exam = exam_of(desk, checks, sources)
    assert set(exam.reasons) == set(names)
    ends = [each for each in [*cells, *replies] if isinstance(each, Exception)]
    assert 1 <= len(desk.asked) <= min(PROCESSES, 1 + len(ends))
    for name, reply in zip(names, replies):
        right = reply == {"value": 1.0}
        if len(ends) < PROCESSES:
            assert (exam.reasons[name] is None) == right
        assert right or exam.reasons[name] is not None
    if not any(isinstance(end, Ended) for end in ends):
        assert exam.status == "ok"


def doubled(secret, seen=None, **constants):
    def inputs(stream, given):
        return [(stream.random(), [1, 2], given["k"]) for _ in range(3)]

    def reference(given, x, whole, k):
        if seen is not None:
            seen.append((x, whole, k, torch.get_default_dtype()))
        return torch.tensor(x * k), whole

    check = Check("doubled", 1, "f", inputs, reference, "", [])
    return calls_of(check, {"k": 2, **constants}, secret)


def test_a_secret_makes_the_calls():
    assert doubled("a") == doubled("a")
    assert doubled("a") != doubled("b")
    stream = {call.seed for call in doubled("a")}
    assert len(stream) == 3
    assert all(0 <= seed < 2**32 for seed in stream)


def test_the_name_of_a_check_makes_them_too():
    def inputs(stream, given):
        return [(stream.random(),)]

    one, other = (
        calls_of(Check(name, 1, "f", inputs, lambda given, x: x, "", []), {}, "a")
        for name in ("one", "other")
    )
    assert one[0].arguments != other[0].arguments
    assert one[0].seed != other[0].seed


def test_the_reference_gets_tensors_and_the_student_plain_values(usual_dtype):
    seen = []
    calls = doubled("a", seen, k=3)
    for call, (x, whole, k, dtype) in zip(calls, seen):
        assert call.arguments == [x, [1, 2], 3]
        assert (whole.dtype, whole.tolist(), k) == (torch.int64, [1, 2], 3)
        assert dtype == torch.float64
        assert call.expected == [x * 3, [1, 2]]
    assert torch.get_default_dtype() == usual_dtype


def test_the_default_precision_comes_back_after_a_fault(usual_dtype):
    check = Check("c", 1, "f", lambda *_: [()], lambda given: 1 / 0, "", [])
    with pytest.raises(ZeroDivisionError):
        calls_of(check, {}, "a")
    assert torch.get_default_dtype() == usual_dtype


def test_no_other_random_number_is_used():
    state = random.getstate(), torch.get_rng_state()
    doubled("a")
    assert random.getstate() == state[0]
    assert torch.equal(torch.get_rng_state(), state[1])
