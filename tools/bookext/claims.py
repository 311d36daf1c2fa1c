"""The directive `claims`: the ledger of claims, under the chapters that use them."""

import csv
import json
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "tests" / "claims" / "ledger.csv"


class Claims(SphinxDirective):
    """Every row of the ledger, in sections by topic."""

    def run(self):
        """Return one section for each topic, in the order of the ledger."""
        self.env.note_dependency(str(LEDGER))
        with LEDGER.open(encoding="utf8", newline="") as file:
            rows = list(csv.DictReader(file))
        topics = dict.fromkeys(row["topic"] for row in rows)
        return [
            make_section(topic, [row for row in rows if row["topic"] == topic])
            for topic in topics
        ]


def make_section(topic, rows):
    """Return a section with a link to the topic's chapter and the list of its rows."""
    title = chapter_title(topic)
    words = title or topic.replace("-", " ").capitalize()
    section = nodes.section(ids=[f"claims-{topic}"], names=[f"claims-{topic}"])
    section += nodes.title(text=words)
    used = [nodes.Text(f"{len(rows)} claim{'s' * (len(rows) > 1)}")]
    if title:
        used += [nodes.Text(", used in "), link(title, f"{topic}.html")]
    section += nodes.paragraph("", "", *used, nodes.Text("."))
    items = [nodes.list_item("", make_claim(row)) for row in rows]
    section += nodes.bullet_list("", *items)
    return section


def make_claim(row):
    """Return a paragraph: what, its value, for which input, a note, source, check."""
    parts = [nodes.Text(row["quantity"])]
    if row["value"]:
        parts += [nodes.Text(": "), nodes.strong(text=row["value"])]
        parts += [nodes.Text(f" ± {row['tolerance']}")]
    if row["inputs"]:
        parts += [nodes.Text(", for "), nodes.literal(text=row["inputs"])]
    if row["note"]:
        parts += [nodes.Text(". "), nodes.emphasis(text=row["note"])]
    source = link(row["source"], f"references.html#ref-{row['source']}")
    parts += [nodes.Text(" ("), source, nodes.Text(f"; {row['how checked']})")]
    return nodes.paragraph("", "", *parts, classes=["claim"])


def link(words, address):
    """Return a link within the book."""
    return nodes.reference("", words, refuri=address)


def chapter_title(topic):
    """Return the title of the chapter of that name; None if there is none."""
    path = ROOT / "chapters" / f"{topic}.ipynb"
    if not path.exists():
        return None
    first = json.loads(path.read_text(encoding="utf8"))["cells"][0]
    return "".join(first["source"]).splitlines()[0].removeprefix("# ")


def setup(app):
    """Register the directive with Sphinx."""
    app.add_directive("claims", Claims)
