"""The archive for offline reading is the pages, and stands where the book says."""

import re
import sys
from zipfile import ZipFile

import pytest

from tests.guards.notebook import ROOT
from tools.release import read
from tools.site import NAME, gather, main


@pytest.fixture
def built(tmp_path):
    """A small book and its PDF."""
    pages, pdf = tmp_path / "html", tmp_path / f"{NAME}.pdf"
    (pages / "chapters").mkdir(parents=True)
    (pages / "index.html").write_text("first")
    (pages / "chapters" / "gan.html").write_text("a chapter")
    pdf.write_bytes(b"%PDF")
    return pages, pdf


def test_site_has_pages_archive_and_pdf(built, tmp_path):
    to = tmp_path / "site"
    to.mkdir()
    (to / "old.html").write_text("of an earlier time")
    gather(*built, to)
    names = {str(path.relative_to(to)) for path in to.rglob("*") if path.is_file()}
    assert names == {"index.html", "chapters/gan.html", f"{NAME}.zip", f"{NAME}.pdf"}
    ZipFile(to / f"{NAME}.zip").extractall(tmp_path / "offline")
    unpacked = tmp_path / "offline" / NAME
    assert (unpacked / "chapters" / "gan.html").read_text() == "a chapter"
    files = [path for path in unpacked.rglob("*") if path.is_file()]
    assert len(files) == 2


@pytest.mark.parametrize(("part", "target"), [(0, "book"), (1, "pdf")])
def test_missing_part_is_told(built, tmp_path, part, target):
    (built[0] / "index.html" if part == 0 else built[1]).unlink()
    with pytest.raises(SystemExit, match=f"run `make {target}`"):
        gather(*built, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_command_needs_a_folder(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["site"])
    with pytest.raises(SystemExit, match="python -m tools.site DIR"):
        main()


@pytest.mark.parametrize("page", ["index", "ways"])
def test_book_names_both_downloads(page):
    stamp = read(ROOT)
    home = f"https://{stamp.owner}.github.io/{stamp.name}/"
    text = (ROOT / "chapters" / f"{page}.md").read_text(encoding="utf8")
    found = re.findall(rf"\]\({re.escape(home)}([^)]*)\)", text)
    assert found == [f"{NAME}.zip", f"{NAME}.pdf"]
