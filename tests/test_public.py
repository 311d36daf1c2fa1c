"""The public side: what goes out, what stays, and what the search before it sees."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from coursework.checks import load_all
from coursework.markers import solution_lines
from tests.guards.notebook import ROOT
from tools import public
from tools.public import CERTAIN, PRIVATE, Secrets, export, git, main

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="an export needs git's list of files"
)
MASTERS = ROOT / "solutions"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "public"
    export(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def secrets():
    return Secrets(MASTERS)


# What goes out


def test_every_page_of_the_book_goes_out(exported):
    toc = yaml.safe_load((exported / "_toc.yml").read_text(encoding="utf8"))
    pages = [page["file"] for part in toc["parts"] for page in part["chapters"]]
    for page in [toc["root"], *pages]:
        assert list(exported.glob(f"{page}.*")), page


def test_it_is_the_tree_without_what_is_private(exported):
    names = {path for path in git(ROOT, "ls-files", "-z").split("\0") if path}
    private = {name for name in names if name.startswith(tuple(PRIVATE))}
    files = {path for path in exported.rglob("*") if path.is_file()}
    assert {path.relative_to(exported).as_posix() for path in files} == names - private
    for path in files:
        original = ROOT / path.relative_to(exported)
        assert path.read_bytes() == original.read_bytes()
        assert os.access(path, os.X_OK) == os.access(original, os.X_OK)


def test_nothing_of_the_masters_and_no_history(exported):
    assert not (exported / "solutions").exists()
    assert not (exported / ".git").exists()
    masters = {path.read_bytes() for path in MASTERS.iterdir() if path.is_file()}
    for path in exported.rglob("*"):
        assert not (path.is_file() and path.read_bytes() in masters)


def test_every_test_that_goes_out_imports(exported):
    """With the package of the export, from a folder that is not this one."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "tests"],
        cwd=exported,
        env={**os.environ, "PYTHONPATH": str(exported / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    for path in exported.glob("tests/**/test_*.py"):
        name = path.relative_to(exported).as_posix()
        # A module that skips itself, for want of a browser, says so instead.
        assert f"{name}::" in done.stdout or f"SKIPPED [1] {name}" in done.stdout, name


def test_what_is_private_exists():
    names = git(ROOT, "ls-files").splitlines()
    for private in PRIVATE:
        assert any(name.startswith(private) for name in names), private


@pytest.mark.parametrize("folder", ["bench", "tests", "tools"])
def test_what_needs_the_masters_is_private(folder):
    needs = re.compile(
        r'ROOT / ("solutions"|MASTERS)|tests\.coursework\.masters import'
    )
    for path in ROOT.glob(f"{folder}/**/*.py"):
        if needs.search(path.read_text(encoding="utf8")):
            name = path.relative_to(ROOT).as_posix()
            assert name.startswith(tuple(PRIVATE)), name


# What the search sees


def hidden(part):
    """A hidden check's name or hint, with more than one word."""
    texts = [
        getattr(check, part)
        for exercise in load_all(MASTERS).values()
        for check in exercise.checks
    ]
    return next(text for text in texts if len(text.split()) > 3)


def solutions(kind):
    """The solutions in cells of a kind, with the name of their master."""
    for path in sorted(MASTERS.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            lines = solution_lines(cell.source, path.stem)
            if cell.cell_type == kind and lines:
                yield path.stem, lines


def long_solution():
    return next(lines for _, lines in solutions("code") if len(lines) > 5)


def sentence():
    lines = [line for _, answer in solutions("markdown") for line in answer]
    return next(line for line in lines if len(line.split()) > 8)


def expected(secrets):
    """A value that does not become a short one when it is rounded."""
    values = [value for some in secrets.numbers.values() for value in some]
    return next(v for v in values if f"{v:.{CERTAIN}g}"[-1] not in "09")


def notebook(*cells):
    return nbformat.writes(new_notebook(cells=cells)).encode()


def as_page(text):
    return text.encode()


def as_markdown_cell(text):
    return notebook(new_markdown_cell(text))


def as_comment(text):
    return notebook(new_code_cell("\n".join(f"# {line}" for line in text.splitlines())))


PLACES = [
    ("chapters/page.md", as_page),
    ("tests/test_more.py", as_page),
    ("chapters/more.ipynb", as_markdown_cell),
    ("chapters/more.ipynb", as_comment),
    ("exercises/more.ipynb", as_markdown_cell),
    ("exercises/more.ipynb", as_comment),
]


def test_the_book_has_no_leak(secrets):
    for name in public.public(git(ROOT, "ls-files").splitlines()):
        assert list(secrets.found(name, (ROOT / name).read_bytes())) == [], name


@pytest.mark.parametrize(("name", "form"), PLACES)
@pytest.mark.parametrize(
    ("text", "what"),
    [
        (lambda: hidden("name"), "a check's name of"),
        (lambda: hidden("hint"), "a hint of"),
        (sentence, "a solution line of"),
    ],
    ids=["name", "hint", "sentence"],
)
def test_words_that_leak(secrets, name, form, text, what):
    found = list(secrets.found(name, form(f"Before.\n{text()}\nAfter.")))
    assert any(what in fault for fault in found)
    assert not any(text() in fault for fault in found)


@pytest.mark.parametrize(("name", "form"), PLACES[:4])
def test_a_solution_that_leaks(secrets, name, form):
    def found(lines):
        return list(secrets.found(name, form("\n".join(lines))))

    lines = long_solution()
    assert any("the solution of" in fault for fault in found(lines))
    assert any("the solution of" in fault for fault in found(lines[:-1]))
    assert found(lines[:1]) == []


@pytest.mark.parametrize("form", [as_markdown_cell, as_comment])
def test_one_line_of_a_solution_leaks_in_an_exercise(secrets, form):
    line = max(long_solution(), key=len)
    (found,) = secrets.found("exercises/more.ipynb", form(line))
    assert "a solution line of" in found


@pytest.mark.parametrize(("name", "form"), PLACES)
@pytest.mark.parametrize("digits", ["rounded", "cut", "whole"])
def test_an_expected_value_that_leaks(secrets, name, form, digits):
    value = expected(secrets)
    forms = {"rounded": f"{value:.{CERTAIN}g}", "whole": str(value)}
    forms["cut"] = str(value)[: len(forms["rounded"]) + 1]
    found = secrets.found(name, form(f"It is {forms[digits]}, perhaps."))
    assert any("an expected value of" in fault for fault in found)
    assert not list(secrets.found(name, form("It is 0.123456789.")))


def test_a_value_of_four_digits_leaks_in_its_own_exercise(secrets):
    name = next(name for name, values in secrets.numbers.items() if values)
    value = next(iter(secrets.numbers[name]))
    page = as_markdown_cell(f"It is {value:.4g}.")
    assert list(secrets.found(f"exercises/{name}.ipynb", page))


@pytest.mark.parametrize(
    "path", sorted(MASTERS.glob("*.*")), ids=lambda path: path.name
)
def test_a_copy_of_a_file_leaks(secrets, path):
    found = secrets.found(f"chapters/copy{path.suffix}", path.read_bytes())
    assert "a file of solutions/" in found


@pytest.mark.parametrize("path", sorted(MASTERS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_master_that_was_edited_leaks(secrets, path):
    master = nbformat.read(path, as_version=4)
    master.cells = master.cells[1:]
    content = nbformat.writes(master).encode()
    assert any(
        "solution" in what for what in secrets.found("chapters/x.ipynb", content)
    )


def test_what_cannot_be_searched(secrets):
    assert list(secrets.found("data.bin", b"\xff")) == [
        "no text, and so it cannot be searched"
    ]
    assert list(secrets.found("chapters/_static/picture.png", b"\xff")) == []


# A tree of its own


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A small tree in git: one exercise of the book, with its master."""
    root = tmp_path / "course"
    names = ["solutions/beta_vae.py", "solutions/beta_vae.ipynb", "README.md"]
    for name in [*names, "exercises/beta_vae.ipynb"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((ROOT / name).read_bytes())
    git(root.parent, "init", "--quiet", str(root))
    commit(root)
    monkeypatch.setattr(public, "ROOT", root)
    return root


def commit(root):
    who = ["-c", "user.name=Somebody", "-c", "user.email=nobody@example.org"]
    git(root, "add", "--all")
    git(root, *who, "commit", "--quiet", "--no-verify", "--message", "Something")


def test_the_command_writes_and_counts(course, tmp_path, capsys):
    assert main([str(tmp_path / "new" / "public")]) == 0
    assert capsys.readouterr().out == f"2 files in {tmp_path / 'new' / 'public'}\n"
    files = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["README.md", "beta_vae.ipynb"]


def test_one_leak_and_nothing_is_written(course, tmp_path, capsys):
    page = course / "page.md"
    page.write_text(load_all(course / "solutions")["beta_vae"].checks[0].name)
    commit(course)
    assert main([str(tmp_path / "public")]) == 2
    said = capsys.readouterr().err
    assert "nothing written" in said and "page.md: a check's name of beta_vae" in said
    assert not (tmp_path / "public").exists()


def test_an_exercise_with_its_solution_is_not_written(course, tmp_path, capsys):
    master = (course / "solutions" / "beta_vae.ipynb").read_bytes()
    (course / "exercises" / "beta_vae.ipynb").write_bytes(master)
    commit(course)
    assert main([str(tmp_path / "public")]) == 2
    said = capsys.readouterr().err
    assert "exercises/beta_vae.ipynb: a file of solutions/" in said
    assert "a solution line of beta_vae" in said


@pytest.mark.parametrize("name", ["README.md", "notes.md"])
def test_a_tree_with_something_to_commit(course, tmp_path, capsys, name):
    (course / name).write_text("Changed.")
    assert main([str(tmp_path / "public")]) == 2
    assert re.search(f"commit or remove first:\n.*{name}", capsys.readouterr().err)


def test_what_git_does_not_track_stays(course, tmp_path):
    (course / "notes.md").write_text("Mine alone.")
    assert "notes.md" not in export(course, tmp_path / "public")


def test_a_folder_that_is_not_empty(course, tmp_path, capsys):
    folder = tmp_path / "public"
    folder.mkdir()
    assert main([str(folder)]) == 0
    before = sorted(folder.rglob("*"))
    for place in (folder, folder / "README.md"):
        assert main([str(place)]) == 2
        assert f"{place} must be a new or an empty folder" in capsys.readouterr().err
    assert sorted(folder.rglob("*")) == before


def test_a_tree_without_git(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(public, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main([str(tmp_path / "public")]) == 2
    assert "public: git: " in capsys.readouterr().err


# How it gets to its repository


@pytest.fixture
def publish(tmp_path):
    """Run `make publish` with an export of one file, to a remote on this disk."""
    remote, clone, here = (tmp_path / name for name in ("remote", "clone", "here"))
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git(tmp_path, "clone", "--quiet", str(remote), str(clone))
    for setting in ("user.name", "user.email"):
        git(clone, "config", setting, "jane")
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "first")
    git(clone, "push", "--quiet", "origin", "HEAD:main")
    here.mkdir()
    shutil.copy(ROOT / "Makefile", here)
    (here / "_config.yml").write_text(
        "  url: https://github.com/jane/audited\n  branch: v1.0.0\n"
    )
    (here / "bin").mkdir()
    python = here / "bin" / "python"
    python.write_text("#!/bin/sh\nmkdir -p $3 && echo public > $3/page\n")
    python.chmod(0o755)
    version = "{}.{}".format(*sys.version_info)

    def publish():
        words = ["make", "publish", f"CLONE={clone}", "BIN=bin", f"VERSION={version}"]
        words += ["-o", f".venv/test-{version}"]
        return subprocess.run(words, cwd=here, capture_output=True, text=True)

    publish.remote, publish.clone, publish.config = remote, clone, here / "_config.yml"
    return publish


def test_it_reaches_main_under_its_tag_and_the_clone_is_clean(publish):
    done = publish()
    assert done.returncode == 0, done.stderr
    for place in ("main", "v1.0.0"):
        assert git(publish.remote, "show", f"{place}:page") == "public\n"
    assert git(publish.clone, "status", "--porcelain") == ""
    assert "published already" in publish().stdout


def test_a_push_that_failed_can_be_made_again(publish):
    away = publish.remote.with_name("away")
    git(publish.clone, "config", "remote.origin.pushurl", str(away))
    assert publish().returncode != 0
    git(publish.clone, "config", "--unset", "remote.origin.pushurl")
    assert publish().returncode == 0
    assert git(publish.remote, "show", "v1.0.0:page") == "public\n"


def test_a_clone_with_changes_of_its_own_is_left_alone(publish):
    (publish.clone / "mine").write_text("")
    assert "has changes of its own" in publish().stdout


def test_nobody_publishes_the_placeholder(publish):
    placeholder = "/".join(["OWNER", "REPO"])
    stamped = publish.config.read_text()
    publish.config.write_text(stamped.replace("jane/audited", placeholder))
    done = publish()
    assert done.returncode != 0 and "stamp the release first" in done.stdout
