"""A chapter as the guards see it."""

import ast
from functools import cached_property
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from tools.normal import printed

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
# Pages whose text can quote a number. The list of sources is full of other numbers.
PAGES = CHAPTERS + [
    page for page in sorted(ROOT.glob("chapters/*.md")) if page.name != "references.md"
]


class Chapter:
    """A notebook with its cells by kind; a page of Markdown is one cell, `page`."""

    def __init__(self, path: Path) -> None:
        """Read the file, as it is stored."""
        self.path, self.name = path, path.stem
        self.stored = path.read_text(encoding="utf8")
        if path.suffix == ".md":
            cell = nbformat.v4.new_markdown_cell(self.stored, id="page")
            self.notebook = nbformat.v4.new_notebook(cells=[cell])
        else:
            self.notebook = nbformat.reads(self.stored, as_version=4)

    @property
    def cells(self) -> list[NotebookNode]:
        """All cells, in order."""
        return self.notebook.cells

    @property
    def code(self) -> list[NotebookNode]:
        """The code cells, in order."""
        return [cell for cell in self.cells if cell.cell_type == "code"]

    @property
    def markdown(self) -> list[NotebookNode]:
        """The Markdown cells, in order."""
        return [cell for cell in self.cells if cell.cell_type == "markdown"]

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax tree of each code cell, by the cell's id."""
        return {cell.id: parse(cell.source) for cell in self.code}

    @cached_property
    def printed(self) -> dict[str, str]:
        """What a reader can read in the outputs of each code cell, by its id."""
        return {cell.id: printed(cell) for cell in self.code}


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a cell, with `%pip` and its like made calls."""
    return ast.parse(TransformerManager().transform_cell(source))
