"""The part of genaudit that a sandbox shows."""

import importlib
import sys
from pathlib import Path

import pytest

from coursework import shown
from coursework.checks import load_all
from coursework.shown import shown_package
from tests.guards.notebook import ROOT

EXERCISES = load_all(ROOT / "solutions")
ALWAYS = {"__init__", "exercises.__init__", "exercises._say"}
BOOK = {
    "__init__": "",
    "exercises/__init__": "",
    "exercises/_say": "",
    "exercises/dice": "import math\nfrom genaudit.exercises._say import visible",
    "exercises/other": "from genaudit.secret import answer",
    "plain": "import torch",
    "top": "from genaudit import middle as m\nfrom os import path",
    "middle": "def f():\n    from genaudit.bottom import g",
    "bottom": "from genaudit import top",
    "secret": "answer = 42",
}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A package with rooms that need each other, in a circle."""
    for name, source in BOOK.items():
        path = tmp_path / "book" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (tmp_path / "book" / "book.mplstyle").write_text("axes.grid: True")
    monkeypatch.setattr(shown, "SOURCE", tmp_path / "book")


def modules(folder):
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
    }


def test_the_visible_checks_and_nothing_else(book, tmp_path):
    folder = shown_package(tmp_path / "shown", "dice", [])
    assert modules(folder) == ALWAYS | {"exercises.dice"}
    assert (folder / "book.mplstyle").read_text() == "axes.grid: True"
    path = folder / "exercises" / "dice.py"
    assert path.read_text() == BOOK["exercises/dice"]


def test_an_exercise_without_visible_checks(book, tmp_path):
    assert modules(shown_package(tmp_path / "shown", "cards", [])) == ALWAYS


@pytest.mark.parametrize(
    ("declared", "rooms"),
    [
        (["plain"], {"plain"}),
        (["top"], {"top", "middle", "bottom"}),
        (["bottom", "plain"], {"top", "middle", "bottom", "plain"}),
        (["exercises.other"], {"exercises.other", "secret"}),
    ],
)
def test_rooms_bring_what_they_need(book, tmp_path, declared, rooms):
    folder = shown_package(tmp_path / "shown", "cards", declared)
    assert modules(folder) == ALWAYS | rooms


def test_what_visible_checks_need_comes_along(book, tmp_path):
    folder = shown_package(tmp_path / "shown", "other", [])
    assert modules(folder) == ALWAYS | {"exercises.other", "secret"}


@pytest.mark.parametrize("room", ["cellar", "exercises.nothing", "top.floor"])
def test_an_unknown_room_is_named(book, tmp_path, room):
    with pytest.raises(ValueError, match=f"modules = '{room}': genaudit has no such"):
        shown_package(tmp_path / "shown", "dice", ["plain", room])


@pytest.fixture
def without_the_book(monkeypatch):
    """Forget genaudit, and know it again afterwards."""

    def forget():
        names = [name for name in sys.modules if name.split(".")[0] == "genaudit"]
        return {name: sys.modules.pop(name) for name in names}

    known = forget()
    yield
    forget()
    sys.modules.update(known)


@pytest.mark.parametrize("name", EXERCISES)
def test_what_is_shown_of_the_book_is_whole(
    name, tmp_path, monkeypatch, without_the_book
):
    folder = shown_package(tmp_path / "genaudit", name, EXERCISES[name].modules)
    monkeypatch.syspath_prepend(tmp_path)
    for module in modules(folder):
        found = importlib.import_module(f"genaudit.{module}".removesuffix(".__init__"))
        assert Path(found.__file__).is_relative_to(folder)
