"""One way to run a notebook, and to time it, for the tools that do."""

import os
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode


def client(notebook: NotebookNode, folder: Path | str, **more) -> NotebookClient:
    """Return what runs a notebook in a folder with a fresh kernel, until it ends.

    Neither times nor the state of widgets are written into the notebook. `more` goes
    to nbclient as it is.
    """
    settings = {"timeout": None, "resources": {"metadata": {"path": str(folder)}}}
    return NotebookClient(
        notebook,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        store_widget_state=False,
        record_timing=False,
        **settings | more,
    )


def children() -> float:
    """The processor's seconds of all processes that this one started and saw end."""
    return os.times().children_user + os.times().children_system
