"""What the book needs of Sphinx beyond its published extensions.

- `mathematics`: equations become HTML while the book is built, so that a page needs no
  script and no network, and a faulty equation fails the build;
- `notes`: block quotes that begin with a bold word become notes;
- `claims`: the ledger of every claim as a page of tables;
- `links`: to entries of the bibliography;
- `templates/layout.html`: the theme's page without a script that nothing uses.
"""

from pathlib import Path

from . import claims, links, mathematics, notes


def setup(app):
    """Register the parts with Sphinx."""
    claims.setup(app)
    links.setup(app)
    mathematics.setup(app)
    notes.setup(app)
    templates = str(Path(__file__).with_name("templates"))
    app.connect(
        "config-inited", lambda _, config: config.templates_path.append(templates)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
