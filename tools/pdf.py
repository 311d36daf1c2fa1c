"""Print the whole built book as one PDF: contents, bookmarks, links, page numbers.

    python -m tools.pdf

The pages are joined to one document in the order of _toc.yml and printed by Chromium,
which knows their equations, figures and style already. They are printed twice: the
first time tells on which page each chapter begins, for the list of contents.

The file has no tags for screen readers: they would be two thirds of it, and without the
equations at that. The pages themselves are the form for them.
"""

import html
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from posixpath import dirname, join, normpath

import yaml
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, TextStringObject

# Chromium's files count their objects too low; pypdf mends that and says so each time.
logging.getLogger("pypdf").setLevel(logging.ERROR)

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "_build" / "html"
TARGET = ROOT / "_build" / "pdf" / "generative-models-audited.pdf"
PAPER = {"width": 680, "height": 1000}  # A4 between its margins
FOOTER = (
    '<div style="display:flex;justify-content:space-between;width:100%;'
    'font:8px Liberation Sans,Arial,sans-serif;color:#555;margin:0 15mm">'
    '<span>{}</span><span class="pageNumber"></span></div>'
)
STYLE = """
@page { size: A4; }
/* Fonts of the same widths, so that pages break alike wherever one of them is found. */
html {
  --pst-font-family-base: "Liberation Sans", Arial, Helvetica, sans-serif;
  --pst-font-family-heading: var(--pst-font-family-base);
}
.page { break-before: page; }
/* The modules of the package follow each other. */
.page[id^="chapters-api-"]:not([id$="-index"]) {
  break-before: auto; margin-top: 2rem;
}
.cover { text-align: center; padding-top: 5rem; }
.cover h1 { font-size: 3rem; }
.cover img { margin: 3rem 0; width: 100%; }
.page img[src$="title.webp"] { display: none; } /* the cover has it */
.contents { font-size: 0.9rem; line-height: 1.5; }
.contents h2 { margin-top: 0; }
.contents p { break-after: avoid; font-weight: 600; margin: 0.5rem 0 0.1rem; }
.contents ul { margin: 0; padding: 0; }
.contents li { display: flex; list-style: none; }
.contents li span { display: flex; flex: 1; }
.contents li span::before {
  border-bottom: 1px dotted #bbb; content: ""; flex: 1; margin: 0 0.5em 0.3em;
}
.contents a { color: inherit; text-decoration: none; }
/* A link to each heading, though not seen, makes a place that a bookmark can name. */
.bd-article .headerlink { opacity: 0; visibility: visible; }
"""


class Book:
    """The built pages, by part."""

    def __init__(self, parts: dict[str, list[str]], folder: Path = BOOK) -> None:
        """Read the pages; the first part has no caption and holds the first page."""
        self.parts, self.folder = parts, folder
        self.texts = {}
        for name in [name for names in parts.values() for name in names]:
            page = folder / f"{name}.html"
            if not page.exists():
                sys.exit("the book is not built: run `make book`")
            self.texts[name] = page.read_text(encoding="utf8")
        first = next(iter(self.texts.values()))
        self.title = headings(first, 1)[0][1]
        self.site = re.search(r'rel="canonical" href="(.*?)chapters/', first)[1]
        self.author = re.search(r'component-author">\s*By (.*)', first)[1]
        self.version = re.search(r'<p class="provenance">\s*(.*?)\.\n', first)[1]
        sheets = re.findall(r'<link[^>]*rel="stylesheet"[^>]*>', first)
        home = f'href="{folder.as_uri()}/'
        self.styles = re.sub(r'href="(\.\./)?', home, "\n".join(sheets))

    def joined(self, numbers: dict[str, int]) -> str:
        """Return one document; `numbers` says on which page each begins, if known."""
        static = f"{self.folder.as_uri()}/_static"
        pages = "\n".join(
            f'<div class="page" id="{anchor(name)}">{self.article(name)}</div>'
            for name in self.texts
        )
        return (
            '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
            f"<title>{self.title}</title>{self.styles}<style>{STYLE}</style>"
            f'<body><article class="bd-article">'
            f'<div class="cover"><h1>{self.title}</h1>'
            f'<img src="{static}/title.webp" alt=""><p>{self.version}.</p>'
            f"<p>With sliders that move: {self.site}</p></div>"
            f"{self.contents(numbers)}{pages}</article>"
            f'<script src="{static}/print.js"></script></body></html>'
        )

    def contents(self, numbers: dict[str, int]) -> str:
        """Return the list of pages by part."""
        lines = ['<div class="page contents"><h2>Contents</h2>']
        for caption, names in self.parts.items():
            lines.append(f"<p>{html.escape(caption)}</p><ul>")
            for name in names:
                title = headings(self.texts[name], 1)[0][1]
                link = f'<a href="#{anchor(name)}">{title}</a>'
                number = numbers.get(anchor(name), "")
                lines.append(f"<li>{link}<span>{number}</span></li>")
            lines.append("</ul>")
        return "\n".join([*lines, "</div>"])

    def article(self, name: str) -> str:
        """Return a page's content with the ids and links of the joined document."""
        found = re.search(
            r'<article class="bd-article">(.*)</article>', self.texts[name], re.DOTALL
        )
        text = re.sub(r"<script.*?</script>", "", found[1], flags=re.DOTALL)
        text = text.replace(' loading="lazy"', "")
        text = re.sub(r'\bid="([^"]*)"', lambda m: f'id="{anchor(name, m[1])}"', text)

        def moved(match: re.Match) -> str:
            attribute, target = match[1], html.unescape(match[2])
            if re.match(r"[a-z]+:", target):
                return match[0]
            path, _, fragment = target.partition("#")
            path = normpath(join(dirname(name), path)) if path else f"{name}.html"
            page = path.removesuffix(".html")
            if page in self.texts:
                return f'{attribute}="#{anchor(page, fragment)}"'
            home = self.site if attribute == "href" else f"{self.folder.as_uri()}/"
            return f'{attribute}="{home}{path}"'

        return re.sub(r'\b(href|src)="([^"]*)"', moved, text)


def main() -> None:
    """Print the book."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.exit("no browser to print with: install chromium or name it in CHROMIUM")
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    parts = {
        part["caption"]: [
            page["file"]
            for chapter in part["chapters"]
            for page in [chapter, *chapter.get("sections", [])]
        ]
        for part in toc["parts"]
    }
    book = Book({"": [toc["root"]]} | parts)
    TARGET.parent.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        print_book(book, browser, TARGET)
        browser.close()
    print(f"{TARGET}: {len(PdfReader(TARGET).pages)} pages")


def print_book(book: Book, browser, target: Path) -> None:
    """Join, print, number, print again, add the bookmarks and the description."""
    source, numbers = target.with_suffix(".html"), {}
    for _ in range(2):
        source.write_text(book.joined(numbers), encoding="utf8")
        page = browser.new_page(viewport=PAPER)
        page.emulate_media(media="print")
        page.goto(source.as_uri(), timeout=0)
        page.evaluate("document.fonts.ready.then(() => 0)")
        page.pdf(
            path=target,
            prefer_css_page_size=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER.format(f"{book.title}. {book.version}"),
            tagged=False,
        )
        page.close()
        numbers = beginnings(PdfReader(target))
    source.unlink()
    writer = PdfWriter(clone_from=target)
    add_bookmarks(book, numbers, writer)
    describe(book, writer)
    writer.write(target)


def beginnings(reader: PdfReader) -> dict[str, int]:
    """Return the page on which each place of the document stands, counted from 1."""
    return {
        name.removeprefix("/"): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def add_bookmarks(book: Book, numbers: dict[str, int], writer: PdfWriter) -> None:
    """Give the file a tree of parts, chapters and sections."""

    def add(title: str, place: str, parent=None):
        return writer.add_outline_item(
            title=plain(title),
            page_number=numbers[place] - 1,
            parent=parent,
            is_open=parent is None,
        )

    for caption, names in book.parts.items():
        part = add(caption, anchor(names[0])) if caption else None
        for name in names:
            title = headings(book.texts[name], 1)[0][1]
            chapter = add(title, anchor(name), part)
            for fragment, section in headings(book.texts[name], 2):
                add(section, anchor(name, fragment), chapter)
    writer.page_mode = "/UseOutlines"


def describe(book: Book, writer: PdfWriter) -> None:
    """Say what the file is. It has no date: same pages, same file."""
    writer.metadata = {
        "/Title": plain(book.title),
        "/Author": plain(book.author),
        "/Subject": book.version,
    }
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")


def anchor(name: str, fragment: str = "") -> str:
    """Return the id that a page, or a place on it, has in the joined document."""
    return "--".join([name.replace("/", "-"), *filter(None, [fragment])])


def headings(text: str, level: int) -> list[tuple[str, str]]:
    """Return the fragment and the words of each heading of a page's article."""
    pattern = rf'<h{level}>(.*?)<a class="headerlink" href="#([^"]*)"'
    return [(found[2], found[1]) for found in re.finditer(pattern, text)]


def plain(words: str) -> str:
    """Return a heading without its markup."""
    words = re.sub('<span class="katex-html".*', "", words)
    return html.unescape(re.sub("<[^>]*>", "", words))


if __name__ == "__main__":
    main()
