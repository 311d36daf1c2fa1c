"""What of genaudit a sandbox shows: an exercise's visible checks and its rooms."""

import ast
import shutil
from collections.abc import Sequence
from pathlib import Path

import genaudit

SOURCE = Path(genaudit.__file__).parent


def shown_package(folder: Path, name: str, modules: Sequence[str]) -> Path:
    """Copy the rooms that exercise ``name`` may use, and those they need, to a folder.

    The visible checks come along. ValueError if an exercise declares a room that
    genaudit does not have. Returns the folder, a package named genaudit when mounted.
    """
    wanted = {"exercises._say", *modules}
    if (SOURCE / "exercises" / f"{name}.py").exists():
        wanted.add(f"exercises.{name}")
    done = set()
    while wanted - done:
        module = min(wanted - done)
        done.add(module)
        path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
        if not path.exists():
            raise ValueError(f"modules = {module!r}: genaudit has no such module")
        wanted |= _needed(path)
    for module in ["__init__", "exercises.__init__", *done]:
        path = Path(*module.split(".")).with_suffix(".py")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / path, folder / path)
    shutil.copyfile(SOURCE / "book.mplstyle", folder / "book.mplstyle")
    return folder


def _needed(path: Path) -> set[str]:
    """Modules of genaudit that a file imports, as "room" or "package.module"."""
    needed = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "genaudit":
            needed |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.startswith("genaudit."):
                needed.add(node.module.removeprefix("genaudit."))
    return needed
