"""Two pages of the built book as one PDF."""

import os
import shutil
import unicodedata

import pytest

PdfReader = pytest.importorskip(
    "pypdf", reason="pypdf, which joins and reads the PDF, is missing"
).PdfReader
sync_playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright, which drives the browser, is missing"
).sync_playwright
from tools.pdf import BOOK, Book, anchor, headings, plain, print_book  # noqa: E402

NAMES = ["chapters/index", "chapters/recap", "chapters/notation"]


@pytest.fixture(scope="module")
def book():
    if not (BOOK / "index.html").exists():
        pytest.fail("the book is not built: run `make book`")
    return Book({"": NAMES[:1], "A part": NAMES[1:]})


@pytest.fixture(scope="module")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("no browser to print with: install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(book, browser, tmp_path_factory):
    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    print_book(book, browser, target)
    return target


@pytest.fixture(scope="module")
def printed(file):
    return PdfReader(file)


def words(reader, page):
    """A page's text in one line, without ligatures."""
    text = unicodedata.normalize("NFKC", reader.pages[page].extract_text())
    return " ".join(text.split())


def bookmarks(reader, items, depth=0):
    for item in items:
        if isinstance(item, list):
            yield from bookmarks(reader, item, depth + 1)
        else:
            yield depth, item.title, reader.get_destination_page_number(item)


def test_bookmarks_lead_to_the_headings(book, printed):
    marks = list(bookmarks(printed, printed.outline))
    chapters = [(title, page) for depth, title, page in marks if depth == 1][-2:]
    assert ("A part", chapters[0][1]) in [(title, page) for _, title, page in marks]
    assert [title for title, _ in chapters] == ["Recap", "Notation"]
    for _, title, page in marks:
        if title != "A part":
            assert title in words(printed, page)
    sections = [title for depth, title, _ in marks if depth == 2]
    found = [headings(book.texts[name], 2) for name in NAMES[1:]]
    assert sections == [plain(title) for titles in found for _, title in titles]


def test_contents_name_the_pages(printed):
    for _, title, page in bookmarks(printed, printed.outline):
        if title in ("Recap", "Notation"):
            assert f"{title} {page + 1}" in words(printed, 1)
            assert words(printed, page).endswith(str(page + 1))


def test_chapters_begin_on_new_pages(book, printed):
    for _, title, page in bookmarks(printed, printed.outline):
        if title in (book.title, "Recap", "Notation"):
            assert words(printed, page).startswith(title)


def test_every_page_has_its_footer_and_more(book, printed):
    for page in range(len(printed.pages)):
        body, _, footer = words(printed, page).rpartition(f"{book.title}. ")
        assert body and footer == f"{book.version} {page + 1}"


def test_nothing_stands_in_the_margins(printed):
    def note(text, cm, tm, *_):
        if text.strip():
            places.append(tm[4] * cm[0] + tm[5] * cm[2] + cm[4])

    for page in printed.pages:
        places = []  # where each piece of text begins, in points from the left
        page.extract_text(visitor_text=note)
        width, height = page.mediabox[2:]
        assert (round(width), round(height)) == (595, 842)  # A4
        assert 42 <= min(places) <= max(places) <= width - 42  # 15 mm


def test_fonts_travel_with_the_file(printed):
    fonts = [
        font.get_object()["/DescendantFonts"][0].get_object()["/FontDescriptor"]
        for page in printed.pages
        for font in page["/Resources"]["/Font"].values()
    ]
    assert fonts
    assert all(
        {"/FontFile2", "/FontFile3"} & font.get_object().keys() for font in fonts
    )


def test_same_pages_make_the_same_file(book, browser, file, printed, tmp_path):
    assert dict(printed.metadata) | {"/Producer": ""} == {
        "/Title": book.title,
        "/Author": "the contributors to Generative Models, Audited",
        "/Subject": book.version,
        "/Producer": "",
    }
    print_book(book, browser, tmp_path / "again.pdf")
    assert (tmp_path / "again.pdf").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("tag", "lines", "room", "above"),
    [("pre", 11, 8, 0), ("pre", 20, 10, 10), ("pre", 20, 17, 14), ("pre", 20, 4, 0)]
    + [("p", 3, 2, 0), ("p", 4, 3, 2), ("p", 9, 1, 0)],
)
def test_breaks_leave_enough_on_both_sides(browser, tmp_path, tag, lines, room, above):
    """Cells of code stay whole up to eleven lines, paragraphs up to three."""
    static = (BOOK / "_static").as_uri()
    text = "<br>".join(f"line{i:02}" for i in range(lines))
    (tmp_path / "page.html").write_text(
        f'<!doctype html><link rel="stylesheet" href="{static}/book.css">'
        "<style>@page { size: 300px 300px; margin: 0 } * { margin: 0; padding: 0 }"
        "article > :is(p, pre) { font: 10px/10px monospace !important }</style>"
        f'<article class="bd-article"><div style="height: {300 - 10 * room}px"></div>'
        f'<{tag}>{text}</{tag}></article><script src="{static}/print.js"></script>'
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    page.close()
    first = PdfReader(tmp_path / "page.pdf").pages[0].extract_text()
    assert first.count("line") == above


def test_links_stay_within_the_file_where_they_can(book, printed):
    actions = [
        note.get_object().get("/A", {})
        for page in printed.pages
        for note in page.get("/Annots", [])
    ]
    # Host names have no capitals for a browser.
    outside = [action["/URI"].lower() for action in actions if "/URI" in action]
    assert outside and all(address.startswith("https://") for address in outside)
    assert (
        book.site.lower() + "chapters/gan.html" in outside
    )  # no page of this small book


def test_ids_and_links_of_joined_pages_fit(book):
    text = book.article("chapters/index")
    assert f'href="#{anchor("chapters/notation")}"' in text
    assert 'id="chapters-index--' in text and "<script" not in text
    assert 'href="../' not in text and 'src="../' not in text
    assert "loading=" not in text


def test_headings_lose_their_markup():
    assert plain("a &amp; <em>b</em>") == "a & b"


def test_unbuilt_book_is_told(tmp_path):
    with pytest.raises(SystemExit, match="run `make book`"):
        Book({"": NAMES[:1]}, tmp_path)
