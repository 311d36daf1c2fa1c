"""A chapter needs nothing but its own file and the package: no folder, no network."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guards.notebook import CHAPTERS, ROOT

RUN = """
import os, socket, sys
import nbformat
from nbclient import NotebookClient

try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
except OSError as error:
    print(f"no network: {error}")
else:
    sys.exit("the network is not blocked")
notebook = nbformat.read(sys.argv[1], as_version=4)
where = nbformat.v4.new_code_cell("import genaudit; print(genaudit.__file__)")
notebook.cells.append(where)
NotebookClient(notebook, kernel_name="python3").execute()
print("package:", where.outputs[0].text.strip())
print("files:", *sorted(os.listdir()))
"""
BLOCKERS = {
    "bwrap": [
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--unshare-net",
        "--die-with-parent",
    ],
    "unshare": ["-r", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"],
}


@pytest.fixture(scope="session")
def blocked():
    """The start of a command that runs another without a network but for itself."""
    for program, options in BLOCKERS.items():
        command = [program, *options]
        if shutil.which(program):
            tried = subprocess.run([*command, "true"], capture_output=True)
            if tried.returncode == 0:
                return command
    pytest.skip("neither bwrap nor unshare can block the network on this machine")


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder that holds the package as its wheel installs it."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
    subprocess.run([*pip, *build], cwd=source, check=True)
    (wheel,) = (source / "dist").glob("genaudit-*.whl")
    target = tmp_path_factory.mktemp("installed")
    install = ["install", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run([*pip, *install], check=True)
    return target


def test_the_wheel_holds_the_package_alone(installed):
    parts = {path.name.split("-")[0] for path in installed.iterdir()}
    assert parts == {"genaudit"}
    assert (installed / "genaudit" / "book.mplstyle").exists()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_runs_alone(chapter, blocked, installed, tmp_path):
    folder = tmp_path / "alone"
    folder.mkdir()
    shutil.copy(chapter, folder)
    private = {
        name: str(tmp_path / name)
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")
    }
    settings = [f"{name}={value}" for name, value in private.items()]
    env = ["env", f"PYTHONPATH={installed}", *settings]
    done = subprocess.run(
        [*blocked, *env, sys.executable, "-c", RUN, chapter.name],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    package = Path(done.stdout.split("package: ")[1].splitlines()[0])
    assert package.is_relative_to(installed)
    assert f"files: {chapter.name}\n" in done.stdout  # and it leaves nothing behind
