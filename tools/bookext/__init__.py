"""What the book needs of Sphinx beyond its published extensions.

- `mathematics`: equations become HTML while the book is built, so that a page needs no
  script and no network, and a faulty equation fails the build;
- `notes`: block quotes that begin with a bold word become notes;
- `claims`: the ledger of every claim as a page of tables;
- `links`: to entries of the bibliography;
- `package`: the reference of the package, from its source;
- `provenance`: version, commit and run time in each footer, and the page of run times;
- `sharing`: description, address and picture of a page for those who link to it;
- `lean`: what a page loads and does not need is taken out once it is built.
"""

from pathlib import Path

from . import (
    claims,
    lean,
    links,
    mathematics,
    notes,
    package,
    provenance,
    sharing,
)


def setup(app):
    """Register the parts with Sphinx."""
    parts = (claims, links, mathematics, notes, package, provenance, sharing, lean)
    for part in parts:
        part.setup(app)
    templates = str(Path(__file__).with_name("templates"))
    app.connect(
        "config-inited", lambda _, config: config.templates_path.append(templates)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
