"""The spreadsheet of the rollout lines: one spelling of every cell, used to write it and to check it.

A cell that a spreadsheet would take for a formula is written with an apostrophe before it, so that opening the table
never runs what a model wrote.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from molforge_eval.canonical import plain
from molforge_eval.csv_rows import FORMULA_MARKS
from molforge_eval.records.artifacts import MetricsRow
from molforge_eval.records.training import RolloutLine

COLUMNS: tuple[str, ...] = tuple(MetricsRow.model_fields)


def table_bytes(lines: Iterable[RolloutLine]) -> bytes:
    """Spell rollout lines as a CSV file: header, one row a line, newline ends, UTF-8."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        writer.writerow(row_of(plain(line)))
    return written.getvalue().encode()


def row_of(line: Mapping[str, Any]) -> list[str]:
    """Spell the cells of one rollout line, given as JSON values."""
    return [cell_of(line.get(column)) for column in COLUMNS]


def cell_of(value: Any) -> str:
    """Spell one value as a cell.

    >>> cell_of(None), cell_of(True), cell_of(-0.06), cell_of("=1+1")
    ('', 'true', '-0.06', "'=1+1")
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_MARKS) else value
    return orjson.dumps(value).decode()
