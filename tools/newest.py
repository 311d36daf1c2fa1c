"""Run the chapters with what is installed now, and say which printed lines moved.

    python -m tools.newest

Meant for an environment without the exact versions of requirements.txt, as `make
newest` makes it. Prints Markdown and stores nothing; 1 if a line moved or a chapter
stopped.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError

from tools.pins import ROOT, moved, run


def main() -> int:
    """Print the versions, then chapter for chapter what became of its outputs."""
    print("## Versions other than the pinned ones\n")
    for line in newer((ROOT / "requirements.txt").read_text(encoding="utf8")):
        print(f"- {line}")
    print("\n## Chapters\n", flush=True)
    differ = 0
    for path in sorted(ROOT.glob("chapters/*.ipynb")):
        lines = differences(path)
        differ += bool(lines)
        print(f"- {path.stem}: {'changed' if lines else 'as pinned'}", flush=True)
        if lines:
            print("\n" + "\n".join(f"      {line}" for line in lines) + "\n")
    print(f"\n{differ} chapters differ.")
    return int(differ > 0)


def newer(requirements: str) -> Iterator[str]:
    """Say for each pinned package that is installed if its version is another."""
    for name, pinned in re.findall(r"(?m)^([\w.-]+)==([\w.+]+)", requirements):
        try:
            installed = version(name).partition("+")[0]  # a build, such as +cpu
        except PackageNotFoundError:
            continue
        if installed != pinned:
            yield f"{name} {pinned} -> {installed}"


def differences(path: Path) -> list[str]:
    """Return the printed lines of a chapter that moved, or how its run ended."""
    try:
        after, _ = run(path, {})
    except CellExecutionError as error:
        return [f"stopped: {error.ename}: {error.evalue}"]
    return moved(nbformat.read(path, as_version=4), after)


if __name__ == "__main__":
    sys.exit(main())
