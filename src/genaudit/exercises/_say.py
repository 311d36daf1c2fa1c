"""Run a visible check and say in one line how it went."""

from collections.abc import Callable, Iterator
from functools import wraps

Steps = Iterator[tuple[bool, str]]
Check = Callable[[Callable], Steps]
Printed = Callable[[Callable], None]


def visible(check: Check) -> Printed:
    """Make a generator of (passed, hint) pairs a check that prints one line.

    It stops at the first pair that did not pass. An answer that raises, or that is
    still the stub, is reported and not re-raised, so that a notebook runs to its end.
    """
    return _printed(check, "passes {0} of {0} visible checks")


def visible_words(check: Check) -> Printed:
    """The same for a check that asks no more than whether an answer's words are known.

    To say that it passes would sound as if the answer were right.
    """
    known = "passes in form: these are words that were offered. "
    return _printed(check, known + "Whether they are right is not tested here")


def _printed(check: Check, success: str) -> Printed:
    """Run the check and print; ``success`` has a place for the number of pairs."""

    @wraps(check)
    def run(answer: Callable) -> None:
        name = check.__name__
        passed = 0
        try:
            for good, hint in check(answer):
                if not good:
                    print(f"{name}: not yet. {hint}")
                    return
                passed += 1
        except NotImplementedError:
            print(f"{name}: still to be written")
        except Exception as error:
            print(f"{name}: raised {type(error).__name__}: {str(error)[:200]}")
        else:
            print(f"{name}: {success.format(passed)}")

    return run
