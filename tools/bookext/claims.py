"""The directive `claims`: the ledger as tables, one for each chapter."""

import csv
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

LEDGER = Path(__file__).parents[2] / "tests" / "claims" / "ledger.csv"
HEADERS = ("Claim", "Value", "Source", "How it is checked")


class Claims(SphinxDirective):
    """Every row of the ledger under the title of the chapter that uses it."""

    def run(self):
        """Return one section for each topic, in the order of the ledger."""
        self.env.note_dependency(str(LEDGER))
        with LEDGER.open(encoding="utf8", newline="") as file:
            rows = list(csv.DictReader(file))
        topics = dict.fromkeys(row["topic"] for row in rows)
        return [
            self.section(topic, [row for row in rows if row["topic"] == topic])
            for topic in topics
        ]

    def section(self, topic, rows):
        """Return a section with the chapter's link and the table of its claims."""
        words = topic.replace("_", " ").replace("-", " ").capitalize()
        section = nodes.section(ids=[f"claims-{topic}"], names=[words])
        section += nodes.title(text=f"{words}: {len(rows)}")
        if (Path(self.env.srcdir) / "chapters" / f"{topic}.ipynb").exists():
            link = nodes.reference("", "the chapter", refuri=f"{topic}.html")
            section += nodes.paragraph("", "Used in ", link, nodes.Text("."))
        section += make_table([self.cells(row) for row in rows])
        return section

    def cells(self, row):
        """Return the four cells of a row, each a list of nodes."""
        claim = [nodes.Text(row["quantity"])]
        if row["inputs"]:
            claim += [nodes.Text("; "), nodes.literal(text=row["inputs"])]
        if row["note"]:
            claim += [nodes.Text(". "), nodes.emphasis(text=row["note"])]
        source = nodes.reference(
            "", row["source"], refuri=f"references.html#ref-{row['source']}"
        )
        within = f" ± {row['tolerance']}" if row["tolerance"] else ""
        value = nodes.Text(f"{row['value']}{within}" or "in words")
        return [claim, [value], [source], [nodes.Text(row["how checked"])]]


def make_table(rows):
    """Return a table of the four columns with its header row."""
    group = nodes.tgroup(cols=len(HEADERS))
    group += [nodes.colspec(colwidth=width) for width in (45, 20, 12, 23)]
    titles = [[nodes.Text(title)] for title in HEADERS]
    group += nodes.thead("", make_row(titles))
    group += nodes.tbody("", *map(make_row, rows))
    return nodes.table("", group)


def make_row(cells):
    """Return a row whose cells hold one paragraph each."""
    entries = [nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells]
    return nodes.row("", *entries)


def setup(app):
    """Register the directive with Sphinx."""
    app.add_directive("claims", Claims)
