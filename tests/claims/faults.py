"""What can be wrong with a ledger before any number is compared."""

import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fnmatch import fnmatchcase

from tests.claims import ledger
from tests.claims.ledger import (
    Recomputation,
    Row,
    bibliography,
    printed,
    recomputations,
)

KINDS = ("exact", "law", "trained", "fact")


def faults(rows: Sequence[Row]) -> list[str]:
    """Every fault as a line that names the row."""
    found = [
        f"{id_}: {count} rows of one id"
        for id_, count in Counter(row.id for row in rows).items()
        if count > 1
    ]
    found += [
        f"{pattern}: a recomputation without a row"
        for pattern in ledger.RECOMPUTATIONS
        if not any(fnmatchcase(row.id, pattern) for row in rows)
    ]
    keys = set(re.findall(r"@\w+\{([^,]+),", bibliography()))
    for row in rows:
        complaints = [
            *_shape(row, keys),
            *_coverage(row),
            *_digits(row),
            *_how(row, keys),
        ]
        found += [f"{row.id}: {complaint}" for complaint in complaints]
    return found


def _shape(row: Row, keys: set[str]):
    if row.kind not in KINDS:
        yield f"kind {row.kind!r} is none of {', '.join(KINDS)}"
    if row.source not in keys:
        yield f"source {row.source!r}: no such key in references.bib"
    if not row.quantity:
        yield "no quantity"
    if len(row.tolerances) != len(row.values):
        yield f"{len(row.values)} values, {len(row.tolerances)} tolerances"


def _coverage(row: Row):
    functions = recomputations(row)
    if len(functions) > 1:
        yield f"{len(functions)} recomputations"
    if not functions and (row.value or row.kind != "fact"):
        yield "no recomputation"
    if functions and not row.value:
        yield "recomputed, but without a value"


def _digits(row: Row):
    for value, tolerance in zip(row.values, row.tolerances, strict=False):
        unit = Decimal(1).scaleb(value.as_tuple().exponent)
        if tolerance <= 0:
            yield f"tolerance {tolerance} is not > 0"
        if 2 * tolerance > unit:
            yield f"{value} has more digits than tolerance {tolerance} supports"


def _how(row: Row, keys: set[str]):
    source = "".join(map(_source, recomputations(row)))
    if row.kind == "fact" and not re.search(r"definition|protocol|cites", row.how):
        yield "a fact without a citation, a definition or a protocol constant"
    for check in row.checks:
        if stored := re.fullmatch(r"stored output of chapter (\w+), cell (\S+)", check):
            if stored[2] not in source or not printed(*stored.groups()):
                yield f"no recomputation reads an output of {check}"
        elif check.startswith("cites "):
            if check.removeprefix("cites ") not in keys:
                yield f"{check}: no such key in references.bib"
        elif check.startswith("genaudit."):
            yield from _named(check, source)
        elif check == "plain arithmetic":
            if used := _package_names(recomputations(row), source):
                yield f"plain arithmetic, but it uses {', '.join(used)}"
        elif check not in ("definition", "protocol constant"):
            yield f"how checked: {check!r} is no known form"


def _source(function: Recomputation) -> str:
    """Its text and that of the helpers beside it that it calls."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    beside = [
        helper
        for helper in called
        if getattr(helper, "__module__", None) == function.__module__
    ]
    return "".join(map(inspect.getsource, [function, *beside]))


def _named(check: str, source: str):
    try:
        pkgutil.resolve_name(check)
    except (AttributeError, ImportError):
        yield f"{check} does not exist"
    if not re.search(rf"\b{check.rpartition('.')[2]}\b", source):
        yield f"{check} is not what recomputes it"


def _package_names(functions: Sequence[Recomputation], source: str) -> list[str]:
    return [
        name
        for function in functions
        for name, thing in function.__globals__.items()
        if (getattr(thing, "__module__", None) or "").startswith("genaudit")
        and re.search(rf"\b{name}\b", source)
    ]
