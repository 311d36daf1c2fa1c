"""Links in plain Markdown that MyST alone would not resolve.

A notebook may be read alone, in Colab for example, where a path leads nowhere. So it
names the published page, and while the book is built that becomes a path: the pages
lead to each other from disk too, and a link to a page that is not there is a warning.

`[Lin, 1991](.../references.html#ref-lin1991)` leads to an entry of the bibliography,
though MyST knows only headings as goals. A key that is not there is a warning as well.
"""

import re

from .sharing import site


def make_local(app, _page, source):
    """Replace the addresses of published pages by paths to their sources."""

    published = re.compile(rf"\]\({re.escape(site(app.config))}([\w/]+)\.html")
    source[0] = published.sub(
        lambda match: f"](/{app.env.doc2path(match[1], base=False)}", source[0]
    )


def add_anchors(_app, env):
    """Enter every entry of the bibliography among the anchors of its page."""
    for citation in env.get_domain("cite").citations:
        page = env.metadata[citation.bibliography_key.docname]
        anchors = page.setdefault("myst_slugs", {})
        anchors[citation.citation_id] = (0, citation.citation_id, citation.key)


def setup(app):
    """Register; the anchors once all pages are read, before links resolve."""
    app.connect("source-read", make_local)
    app.connect("env-check-consistency", add_anchors)
