"""Measure how long each chapter runs, for the page of run times and the footers.

    python -m tools.times                     every chapter
    python -m tools.times chapters/gan.ipynb  one of them

A time is what a fresh kernel takes of the processor from its start to its end, on one
thread. With nothing else to do, a machine needs about as long by the clock; unlike the
clock's, it hardly depends on what else there is to do. It is read where processes
account for their children, on Linux and macOS. Nobody compares it with another run: it
says what to expect.
"""

import json
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import numpy
import torch

from tools.kernel import children, client

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "chapters" / "run_times.json"


def main() -> None:
    """Time what the command line names and store it at once, chapter by chapter."""
    paths = [Path(name) for name in sys.argv[1:]] or sorted(
        ROOT.glob("chapters/*.ipynb")
    )
    for path in paths:
        seconds = timed(path)
        print(f"{path.stem}: {seconds:.1f} s", flush=True)
        stored = json.loads(STORE.read_text(encoding="utf8")) if STORE.exists() else []
        text = json.dumps(entered(stored, conditions(), path.stem, seconds), indent=1)
        STORE.write_text(text + "\n", encoding="utf8")


def timed(path: Path) -> float:
    """Run a notebook in a folder of its own; return the processor's seconds."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        start = children()
        client(notebook, folder).execute(env=os.environ | {"OMP_NUM_THREADS": "1"})
        return children() - start


def conditions() -> dict[str, str]:
    """Return when and on what this runs."""
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "numpy": numpy.__version__,
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name that the processor gives itself, or else its kind."""
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def entered(runs: list[dict], now: dict, chapter: str, seconds: float) -> list[dict]:
    """Return the runs with one more time: each chapter's last, under its conditions."""
    runs = [
        run | {"seconds": {k: v for k, v in run["seconds"].items() if k != chapter}}
        for run in runs
    ]
    same = [run for run in runs if run.items() >= now.items()]
    if not same:
        same = [now | {"seconds": {}}]
        runs += same
    times = same[0]["seconds"] | {chapter: round(seconds, 1)}
    same[0]["seconds"] = dict(sorted(times.items()))
    return [run for run in runs if run["seconds"]]


if __name__ == "__main__":
    main()
