"""One notebook: run its cells, put the calls of each check, compare the answers.

A process that gets stuck or dies costs the check that it was at. The rest is asked of a
new process, in which the stuck cell or function is left out.
"""

import builtins
import hashlib
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import torch

from coursework.checks import Check, Given
from coursework.sandbox import Ended, Garbled, Session
from coursework.wire import argument, plain

# For one notebook; a hopeless one must not hold up the class.
PROCESSES = 6
PATIENCE = 15  # times the seconds for one cell or call
_SAID = {
    "absent": "there is no function of this name",
    "stub": "still to be written",
    "memory": "it needs too much memory",
    "unfit": "it returned something other than numbers, words and lists",
}


@dataclass(frozen=True)
class Call:
    """One call of a student's function, and what it should return."""

    arguments: list
    seed: int
    expected: object


@dataclass
class Exam:
    """What is known so far about one notebook."""

    seconds: float
    status: str = "ok"
    problems: dict[int, str] = field(default_factory=dict)  # by number of the cell
    reasons: dict[str, str | None] = field(default_factory=dict)  # by name of the check
    skipped: set[int] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)

    def ended(self, ended: Ended) -> None:
        """Note how a process ended; the first such end is the notebook's status."""
        if self.status == "ok":
            self.status = ended.status

    @property
    def left(self) -> float:
        """Seconds for all that is still to come."""
        return self.started + PATIENCE * self.seconds - time.monotonic()

    def share(self) -> float:
        """Seconds for the next cell or call; Ended if there are none."""
        if self.left <= 0:
            raise Ended("timeout", "all of it together takes too long")
        return min(self.seconds, self.left)


def calls_of(check: Check, given: Given, secret: str) -> list[Call]:
    """The calls of a check, the same for one secret and one set of constants."""
    stream = random.Random(hashlib.sha256(f"{secret} {check.name}".encode()).digest())
    calls = []
    with _double():
        for inputs in check.inputs(stream, given):
            arguments = [argument(value) for value in inputs]
            expected = plain(check.reference(given, *arguments))
            calls.append(Call(list(inputs), stream.getrandbits(32), expected))
    return calls


@contextmanager
def _double() -> Iterator[None]:
    """Double precision by default, as in the students' notebooks."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def examine(
    session: Callable[[], AbstractContextManager[Session]],
    cells: Sequence[str],
    checks: Sequence[Check],
    calls: dict[str, list[Call]],
    seconds: float,
    stubs: Collection[str] = (),
) -> Exam:
    """Run a notebook's cells and all checks; ``calls`` are those of each check.

    ``session`` opens a fresh process. ``seconds`` are allowed for each cell and each
    call. ``stubs`` are the sources of cells as students get them. Never raises for what
    the notebook does.
    """
    exam = Exam(seconds)
    for _ in range(PROCESSES):
        with session() as process:
            try:
                if _run_cells(process, exam, cells, stubs):
                    _ask_checks(process, exam, checks, calls)
            except Ended as ended:
                exam.ended(ended)
        if len(exam.reasons) == len(checks) or exam.left <= 0:
            break
    often, long = "the notebook's process ended too often", "the notebook took too long"
    for check in checks:
        exam.reasons.setdefault(check.name, often if exam.left > 0 else long)
    return exam


def _run_cells(process: Session, exam: Exam, cells, stubs) -> bool:
    """Run all cells that have not been found stuck; False if one was found now."""
    for number, source in enumerate(cells, 1):
        if number in exam.skipped:
            continue
        stub = source.strip() in stubs
        try:
            said = process.ask(exam.share(), do="run", source=source, stub=stub)
        except Ended as ended:
            exam.ended(ended)
            exam.problems[number] = str(ended)
        except Garbled as garbled:
            exam.problems[number] = str(garbled)
        else:
            if "error" in said:
                exam.problems[number] = said["error"]
            continue
        exam.skipped.add(number)
        return False
    return True


def _ask_checks(process: Session, exam: Exam, checks, calls) -> None:
    """Ask the checks that are open; at an end, close those of the same function."""
    for check in checks:
        if check.name in exam.reasons:
            continue
        try:
            exam.reasons[check.name] = _ask(process, exam, check, calls[check.name])
        except (Ended, Garbled) as error:
            for other in checks:
                if other.function == check.function:
                    exam.reasons.setdefault(other.name, str(error))
            if isinstance(error, Ended):
                exam.ended(error)
            return


def _ask(process: Session, exam: Exam, check: Check, calls: list[Call]):
    """What is wrong with the answers to a check's calls, or None."""
    for call in calls:
        said = process.ask(
            exam.share(),
            do="call",
            function=check.function,
            arguments=call.arguments,
            seed=call.seed,
        )
        if "value" not in said:
            return _SAID.get(said.get("kind")) or _raised(str(said.get("error")))
        try:
            reason = check.verdict(call.expected, said["value"])
        except Exception:  # a verdict of one's own may trip over anything
            reason = "the answer does not have the right form"
        if reason:
            return reason
    return None


def _raised(error: str) -> str:
    """What a student is told of an error: not its text, which may hold the inputs."""
    if error.startswith("ImportError: genaudit."):
        return "used what is not part of this exercise: write it yourself"
    name = error.partition(":")[0]
    known = name.endswith(("Error", "Exit", "Interrupt")) and hasattr(builtins, name)
    return f"raised {name}" if known else "raised an error of its own"
