"""Equations as HTML, made by KaTeX while the book is built.

sphinxcontrib-katex brings KaTeX's script and mini-racer an engine to run it, so nobody
needs Node. The style sheet and the fonts that belong to the same version of KaTeX are
in `chapters/_static/katex`.
"""

import html
import re
from functools import cache
from pathlib import Path

import sphinxcontrib.katex
from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.errors import ExtensionError
from sphinx.util import logging

logger = logging.getLogger(__name__)

# What KaTeX begins each part of an equation with that stays on one line.
BASE = '<span class="base">'


@cache
def engine():
    """Load KaTeX once."""
    loaded = MiniRacer()
    loaded.eval(
        Path(sphinxcontrib.katex.__file__).with_name("katex.min.js").read_text()
    )
    return loaded


def rendered(latex, node, *, display):
    """Return the HTML of an equation; a faulty one is a warning and stays as it is."""
    options = {"displayMode": display, "strict": "error"}
    try:
        return engine().call("katex.renderToString", latex, options)
    except JSEvalException as error:
        fault = re.search("ParseError: (.*)", str(error))
        logger.warning(fault[1] if fault else str(error), location=node)
        return f"<code>{html.escape(latex)}</code>"


def take_ends(app, doctree, page):
    """Give each equation inside a line the comma or full stop that follows it.

    A browser would break the line between them.
    """
    for node in list(doctree.findall(nodes.math)):
        text = node.next_node(descend=False, siblings=True)
        end = isinstance(text, nodes.Text) and re.match(r"[^\w\s]+", text)
        if end:
            node["end"] = end[0]
            text.parent.replace(text, nodes.Text(text[end.end() :]))


def visit_inline(translator, node):
    """Write an equation inside a line, and what ends it."""
    equation = rendered(node.astext(), node, display=False)
    if "end" in node:
        equation = equation.replace(BASE, f"<wbr>{BASE}") + html.escape(node["end"])
        equation = f'<span class="ended">{equation}</span>'
    translator.body.append(equation)
    raise nodes.SkipNode


def visit_display(translator, node):
    """Write an equation on a line of its own.

    The second class makes the theme's script give a wide one a tab stop.
    """
    equation = rendered(node.astext(), node, display=True)
    classes = "equation pst-scrollable-table-container"
    translator.body.append(f'<div class="{classes}">{equation}</div>\n')
    raise nodes.SkipNode


def check_version(app):
    """The style sheet must be of the version that makes the HTML."""
    sheet = Path(app.srcdir, "chapters/_static/katex/katex.min.css").read_text()
    if sphinxcontrib.katex.katex_version not in sheet:
        raise ExtensionError(
            "chapters/_static/katex is not of KaTeX "
            f"{sphinxcontrib.katex.katex_version}, which sphinxcontrib-katex brings"
        )


def setup(app):
    """Register the renderer under the name that `html_math_renderer` asks for."""
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.connect("builder-inited", check_version)
    app.connect("doctree-resolved", take_ends)
