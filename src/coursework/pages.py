"""Feedback for a student and an overview for the class, as pages without a script.

All text goes through ``_text``: names, comments and reasons may hold markup.
"""

import base64
import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from statistics import mean, median
from string import Template

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from coursework.gradebook import STATUSES, Grade, advice, grouped
from coursework.points import decimal

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1c1e21; --soft: #5b6069; --line: #d5d8dd; --band: #f3f4f6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181c; --ink: #e6e8eb; --soft: #a5abb5; --line: #3b4048; --band: #1f2228;
  }
}
body {
  background: var(--paper); color: var(--ink); margin: 0;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
main { margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.25; }
h2 { border-top: 1px solid var(--line); font-size: 1.3rem; padding-top: 1.5rem; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
caption { color: var(--soft); padding-bottom: 0.3rem; text-align: left; }
th, td {
  border-bottom: 1px solid var(--line); padding: 0.4rem 0.6rem;
  min-width: 5rem; text-align: left; vertical-align: top;
}
thead th { background: var(--band); overflow-wrap: normal; }
tbody th { font-weight: 600; min-width: 6.5rem; }
p, td { white-space: pre-line; }
td:nth-child(2) { min-width: 0; white-space: nowrap; }
@media (max-width: 30rem) { th, td { font-size: 0.9rem; padding: 0.35rem 0.4rem; } }
.wide { overflow-x: auto; }
.wide td, .wide thead th { min-width: 0; overflow-wrap: normal; }
.wide tbody th { min-width: 9rem; }
.beside { align-items: start; display: grid; gap: 0 1.5rem; }
@media (min-width: 48rem) { .beside { grid-template-columns: 3fr 2fr; } }
img { background: #fff; border-radius: 4px; height: auto; max-width: 100%; }
.beside img { margin-top: 1rem; width: 100%; }
</style>
</head>
<body>
<main>
<h1>$title</h1>
$body
</main>
</body>
</html>
""")

# What a page cannot show or is misled by: controls, halves of surrogate pairs, and the
# marks that turn the direction of all text behind them.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)

_STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "coursework",
}
_BLUE = "#0072B2"


def feedback_page(grades: Sequence[Grade]) -> str:
    """Return the page of one student, of whose grades there is at least one."""
    one = grades[0]
    who = f"{one.name} ({one.student})" if one.name else one.student
    summary = _table(
        "Points of every exercise",
        ["Exercise", "Status", "Points"],
        [[grade.title, _status(grade), _points(grade)] for grade in grades],
    )
    body = [summary, *map(_exercise, grades)]
    return _page(f"Feedback for {who}", body)


def _exercise(grade: Grade) -> str:
    says = [STATUSES[grade.status], _problem(grade), f"Points: {_points(grade)}."]
    about = _paragraph("\n".join(filter(None, says)))
    body = [f"<h2>{_text(grade.title)}</h2>", about]
    rows = [
        [
            check["function"],
            f"{check['earned']} of {check['points']}",
            f"{check['name']}: " + ("\n".join(advice(check)) or "passed"),
        ]
        for check in grade.shown_checks
    ]
    if rows:
        header = ["Function", "Points", "Check and result"]
        body.append(_table("Checks of the code", header, rows))
    rows = [
        [part.title, f"{part.earned} of {decimal(part.maximum)}", part.comment]
        for part in grade.parts
        if grade.handed_in
    ]
    if rows:
        body.append(_table("Pencil parts", ["Part", "Points", "Comment"], rows))
    return "\n".join(body)


def _status(grade: Grade) -> str:
    """The status in a word that promises no more than that somebody looked."""
    return "graded" if grade.status == "ok" else grade.status


def _problem(grade: Grade) -> str:
    """What went wrong: in cells of the notebook, or with the file."""
    if not grade.problem or not grade.shown_checks:
        return grade.problem
    what = "In your notebook this stopped with an error"
    return f"{what} (code cells are counted from the top): {grade.problem}"


def _points(grade: Grade) -> str:
    """All points, or, while a pencil part waits, those by checks and those by hand."""
    if not grade.waiting:
        return f"{decimal(grade.total)} of {decimal(grade.maximum)}"
    says = f"{decimal(grade.automatic)} of {decimal(grade.by_checks)} by checks; "
    given = [part.maximum for part in grade.parts if part.mark]
    if given:
        says += f"{decimal(grade.pencil)} of {decimal(sum(given))} by hand; "
    still = sum(part.maximum for part in grade.parts if not part.mark)
    return f"{says}{decimal(still)} by hand still open"


def class_page(grades: Sequence[Grade]) -> str:
    """Return the page on all students, which names none of them."""
    exercises = grouped(grades, "exercise").values()
    seen = [status for status in STATUSES if status in {g.status for g in grades}]
    rows = [
        [mine[0].title, str(len(mine)), *(_count(mine, status) for status in seen)]
        for mine in exercises
    ]
    summary = _table("Results by status", ["Exercise", "all", *seen], rows)
    region = '<div class="wide" role="region" tabindex="0" aria-label="By status">'
    body = [f"{region}{summary}</div>"]
    # Not the settings of whoever runs this: equal results make equal pages.
    with matplotlib.style.context(["default", _STYLE]):
        body += map(_overview, exercises)
    return _page("The class", body)


def _overview(grades: Sequence[Grade]) -> str:
    done = [grade for grade in grades if grade.status != "missing"]
    plots = _scores(done) + _pass_rates(done) if done else _paragraph("Nothing yet.")
    return f"<h2>{_text(grades[0].title)}</h2>\n{plots}"


def _count(grades: Iterable[Grade], status: str) -> str:
    return str(sum(grade.status == status for grade in grades))


def _scores(grades: Sequence[Grade]) -> str:
    """Histogram of the share of points, in tenths, beside its table."""
    share = [grade.total / grade.maximum for grade in grades]
    tenths = Counter(min(int(10 * g.total / g.maximum), 9) for g in grades)
    counts = [tenths[tenth] for tenth in range(10)]
    figure = Figure(figsize=(5, 2.8))
    axes = figure.subplots()
    axes.bar(range(5, 100, 10), counts, width=9, color=_BLUE)
    axes.set_xticks(range(0, 101, 10))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="share of all points in %", ylabel="students")
    waiting = sum(grade.waiting for grade in grades)
    says = f"Mean {100 * mean(share):.0f} %, median {100 * median(share):.0f} %."
    if waiting:
        says += f" {waiting} of {len(grades)} wait for points of pencil parts."
    alt = f"Histogram of {len(grades)} scores. {says} The table has the counts."
    rows = [
        [f"{10 * tenth} to {10 * tenth + 10} %", str(count)]
        for tenth, count in enumerate(counts)
    ]
    table = _table("Scores of what was handed in", ["Score", "Students"], rows)
    return _paragraph(says) + _beside(figure, alt, table)


def _pass_rates(grades: Sequence[Grade]) -> str:
    """Share of submissions that pass each check, as bars beside a table."""
    names = [check["name"] for check in grades[0].checks]
    passed = [
        sum(g.checks[place]["earned"] == g.checks[place]["points"] for g in grades)
        for place in range(len(names))
    ]
    rates = [100 * count / len(grades) for count in passed]
    labels = [textwrap.fill(name, 26) for name in names]
    lines = sum(label.count("\n") + 1 for label in labels)
    figure = Figure(figsize=(5, 0.9 + 0.16 * len(names) + 0.2 * lines))
    axes = figure.subplots()
    bars = axes.barh(range(len(names)), rates, color=_BLUE)
    axes.bar_label(bars, [f"{rate:.0f}" for rate in rates], padding=3)
    # A dollar sign in a name is no formula.
    axes.set_yticks(range(len(names)), labels, parse_math=False)
    axes.invert_yaxis()
    axes.set(xlim=(0, 108), xlabel="submissions that pass in %")
    axes.set_xticks(range(0, 101, 20))
    alt = f"Bars: the share of {len(grades)} submissions that pass each check."
    rows = [
        [name, f"{count} of {len(grades)}", f"{rate:.0f} %"]
        for name, count, rate in zip(names, passed, rates)
    ]
    table = _table("Checks of the code", ["Check", "Passed", "Rate"], rows)
    return _beside(figure, f"{alt} The table has the numbers.", table)


def _beside(figure: Figure, alt: str, table: str) -> str:
    """A figure, the same bytes every time, and its table."""
    image = io.BytesIO()
    figure.savefig(image, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(image.getvalue()).decode()
    picture = f'<img alt="{_text(alt)}" src="data:image/svg+xml;base64,{data}">'
    return f'<div class="beside">\n{picture}\n{table}\n</div>'


def _page(title: str, body: Iterable[str]) -> str:
    return PAGE.substitute(title=_text(title), body="\n".join(body))


def _table(caption: str, header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text; the first cell of a row is its header."""
    lines = [
        f'<tr><th scope="row">{_breakable(first)}</th>'
        + "".join(f"<td>{_breakable(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    ]
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in header)
    return (
        f"<table>\n<caption>{_text(caption)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(lines)}\n"
        "</tbody>\n</table>"
    )


def _breakable(text: str) -> str:
    """Plain text as HTML, in which long names may break at their underscores."""
    return _text(text).replace("_", "_<wbr>")


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _text(text: str) -> str:
    """Plain text as HTML, with its markup escaped."""
    return escape(_UNSHOWN.sub("\ufffd", text))
