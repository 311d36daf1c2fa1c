"""The weekly report: what is newer, and which printed lines moved."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import newest
from tools.newest import differences, main, newer


def test_only_another_version_is_reported(monkeypatch):
    installed = {
        "same": "1.2.0",
        "newer": "1.3",
        "a.b-c": "2.0+cpu",
        "built": "1.0+cpu",
    }

    def version(name):
        if name not in installed:
            raise newest.PackageNotFoundError
        return installed[name]

    monkeypatch.setattr(newest, "version", version)
    pins = ["# same==9", "same==1.2.0   # a word", "newer==1.2", "a.b-c==1.9.post1"]
    pins += ["built==1.0", "absent==1.0"]
    assert list(newer("\n".join(pins))) == [
        "newer 1.2 -> 1.3",
        "a.b-c 1.9.post1 -> 2.0",
    ]


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A chapter that prints 1.50 and has stored this output or another."""

    def store(source, printed):
        cell = new_code_cell(source, id="sum")
        cell.outputs = [new_output("stream", name="stdout", text=f"{printed}\n")]
        path = tmp_path / "chapters" / "one.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=[cell]), path)
        (tmp_path / "requirements.txt").write_text("pytest==0.1\n")
        return path

    monkeypatch.setattr(newest, "ROOT", tmp_path)
    return store


def test_a_line_that_moved_is_reported_and_not_stored(book, capsys):
    path = book('print(f"{1 + 0.5:.2f}")', "1.49")
    before = path.read_bytes()
    assert main() == 1
    said = capsys.readouterr().out
    assert "- one: changed\n\n      sum: - 1.49\n      sum: + 1.50\n" in said
    assert "- pytest 0.1 -> " in said
    assert path.read_bytes() == before


def test_lines_that_stayed_are_no_difference(book, capsys):
    book('print(f"{1 + 0.5:.2f}")', "1.50")
    assert main() == 0
    assert "- one: as pinned\n\n0 chapters differ." in capsys.readouterr().out


def test_a_run_time_is_no_difference(book, capsys):
    words = "width 8, measured on the machine that ran this:"
    book(f'print("{words} 103 times faster")', f"{words} 104 times faster")
    assert main() == 0
    assert "- one: as pinned" in capsys.readouterr().out


def test_a_chapter_that_stops_is_reported(book):
    path = book("import no_such_package", "")
    (line,) = differences(path)
    assert line == "stopped: ModuleNotFoundError: No module named 'no_such_package'"
