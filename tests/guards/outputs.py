"""What is stored under the code cells: a whole, fresh, readable, small run."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from tools.normal import as_text, normalise

from .notebook import Chapter

NOTEBOOK_BYTES, EXPLORER_BYTES = 1_500_000, 400_000
NBVAL = re.compile(r"nbval[-_]|pytest_validate|raises-exception", re.IGNORECASE)
# A tag or comment that takes a cell out of checking is listed here, as
# ("chapter", "cell id"): "why the output cannot be compared".
UNCHECKED: dict[tuple[str, str], str] = {}


def executed(chapter: Chapter) -> Iterator[str]:
    """Each code cell ran, in order, without an error."""
    for count, cell in enumerate(chapter.code, 1):
        if not cell.source.strip():
            yield f"{cell.id}: is empty"
        elif cell.execution_count is None:
            yield f"{cell.id}: was not run"
        elif cell.execution_count != count:
            yield f"{cell.id}: has execution count {cell.execution_count}, not {count}"
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"{cell.id}: stores an error, {output.ename}: {output.evalue}"
    if chapter.code and not any(cell.outputs for cell in chapter.code):
        yield f"{chapter.code[0].id}: neither this nor any other cell has an output"


def in_one_form(chapter: Chapter) -> Iterator[str]:
    """The file holds what `make pins` would write, byte for byte."""
    if chapter.stored == as_text(normalise(chapter.notebook)):
        return
    for cell, normal in zip(
        chapter.cells, normalise(chapter.notebook).cells, strict=True
    ):
        if cell != normal:
            yield f"{cell.id}: not in the one form, `make pins` rewrites it"
            return
    yield "the file: not in the one form, `make pins` rewrites it"


def checked(chapter: Chapter) -> Iterator[str]:
    """No tag or comment tells nbval to look away, unless the reason is listed."""
    for cell in chapter.code:
        comments = re.findall(r"^\s*#(.*)$", cell.source, re.MULTILINE)
        marks = filter(NBVAL.search, [*cell.metadata.get("tags", []), *comments])
        for mark in marks:
            if not UNCHECKED.get((chapter.name, cell.id)):
                yield f"{cell.id}: {mark.strip()!r} has no listed reason"


def readable(chapter: Chapter) -> Iterator[str]:
    """Outputs hold no object addresses, bare values, warnings or stray digits."""
    for cell in chapter.code:
        text = chapter.printed[cell.id]
        for address in re.findall(r"\bat 0x[0-9a-f]+", text):
            yield f"{cell.id}: prints an address, {address}"
        for number in re.findall(r"\d+\.\d{13,}", text):
            yield f"{cell.id}: prints {number}, more than 12 decimals"
        for output in cell.outputs:
            data = output.get("data", {})
            if data.keys() == {"text/plain"}:
                yield f"{cell.id}: shows a bare value, print it with an f-string"
            if output.get("name") == "stderr" and "Warning" in output.text:
                yield f"{cell.id}: stores a warning"


def described(chapter: Chapter) -> Iterator[str]:
    """Every picture has a text for readers who cannot see it."""
    for cell in chapter.code:
        pages = [output.get("data", {}) for output in cell.outputs]
        for data in pages:
            for alt in _alternatives(data.get("text/html", "")):
                if not alt.strip():
                    yield f"{cell.id}: an image in its HTML has no alt text"
        drawn = any("image/png" in data and "text/html" not in data for data in pages)
        image = cell.metadata.get("mystnb", {}).get("image", {})
        if drawn and not image.get("alt", "").strip():
            yield f"{cell.id}: its figure has no mystnb.image.alt in the metadata"
    for cell in chapter.markdown:
        marked = re.findall(r"!\[([^\]]*)\]\(", cell.source)
        for alt in [*marked, *_alternatives(cell.source)]:
            if not alt.strip():
                yield f"{cell.id}: an image has no alt text"


def small(chapter: Chapter) -> Iterator[str]:
    """A notebook and its explorers load quickly."""
    size = len(chapter.stored.encode())
    if size > NOTEBOOK_BYTES:
        yield f"the file: {size:,} bytes, more than {NOTEBOOK_BYTES:,}"
    for cell in chapter.code:
        for output in cell.outputs:
            size = len(output.get("data", {}).get("text/html", "").encode())
            if size > EXPLORER_BYTES:
                yield f"{cell.id}: {size:,} bytes of HTML, more than {EXPLORER_BYTES:,}"


def _alternatives(html: str) -> list[str]:
    """Return the alt text of every `<img>`, empty where there is none."""
    found = []

    class Images(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag == "img":
                found.append(dict(attributes).get("alt") or "")

    Images().feed(html)
    return found
