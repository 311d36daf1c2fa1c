"""What tools/bookext/lean.py takes out of a built page, and what it must leave."""

import base64
import io
import re
import types

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.ttLib import TTFont
from PIL import Image

from tools.bookext.lean import (
    class_names,
    explorers,
    icons,
    letters,
    sizes,
    slim,
    slim_page,
    styles,
)

HEAD = """<script>document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";</script>
<link rel="preload" as="script" href="../_static/scripts/fontawesome.js?digest=1" />
<script src="../_static/documentation_options.js?v=1"></script>
<script src="../_static/doctools.js?v=1"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'page';</script>
<script src="../_static/searchtools.js"></script>
<script src="../_static/language_data.js"></script>
<script src="../searchindex.js"></script>
<script defer src="../_static/scripts/fontawesome.js?digest=1"></script>
"""  # noqa: E501


def sources(text):
    return [
        tuple(found) for found in re.findall(r'<script( defer)? src="([^"?]*)', text)
    ]


def test_a_page_leaves_search_to_the_page_that_searches(tmp_path):
    page = slim_page(HEAD, tmp_path / "chapters" / "page.html", tmp_path)
    assert sources(page) == [
        (
            "",
            "../_static/documentation_options.js",
        ),  # inline scripts change what it sets
        (" defer", "../_static/doctools.js"),
    ]
    assert "fontawesome" not in page
    assert "prefers-color-scheme" in page and '"auto"' not in page


def test_an_arrow_of_the_list_of_pages_has_a_name(tmp_path):
    arrow = '<summary><span class="toctree-toggle" role="presentation"></span>'
    page = slim_page(arrow, tmp_path / "page.html", tmp_path)
    assert page.startswith('<summary aria-label="Pages of this part"><span')


def test_the_page_that_searches_keeps_its_scripts_in_their_order(tmp_path):
    page = slim_page(HEAD, tmp_path / "search.html", tmp_path)
    assert [name.rpartition("/")[2] for _, name in sources(page)] == [
        "documentation_options.js",
        "doctools.js",
        "searchtools.js",
        "language_data.js",
        "searchindex.js",
    ]
    assert not any(defer for defer, _ in sources(page))
    assert page.index("SHOW_SEARCH_SUMMARY") < page.index("searchtools")


EXPLORER = (
    '<form class="explorer" id="explorer-{0}" oninput="move()"><img src="data:a">'
    '<script type="application/json">{{"pictures": ["data:{0}\\u003c/"]}}</script>'
    "</form>"
)


def test_pictures_of_explorers_become_files_of_their_own(tmp_path):
    (tmp_path / "_static").mkdir()
    page = tmp_path / "chapters" / "page.html"
    text = f"<body>{EXPLORER.format(1)}<p>between</p>{EXPLORER.format(2)}</body>"
    moved = explorers(text, page, tmp_path)
    assert "application/json" not in moved and "<p>between</p>" in moved
    files = re.findall(r'data-pictures="\.\./(_static/explorers/\w+\.js)"', moved)
    assert len(set(files)) == 2
    for number, file in enumerate(files, 1):
        assert f"data:{number}" in (tmp_path / file).read_text()
    assert moved.count('oninput="if (!this.data) return this.moved = true;move()"') == 2
    assert moved.count("IntersectionObserver") == 1


def test_a_page_without_explorers_has_no_script_for_them(tmp_path):
    text = '<body><form oninput="x"></form></body>'
    assert explorers(text, tmp_path / "page.html", tmp_path) == text


def test_pictures_say_their_size_and_wait_but_for_the_first(tmp_path):
    Image.new("RGB", (30, 20)).save(tmp_path / "a.png")
    page = tmp_path / "page.html"
    text = '<img alt="x" src="a.png"/><img src="a.png"><img width="1" src="a.png">'
    assert sizes(text, page) == (
        '<img width="30" height="20" alt="x" src="a.png"/>'
        '<img width="30" height="20" loading="lazy" src="a.png">'
        '<img width="1" src="a.png">'
    )
    for untouched in ('<img src="data:image/png;base64,x">', '<img src="none.png">'):
        assert sizes(untouched, page) == untouched


def test_class_names():
    text = """<p class="a b-1"><i id="no" class='c'><b class=d>class="e"</b>"""
    assert class_names(text) == {"a", "b-1", "c", "d", "e"}


@pytest.mark.parametrize(
    "rule",
    [
        "p{x:1}",
        ".here{x:1}",
        ".gone,.here{x:1}",
        ".here:not(.gone){x:1}",
        ".here:is(.gone,:not(.gone)) p{x:1}",
        "@media print{.here{x:1}}",
        "@font-face{font-family:x}",
        "@keyframes k{0%{x:1}to{x:2}}",
        "/* .gone */p{x:1}",
        "[data-x='.here']{x:1}",
    ],
)
def test_rules_that_may_match_stay(rule):
    assert styles(rule, {"here"}) == rule


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        (".gone{x:1}", ""),
        (".gone.here,p .gone:hover{x:1}", ""),
        ("@media print{.gone{x:1}.here{x:1}}", "@media print{.here{x:1}}"),
        (".gone:not(.here){x:1}p{x:1}", "p{x:1}"),
    ],
)
def test_rules_that_cannot_match_go(rule, left):
    assert styles(rule, {"here"}) == left


def make_font(file, codes):
    names = [".notdef", *(f"u{code:x}" for code in codes)]
    font = FontBuilder(1000)
    font.setupGlyphOrder(names)
    font.setupCharacterMap(dict(zip(codes, names[1:], strict=True)))
    font.setupGlyf({name: font_square() for name in names})
    font.setupHorizontalMetrics({name: (500, 0) for name in names})
    font.setupHorizontalHeader()
    font.setupNameTable({"familyName": "F", "styleName": "R"})
    font.setupOS2()
    font.setupPost()
    font.save(file)


def font_square():
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    for draw, point in zip(
        (pen.moveTo, pen.lineTo, pen.lineTo), ((0, 0), (0, 9), (9, 0)), strict=True
    ):
        draw(point)
    pen.closePath()
    return pen.glyph()


def font_face(name):
    return (
        f"@font-face{{font-family:F;font-weight:900;src:url(../fonts/{name}.woff2)"
        f' format("woff2"),url(../fonts/{name}.ttf) format("truetype")}}'
    )


def test_icon_fonts_keep_what_is_named(tmp_path):
    for folder in ("fonts", "styles"):
        (tmp_path / folder).mkdir()
    make_font(tmp_path / "fonts" / "fa-solid-900.ttf", [0xF001, 0xF002, 0xF003])
    make_font(tmp_path / "fonts" / "fa-brands-400.ttf", [0xF0FF])
    rule = '.a:before{content:"\\f002"}.b{--icon:"\uf003"}'
    text = font_face("fa-solid-900") + font_face("fa-brands-400") + rule
    cut = icons(text, tmp_path / "styles" / "sheet.css")
    held = re.findall(r"data:font/woff;base64,([^)]*)\)", cut)
    font = TTFont(io.BytesIO(base64.b64decode(held[0])))
    assert len(held) == 1 and set(font.getBestCmap()) == {0xF002, 0xF003}
    assert "fa-brands" not in cut and "truetype" not in cut and cut.endswith(rule)


def test_letters_of_equations_come_with_the_sheet(tmp_path):
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts" / "KaTeX_Main-Regular.woff2").write_bytes(b"letters")
    text = "url(fonts/KaTeX_Main-Regular.woff2),url(fonts/KaTeX_AMS-Regular.woff2)"
    held = base64.b64encode(b"letters").decode()
    assert letters(text, tmp_path / "katex.css") == (
        f"url(data:font/woff2;base64,{held}),url(fonts/KaTeX_AMS-Regular.woff2)"
    )


def test_a_build_that_failed_is_left_alone(tmp_path):
    (tmp_path / "page.html").write_text(HEAD)
    app = types.SimpleNamespace(
        outdir=tmp_path, builder=types.SimpleNamespace(format="html")
    )
    slim(app, ValueError())
    assert (tmp_path / "page.html").read_text() == HEAD
