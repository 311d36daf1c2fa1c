"""Results as text that stays the same from run to run, so that it can be pinned."""

from collections.abc import Sequence

from genaudit import _check


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of ready-made strings under headers: first column left, others right.

    Cells are strings, so that each number's digits are chosen where it is computed.
    ValueError if a row's length differs from the headers'.
    """
    for row in rows:
        if len(row) != len(headers):
            raise ValueError(
                f"row {row!r} has {len(row)} cells, headers have {len(headers)}: "
                "the numbers must be equal"
            )
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for line in [headers, ["-" * width for width in widths], *rows]:
        first = line[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  ".join([first, *rest]).rstrip())


def agreement(computed, exact, tolerance: float = 1e-12) -> str:
    """Say that two results agree; AssertionError with both if they do not.

    The words are the same on every machine, unlike the digits of a rounding residual.
    Compares entry by entry, absolutely. A NaN agrees with nothing. ValueError if the
    shapes differ.
    """
    computed, exact = _check.floating(computed), _check.floating(exact)
    if exact.ndim:
        _check.same_shape("computed", computed, "exact", exact)
    largest = (computed.double() - exact.double()).abs().max().item()
    if not largest < tolerance:
        raise AssertionError(
            f"{computed.tolist()} and {exact.tolist()} differ by {largest:.3g}, "
            f"which is not below {tolerance:g}"
        )
    return f"agrees, difference < {tolerance:g}"
