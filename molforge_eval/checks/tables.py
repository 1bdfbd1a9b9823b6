"""The spreadsheet against the rollout log it repeats, cell by cell.

Equal tables are recognised as whole columns, some megabytes at a time. Only when something differs are the rows walked,
and then a row that was dropped or added is named once instead of shifting every row after it.
"""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import orjson
import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.csv_rows import FORMULA_MARKS, is_formula, read_rows
from molforge_eval.findings import Finding
from molforge_eval.limits import Limits
from molforge_eval.metrics_table import COLUMNS, row_of
from molforge_eval.rollout_table import ROLLOUT_SCHEMA
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shape import shape_of
from molforge_eval.strict_json import BYTE_ORDER_MARK

_BLOCK = 2**23
"""Bytes of the table that are compared at a time."""
_LOOK_AHEAD = 200
_MOST_SURPLUS = 10_000
"""Rows beyond those of the log that are still read."""
_MOST_ROWS = 200_000
"""Rows that are read where there is no log to compare with."""
_HEADER = ",".join(COLUMNS).encode() + b"\n"
_IDENTITY = ("episode_id", "turn", "step_index", "tool_name", "error_code")
_PLACES = tuple(COLUMNS.index(column) for column in _IDENTITY)


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare `openenv_tool_metrics.csv` with the rollout log."""
    path = layout.METRICS_TABLE
    if path not in run.files:
        return
    try:
        with run.files.open(path) as handle:
            block = _first_unequal(handle, run.every_rollout, run.limits)
            if block is not None and _is_behind(run, block):
                return
        data = None if block is None else run.files.read(path, at_most=run.limits.file_bytes)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)
        return
    if block is None:
        return
    # Without a log there is nothing to compare with, and the shape of each row is all that can be asked.
    rollouts = run.every_rollout if layout.ROLLOUTS in run.files else None
    if data is not None:
        yield from _walk(data, rollouts, run.limits)
        return
    if rollouts is not None:
        yield from _walk(block.data, rollouts, run.limits, block)
    what = f"the file has {run.files.sizes[path]} bytes, the limit is {run.limits.file_bytes}"
    yield finding("FILE_TOO_LARGE", f"{what}; the rows from {block.rows + 1} on were not all compared", file=path)


def _is_behind(run: RunDirectory, block: _Block) -> bool:
    """Tell whether a run was killed between the lines of its last batch and their rows; nothing else differs."""
    is_open = run.manifest is not None and run.manifest.status == "running"
    rest = run.every_rollout.slice(block.rows)["trainer_step"]
    return is_open and block.data == _HEADER and rest.n_unique() == 1


class _Block(NamedTuple):
    """A part of the table: the header and some rows."""

    data: bytes
    rows: int
    """Rows before it."""
    lines: int
    """Lines before its rows, without the header."""


def _first_unequal(handle: BinaryIO, rollouts: pl.DataFrame, limits: Limits) -> _Block | None:
    """Find the first part of the table that is not what the log gives; `None` when the whole table is."""
    head = handle.readline(limits.line_bytes)
    rows = lines = 0
    while True:
        data = _read_rows(handle, limits)
        table = _table_of(head, data)
        if table is None or not _is_equal(table, rollouts.slice(rows, len(table))):
            return _Block(head + data, rows, lines)
        rows += len(table)
        lines += data.count(b"\n")
        if not data:
            return None if rows == len(rollouts) else _Block(head, rows, lines)


def _read_rows(handle: BinaryIO, limits: Limits) -> bytes:
    """Read some megabytes of whole rows: a cell may hold newlines, and then its quotes are closed behind them."""
    parts = [handle.read(_BLOCK), handle.readline(limits.line_bytes)]
    is_open = sum(part.count(b'"') for part in parts) % 2 == 1
    size = 0
    while is_open and size < _BLOCK and (line := handle.readline(limits.line_bytes)):
        parts.append(line)
        size += len(line)
        is_open = line.count(b'"') % 2 == 0
    return b"".join(parts)


def _table_of(head: bytes, data: bytes) -> pl.DataFrame | None:
    # The fast reader makes a column of every name of a header, however many there are.
    if head != _HEADER:
        return None
    try:
        table = pl.read_csv(head + data, infer_schema=False, empty_string_is_null=False, quote_char='"')
    except pl.exceptions.PolarsError:
        return None
    return table if table.columns == list(COLUMNS) else None


def _is_equal(table: pl.DataFrame, rollouts: pl.DataFrame) -> bool:
    typed = table.select(_typed(column) for column in COLUMNS)
    return typed.equals(rollouts.select(_guarded(column) for column in COLUMNS))


def _typed(column: str) -> pl.Expr:
    """Read cells as values; one that is no value of its column becomes one that no log has."""
    cell = pl.col(column)
    match ROLLOUT_SCHEMA[column]:
        case pl.String:
            return cell
        case pl.Boolean:
            return pl.when(cell == "true").then(True).when(cell == "false").then(False).otherwise(None).alias(column)
        case kind:
            value = cell.cast(kind, strict=False)
            return pl.when(value.is_null() & (cell != "")).then(_no_value(kind)).otherwise(value).alias(column)


def _no_value(kind: Any) -> pl.Expr:
    return pl.lit(float("inf") if kind == pl.Float64 else -(2**63), dtype=kind)


def _guarded(column: str) -> pl.Expr:
    if ROLLOUT_SCHEMA[column] != pl.String:
        return pl.col(column)
    text = pl.col(column).fill_null("")
    is_formula = pl.any_horizontal(text.str.starts_with(mark) for mark in FORMULA_MARKS)
    return pl.when(is_formula).then(pl.concat_str(pl.lit("'"), text)).otherwise(text).alias(column)


def _walk(data: bytes, rollouts: pl.DataFrame | None, limits: Limits, block: _Block | None = None) -> Iterator[Finding]:
    """Walk the rows of the table, or of the part of it that a block is."""
    path = layout.METRICS_TABLE
    if data.startswith(BYTE_ORDER_MARK):
        yield finding("TEXT_MARKED", "the table begins with a byte order mark", file=path, line=1)
        data = data[len(BYTE_ORDER_MARK) :]
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield finding("TEXT_UNDECODABLE", f"byte {error.start + 1} is not UTF-8", file=path)
        return
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        yield finding("TEXT_NUL", "the table holds a NUL character", file=path, line=line)
        return
    if b"\r\n" in data:
        line = data.count(b"\n", 0, data.index(b"\r\n")) + 1
        yield finding("LINE_RETURNED", "the line ends in carriage return and newline", file=path, line=line)
    header, *rows = yield from _collect(data, None if rollouts is None else len(rollouts), limits)
    if header[0] == 0:
        return
    if tuple(header[1]) != COLUMNS:
        wrong = [name for name in COLUMNS if name not in header[1]] or header[1]
        what = f"the columns are not those of this version; it wants {seen(wrong[0]) if wrong else 'a header'}"
        yield finding("TABLE_HEADER_DIFFERS", what, file=path, line=1)
        return
    if block is not None:
        rows = [(number + block.lines, cells) for number, cells in rows]
    yield from _find_formulas(rows)
    if rollouts is None:
        yield from _check_shapes(rows)
        return
    own = rollouts if block is None else rollouts.slice(block.rows, len(rows))
    yield from _compare(rows, own.select("line", *COLUMNS).to_dicts(), is_whole=block is None)


def _collect(data: bytes, lines: int | None, limits: Limits) -> Generator[Finding, None, list[tuple[int, list[str]]]]:
    """Read header and rows, no more than could be of use; a header of line 0 when the table cannot be read."""
    path = layout.METRICS_TABLE
    most = (_MOST_ROWS if lines is None else lines + _MOST_SURPLUS) + 1
    rows: list[tuple[int, list[str]]] = []
    try:
        for number, row in read_rows(data, limits):
            if len(rows) == most:
                what = f"rows follow the first {most - 1}; they were not read"
                yield finding("TABLE_ROW_SURPLUS", what, file=path, line=number)
                break
            rows.append((number, row))
    except csv.Error as error:
        line = rows[-1][0] + 1 if rows else 1
        yield finding("TABLE_UNREADABLE", f"the table cannot be read: {error}", file=path, line=line)
        return [(0, [])]
    return rows or [(1, [])]


def _find_formulas(rows: Sequence[tuple[int, list[str]]]) -> Iterator[Finding]:
    for number, cells in rows:
        for column, cell in zip(COLUMNS, cells, strict=False):
            if is_formula(cell):
                what = f"a spreadsheet would run the cell {seen(cell)}"
                yield finding("TABLE_FORMULA", what, file=layout.METRICS_TABLE, line=number, pointer=column)


def _check_shapes(rows: Sequence[tuple[int, list[str]]]) -> Iterator[Finding]:
    shape = shape_of("metrics_row")
    for number, cells in rows:
        place: dict[str, Any] = {"file": layout.METRICS_TABLE, "line": number}
        row = dict(zip(COLUMNS, cells, strict=False))
        if len(cells) != len(COLUMNS):
            what = f"the row has {len(cells)} cells, the table has {len(COLUMNS)} columns"
            yield finding("SCHEMA_UNMET", what, **place)
        elif not shape.fits(row):
            for misfit in shape.explain(row):
                yield finding("SCHEMA_UNMET", misfit.what, pointer=misfit.pointer, **place)


def _compare(
    rows: Sequence[tuple[int, list[str]]], lines: Sequence[Mapping[str, Any]], *, is_whole: bool
) -> Iterator[Finding]:
    """Walk both side by side; where they part, skip to the nearest place where they meet again."""
    names = [_name_of_row(row) for _, row in rows]
    expected = [row_of(line) for line in lines]
    wanted = [_name_of_row(cells) for cells in expected]
    left = right = 0
    while left < len(rows) and right < len(lines):
        if names[left] != wanted[right]:
            skip_rows = _distance(wanted[right], names, left)
            skip_lines = _distance(names[left], wanted, right)
            if skip_rows is not None and (skip_lines is None or skip_rows <= skip_lines):
                yield from (_surplus(*rows[left + place]) for place in range(skip_rows))
                left += skip_rows
                continue
            if skip_lines is not None:
                yield from (_missing(lines[right + place], rows[left][0]) for place in range(skip_lines))
                right += skip_lines
                continue
        yield from _compare_cells(*rows[left], expected[right], lines[right])
        left, right = left + 1, right + 1
    # The end of a part is no end of the log.
    if not is_whole:
        return
    yield from (_surplus(*row) for row in rows[left:])
    yield from (_missing(line, rows[-1][0] if rows else 1) for line in lines[right:])


def _name_of_row(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(cells[place] for place in _PLACES) if len(cells) == len(COLUMNS) else ()


def _distance(name: tuple[str, ...], names: Sequence[tuple[str, ...]], start: int) -> int | None:
    for place in range(start, min(start + _LOOK_AHEAD, len(names))):
        if names[place] == name:
            return place - start
    return None


def _surplus(number: int, cells: Sequence[str]) -> Finding:
    episode = cells[COLUMNS.index("episode_id")] if len(cells) == len(COLUMNS) else None
    what = "the rollout log has no line for this row"
    return finding("TABLE_ROW_SURPLUS", what, file=layout.METRICS_TABLE, line=number, episode=episode)


def _missing(line: Mapping[str, Any], number: int) -> Finding:
    what = f"line {line['line']} of the rollout log has no row; it would stand near this one"
    place = {"episode": line["episode_id"], "step": line["step_index"]}
    return finding("TABLE_ROW_MISSING", what, file=layout.METRICS_TABLE, line=number, **place)


def _compare_cells(
    number: int, cells: Sequence[str], expected: Sequence[str], line: Mapping[str, Any]
) -> Iterator[Finding]:
    place = {"file": layout.METRICS_TABLE, "line": number, "episode": line["episode_id"], "step": line["step_index"]}
    if len(cells) != len(COLUMNS):
        what = f"the row has {len(cells)} cells, the table has {len(COLUMNS)} columns"
        yield finding("TABLE_ROW_DIFFERS", what, **place)
        return
    for column, cell, wanted in zip(COLUMNS, cells, expected, strict=True):
        if cell != wanted and not _is_same_number(cell, wanted):
            what = f"the cell is {seen(cell)}, line {line['line']} of the rollout log gives {seen(wanted)}"
            yield finding("TABLE_ROW_DIFFERS", what, pointer=column, **place)


def _is_same_number(cell: str, wanted: str) -> bool:
    try:
        return bool(orjson.loads(cell) == orjson.loads(wanted))
    except orjson.JSONDecodeError:
        return False
