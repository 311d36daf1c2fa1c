"""Write the public side of the book: the tree without the masters of its exercises.

    python -m tools.public DIR

What git tracks goes out, without its history and without what PRIVATE names. First it
is searched for whatever students must not see; if anything is found, nothing is
written. DIR must be new or empty.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from coursework.checks import load_all
from coursework.leaks import (
    DIGITS,
    LONG_LINE,
    cut,
    expected_numbers,
    leaks,
    phrases,
    printed_numbers,
    squeezed,
)
from coursework.markers import public_lines, solution_lines
from coursework.release import read_master

ROOT = Path(__file__).resolve().parent.parent
MASTERS = "solutions"
# The masters, and what has no use without them. src/coursework goes out: it holds no
# secret, and whoever has the public side alone can grade exercises of their own.
PRIVATE = [
    f"{MASTERS}/",
    ".github/workflows/publish.yml",
    "bench/grading.py",
    "tests/coursework/masters.py",
    "tests/coursework/test_exercises.py",
    "tests/coursework/test_masters.py",
    "tests/coursework/test_shown.py",
    "tests/coursework/test_visible.py",
    "tests/test_public.py",
    "tools/public.py",
]
NOT_TEXT = {".ico", ".jpg", ".pdf", ".png", ".webp", ".woff2"}
# So many digits of an expected value are no chance in a book full of numbers.
CERTAIN = 6


def main(words: list[str] | None = None) -> int:
    """Do what the command line asks; 2 with a plain message if it cannot be done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("to", type=Path, metavar="DIR")
    to = parser.parse_args(words).to
    try:
        unfinished = git(ROOT, "status", "--porcelain")
        if unfinished:
            raise ValueError(f"commit or remove first:\n{unfinished}")
        names = export(ROOT, to)
    except (ValueError, OSError) as error:
        print(f"public: {error}", file=sys.stderr)
        return 2
    print(f"{len(names)} files in {to}")
    return 0


def export(root: Path, to: Path) -> list[str]:
    """Write the public files of a tree to a folder, and return their names.

    ValueError if the folder is not empty, or with all that was found in them.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise ValueError(f"{to} must be a new or an empty folder")
    names = public(git(root, "ls-files", "-z").split("\0")[:-1])
    secrets = Secrets(root / MASTERS)
    found = [
        f"{name}: {what}"
        for name in names
        for what in secrets.found(name, (root / name).read_bytes())
    ]
    if found:
        raise ValueError(
            "\n".join(["nothing written, for students must not see", *found])
        )
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, to / name)
    return names


def git(root: Path, *words: str) -> str:
    """Return what git says about a tree; ValueError if it is none of git's."""
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"git: {done.stderr.strip()}")
    return done.stdout


def public(names: Iterable[str]) -> list[str]:
    """The names that go out."""
    return [name for name in names if not name.startswith(tuple(PRIVATE))]


class Secrets:
    """What the masters hold and students must not see."""

    def __init__(self, masters: Path) -> None:
        """Read the masters and their hidden checks."""
        exercises = load_all(masters)
        books = {
            name: read_master(masters / f"{name}.ipynb", exercise)
            for name, exercise in exercises.items()
        }
        self.files = {path.read_bytes() for path in masters.iterdir() if path.is_file()}
        self.numbers = {
            name: printed_numbers(books[name], exercise)
            | expected_numbers(exercise, exercise.given)
            for name, exercise in exercises.items()
        }
        # The book itself teaches the formulas that its exercises ask for. So a line of
        # code may be the same, but neither a sentence nor a whole solution.
        prose = {name: _only(book, "markdown") for name, book in books.items()}
        self.words = phrases(prose, exercises) | _long_values(self.numbers.values())
        self.solutions = dict(_solutions(books))
        # In an exercise no line may.
        self.lines = phrases(books, exercises) | self.words

    def found(self, name: str, content: bytes) -> Iterator[str]:
        """Say what of it stands in a file."""
        path = Path(name)
        if content in self.files:
            yield f"a file of {MASTERS}/"
        try:
            text = content.decode()
        except UnicodeDecodeError:
            if path.suffix not in NOT_TEXT:
                yield "no text, and so it cannot be searched"
            return
        if path.suffix == ".ipynb":
            notebook = nbformat.reads(text, as_version=4)
            inside = path.parts[0] == "exercises"
            numbers = self.numbers.get(path.stem, {}) if inside else {}
            yield from leaks(notebook, self.lines if inside else self.words, numbers)
            text = "\n".join(cell.source for cell in notebook.cells)
        else:
            tight = squeezed(text)
            yield from (what for words, what in self.words.items() if words in tight)
        present = set(map(squeezed, text.splitlines()))
        for where, lines in self.solutions.items():
            if len(lines & present) > len(lines) / 2:
                yield f"the solution of {where}"


def _only(book: NotebookNode, kind: str) -> NotebookNode:
    return new_notebook(cells=[cell for cell in book.cells if cell.cell_type == kind])


def _long_values(numbers: Iterable[Mapping[Decimal, str]]) -> dict[str, str]:
    """The first digits of expected values, rounded and cut, with a hiding name."""
    found = {}
    for value, what in (pair for some in numbers for pair in some.items()):
        place = Decimal(1).scaleb(value.adjusted() - CERTAIN + 1)
        for rounding in (ROUND_HALF_EVEN, ROUND_DOWN):
            short = value.quantize(place, rounding)
            if len(short.normalize().as_tuple().digits) > DIGITS:
                found[f"{short:f}"] = f"{what}: {cut(str(short))}"
    return found


def _solutions(books: Mapping[str, NotebookNode]) -> Iterator[tuple[str, set[str]]]:
    """The longer lines of each solution in code that has three or more."""
    for name, book in books.items():
        for cell in _only(book, "code").cells:
            where = f"{name}, cell {cell.id}"
            lines = set(map(squeezed, solution_lines(cell.source, where)))
            lines -= set(map(squeezed, public_lines(cell.source, where)))
            lines = {line for line in lines if len(line) >= LONG_LINE}
            if len(lines) >= 3:
                yield where, lines


if __name__ == "__main__":
    sys.exit(main())
