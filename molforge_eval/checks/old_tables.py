"""The spreadsheet of a run of format version 0 against the rollout log that it repeats, cell by cell.

The table was written from the log when the run ended or saved: one that stops earlier is old, not wrong.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.log_tables import gated_lines
from molforge_eval.records.old import OldRolloutLine
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shape import shape_of

_PATH = layout.METRICS_TABLE
_PUBLIC = tuple(key for key in OldRolloutLine.model_fields if key != "acting_role")
"""Columns that the script writes."""
_IDENTITY = ("timestamp", "step_index", "action_type")
_LOOK_AHEAD = 200
_TRUE, _FALSE = ("True", "true", "1"), ("False", "false", "0")
Line = tuple[int, Mapping[str, Any]]
Row = tuple[int, Sequence[str]]


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare `openenv_tool_metrics.csv` with the rollout log."""
    if run.old is None or _PATH not in run.files:
        return
    try:
        data = run.files.read(_PATH, at_most=run.limits.file_bytes)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=_PATH)
        return
    if data is None:
        what = f"the file has {run.files.sizes[_PATH]} bytes, the limit is {run.limits.file_bytes}"
        yield finding("FILE_TOO_LARGE", what, file=_PATH)
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield finding("TEXT_UNDECODABLE", f"byte {error.start + 1} is not UTF-8", file=_PATH)
        return
    rows: list[Row] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows.extend((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        yield finding("TABLE_UNREADABLE", f"the table cannot be read: {error}", file=_PATH, line=reader.line_num or 1)
        return
    yield from _compare(run, rows)


def _compare(run: RunDirectory, rows: Sequence[Row]) -> Iterator[Finding]:
    header = rows[0][1] if rows else []
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    missing = [name for name in _PUBLIC if name not in header]
    if twice or missing:
        words = f"column {seen(twice[0])} stands twice" if twice else f"column {seen(missing[0])} is missing"
        yield finding("TABLE_HEADER_DIFFERS", words, file=_PATH, line=1)
        return
    silent = Ledger(0)
    shape = shape_of("rollout_line_v0")
    lines = [entry for entry in gated_lines(run.files, layout.ROLLOUTS, silent, run.limits) if shape.fits(entry[1])]
    if layout.ROLLOUTS not in run.files:
        what = f"the table has {len(rows) - 1} rows and the run has no {layout.ROLLOUTS}"
        yield finding("LOG_MISSING", what, file=layout.ROLLOUTS)
        return
    if not lines and len(rows) > 1:
        what = f"the table has {len(rows) - 1} rows, the rollout log has no line that can be used"
        yield finding("TABLE_ROW_SURPLUS", what, file=_PATH, line=rows[1][0])
        return
    yield from _check_keys(header, lines)
    yield from _walk(header, rows[1:], lines, whole=run.old is not None and not run.old.lines_left_out)


def _check_keys(header: Sequence[str], lines: Sequence[Line]) -> Iterator[Finding]:
    """Name keys of the log that the table has no column for; the role follows from the action."""
    known = {*header, *OldRolloutLine.model_fields}
    first: dict[str, int] = {}
    for number, line in lines:
        for key in line:
            if key not in known:
                first.setdefault(key, number)
    for key, number in first.items():
        what = f"line {number} of the rollout log has the key {seen(key)}, the table has no such column"
        yield finding("TABLE_COLUMN_MISSING", what, file=_PATH, line=1, pointer=key)


def _walk(header: Sequence[str], rows: Sequence[Row], lines: Sequence[Line], *, whole: bool) -> Iterator[Finding]:
    """Walk both side by side; where they part, skip to the nearest place where they meet again."""
    names = [_name_of(dict(zip(header, cells, strict=False))) for _, cells in rows]
    wanted = [_name_of(line) for _, line in lines]
    left = right = 0
    while left < len(rows) and right < len(lines):
        if names[left] != wanted[right]:
            skip_rows, skip_lines = _distance(wanted[right], names, left), _distance(names[left], wanted, right)
            if skip_rows is not None and (skip_lines is None or skip_rows <= skip_lines):
                yield from (_surplus(rows[left + place][0]) for place in range(skip_rows) if whole)
                left += skip_rows
                continue
            if skip_lines is not None:
                yield from (_missing(lines[right + place][0], rows[left][0]) for place in range(skip_lines))
                right += skip_lines
                continue
        yield from _compare_cells(header, rows[left], lines[right])
        left, right = left + 1, right + 1
    if whole:
        yield from (_surplus(number) for number, _ in rows[left:])
    if right < len(lines):
        what = (
            f"the table ends with line {lines[right - 1][0] if right else 0} of the log, which has {len(lines)} lines"
        )
        yield finding("SNAPSHOT_OUTDATED", what, file=_PATH, line=rows[-1][0] if rows else 1)


def _name_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_spelled(values.get(key)) for key in _IDENTITY)


def _spelled(value: Any) -> str:
    """Spell a cell or a value so that equal ones are equal texts."""
    if isinstance(value, str):
        number = _number(value)
        return value if number is None else repr(number)
    return repr(float(value)) if isinstance(value, int | float) else ""


def _distance(name: tuple[str, ...], names: Sequence[tuple[str, ...]], start: int) -> int | None:
    for place in range(start, min(start + _LOOK_AHEAD, len(names))):
        if names[place] == name:
            return place - start
    return None


def _surplus(number: int) -> Finding:
    return finding("TABLE_ROW_SURPLUS", "the rollout log has no line for this row", file=_PATH, line=number)


def _missing(line: int, number: int) -> Finding:
    what = f"line {line} of the rollout log has no row; it would stand near this one"
    return finding("TABLE_ROW_MISSING", what, file=_PATH, line=number)


def _compare_cells(header: Sequence[str], row: Row, line: Line) -> Iterator[Finding]:
    number, cells = row
    if len(cells) != len(header):
        what = f"the row has {len(cells)} cells, the table has {len(header)} columns"
        yield finding("TABLE_ROW_DIFFERS", what, file=_PATH, line=number)
        return
    for column, cell in zip(header, cells, strict=True):
        value = line[1].get(column)
        if not _is_value(cell, value):
            what = f"the cell is {seen(cell)}, line {line[0]} of the rollout log has {seen(value)}"
            yield finding("TABLE_ROW_DIFFERS", what, file=_PATH, line=number, pointer=column)


def _is_value(cell: str, value: Any) -> bool:
    match value:
        case None:
            return cell == ""
        case bool():
            return cell in (_TRUE if value else _FALSE)
        case int() | float():
            return _number(cell) == value
        case str():
            return cell.removeprefix("'") == value.removeprefix("'")
        case _:
            # Something nested has no one spelling in a cell.
            return cell != ""


def _number(cell: str) -> float | None:
    try:
        value = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
