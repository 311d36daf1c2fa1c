"""How far each printed number is from the point where it would round the other way.

A stored output fails on another machine when a value crosses the boundary between two
last digits. While a notebook runs, every f-string field with a format, `{x:.4f}` for
example, is noted here with its full value, so that too many digits show before they
break.
"""

import ast
import builtins
import json
import math
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

LOG = "NOTED_FIELDS"
_DIGITS = re.compile(r"\.(\d+)([feg%])$", re.IGNORECASE)


class Field(NamedTuple):
    """One formatted value: in which execution, its value, its format, its text."""

    execution: int
    value: float
    spec: str
    text: str

    @property
    def distance(self) -> float:
        """How far the value may move before its text changes; inf if it cannot."""
        number, digits = Decimal(self.value), _DIGITS.search(self.spec)
        if digits is None or not number.is_finite():
            return float("inf")
        places, kind = int(digits[1]), digits[2].lower()
        if kind in "eg" and number:
            places -= number.adjusted() + (kind == "g")
        if kind == "%":
            places += 2
        unit = Decimal(1).scaleb(-places)
        to_half = abs(abs(number) % unit - unit / 2)
        if number and abs(number) < unit / 2:  # prints as 0 or -0
            return float(min(to_half, abs(number)))
        return float(to_half)

    @property
    def roundings(self) -> float:
        """The distance in rounding errors: of float32 if the value looks like one."""
        if not self.value:
            return float("inf")
        mantissa, _ = math.frexp(self.value)
        fits, is_short = ((mantissa * 2**bits).is_integer() for bits in (24, 12))
        single = fits and not is_short  # 0.5 and 17 fit, and say nothing
        return self.distance / abs(self.value) * 2 ** (24 if single else 53)


def start_up(folder: Path) -> dict[str, str]:
    """Return environment variables under which a kernel notes its fields in `folder`.

    They go to `fields.jsonl`; `read` reads them back.
    """
    scripts = folder / "profile_default" / "startup"
    scripts.mkdir(parents=True)
    call = f"__import__('runpy').run_path({__file__!r})['watch'](get_ipython())\n"
    (scripts / "note_fields.py").write_text(call)
    return {"IPYTHONDIR": str(folder), LOG: str(folder / "fields.jsonl")}


def read(folder: Path) -> list[Field]:
    """Return the fields noted in `folder`, in the order in which they were printed."""
    log = folder / "fields.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [Field(*json.loads(line)) for line in lines]


def watch(shell) -> None:
    """Note from now on every formatted number of the cells that `shell` runs."""
    log = open(os.environ[LOG], "a", buffering=1)
    executions = []
    shell.events.register("pre_run_cell", executions.append)

    def note(value, spec):
        if not isinstance(value, str | int):
            try:
                number, text = float(value), format(value, spec)
            except (TypeError, ValueError):
                return value
            log.write(json.dumps([len(executions), number, spec, text]) + "\n")
        return value

    builtins.__note_field__ = note
    shell.ast_transformers.append(_NoteFields())


class _NoteFields(ast.NodeTransformer):
    """Turn `{value:spec}` into `{note(value, spec):spec}`."""

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        if node.format_spec is not None and node.conversion == -1:
            name = ast.Name("__note_field__", ast.Load())
            node.value = ast.Call(name, [node.value, node.format_spec], [])
        return ast.fix_missing_locations(node)
