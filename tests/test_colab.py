"""The simulated Colab: where the package comes from, what is alone, what is a fault."""

import html
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from packaging.requirements import Requirement

from genaudit.explore import explore
from tests.guards.notebook import CHAPTERS, ROOT, Chapter
from tools import colab
from tools.colab import (
    REQUIREMENTS,
    Run,
    Source,
    faults,
    layer,
    main,
    report,
    repository,
    setup_faults,
    tried,
)
from tools.normal import WIDGET
from tools.release import read

SETUP = Chapter(CHAPTERS[0]).code[0]
EXPLORER = """
from genaudit.explore import explore

shown = changed = before = [1, 2]

def draw(value):
    figure, axes = plt.subplots()
    axes.plot([0, value * shown[0] * changed[0] * before[0]])
    return figure, f"ends at {value}"

explore(draw, [1, 2, 3], label="end", alt="a line")
"""


# Where the package comes from


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What the package is built from, under the stamp of the book."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE", "_config.yml", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src" / "genaudit", folder / "src" / "genaudit")
    return folder


@pytest.fixture(scope="module")
def source(tree, tmp_path_factory):
    return repository(tree, tmp_path_factory.mktemp("source"))


def clone(source, address, tag, to):
    """Clone as pip does, without asking a network."""
    only = {"GIT_CONFIG_GLOBAL": str(source.settings), "GIT_ALLOW_PROTOCOL": "file"}
    command = ["git", "clone", "--quiet", "--branch", tag, address, to]
    return subprocess.run(command, env=os.environ | only, capture_output=True)


def test_the_stamped_address_leads_to_the_tree_as_it_is(tree, source, tmp_path):
    stamp = read(ROOT)
    address = f"https://github.com/{stamp.repo}"
    (written,) = re.findall(r'"genaudit @ git\+(.*)@(.*)"', SETUP.source)
    assert written == (address, stamp.tag)
    assert clone(source, address, stamp.tag, tmp_path / "to").returncode == 0
    for path in filter(Path.is_file, tree.rglob("*")):
        name = path.relative_to(tree)
        ignored = "__pycache__" in name.parts
        assert ignored or (tmp_path / "to" / name).read_bytes() == path.read_bytes()


def test_another_address_or_tag_leads_nowhere(source, tmp_path):
    stamp = read(ROOT)
    address = f"https://github.com/{stamp.repo}"
    for other, tag in [(address, "v99.0.0"), (f"{address}s", stamp.tag)]:
        assert clone(source, other, tag, tmp_path / "to").returncode


def test_a_package_from_elsewhere_is_a_fault(source):
    assert list(setup_faults([source.receipt], source, "error: no")) == []
    assert list(setup_faults([], source, "note\n \x1b[1merror\x1b[0m: no\n")) == [
        "setup: installed no package",
        "setup: error: no",
    ]
    came = source.receipt["vcs_info"]
    for other in [
        {"url": "https://github.com/other/one", "vcs_info": came},
        {**source.receipt, "vcs_info": came | {"requested_revision": "v99.0.0"}},
        {**source.receipt, "vcs_info": came | {"commit_id": "0" * 40}},
    ]:
        (fault,) = setup_faults([other], source, "")
        assert fault.startswith("setup: installed [{")


# What is alone


def test_a_layer_holds_nothing_and_sees_what_is_below(tmp_path):
    site = layer(tmp_path / "env")
    names = [path.name for path in Path(site).iterdir()]
    assert names == ["below.pth"]
    ask = "import sys, nbformat; print(sys.prefix, nbformat.__file__)"
    python = tmp_path / "env" / "bin" / "python"
    said = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    assert said.stdout.split() == [str(tmp_path / "env"), nbformat.__file__]


@pytest.fixture
def run(tmp_path, source, monkeypatch):
    """Run a notebook of some cells with the versions that are here, from disk alone."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    # What it says is the value of the isolation, so false turns that off.
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "false")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # which must not be seen

    def run(*cells):
        nbformat.write(new_notebook(cells=[*cells]), tmp_path / "one.ipynb")
        return tried(tmp_path / "one.ipynb", source)

    return run


def test_a_notebook_installs_the_package_and_runs_to_its_end(run, source):
    shown = new_code_cell(EXPLORER, id="shown")
    shown.outputs = [explorer_output()]
    found = run(
        SETUP,
        shown,
        new_code_cell("1 / 0", id="fails"),
        new_code_cell("import os\nprint(os.listdir())", id="empty"),
    )
    assert found.installed == [f"genaudit {read(ROOT).version}"]
    assert found.faults == ["fails: ZeroDivisionError: division by zero"]
    assert (found.cells, found.explorers) == ("4 of 4", 1)
    assert found.moved == ["empty: + []"]


def test_a_notebook_without_its_setup_has_no_package(run):
    found = run(new_code_cell("import genaudit", id="setup"))
    assert found.faults == [
        "setup: installed no package",
        "setup: ModuleNotFoundError: No module named 'genaudit'",
    ]


def test_a_tag_that_is_not_there_is_told_in_the_words_of_pip(run):
    tag = read(ROOT).tag
    found = run(new_code_cell(SETUP.source.replace(tag, "v99.0.0"), id="setup"))
    assert found.faults[0] == "setup: installed no package"
    assert any("error: pathspec 'v99.0.0'" in each for each in found.faults)
    assert found.faults[-1] == "setup: ModuleNotFoundError: No module named 'genaudit'"


# What is a fault


def explorer_output(stops=(1, 2, 3)):
    """The output of an explorer, in all its forms."""

    def draw(value):
        return plt.figure(figsize=(1, 1)), f"ends at {value}"

    shown = explore(draw, stops, label="end", alt="nothing")
    return new_output("execute_result", data=shown._repr_mimebundle_())


def executed_cell(*outputs, source="explore(...)"):
    return new_code_cell(source, id="cell", execution_count=1, outputs=list(outputs))


def told(before, after, changed="[true]"):
    """The faults of a run of one cell."""
    books = [new_notebook(cells=[cell]) for cell in (before, after)]
    return list(faults(*books, changed))


def test_a_good_run_has_no_fault():
    cell = executed_cell(explorer_output())
    assert told(cell, cell) == []


def test_a_cell_that_fails_or_does_not_run_is_a_fault():
    error = new_output("error", ename="ValueError", evalue="no", traceback=[])
    assert told(executed_cell(), executed_cell(error)) == ["cell: ValueError: no"]
    assert told(executed_cell(), new_code_cell("1", id="cell")) == ["cell: was not run"]


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        ([], "with [] pictures, the book's have [3]"),
        ([explorer_output((1, 2))], "with [2] pictures, the book's have [3]"),
        ([explorer_output()] * 2, "with [3, 3] pictures, the book's have [3]"),
    ],
)
def test_another_static_form_is_a_fault(outputs, fault):
    changed = json.dumps([True] * len(outputs))
    (found,) = told(executed_cell(explorer_output()), executed_cell(*outputs), changed)
    assert found == f"cell: shows explorers {fault}"


@pytest.mark.parametrize("form", [WIDGET, "image/png"])
def test_a_missing_form_is_a_fault(form):
    after = executed_cell(explorer_output())
    del after.outputs[0].data[form]
    found = told(executed_cell(explorer_output()), after)
    assert found == [f"cell: its explorer has no {form}"]


@pytest.mark.parametrize("changed", ["[false]", "[]", "[true, true]", "list index", ""])
def test_a_slider_that_does_not_move_its_picture_is_a_fault(changed):
    cell = executed_cell(explorer_output())
    (found,) = told(cell, cell, changed)
    assert found == f"the live form of 1 explorers, moved: {changed}"


def test_the_check_of_an_empty_exercise_has_to_say_so():
    source = "visible.posterior(posterior)"
    cell = executed_cell(source=source)
    for text in ["posterior: still to be written\n", "posterior: passes\n", ""]:
        said = new_output("stream", name="stdout", text=text)
        found = told(cell, executed_cell(said, source=source))
        assert bool(found) == ("still" not in text), found


# What is reported


GOOD = Run("chapters/one", "3 of 3", 1, 12.3, ["genaudit 0.1.0"], [], ["sum: + 1.50"])
BAD = Run("exercises/two", "2 of 3", 0, 4.0, [], ["cell: was not run"], [])


def test_the_report_names_what_failed_and_what_differs(source):
    text = report("Python 3.12", source, [GOOD, BAD])
    assert "| chapters/one | runs | 3 of 3 | 1 | 1 | 12 | genaudit 0.1.0 |" in text
    assert "| exercises/two | **fails** | 2 of 3 | 0 | 0 | 4 |  |" in text
    assert "2 notebooks, 1 fail, 1 explorers, 16 seconds." in text
    assert "## What failed\n\nexercises/two\n\n    cell: was not run\n" in text
    assert "## Printed lines that differ\n\nchapters/one\n\n    sum: + 1.50" in text


def test_a_report_without_faults_has_no_list_of_them(source):
    text = report("Python 3.12", source, [GOOD._replace(moved=[])])
    assert "## " not in text.partition("| notebook")[2]


@pytest.mark.parametrize("one", [GOOD, BAD])
def test_a_failure_is_the_exit_code(one, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(colab, "versions", lambda: "Python 3.12")
    monkeypatch.setattr(colab, "repository", lambda *_: Source(tmp_path, RECEIPT))
    monkeypatch.setattr(colab, "tried", lambda *_: one)
    monkeypatch.setattr(colab, "REPORT", tmp_path / "build" / "colab.md")
    assert main([str(CHAPTERS[0])]) == (one is BAD)
    text = (tmp_path / "build" / "colab.md").read_text()
    assert text.count(one.name) and text in capsys.readouterr().out


RECEIPT = {"url": "https://github.com/a/b", "vcs_info": {"requested_revision": "v1"}}


@pytest.mark.parametrize("name", ["chapters/none.ipynb", "README.md"])
def test_only_a_notebook_can_be_run(name, capsys):
    with pytest.raises(SystemExit):
        main([name])
    assert f"{name!r} must be a notebook's file" in capsys.readouterr().err


# What it stands on


def test_the_versions_of_colab_are_pinned_and_allowed():
    lines = [each for each in REQUIREMENTS.read_text().splitlines() if each.strip()]
    pins = dict(
        re.match(r"([\w-]+)==(\S+) +# \S", each).groups()
        for each in lines
        if not each.startswith("#")
    )
    assert pins["ipywidgets"] == "7.7.1"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    for requirement in map(Requirement, settings["project"]["dependencies"]):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_without_the_python_of_colab_make_says_what_is_needed(tmp_path):
    for name in ("Makefile", "tools/colab.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = ["make", "colab", "PYTHON312="]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode and "Python 3.12 is needed" in done.stderr
    assert not (tmp_path / "build").exists()


# What a page without widgets shows


def test_the_static_form_works_in_a_frame_that_may_do_nothing_else(tmp_path):
    """Colab shows an output in a frame of another origin."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("no browser to open the frame with: install Debian's chromium")
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright, which drives the browser, is missing"
    )
    form = html.escape(explorer_output().data["text/html"])
    page_file = tmp_path / "page.html"
    page_file.write_text(f'<iframe sandbox="allow-scripts" srcdoc="{form}"></iframe>')
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page()
        page.goto(page_file.as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("input[type=range]").press("End")
        assert frame.locator("output").inner_text() == "ends at 3"
        browser.close()
