"""Where a page comes from: in its footer, and in the report of whoever finds a fault.

The release is the one that the launch buttons open. The times were measured by
`tools/times.py`; the directive `run-times` shows them all.
"""

import json
import subprocess
from pathlib import Path
from urllib.parse import quote, urlencode

from sphinx.util.docutils import SphinxDirective

STORE = Path("chapters") / "run_times.json"
REPORT = """Page: {page}
Version: {version}

What I read or saw:

What I expected, and why:
"""


class RunTimes(SphinxDirective):
    """The seconds of every chapter, the slowest first, under when and on what."""

    def run(self):
        """Return a sentence and a table for each machine and day."""
        store = Path(self.env.srcdir, STORE)
        self.env.note_dependency(str(store))
        text = "\n\n".join(map(described, stored_runs(store)))
        return self.parse_text_to_nodes(text)


def stored_runs(store):
    """Return what was measured; nothing if nobody measured yet."""
    return json.loads(store.read_text(encoding="utf8")) if store.exists() else []


def described(run):
    """Return one run in Markdown; an empty link takes the title of its chapter."""
    slowest_first = sorted(run["seconds"].items(), key=lambda item: -item[1])
    rows = [
        f"| [](/chapters/{name}.ipynb) | {time:.1f} |" for name, time in slowest_first
    ]
    total = sum(run["seconds"].values())
    return (
        f"Measured on {run['measured']}: {run['machine']}; Python {run['python']}, "
        f"torch {run['torch']}, numpy {run['numpy']}; one thread.\n\n"
        "| Chapter | Seconds |\n| :--- | ---: |\n"
        + "\n".join(rows)
        + f"\n| **Together** | **{total:.0f}** |"
    )


def commit(folder):
    """Return the short name of the commit that is built; nothing outside of git."""
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip().replace("-dirty", " with changes")


def add_provenance(app, page, _template, context, _tree):
    """Give the footer what it says, and the button for reports what it fills in."""
    options = app.config.html_theme_options
    version = options["repository_branch"]
    if app.commit:
        version += f", commit {app.commit}"
    name = page.removeprefix("chapters/")
    runs = [run for run in app.run_times if name in run["seconds"]]
    context["version"] = version
    context["run"] = dict(runs[0], seconds=runs[0]["seconds"][name]) if runs else None
    query = {
        "title": f"{page}: ",
        "body": REPORT.format(page=f"{page}.html", version=version),
    }
    address = (
        f"{options['repository_url']}/issues/new?{urlencode(query, quote_via=quote)}"
    )
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("label") == "source-issues-button":
                button["url"] = address


def look_up(app):
    """Ask git and the stored times once for all pages."""
    app.commit = commit(app.srcdir)
    app.run_times = stored_runs(Path(app.srcdir, STORE))


def setup(app):
    """Register both; the buttons once the theme has made them."""
    app.add_directive("run-times", RunTimes)
    app.connect("builder-inited", look_up)
    app.connect("html-page-context", add_provenance, priority=900)
