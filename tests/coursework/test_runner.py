"""How a notebook's cells run and its functions are called, here without a sandbox."""

import builtins
import linecache
import sys

import pytest
import torch

from coursework.runner import MESSAGE, Notebook


@pytest.fixture
def notebook(monkeypatch):
    """A notebook in this process, which is put back as it was."""
    monkeypatch.setattr(builtins, "input", input)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(linecache, "cache", dict(linecache.cache))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    modules = set(sys.modules)
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    yield Notebook()
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)
    for name in set(sys.modules) - modules:
        if name.startswith("genaudit."):
            del sys.modules[name]


def ran(notebook, *cells):
    for cell in cells:
        assert notebook.run(cell) == {}


def value(notebook, expression, *arguments, seed=0):
    """What a function returns whose body is an expression of its arguments ``a``."""
    ran(notebook, f"def probe(*a):\n    return {expression}")
    return notebook.call("probe", list(arguments), seed)["value"]


def test_cells_share_a_namespace_as_in_jupyter(notebook):
    ran(notebook, "k = 3", "def times(x):\n    return k * x", "k = 5")
    assert notebook.call("times", [2], 0) == {"value": 10}
    assert value(notebook, "__name__") == "__main__"
    assert value(notebook, "__import__('__main__').k") == 5


def test_the_last_definition_counts(notebook):
    ran(notebook, "def f(): return 1", "def f(): return 2")
    assert notebook.call("f", [], 0) == {"value": 2}


def test_notebooks_compute_in_double_precision(notebook):
    assert value(notebook, "str(__import__('torch').ones(1).dtype)") == "torch.float64"


def test_a_stub_does_not_undo_an_answer(notebook):
    stub = "def f():\n    raise NotImplementedError\ndef g():\n    return 0"
    assert notebook.run(stub, stub=True) == {}
    assert notebook.call("f", [], 0)["kind"] == "stub"
    ran(notebook, "def f(): return 1")
    assert notebook.run(stub, stub=True) == {}
    assert notebook.call("f", [], 0) == {"value": 1}
    assert notebook.call("g", [], 0) == {"value": 0}


def test_what_a_stub_needs_may_stand_above_it(notebook):
    ran(notebook, "import math")
    stub = "def f(x=math.pi):\n    raise NotImplementedError"
    assert notebook.run(stub, stub=True) == {}
    assert notebook.call("f", [], 0)["kind"] == "stub"


def test_a_stub_that_raises_defines_nothing(notebook):
    assert "error" in notebook.run("k = 1\nraise NotImplementedError", stub=True)
    assert "error" in notebook.run("k")


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("input('name? ')", "EOFError: input() cannot be answered while grading"),
        ("x\0y", ""),
        ("raise ValueError('x' * 5000)", "ValueError: xxx"),
    ],
)
def test_a_cell_that_fails_says_why_and_the_next_runs(notebook, cell, error):
    ran(notebook, "k = 1")
    said = notebook.run(cell)["error"]
    assert said.startswith(error)
    assert len(said) <= MESSAGE
    assert value(notebook, "k") == 1


def test_what_a_failing_cell_defined_before_stays(notebook):
    notebook.run("def f(): return 1\n1 / 0\ndef g(): return 2")
    assert notebook.call("f", [], 0) == {"value": 1}
    assert notebook.call("g", [], 0)["kind"] == "absent"


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline",
        "%pip install -q torch",
        "!rm -rf /",
        "files = !ls",
        "%%bash\necho $HOME",
        "%%writefile answer.py\nanswer = 1",
        "%%html\n<b>&</b>",
        "%load_ext autoreload\n%autoreload 2",
        "print?",
        "?print",
        "get_ipython().system('true')",
        "get_ipython().run_line_magic('cd', '/')",
        "display(1, 2, raw=True)",
        "# only a comment",
        "",
        "   \n",
        "await_me = 1; await_me",
    ],
)
def test_magics_do_nothing(notebook, cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran(notebook, cell, "k = 1")
    assert value(notebook, "k") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "cell",
    [
        "%%time\n\ndef f(x):\n    return x + 1",
        "%%timeit -n 1\ndef f(x):\n    return x + 1",
        "%%capture out\n!ls\n%matplotlib inline\ndef f(x):\n    return x + 1",
        "%time f = lambda x: x + 1",
    ],
)
def test_what_is_timed_runs(notebook, cell):
    ran(notebook, cell)
    assert notebook.call("f", [1], 0) == {"value": 2}


def test_lines_beside_a_magic_run(notebook):
    ran(notebook, "%matplotlib inline\nk = 2\n!ls\nk += 1")
    assert value(notebook, "k") == 3


def test_lists_arrive_as_tensors(notebook):
    given = ([1.5, 2.5], [1, 2], [[0.5]], 3, 0.5, "word", ["two", "words"])
    kinds = "[str(getattr(x, 'dtype', type(x).__name__)) for x in a]"
    found = value(notebook, kinds, *given)
    double = "torch.float64"
    assert found == [double, "torch.int64", double, "int", "float", "str", "list"]
    assert value(notebook, "a", *given) == list(given)


def test_inputs_are_no_worse_for_the_precision_of_the_notebook(notebook):
    ran(notebook, "import torch", "torch.set_default_dtype(torch.float32)")
    assert value(notebook, "a[0]", [0.1, 1 / 3]) == [0.1, 1 / 3]


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        ("raise NotImplementedError", "stub", "NotImplementedError: "),
        ("raise NotImplementedError('x')", "stub", "NotImplementedError: x"),
        ("return nothing", "raised", "NameError: name 'nothing' is not defined"),
        ("raise SystemExit(0)", "raised", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "raised", "KeyboardInterrupt: "),
        ("return input()", "raised", "EOFError: input() cannot be answered"),
        ("raise MemoryError", "memory", "MemoryError: "),
        ('raise RuntimeError("can\'t allocate memory")', "memory", "RuntimeError: "),
        ("return f()", "raised", "RecursionError: "),
        ("raise ValueError('y' * 5000)", "raised", "ValueError: yyy"),
        ("return None", "unfit", "TypeError: NoneType is neither"),
        ("return lambda: 1", "unfit", "TypeError: function is neither"),
        ("return 10**6000", "unfit", "TypeError: an integer of more than"),
        ("return 1j", "unfit", "TypeError: complex is neither"),
        ("x = []; x.append(x); return x", "unfit", "RecursionError: "),
    ],
)
def test_an_answer_that_fails_says_how(notebook, body, kind, error):
    ran(notebook, f"def f():\n    {body}", "def g(): return 1")
    said = notebook.call("f", [], 0)
    assert said["kind"] == kind
    assert said["error"].startswith(error)
    assert len(said["error"]) <= MESSAGE
    assert notebook.call("g", [], 0) == {"value": 1}


def test_an_answer_of_other_arguments_says_so(notebook):
    ran(notebook, "def f(x): return x")
    assert notebook.call("f", [1, 2], 0)["error"].startswith("TypeError: f() takes 1")


@pytest.mark.parametrize("name", ["f", "k", "print", "__builtins__", "torch"])
def test_no_function_of_that_name(notebook, name):
    ran(notebook, "k = 1", "import torch")
    said = notebook.call(name, [], 0)
    assert said == {"kind": "absent", "error": f"there is no function {name}"}


@pytest.mark.parametrize(
    "draw",
    [
        "__import__('torch').rand(3)",
        "__import__('numpy').random.rand(3)",
        "[__import__('random').random()]",
    ],
)
def test_a_seed_before_each_call(notebook, draw):
    one = value(notebook, draw, seed=1)
    assert value(notebook, draw, seed=1) == one
    assert value(notebook, draw, seed=2**32 - 1) != one
    ran(notebook, "import random, numpy, torch", "random.random(); torch.rand(9)")
    assert value(notebook, draw, seed=1) == one


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("from genaudit.cellar import wine", "genaudit.cellar.wine"),
        ("import genaudit.cellar as c; wine = c.wine", "genaudit.cellar.wine"),
        ("from genaudit.cellar.rack import wine", "genaudit.cellar.rack.wine"),
        ("from genaudit import cellar; wine = cellar.wine", "genaudit.cellar.wine"),
    ],
)
def test_a_room_that_is_not_shown_is_refused_where_it_is_used(
    notebook, statement, name
):
    ran(notebook, statement, "def f(x): return wine(x)", "def g(x): return x")
    said = notebook.call("f", [1], 0)
    assert said["kind"] == "raised"
    message = f"{name} is not part of this exercise: write it yourself"
    assert said["error"] == f"ImportError: {message}"
    assert notebook.call("g", [1], 0) == {"value": 1}


def test_a_room_that_is_there_is_itself(notebook):
    ran(notebook, "from genaudit._check import __name__ as room")
    assert value(notebook, "room") == "genaudit._check"


def test_other_modules_are_missing_as_ever(notebook):
    said = notebook.run("import no_such_module")
    assert said == {"error": "ModuleNotFoundError: No module named 'no_such_module'"}
    assert "ImportError" in notebook.run("from math import cellar")["error"]


def test_the_usual_setup_cell_installs_nothing(notebook):
    ran(
        notebook,
        "try:\n    import cellar\nexcept ModuleNotFoundError:\n"
        '    %pip install -q "cellar @ git+https://example.org/cellar"\n'
        "k = 1",
    )
    assert value(notebook, "k") == 1


def test_a_traceback_finds_its_lines(notebook):
    ran(notebook, "# a comment\ndef f():\n    raise KeyError('here')")
    ran(
        notebook,
        "import traceback\ndef g():\n    try: f()\n"
        "    except KeyError: return traceback.format_exc()",
    )
    assert "raise KeyError('here')" in notebook.call("g", [], 0)["value"]


def test_inspect_finds_a_function(notebook):
    ran(notebook, "import inspect\ndef f():\n    return 6050")
    assert "return 6050" in value(notebook, "inspect.getsource(f)")
