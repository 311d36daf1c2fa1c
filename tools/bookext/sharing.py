"""What a page says of itself to search engines and to places that show links.

The description is the page's first paragraph. The picture is the first figure of a
shape that such places show nearly whole, else the card of the book.
"""

import base64
import html
import posixpath
import re
from pathlib import Path

import imagesize
from docutils import nodes

CARD = "_static/card.jpg"
SYMBOL = "_static/symbol.svg"
LONGEST, NARROWEST = 200, 400
FRAME = re.compile(
    r'<form class="explorer".*?<img src="data:image/webp;base64,([^"]+)" alt="([^"]*)"',
    re.DOTALL,
)


def site(config):
    """Return the address of the published book: GitHub's pages of the repository."""
    owner, name = config.html_theme_options["repository_url"].split("/")[-2:]
    return f"https://{owner}.github.io/{name}/"


def set_site(_app, config):
    """Let Sphinx write the canonical address of each page."""
    config.html_baseurl = config.html_baseurl or site(config)


def description(tree):
    """Return the first paragraph of a page in one line, cut between words."""
    for paragraph in tree.findall(nodes.paragraph):
        if not any(paragraph.findall(nodes.Text)):  # a picture's alt text
            continue
        text = " ".join(paragraph.astext().split())
        if text and "\\" not in text:
            text = text.removeprefix("The question. ")
            if len(text) <= LONGEST:
                return text
            return text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return ""


def picture(page, tree, builder):
    """Return the address within the book, and the alt text, of a page's picture.

    An explorer keeps its pictures in the page; the one it shows first becomes a file.
    """
    for node in tree.findall(lambda node: isinstance(node, nodes.image | nodes.raw)):
        if isinstance(node, nodes.image):
            where = posixpath.normpath(posixpath.join(page, "..", node["uri"]))
            alt, file = (
                node.get("alt", ""),
                Path(builder.srcdir, node["candidates"]["*"]),
            )
        elif found := FRAME.search(node.astext()):
            where, alt = f"{builder.imagedir}/{posixpath.basename(page)}.webp", found[2]
            file = Path(builder.outdir, where)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(base64.b64decode(found[1]))
        else:
            continue
        width, height = imagesize.get(file)
        if width >= NARROWEST and height <= width <= 2.5 * height:
            return where, html.unescape(alt)
    return CARD, "The title of the book over two bells that dissolve into noise"


def add_tags(app, page, _template, context, tree):
    """Add the tags to the head of a page."""
    if not tree:
        return
    where, alt = picture(page, tree, app.builder)
    base, words = app.config.html_baseurl, description(tree)
    properties = {
        "og:type": "article",
        "og:site_name": app.config.html_title,
        "og:title": context["title"],
        "og:description": words,
        "og:url": posixpath.join(base, app.builder.get_target_uri(page)),
        "og:image": posixpath.join(base, where),
        "og:image:alt": alt,
    }
    names = {"description": words, "twitter:card": "summary_large_image"}
    tags = [tag("property", *pair) for pair in properties.items()]
    tags += [tag("name", *pair) for pair in names.items()]
    context["metatags"] += "\n" + "\n".join(tags)
    if page == app.config.root_doc:
        app.first_page = context["title"], "\n".join(tags)


def tag(kind, key, value):
    """Return a meta tag."""
    return f'<meta {kind}="{key}" content="{html.escape(value)}" />'


def write_entrance(app, error):
    """Write the page at the book's address, which leads on and shows the same card."""
    if error or app.builder.format != "html":
        return
    title, tags = app.first_page
    first = app.builder.get_target_uri(app.config.root_doc)
    address = posixpath.join(app.config.html_baseurl, first)
    Path(app.outdir, "index.html").write_text(
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n{tags}\n"
        f'<link rel="icon" href="{SYMBOL}">\n'
        f'<link rel="canonical" href="{address}">\n'
        f'<meta http-equiv="refresh" content="0; url={first}">\n'
        f'<p><a href="{first}">{title}</a></p>\n</html>\n',
        encoding="utf8",
    )


def setup(app):
    """Register; the tags once the page is known whole."""
    app.connect("config-inited", set_site, priority=900)
    app.connect("html-page-context", add_tags)
    app.connect("build-finished", write_entrance)
