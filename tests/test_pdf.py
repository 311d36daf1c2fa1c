"""Two pages of the built book as one PDF."""

import os
import shutil
import unicodedata

import pytest

pytest.importorskip("pypdf", reason="pypdf, which joins and reads the PDF, is missing")
pytest.importorskip(
    "playwright.sync_api", reason="playwright, which drives the browser, is missing"
)
from tools.pdf import BOOK, Book, anchor, headings, plain, print_book  # noqa: E402

NAMES = ["chapters/index", "chapters/recap", "chapters/notation"]


@pytest.fixture(scope="module")
def book():
    if not (BOOK / "index.html").exists():
        pytest.fail("the book is not built: run `make book`")
    return Book({"": NAMES[:1], "A part": NAMES[1:]})


@pytest.fixture(scope="module")
def printed(book, tmp_path_factory):
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("no browser to print with: install chromium")
    from playwright.sync_api import sync_playwright
    from pypdf import PdfReader

    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        print_book(book, browser, target)
        browser.close()
    return PdfReader(target)


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
