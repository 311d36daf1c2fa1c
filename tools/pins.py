"""Run the chapters again, store what they print, and say which lines moved.

    python -m tools.pins                    every chapter
    python -m tools.pins chapters/gan.ipynb one of them
    python -m tools.pins --check            only say whether the files are in one form
    python -m tools.pins --spread FILE      run under several instruction sets and
                                            threads; store nothing

After each chapter come the numbers nearest to a rounding boundary, counted in rounding
errors of the number itself: `!!` marks fewer than 10, `!` fewer than 1,000.
"""

import argparse
import difflib
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.boundary import Field, read, start_up
from tools.kernel import client
from tools.normal import as_text, normalise, printed

ROOT = Path(__file__).resolve().parent.parent
CLOCK = "measured on the machine that ran this: "  # what follows moves in every run
SETTINGS = {
    "all instructions, 1 thread": {"OMP_NUM_THREADS": "1"},
    "all instructions, 2 threads": {
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",  # else threads that wait for a core spin on it
    },
    "AVX2, 1 thread": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OMP_NUM_THREADS": "1",
    },
    "SSE4, 2 threads": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
    },
}


def main() -> int:
    """Do what the command line asks; 1 if `--check` found something to mend."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--spread", action="store_true")
    arguments = parser.parse_args()
    paths = arguments.notebooks or sorted(ROOT.glob("chapters/*.ipynb"))
    if arguments.check:
        wrong = [
            path
            for path in paths
            if path.read_text(encoding="utf8") != normal_text(path)
        ]
        for path in wrong:
            print(f"{path}: not in the one form; `make pins` rewrites it")
        return int(bool(wrong))
    for path in paths:
        print(f"== {path.name}", flush=True)
        if arguments.spread:
            show_spread(path)
        else:
            pin(path)
    return 0


def normal_text(path: Path) -> str:
    """Return the content that a notebook's file ought to have, without running it."""
    return as_text(normalise(nbformat.read(path, as_version=4)))


def pin(path: Path) -> None:
    """Run a notebook, store it in the one form, print what moved."""
    before = nbformat.read(path, as_version=4)
    after, fields = run(path, {})
    path.write_text(as_text(after), encoding="utf8")
    for line in moved(before, after):
        print(line)
    nearest = sorted(set(fields), key=lambda field: field.roundings)
    close = sum(field.roundings < 10 for field in nearest)
    for field in nearest[: max(3, close)]:
        print(f"near a boundary: {describe(after, field)}")


def run(path: Path, environment: dict[str, str]) -> tuple[NotebookNode, list[Field]]:
    """Return the notebook after a fresh run, in the one form, and what it formatted."""
    notebook = nbformat.read(path, as_version=4)
    one_thread = {"OMP_NUM_THREADS": "1"}  # as in the tests, unless the caller says
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder)
        settings = one_thread | os.environ | start_up(noted) | environment
        client(notebook, path.parent).execute(env=settings)
        return normalise(notebook), read(noted)


def moved(before: NotebookNode, after: NotebookNode) -> list[str]:
    """Return the printed lines that differ, with the cell they belong to."""
    old = {cell.id: printed(cell) for cell in normalise(before).cells}
    lines = []
    for cell in after.cells:
        pair = old.get(cell.id, "").splitlines(), printed(cell).splitlines()
        diff = [line for line in difflib.ndiff(*pair) if line[0] in "+-"]
        lines += [f"{cell.id}: {line}" for line in diff if CLOCK not in line]
    return lines


def describe(notebook: NotebookNode, field: Field) -> str:
    """Return a line on how near a field is to changing its text."""
    mark = "!!" if field.roundings < 10 else "!" if field.roundings < 1000 else ""
    return (
        f"{cell_of(notebook, field)}: {field.text.strip()} ({field.value!r}) is "
        f"{field.distance:.1e}, or {field.roundings:.0f} roundings, away {mark}"
    ).rstrip()


def cell_of(notebook: NotebookNode, field: Field) -> str:
    """Return the id of the cell whose run printed a field."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return code[field.execution - 1].id


def show_spread(path: Path) -> None:
    """Print each number that some setting changes or brings near its boundary."""
    runs = {}
    for name, environment in SETTINGS.items():
        print(f"running with {name}", file=sys.stderr, flush=True)
        runs[name] = run(path, environment)
    notebook = next(iter(runs.values()))[0]
    columns = [fields for _, fields in runs.values()]
    if len({len(fields) for fields in columns}) > 1:
        print("the settings print different lines: compare the outputs themselves")
        return
    widest = 0.0
    for row in zip(*columns, strict=True):
        values = [field.value for field in row]
        spread = max(values) - min(values)
        widest = max(widest, spread)
        nearest = min(row, key=lambda field: field.distance)
        texts = {field.text.strip() for field in row}
        cell = cell_of(notebook, nearest)
        if len(texts) > 1:
            print(f"{cell}: prints as {' or '.join(sorted(texts))}")
        elif nearest.distance < 3 * spread:
            print(
                f"{cell}: {nearest.text.strip()} ({nearest.value!r}) is "
                f"{nearest.distance:.1e} away, the spread is {spread:.1e}"
            )
    print(f"{len(columns[0])} numbers, largest spread {widest:.1e}")


if __name__ == "__main__":
    sys.exit(main())
