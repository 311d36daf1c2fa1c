"""Links in plain Markdown that MyST alone would not resolve.

`[Lin, 1991](references.md#ref-lin1991)` leads to an entry of the bibliography, though
MyST knows only headings as goals. A key that is not there is a warning like any other.

`[the exercise](../exercises/elbo.ipynb)` leads to a notebook that is no page of the
book. It becomes a download.
"""

from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.transforms import SphinxTransform


def add_anchors(_app, env):
    """Enter every entry of the bibliography among the anchors of its page."""
    for citation in env.get_domain("cite").citations:
        page = env.metadata[citation.bibliography_key.docname]
        anchors = page.setdefault("myst_slugs", {})
        anchors[citation.citation_id] = (0, citation.citation_id, citation.key)


class Downloads(SphinxTransform):
    """Replace a link to a notebook outside the book by a download."""

    default_priority = 500

    def apply(self):
        """Walk the page."""
        for link in list(self.document.findall(pending_xref)):
            notebook = f"{link['reftarget']}.ipynb"
            is_page = link["reftarget"] in self.env.found_docs
            if is_page or not Path(self.env.srcdir, notebook).is_file():
                continue
            download = download_reference(reftarget=f"/{notebook}")
            download += nodes.inline("", "", *link[0].children)
            link.replace_self(download)


def setup(app):
    """Register both; the anchors once all pages are read, before links resolve."""
    app.connect("env-check-consistency", add_anchors)
    app.add_transform(Downloads)
