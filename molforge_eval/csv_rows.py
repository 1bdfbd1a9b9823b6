"""The rows of a CSV file, one at a time and within limits, each with the line on which it ends."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from molforge_eval.limits import Limits

FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet takes for a formula."""
_MOST_LINES = 1_000
"""Lines of one row: a quoted cell may hold line ends, and a quote that is never closed holds the rest of the file."""


def read_rows(data: bytes, limits: Limits) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a table.

    Args:
        data: UTF-8 without a byte order mark.
        limits: Bound on the length of a line.

    Yields:
        Number of the row's last line, from 1, and its cells.

    Raises:
        csv.Error: The text is no table: a quote is not closed, a cell, a line or a row is too long.
    """
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    lines = 0

    def within_limits() -> Iterator[str]:
        nonlocal lines
        while line := text.readline(limits.line_bytes + 1):
            lines += 1
            if len(line) > limits.line_bytes:
                raise csv.Error(f"a line is longer than the limit, {limits.line_bytes}")
            if lines > _MOST_LINES:
                raise csv.Error(f"a row goes on for more than {_MOST_LINES} lines")
            yield line

    reader = csv.reader(within_limits(), strict=True)
    for row in reader:
        lines = 0
        yield reader.line_num, row


def is_formula(cell: str) -> bool:
    """Tell whether a spreadsheet would take a cell for a formula.

    >>> is_formula("=1+1"), is_formula("-0.06"), is_formula("'=1+1")
    (True, False, False)
    """
    if not cell.startswith(FORMULA_MARKS):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
