"""One form for a stored notebook, whoever ran it last.

Two runs that print the same then store the same bytes, so a difference in a stored
notebook is always a difference that a reader can see.
"""

import copy
import json
import re

import nbformat
from nbformat import NotebookNode

WIDGET = "application/vnd.jupyter.widget-view+json"
KEPT = {"mystnb", "tags"}
METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)


def normalise(notebook: NotebookNode) -> NotebookNode:
    """Return a copy with counts 1 to n and nothing that changes from run to run."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in KEPT & cell.metadata.keys()}
        )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.execution_count = count
        cell.outputs = _merge_streams(cell.outputs)
        for output in cell.outputs:
            _normalise_output(output, count)
    return notebook


def as_text(notebook: NotebookNode) -> str:
    """Return the file's content, with a newline at its end."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def final_state(text: str) -> str:
    """Return what is left to read of a stream: bars at their end, without timing."""
    text = re.sub(r"^.*\r(?=[^\n])", "", text, flags=re.MULTILINE)
    bar = r"(\d+%\|[^|\n]*\|[^\[\n]*?) *\[[^\n]*\]"
    return re.sub(bar, r"\1", text).replace("\r", "")


def printed(cell: NotebookNode) -> str:
    """Return what can be read in a cell's outputs, explorers' readouts included."""
    parts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        parts.append(output.get("text", ""))
        if data.keys() == {"text/plain"}:
            parts.append(data["text/plain"])
        for texts in DATA.findall(data.get("text/html", "")):
            parts += json.loads(texts).get("readouts", [])
    return "\n".join(parts)


def _merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join what went to stdout, and what went to stderr, where each began."""
    streams, merged = {}, []
    for output in outputs:
        if output.output_type != "stream":
            merged.append(output)
        elif output.name in streams:
            streams[output.name].text += output.text
        else:
            streams[output.name] = output
            merged.append(output)
    return merged


def _normalise_output(output: NotebookNode, count: int) -> None:
    if output.output_type == "stream":
        output.text = final_state(output.text)
    if output.output_type == "execute_result":
        output.execution_count = count
    # A view of a widget means nothing without its kernel; the other forms stay.
    output.get("data", {}).pop(WIDGET, None)
