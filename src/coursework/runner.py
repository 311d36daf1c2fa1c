"""Run a notebook's cells and call its functions, inside the sandbox.

Nothing here knows a right answer, and nothing here is trusted: whatever it says is
compared outside.
"""

import ast
import asyncio
import builtins
import importlib.abc
import importlib.util
import linecache
import random
import sys
import types

from coursework.wire import argument, plain

MESSAGE = 300  # characters of an error that are passed on


class Notebook:
    """The namespace of one notebook."""

    def __init__(self):
        import torch
        from IPython.core.inputtransformer2 import TransformerManager

        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        self.transform = TransformerManager().transform_cell
        self.module = types.ModuleType("__main__")
        self.module.get_ipython = lambda: _Shell(self)
        self.module.display = lambda *objects, **options: None
        builtins.input = _no_input
        sys.modules["__main__"] = self.module
        sys.meta_path.append(_Refuse())
        self.cells = 0

    def run(self, source: str, stub: bool = False) -> dict:
        """Run one cell: {} if it ran to its end, {"error": text} otherwise.

        A stub defines only what is not there yet: a copy of it that stayed in the
        notebook must not undo the answer.
        """
        space = self.module.__dict__
        own = dict(space) if stub else space
        self.cells += 1
        name = f"<cell {self.cells}>"
        try:
            source = self.transform(source)
            linecache.cache[name] = (len(source), None, source.splitlines(True), name)
            _execute(source, name, own)
        except BaseException as error:
            return {"error": _describe(error)}
        if stub:
            space.update(own | space)
        return {}

    def call(self, function: str, arguments: list, seed: int) -> dict:
        """Call a function: {"value": answer}, or {"error": text, "kind": word}."""
        answer = self.module.__dict__.get(function)
        if not callable(answer):
            return {"kind": "absent", "error": f"there is no function {function}"}
        _seed(seed)
        try:
            value = answer(*map(argument, arguments))
        except NotImplementedError as error:
            return {"kind": "stub", "error": _describe(error)}
        except BaseException as error:
            return {"kind": _kind(error), "error": _describe(error)}
        try:
            return {"value": plain(value)}
        except BaseException as error:
            return {"kind": "unfit", "error": _describe(error)}


def _execute(source: str, name: str, space: dict) -> None:
    """Run statements, which may await at the top as they may in Jupyter."""
    code = compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(code, space)
    if waiting is not None:
        asyncio.run(waiting)


class _Shell:
    """What IPython's magics become: nothing, except that what is timed still runs."""

    def __init__(self, notebook: Notebook):
        self.notebook = notebook

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        if name in ("time", "timeit", "capture"):
            self._run(body)

    def run_line_magic(self, name: str, line: str, *more) -> None:
        if name == "time":
            self._run(line)

    def _run(self, source: str) -> None:
        source = self.notebook.transform(source)
        _execute(source, "<timed>", self.notebook.module.__dict__)

    def __getattr__(self, name: str):
        return lambda *arguments, **options: None


class _Refuse(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Rooms of genaudit that are not here can be imported, and used for nothing."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith("genaudit."):
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__getattr__ = lambda name: _refused(f"{module.__name__}.{name}")


def _refused(name: str):
    if name.rpartition(".")[2].startswith("__"):  # what the import system asks for
        raise AttributeError(name)

    def use(*arguments, **options):
        raise ImportError(f"{name} is not part of this exercise: write it yourself")

    return use


def _no_input(prompt=""):
    raise EOFError("input() cannot be answered while grading")


def _seed(seed: int) -> None:
    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed takes a millisecond


def _kind(error: BaseException) -> str:
    text = _describe(error)
    memory = isinstance(error, MemoryError) or "can't allocate memory" in text
    return "memory" if memory else "raised"


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # it is the student's own, and may do anything
        text = ""
    return f"{type(error).__name__}: {text}"[:MESSAGE]
