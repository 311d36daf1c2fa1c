"""Every line of coverage.md against the chapters and the claims that it names."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat
import pytest
import yaml

from tests.claims.ledger import ROOT, read

COVERAGE = (ROOT / "tests" / "claims" / "coverage.md").read_text(encoding="utf8")
LETTERS = set("CPWTD!RQEVALB")
LINE = re.compile(r"- \[(?P<tick>[x ])\] (?P<what>(?P<letter>\S) \S.*)")


@cache
def pages() -> dict[str, str]:
    """The pages in the table of contents, by the last part of their names."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    files = [toc["root"]]
    files += [page["file"] for part in toc["parts"] for page in part["chapters"]]
    return {Path(file).name: file for file in files}


@cache
def headings(file: str) -> set[str]:
    """Texts of a page's headings, of any level."""
    notebook = ROOT / f"{file}.ipynb"
    if notebook.exists():
        cells = nbformat.read(notebook, as_version=4).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    else:
        texts = [notebook.with_suffix(".md").read_text(encoding="utf8")]
    prose = re.sub(r"(?ms)^```.*?^```", "", "\n\n".join(texts))
    return set(re.findall(r"(?m)^#{1,6} +(.+?) *$", prose))


@cache
def claims() -> list[str]:
    """Ids of the ledger."""
    return [row.id for row in read()]


def items(text: str) -> list[str]:
    """The lines of the list, well formed or not."""
    return [line for line in text.splitlines() if line.startswith("-")]


def faults(text: str) -> list[str]:
    """What is wrong with a list, each with its line."""
    found, seen = [], Counter()
    for item in items(text):
        line = LINE.fullmatch(item)
        if line is None:
            found.append(f"not of the form '- [x] LETTER text': {item}")
            continue
        # What a line asks for may have a bar of its own, as in E[eps | x_t].
        left, bar, end = line["what"].rpartition(" | ")
        asked, _, ids = (left if bar else line["what"]).partition(" -> ")
        seen[asked] += 1
        complaints = _places(end) if line["tick"] == "x" else _reason(end)
        complaints += _claims(ids)
        if line["letter"] not in LETTERS:
            complaints.append(f"unknown letter {line['letter']}")
        if seen[asked] == 2:
            complaints.append("the same line twice")
        found += [f"{complaint}: {item}" for complaint in complaints]
    return found


def _places(end: str) -> list[str]:
    complaints = []
    for place in end.split("; "):
        chapter, hash_sign, heading = place.partition("#")
        if not hash_sign:
            complaints.append("a tick without a place")
        elif chapter not in pages():
            complaints.append(f"no chapter {chapter!r} in _toc.yml")
        elif heading not in headings(pages()[chapter]):
            complaints.append(f"no heading {heading!r} in {chapter}")
    return complaints


def _reason(end: str) -> list[str]:
    return [] if re.match(r"not yet: \S", end) else ["open without a reason"]


def _claims(ids: str) -> list[str]:
    def known(claim: str) -> bool:
        if claim.endswith(".*"):
            return any(id_.startswith(claim[:-1]) for id_ in claims())
        return claim in claims()

    unknown = [claim for claim in ids.split(", ") if ids and not known(claim)]
    return [f"no claim {claim!r} in the ledger" for claim in unknown]


def test_every_place_and_every_claim_exists():
    assert faults(COVERAGE) == []


def test_no_line_was_lost():
    assert len(items(COVERAGE)) >= 300


GOOD = "- [x] W book: E[eps | x_t] -> fwd.b01.*, fwd.pp.036 | forward#Two schedules"
OPEN = "- [ ] C book: what nobody wrote | not yet: a chapter"


def test_good_lines_have_no_faults():
    assert faults(f"# A head\n\n{GOOD}\n{OPEN}\n") == []


@pytest.mark.parametrize(
    ("line", "old", "new", "complaint"),
    [
        (GOOD, "Two schedules", "Three schedules", "no heading 'Three schedules'"),
        (GOOD, "Two schedules", "Two", "no heading 'Two' in forward"),
        (GOOD, "forward#", "reverse#", "no heading 'Two schedules' in reverse"),
        (GOOD, "forward#", "backward#", "no chapter 'backward'"),
        (GOOD, "schedules", "schedules; score#Fog", "no heading 'Fog' in score"),
        (GOOD, "fwd.b01.*", "fwd.b99.*", "no claim 'fwd.b99.*'"),
        (GOOD, "fwd.b01.*", "fwd.b01", "no claim 'fwd.b01'"),
        (GOOD, "fwd.pp.036", "fwd.pp.037", "no claim 'fwd.pp.037'"),
        (GOOD, "forward#Two schedules", "not yet: soon", "a tick without a place"),
        (GOOD, " | forward#Two schedules", "", "a tick without a place"),
        (GOOD, "[x] W", "[x] Z", "unknown letter Z"),
        (GOOD, "[x]", "[ ]", "open without a reason"),
        (GOOD, "[x]", "[X]", "not of the form"),
        (OPEN, " | not yet: a chapter", "", "open without a reason"),
        (OPEN, "a chapter", "", "open without a reason"),
        (OPEN, OPEN, f"{OPEN}\n{OPEN} more", "the same line twice"),
    ],
)
def test_a_planted_fault_is_noticed(line, old, new, complaint):
    assert old in line
    assert any(complaint in fault for fault in faults(line.replace(old, new)))


def test_a_comment_of_a_code_cell_is_no_heading(tmp_path, monkeypatch):
    comment = nbformat.v4.new_code_cell("# Two schedules")
    fenced = nbformat.v4.new_markdown_cell("## Real\n\n```\n# Fenced\n```")
    page = nbformat.v4.new_notebook(cells=[comment, fenced])
    (tmp_path / "chapters").mkdir()
    nbformat.write(page, tmp_path / "chapters" / "forward.ipynb")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert headings.__wrapped__("chapters/forward") == {"Real"}
