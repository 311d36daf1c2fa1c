"""Block quotes that begin with a bold word and a full stop become notes.

> **Trap.** Like this one.

They stay plain Markdown wherever a notebook is opened.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform

# The bold words that do not look like a plain note, and the theme's class for the look.
LOOKS = {
    "Trap": "danger",
    "Rule of thumb": "tip",
    "What this does not show": "warning",
}


class Notes(SphinxTransform):
    """Replace each such block quote by an admonition of the same content."""

    default_priority = 500

    def apply(self):
        """Walk the page."""
        for quote in list(self.document.findall(nodes.block_quote)):
            bold = first_bold(quote)
            if bold is None:
                continue
            heading = bold.astext().removesuffix(".")
            opening = bold.parent
            while opening[0] is not bold:
                opening.pop(0)
            opening.pop(0)
            if opening and isinstance(opening[0], nodes.Text):
                opening[0] = nodes.Text(opening[0].lstrip())
            note = nodes.admonition(classes=[LOOKS.get(heading, "note")])
            note += nodes.title("", heading)
            note += [child for child in quote.children if child.astext()]
            quote.replace_self(note)


def first_bold(quote):
    """Return the bold words that open a block quote, if they end with a full stop."""
    opening = next(iter(quote.children), None)
    if not isinstance(opening, nodes.paragraph):
        return None
    # The parser leaves an empty text before bold words that open a paragraph.
    bold = next((child for child in opening.children if child.astext()), None)
    if isinstance(bold, nodes.strong) and bold.astext().endswith("."):
        return bold
    return None


def setup(app):
    """Register the transform."""
    app.add_transform(Notes)
