"""What tools/bookext does to a page, and the faults at which the build must stop."""

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docutils import nodes

from tools.bookext.claims import LEDGER, make_section
from tools.release import read

ROOT = Path(__file__).parents[1]
STAMP = read(ROOT)
PUBLISHED = f"https://{STAMP.owner}.github.io/{STAMP.name}/chapters"

GOOD = r"""# A page

Inline $x_t = \sqrt{\bar\alpha_t}\,x_0$, also *$x_0$*, and
[Lin, 1991](HOME/references.html#ref-lin1991).

$$
\begin{aligned} a &= b \\ &= \mathbb{E}\bigl[\operatorname{KL}\bigr] \end{aligned}
\tag{1}
$$

> **Trap.** Mind the *gap*.

> **Something else.** With a list.
>
> - one

> An ordinary quotation with **bold.** words.
"""

BAD = r"""# A page

$\nosuchcommand$ and $\frac{1$ and
[nobody](HOME/references.html#ref-nobody1900) and
[no page](HOME/nowhere.html) and [no heading](references.md#nowhere).
"""


def build(folder, text):
    """Build a book of two pages with this book's settings."""
    chapters = folder / "chapters"
    shutil.copytree(ROOT / "chapters" / "_static", chapters / "_static")
    shutil.copytree(ROOT / "tools" / "bookext", folder / "tools" / "bookext")
    for name in ("references.md", "references.bib"):
        shutil.copy(ROOT / "chapters" / name, chapters)
    shutil.copy(ROOT / "_config.yml", folder)
    toc = (
        "format: jb-book\nroot: chapters/index\nchapters: [file: chapters/references]\n"
    )
    (folder / "_toc.yml").write_text(toc)
    (chapters / "index.md").write_text(text.replace("HOME", PUBLISHED))
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        ".",
        "-W",
        "--keep-going",
    ]
    return subprocess.run([*command, "-n"], cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    result = build(folder, GOOD)
    assert result.returncode == 0, result.stderr
    return (folder / "_build/html/chapters/index.html").read_text()


def test_equations_are_rendered_in_the_page(good):
    assert good.count('class="katex-html"') == 3
    assert good.count('class="equation') == 1


def test_equation_and_its_comma_stay_together(good):
    """In one element, in which a line breaks only where the equation may."""
    found = re.search('<span class="ended">(.*?)</span>,</span>', good, re.DOTALL)
    assert found[1].count("<wbr>") == found[1].count('<span class="base">') == 2
    assert good.count('class="ended"') == 1
    assert "also <em>" in good and "</em>, and" in good


def test_bold_block_quotes_become_notes(good):
    notes = re.findall(
        r'class="([a-z]+) admonition">\s*<p class="admonition-title">(.*?)<', good
    )
    assert notes == [("danger", "Trap"), ("note", "Something else")]
    assert "<p>Mind the <em>gap</em>.</p>" in good
    assert good.count("<blockquote>") == 1


def test_published_address_leads_to_the_page_beside_it(good):
    assert 'href="references.html#ref-lin1991"' in good


def test_no_needless_script(good):
    scripts = re.findall(r'<script[^>]*src="([^"]+)"', good)
    assert scripts
    assert not [
        s for s in scripts if re.search("katex|mathjax|fontawesome|thebe|^http", s)
    ]


def test_build_stops_at_faults(tmp_path):
    result = build(tmp_path, BAD)
    assert result.returncode != 0
    for words in (
        r"Undefined control sequence: \nosuchcommand",
        "KaTeX parse error: Unexpected end of input",
        "local id not found in doc 'chapters/references': 'ref-nobody1900'",
        "/chapters/nowhere",
        "'nowhere'",
    ):
        assert words in result.stderr


def test_style_sheet_of_another_version_stops_the_build(tmp_path):
    sheet = tmp_path / "chapters" / "_static" / "katex" / "katex.min.css"
    sheet.parent.mkdir(parents=True)
    sheet.write_text('content:"0.15.0"')
    code = (
        "import types; from bookext.mathematics import check_version\n"
        f"check_version(types.SimpleNamespace(srcdir={str(tmp_path)!r}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "tools", capture_output=True, text=True
    )
    assert "is not of KaTeX" in result.stderr


def test_the_ledger_page_has_every_row_under_its_chapter():
    with LEDGER.open(encoding="utf8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["topic"] == "elbo"]
    section = make_section("elbo", rows)
    assert section.next_node(nodes.title).astext() == "The evidence lower bound"
    items = list(section.findall(nodes.list_item))
    assert len(items) == len(rows)
    for item, row in zip(items, rows, strict=True):
        text = item.astext()
        assert text.startswith(row["quantity"])
        assert f": {row['value']} ± {row['tolerance']}" in text or not row["value"]
        assert text.endswith(f"({row['source']}; {row['how checked']})")
        links = [link["refuri"] for link in item.findall(nodes.reference)]
        assert links == [f"references.html#ref-{row['source']}"]


def test_a_topic_without_a_chapter_has_no_link():
    section = make_section("no-such-chapter", [])
    assert section.next_node(nodes.title).astext() == "No such chapter"
    assert not list(section.findall(nodes.reference))
