"""Run every notebook as a stranger does in Colab, with nothing but the notebook.

    python -m tools.colab                     every chapter and every exercise
    python -m tools.colab chapters/gan.ipynb  one of them

Meant for an environment with Colab's versions, as `make colab` makes it. Each notebook
gets a kernel, an empty folder and an environment of its own, which sees the packages of
the first and not genaudit. Its setup cell runs unchanged: git is told that the address
in it is a repository on this disk, where this tree is committed under the stamped tag.
So the address and the tag are tried, and pip builds its wheel as it does in Colab.

Prints a report as Markdown and leaves it in build/colab.md; 1 if a notebook fails. A
printed line that differs from the stored one is reported and is no failure, for other
versions may print other last digits.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import distributions, version
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from tqdm import tqdm

from tools.kernel import children, client
from tools.normal import DATA, WIDGET, normalise, printed
from tools.pins import ROOT, moved
from tools.release import read

REQUIREMENTS = ROOT / "tools" / "colab.txt"
REPORT = ROOT / "build" / "colab.md"
SETUP = "setup"  # the cell that installs the package
# Moves every slider by one stop, and says of each whether its picture changed. In a
# function, since what a notebook draws may depend on any name outside of one.
MOVE = """
def move_all_sliders():
    import json
    import ipywidgets
    shown = list(ipywidgets.Widget.widgets.values())
    changed = []
    for box in [widget for widget in shown if isinstance(widget, ipywidgets.VBox)]:
        *_, slider, view = box.children
        before = view.value
        slider.index = (slider.index + 1) % len(slider.options)
        changed.append(view.value != before)
    print(json.dumps(changed))

move_all_sliders()
"""
HEAD = """\
# The notebooks in a simulated Colab

Each ran alone, from top to bottom, in an empty folder and a fresh environment without
the package. The setup cell installed it from {url}
at {tag}, which was a copy of the repository on this disk. The functions of an exercise
are empty, and each of its visible checks has to say so.

{versions}.

Seconds are those of the processor, of the installation too. The network comes on top.

**What cannot be had here.** Colab's own page: which form of an explorer it shows was
not seen. It was seen that both are there, the one for pages without widgets and the
live one, and that the live one draws again in the kernel. Its widget manager, its GPU,
the module `google.colab`, the exact image with several hundred other packages. That the
address exists on GitHub. Whatever tools/colab.txt does not name has the newest version
that goes with the rest.
"""


class Source(NamedTuple):
    """A tree as a repository that git takes for the one on GitHub."""

    settings: Path  # what git is told
    receipt: dict  # what pip notes about a package that it took from there


class Run(NamedTuple):
    """What came of a notebook."""

    name: str
    cells: str
    explorers: int
    seconds: float
    installed: list[str]
    faults: list[str]
    moved: list[str]


def main(words: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 if a notebook fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="*", type=notebook, metavar="FILE")
    paths = parser.parse_args(words).notebooks or [
        path
        for folder in ("chapters", "exercises")
        for path in sorted(ROOT.glob(f"{folder}/*.ipynb"))
    ]
    with tempfile.TemporaryDirectory() as folder:
        source = repository(ROOT, Path(folder))
        bar = tqdm(paths)
        runs = []
        for path in bar:
            bar.set_description(path.stem)
            runs.append(tried(path, source))
    text = report(versions(), source, runs)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text, encoding="utf8")
    print(text)
    return int(any(run.faults for run in runs))


def notebook(text: str) -> Path:
    """Return the path of a notebook, or say that there is none."""
    path = Path(text)
    if path.suffix != ".ipynb" or not path.is_file():
        raise argparse.ArgumentTypeError(f"{text!r} must be a notebook's file")
    return path


def repository(tree: Path, folder: Path) -> Source:
    """Commit a tree under its tag, and tell git to find its address there."""
    stamp, copy, settings = read(tree), folder / "copy.git", folder / "gitconfig"
    address = f"https://github.com/{stamp.repo}"
    for key, value in {
        "user.name": "colab",
        "user.email": "",
        f"url.{copy.as_uri()}.insteadOf": address,
    }.items():
        command = ["git", "config", "--file", settings, key, value]
        subprocess.run(command, check=True)

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", f"--git-dir={copy}", f"--work-tree={tree}", *words],
            env=os.environ | {"GIT_CONFIG_GLOBAL": str(settings)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", stamp.tag)
    git("tag", stamp.tag)
    came = {
        "commit_id": git("rev-parse", "HEAD").strip(),
        "requested_revision": stamp.tag,
        "vcs": "git",
    }
    return Source(settings, {"url": address, "vcs_info": came})


def tried(path: Path, source: Source) -> Run:
    """Run a notebook in a fresh environment, and judge what came of it."""
    stored = nbformat.read(path, as_version=4)
    begin = children()
    with tempfile.TemporaryDirectory() as folder:
        site = layer(Path(folder, "env"))
        ran, changed = executed(stored, Path(folder), source.settings)
        installed = [f"{d.name} {d.version}" for d in distributions(path=[site])]
        receipts = [
            json.loads(note.read_text())
            for note in Path(site).glob("genaudit-*/direct_url.json")
        ]
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    compared = any(cell.get("outputs") for cell in stored.cells)
    lines = moved(stored, normalise(ran)) if compared else []
    return Run(
        f"{path.parent.name}/{path.stem}",
        f"{sum(cell.execution_count is not None for cell in code)} of {len(code)}",
        sum(len(explorers(cell)) for cell in code),
        children() - begin,
        sorted(installed),
        [
            *setup_faults(receipts, source, printed(code[0])),
            *faults(stored, ran, changed),
        ],
        [line for line in lines if not line.startswith(f"{SETUP}: ")],
    )


def layer(folder: Path) -> str:
    """Make an empty environment over this one; return where it keeps packages."""
    venv.create(folder, symlinks=True)
    site = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    Path(site, "below.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return site


def executed(
    stored: NotebookNode, folder: Path, settings: Path
) -> tuple[NotebookNode, str]:
    """Return a notebook after its run, and what its sliders said when they moved."""
    ran = nbformat.from_dict(stored)
    for cell in ran.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
    ran.cells.append(new_code_cell(MOVE))
    empty = folder / "content"
    empty.mkdir()
    limits = {"timeout": 600, "interrupt_on_timeout": True, "allow_errors": True}
    runner = client(ran, empty, **limits)
    python = folder / "env" / "bin" / "python"
    runner.create_kernel_manager().kernel_spec.argv[0] = str(python)
    try:
        runner.execute(env=surroundings(folder, settings))
    except DeadKernelError:
        pass  # the cells that did not run say so
    said = [each for each in ran.cells.pop().outputs if each.get("name") != "stderr"]
    return ran, "".join(each.get("text", each.get("evalue", "")) for each in said)


def surroundings(folder: Path, settings: Path) -> dict[str, str]:
    """The variables of a kernel that knows nothing of this tree and of its user."""
    own = {
        "GIT_CONFIG_GLOBAL": str(settings),
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLCONFIGDIR": str(folder / "matplotlib"),
        "PYTHONNOUSERSITE": "1",
    }
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {"OMP_NUM_THREADS": "1"} | kept | own


def setup_faults(receipts: list[dict], source: Source, said: str) -> Iterator[str]:
    """Say if the package did not come from its address at its tag, and pip's reasons.

    Args:
        receipts: what pip noted about each package named genaudit that it installed.
        source: where it ought to come from.
        said: what the setup cell printed.
    """
    if not receipts:
        yield f"{SETUP}: installed no package"
        plain = re.sub(r"\x1b\[[\d;]*m", "", said)  # without colours
        for line in dict.fromkeys(re.findall(r"(?im)^ *(error.*)", plain)):
            yield f"{SETUP}: {line}"
    elif receipts != [source.receipt]:
        yield f"{SETUP}: installed {receipts} for {source.receipt}"


def faults(stored: NotebookNode, ran: NotebookNode, changed: str) -> Iterator[str]:
    """Say what failed in a run: cells, explorers, an exercise's visible checks.

    Args:
        stored: the notebook as the book has it.
        ran: the same after its run.
        changed: what `MOVE` printed.
    """
    shown = 0
    for before, cell in zip(stored.cells, ran.cells, strict=True):
        if cell.cell_type == "code":
            yield from (f"{cell.id}: {fault}" for fault in cell_faults(before, cell))
            shown += len(explorers(cell))
    if shown and changed.strip() != json.dumps([True] * shown):
        yield f"the live form of {shown} explorers, moved: {changed.strip()}"


def cell_faults(stored: NotebookNode, ran: NotebookNode) -> Iterator[str]:
    """Say what failed in a cell."""
    if ran.execution_count is None:
        yield "was not run"
    for output in ran.outputs:
        if output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
    was, now = ([frames(data) for data in explorers(cell)] for cell in (stored, ran))
    if was != now:
        yield f"shows explorers with {now} pictures, the book's have {was}"
    for data in explorers(ran):
        missing = {WIDGET, "image/png"} - data.keys()
        yield from (f"its explorer has no {form}" for form in sorted(missing))
    for check in re.findall(r"^visible\.(\w+)\(", ran.source, re.MULTILINE):
        if f"{check}: still to be written" not in printed(ran).splitlines():
            yield f"the check of an empty {check} says {printed(ran)!r}"


def explorers(cell: NotebookNode) -> list[dict]:
    """The outputs of a cell that are explorers, each with all its forms."""
    bundles = [output.get("data", {}) for output in cell.get("outputs", [])]
    return [data for data in bundles if 'class="explorer"' in data.get("text/html", "")]


def frames(explorer: dict) -> int:
    """How many pictures an explorer's form for pages without a kernel holds."""
    return len(json.loads(DATA.search(explorer["text/html"])[1])["pictures"])


def versions() -> str:
    """What runs here, of what the requirements name."""
    names = re.findall(r"(?m)^([\w-]+)==", REQUIREMENTS.read_text(encoding="utf8"))
    here = [f"{name} {version(name)}" for name in names]
    return ", ".join([f"Python {platform.python_version()}", *here])


def report(versions: str, source: Source, runs: list[Run]) -> str:
    """Write down what came of the notebooks, as Markdown."""
    head = HEAD.format(
        url=source.receipt["url"],
        tag=source.receipt["vcs_info"]["requested_revision"],
        versions=versions,
    )
    table = [
        "| notebook | result | cells run | explorers | lines that differ | seconds "
        "| pip installed |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        result = "**fails**" if run.faults else "runs"
        table.append(
            f"| {run.name} | {result} | {run.cells} | {run.explorers} | "
            f"{len(run.moved)} | {run.seconds:.0f} | {', '.join(run.installed)} |"
        )
    sums = (
        f"{len(runs)} notebooks, {sum(bool(run.faults) for run in runs)} fail, "
        f"{sum(run.explorers for run in runs)} explorers, "
        f"{sum(run.seconds for run in runs):.0f} seconds."
    )
    parts = [head, *table, "", sums]
    parts += listed("What failed", {run.name: run.faults for run in runs})
    parts += listed("Printed lines that differ", {run.name: run.moved for run in runs})
    return "\n".join(parts) + "\n"


def listed(title: str, lines: dict[str, list[str]]) -> Iterator[str]:
    """A section with the lines of each notebook that has some, or nothing."""
    if any(lines.values()):
        yield f"\n## {title}"
    for name, each in lines.items():
        if each:
            yield f"\n{name}\n"
            yield from (f"    {line}" for line in each)


if __name__ == "__main__":
    sys.exit(main())
