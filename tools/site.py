"""Gather what the host of the pages gets: the pages, their archive and the PDF.

    python -m tools.site DIR

DIR is made anew. The archive holds the pages alone; they work from disk.
"""

import shutil
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

BUILT = Path(__file__).resolve().parents[1] / "_build"
NAME = "generative-models-audited"


def main() -> None:
    """Do what the command line asks."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    to = Path(sys.argv[1])
    gather(BUILT / "html", BUILT / "pdf" / f"{NAME}.pdf", to)
    print(f"{to}: {sum(file.stat().st_size for file in to.rglob('*')) / 1e6:.0f} MB")


def gather(pages: Path, pdf: Path, to: Path) -> None:
    """Copy the pages and the PDF, and put the pages into an archive beside them."""
    for needed, target in ((pages / "index.html", "book"), (pdf, "pdf")):
        if not needed.exists():
            sys.exit(f"{needed.name} is not built: run `make {target}`")
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(pages, to, ignore=shutil.ignore_patterns("*.buildinfo"))
    with ZipFile(to / f"{NAME}.zip", "w", ZIP_DEFLATED) as archive:
        for file in sorted(pages.rglob("*")):
            if file.name != ".buildinfo":
                archive.write(file, Path(NAME, file.relative_to(pages)))
    shutil.copy(pdf, to)


if __name__ == "__main__":
    main()
