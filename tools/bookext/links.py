"""Links in plain Markdown that MyST alone would not resolve.

`[Lin, 1991](references.md#ref-lin1991)` leads to an entry of the bibliography, though
MyST knows only headings as goals. A key that is not there is a warning like any other.
"""


def add_anchors(_app, env):
    """Enter every entry of the bibliography among the anchors of its page."""
    for citation in env.get_domain("cite").citations:
        page = env.metadata[citation.bibliography_key.docname]
        anchors = page.setdefault("myst_slugs", {})
        anchors[citation.citation_id] = (0, citation.citation_id, citation.key)


def setup(app):
    """Enter the anchors once all pages are read, before links resolve."""
    app.connect("env-check-consistency", add_anchors)
