"""A course of one exercise with three checks, and notebooks that hand it in."""

from pathlib import Path

import nbformat

HIDDEN = '''
from coursework.checks import Check, Exercise, same

def quarters(stream, given):
    """Numbers that are exact in every floating-point type."""
    return [(stream.randrange(4, 100) / 4,) for _ in range(3)]

def lists(stream, given):
    return [([stream.uniform(1, 9) for _ in range(5)],) for _ in range(3)]

exercise = Exercise(
    "Toy",
    "elbo",
    [
        Check("twice as much", 2, "double", quarters, lambda given, x: 2 * x,
              "add it to itself", []),
        Check("all of them", 3, "total", lists, lambda given, values: sum(values),
              "add them", []),
        Check("the right word", 1, "word", lambda *_: [()], lambda given: "upward",
              "not down", [], same),
    ],
)
'''
FULL = (2, 3, 1)
SETUP = "import torch\n\ntorch.set_default_dtype(torch.float64)"
DOUBLE = "def double(x):\n    return 2 * x"
TOTAL = "def total(values):\n    return values.sum()"
WORD = 'def word():\n    return "upward"'
ANSWERS = [DOUBLE, TOTAL, WORD]
STUBS = [
    answer.split("\n")[0] + "\n    # YOUR CODE HERE\n    raise NotImplementedError"
    for answer in ANSWERS
]


def make_masters(folder: Path, name: str) -> Path:
    """Write NAME.py and NAME.ipynb."""
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(HIDDEN)
    cells = [nbformat.v4.new_markdown_cell("# Toy"), nbformat.v4.new_code_cell(SETUP)]
    for answer in ANSWERS:
        head, body = answer.split("\n")
        lines = [head, "    ### BEGIN SOLUTION", body, "    ### END SOLUTION"]
        cells.append(nbformat.v4.new_code_cell("\n".join(lines)))
        cells[-1].metadata["nbgrader"] = {"grade": False, "solution": True}
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder


def notebook(cells: list[str]) -> dict:
    """A notebook of format 4.5 as plain data, with code cells of these sources."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for number, source in enumerate(cells)
        ],
    }
