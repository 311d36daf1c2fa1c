"""Make student notebooks from the masters, and look whether anything leaks."""

import json
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbformat.validator import iter_validate

from coursework.checks import Exercise, Given, load_all
from coursework.leaks import expected_numbers, leaks, phrases, printed_numbers
from coursework.markers import student_source
from coursework.personal import constants_of, read_key
from coursework.points import csv_text, guarded, save
from coursework.roster import Student, read_roster, slug

GIVEN = "# The numbers of this notebook: in a course each student may have others."
LISTING = Path("folders.csv")
# A page that says what the folder holds may lie in it already.
BESIDE = Path("README.md")
OF_NOTEBOOK = ("kernelspec", "language_info")
OF_CELL = ("nbgrader", "mystnb", "tags")

Exercises = Mapping[str, Exercise]
Books = Mapping[str, NotebookNode]
# Where a notebook goes: whose exercise it is, and with which constants.
Copies = Mapping[Path, tuple[str, Given]]


def release(
    masters: Path, to: Path, roster: Path | None = None, key: Path | None = None
) -> list[Path]:
    """Write the student notebooks of all masters to a folder; return what was written.

    With a roster and a course key each student gets a folder and constants of their
    own, and folders.csv says whose folder is whose. ValueError if a master is not in
    order or if a notebook holds anything secret: the folder stays as it was then.
    """
    if (roster is None) != (key is None):
        raise ValueError("a personal release needs both a roster and a course key")
    exercises = load_all(masters)
    _refuse_unpaired(masters, exercises)
    books = {
        name: read_master(masters / f"{name}.ipynb", exercise)
        for name, exercise in exercises.items()
    }
    stubs = {
        name: student_notebook(book, masters / f"{name}.ipynb")
        for name, book in books.items()
    }
    students = read_roster(roster) if roster else []
    copies = _copies(exercises, students, read_key(key) if key else b"")
    places = {*copies, LISTING} if students else {*copies}
    _refuse_others(masters, to, places)
    beside = next(folder for folder in to.absolute().parents if folder.is_dir())
    with tempfile.TemporaryDirectory(dir=beside, prefix=f".{to.name}-") as name:
        draft = Path(name)
        _write(draft, copies, stubs, students)
        _refuse_leaks(draft, to, copies, books, exercises)
        for place in places:
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            (draft / place).replace(to / place)
    return sorted(to / place for place in places)


def read_master(path: Path, exercise: Exercise) -> NotebookNode:
    """A master notebook; ValueError unless it is one that can be released."""
    try:
        text = path.read_text(encoding="utf8")
        fault = next(iter_validate(json.loads(text), version=4, version_minor=5), None)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: not JSON in UTF-8: {error}") from None
    if fault:
        raise ValueError(f"{path}: not a notebook of format 4.5: {fault.message[:200]}")
    master = nbformat.v4.reads(text)
    ids = [cell.id for cell in master.cells]
    for cell in master.cells:
        if ids.count(cell.id) > 1:
            raise ValueError(f"{path}, cell {cell.id}: cell ids must differ")
        if cell.get("attachments"):
            raise ValueError(
                f"{path}, cell {cell.id}: attachments are not released; show the "
                "picture by a link or by code"
            )
    _check_given(master, exercise, path)
    return master


def student_notebook(master: NotebookNode, path: Path) -> NotebookNode:
    """The master of ``path`` without its solutions and outputs."""
    cells = []
    for cell in master.cells:
        copy = NotebookNode(
            id=cell.id,
            cell_type=cell.cell_type,
            metadata=_kept(cell.metadata, OF_CELL),
            source=student_source(cell, f"{path}, cell {cell.id}"),
        )
        if cell.cell_type == "code":
            copy.update(execution_count=None, outputs=[])
        cells.append(copy)
    return new_notebook(cells=cells, metadata=_kept(master.metadata, OF_NOTEBOOK))


def with_constants(notebook: NotebookNode, given: Given) -> str:
    """The content of a student's file, with these constants."""
    cells = [
        NotebookNode(cell, source=given_source(given)) if cell.id == "given" else cell
        for cell in notebook.cells
    ]
    return nbformat.v4.writes(NotebookNode(notebook, cells=cells)) + "\n"


def given_source(given: Given) -> str:
    """The cell that defines the constants."""
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in given.items()
    ]
    return "\n".join([GIVEN, *lines])


def _kept(metadata: Mapping, names: Collection[str]) -> NotebookNode:
    return NotebookNode({name: metadata[name] for name in names if name in metadata})


def _check_given(master: NotebookNode, exercise: Exercise, path: Path) -> None:
    """ValueError unless the constants stand in the master as release writes them."""
    found = [
        (cell.cell_type, cell.source) for cell in master.cells if cell.id == "given"
    ]
    right = [("code", given_source(exercise.given))] if exercise.constants else []
    if found != right:
        rule = f"must be the code {right[0][1]!r}" if right else "must not exist"
        raise ValueError(
            f"{path}, cell given: {rule}, for the constants in {path.stem}.py"
        )


def _refuse_unpaired(masters: Path, exercises: Collection[str]) -> None:
    for path in sorted(masters.glob("*.ipynb")):
        if path.stem not in exercises:
            raise ValueError(f"{path}: has no hidden checks in {path.stem}.py")


def _copies(exercises: Exercises, students: list[Student], key: bytes) -> Copies:
    if not students:
        return {
            Path(f"{name}.ipynb"): (name, exercise.given)
            for name, exercise in exercises.items()
        }
    return {
        Path(slug(student.id), f"{name}.ipynb"): (
            name,
            constants_of(exercise, student.id, key),
        )
        for student in students
        for name, exercise in exercises.items()
    }


def _refuse_others(masters: Path, to: Path, places: Collection[Path]) -> None:
    """ValueError if the folder holds, or lies in, what must not go to students."""
    if to.resolve().is_relative_to(masters.resolve()):
        raise ValueError(f"{to}: lies in {masters}, which is never released")
    if to.exists() and not to.is_dir():
        raise ValueError(f"{to}: must be a folder")
    for path in to.rglob("*"):
        place = path.relative_to(to)
        if not path.is_dir() and place != BESIDE and place not in places:
            raise ValueError(
                f"{path}: no file of this release; remove it or choose another folder"
            )


def _write(draft: Path, copies: Copies, books: Books, students: list[Student]) -> None:
    for place, (name, given) in copies.items():
        save(draft / place, with_constants(books[name], given))
    if students:
        rows = [[guarded(student.id), slug(student.id)] for student in students]
        save(draft / LISTING, csv_text([["id", "folder"], *rows]))


def _refuse_leaks(
    draft: Path, to: Path, copies: Copies, masters: Books, exercises: Exercises
) -> None:
    """ValueError if a notebook of the draft holds a secret."""
    secret = phrases(masters, exercises)
    printed = {
        name: printed_numbers(masters[name], exercises[name]) for name in masters
    }
    for place, (name, given) in copies.items():
        numbers = printed[name] | expected_numbers(exercises[name], given)
        notebook = nbformat.v4.reads((draft / place).read_text(encoding="utf8"))
        found = list(leaks(notebook, secret, numbers))
        if found:
            raise ValueError(f"{to / place}: not released, {'; '.join(found)}")
