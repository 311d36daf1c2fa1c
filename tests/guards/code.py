"""What stands in the code cells: how they print, their width, the shared first cell."""

import ast
import tomllib
from collections.abc import Iterator

from .notebook import CHAPTERS, ROOT, Chapter

WIDTH = 88


def prints_f_strings(chapter: Chapter) -> Iterator[str]:
    """Cells print texts and f-strings, so that each number has its digits chosen."""
    for cell, tree in chapter.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print":
                for argument in node.args:
                    if not _is_text(argument):
                        shown = ast.unparse(argument)
                        yield f"{cell}: print({shown}) is not an f-string"


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(left) and _is_text(right)
        case ast.BinOp(left=left, op=ast.Mult()):
            return _is_text(left)
        case ast.IfExp(body=body, orelse=other):
            return _is_text(body) and _is_text(other)
        case ast.Call(func=ast.Attribute(attr="join"), args=[argument]):
            elements = getattr(argument, "elts", [getattr(argument, "elt", None)])
            return all(map(_is_text, elements))
        case ast.Call(func=ast.Name(id="agreement")):
            return True
    return False


def narrow(chapter: Chapter) -> Iterator[str]:
    """Code fits a page without scrolling sideways."""
    for cell in chapter.code:
        for number, line in enumerate(cell.source.splitlines(), 1):
            if len(line) > WIDTH:
                yield f"{cell.id}: line {number} has {len(line)} columns"


def still(chapter: Chapter) -> Iterator[str]:
    """No cell clears or redraws what it showed: a stored output cannot tell."""
    for cell in chapter.code:
        for call in ("clear_output", "update_display", "display_id"):
            if call in cell.source:
                yield f"{cell.id}: {call} changes an output after it was shown"


def sets_up(chapter: Chapter) -> Iterator[str]:
    """The first code cell is the same everywhere and installs the book's release."""
    first, model = chapter.code[0], Chapter(CHAPTERS[0]).code[0]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if first.id != "setup":
        yield f"{first.id}: the first code cell is not the one named setup"
    elif first.source != model.source:
        yield f"setup: differs from the one of {CHAPTERS[0].name}"
    elif f"@v{version}" not in first.source:
        yield f"setup: does not install the release v{version}"
