"""The spreadsheet of a run of format version 0 against the rollout log that it repeats, cell by cell.

The table was written from the log when the run ended or saved: one that stops earlier is old, not wrong.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

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
_TRUE, _FALSE = ("true", "1"), ("false", "0")
Line = tuple[int, Mapping[str, Any]]
Row = tuple[int, Sequence[str]]
Item = TypeVar("Item")


class _Queue(Generic[Item]):
    """The next items of a long sequence with the name of each; no more of them are held than are looked ahead at."""

    def __init__(self, items: Iterator[Item], name_of: Callable[[Item], tuple[str, ...]]) -> None:
        self._items = items
        self._name_of = name_of
        self._held: deque[tuple[tuple[str, ...], Item]] = deque()
        self.taken = 0

    def first(self) -> tuple[tuple[str, ...], Item] | None:
        """Return name and item of the first, `None` at the end."""
        return self._held[0] if self._fill(1) else None

    def take(self) -> Item:
        """Take the first, which must be there."""
        self.taken += 1
        return self._held.popleft()[1]

    def second(self) -> tuple[str, ...] | None:
        """Return the name of the item behind the first."""
        self._fill(2)
        return self._held[1][0] if len(self._held) > 1 else None

    def distance(self, name: tuple[str, ...]) -> int | None:
        """Say how far ahead an item of this name stands."""
        self._fill(_LOOK_AHEAD)
        return next((place for place, (own, _) in enumerate(self._held) if own == name), None)

    def count_rest(self) -> int:
        """Count what is left, and take it."""
        count = len(self._held) + sum(1 for _ in self._items)
        self._held.clear()
        return count

    def _fill(self, count: int) -> bool:
        while len(self._held) < count:
            item = next(self._items, None)
            if item is None:
                break
            self._held.append((self._name_of(item), item))
        return bool(self._held)


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare `openenv_tool_metrics.csv` with the rollout log; neither is held in memory as a whole."""
    if run.old is None or _PATH not in run.files:
        return
    if run.files.sizes[_PATH] > run.limits.file_bytes:
        what = f"the file has {run.files.sizes[_PATH]} bytes, the limit is {run.limits.file_bytes}"
        yield finding("FILE_TOO_LARGE", what, file=_PATH)
        return
    line = 1
    try:
        with run.files.open(_PATH) as handle, io.TextIOWrapper(handle, encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, strict=True)
            for item in _compare(run, ((reader.line_num, row) for row in reader if row)):
                line = reader.line_num
                yield item
    except UnicodeDecodeError as error:
        yield finding("TEXT_UNDECODABLE", f"a byte of the table is not UTF-8: {error.reason}", file=_PATH)
    except csv.Error as error:
        yield finding("TABLE_UNREADABLE", f"the table cannot be read: {error}", file=_PATH, line=line)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=_PATH)


def _compare(run: RunDirectory, rows: Iterator[Row]) -> Iterator[Finding]:
    header = next(rows, (1, []))[1]
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    missing = [name for name in _PUBLIC if name not in header]
    if twice or missing:
        words = f"column {seen(twice[0])} stands twice" if twice else f"column {seen(missing[0])} is missing"
        yield finding("TABLE_HEADER_DIFFERS", words, file=_PATH, line=1)
        return
    if layout.ROLLOUTS not in run.files:
        what = f"the table is there and the run has no {layout.ROLLOUTS}"
        yield finding("LOG_MISSING", what, file=layout.ROLLOUTS)
        return
    unknown: dict[str, int] = {}
    found: set[str] = set()
    lines = _lines(run, frozenset({*header, *OldRolloutLine.model_fields}), unknown, found)
    invented: dict[str, Finding] = {}
    for item in _walk(header, rows, lines, whole=run.old is not None and not run.old.lines_left_out):
        column = item.where.pointer
        if column is None or column in found or column in _PUBLIC:
            yield item
        else:
            invented.setdefault(column, item)
    for column, item in invented.items():
        if column in found:
            yield item
        elif len(run.rollouts):
            what = f"no line of the rollout log has the column {seen(column)}"
            yield finding("TABLE_HEADER_DIFFERS", what, file=_PATH, line=1, pointer=column)
    for key, number in unknown.items():
        what = f"line {number} of the rollout log has the key {seen(key)}, the table has no such column"
        yield finding("TABLE_COLUMN_MISSING", what, file=_PATH, line=1, pointer=key)


def _lines(run: RunDirectory, known: frozenset[str], unknown: dict[str, int], found: set[str]) -> Iterator[Line]:
    """Read the lines of the log again; note their keys, and the first of each that the table has no column for."""
    silent = Ledger(0)
    shape = shape_of("rollout_line_v0")
    for number, line in gated_lines(run.files, layout.ROLLOUTS, silent, run.limits):
        if shape.fits(line):
            found.update(line)
            for key in line.keys() - known:
                unknown.setdefault(key, number)
            yield number, line


def _walk(header: Sequence[str], rows: Iterator[Row], lines: Iterator[Line], *, whole: bool) -> Iterator[Finding]:
    """Walk both side by side; where they part, skip to the nearest place where they meet again."""
    left = _Queue(rows, lambda row: _name_of(dict(zip(header, row[1], strict=False))))
    right = _Queue(lines, lambda line: _name_of(line[1]))
    last = 1
    while (row := left.first()) is not None and (line := right.first()) is not None:
        if row[0] != line[0]:
            if left.second() == right.second() is not None and whole:
                # One row for another: rows that were exchanged stand apart, and all between them are in their places.
                yield _surplus(left.take()[0])
                yield _missing(right.take()[0], row[1][0])
                continue
            skip_rows, skip_lines = left.distance(line[0]), right.distance(row[0])
            if skip_rows is not None and (skip_lines is None or skip_rows <= skip_lines):
                yield from (_surplus(number) for number, _ in [left.take() for _ in range(skip_rows)] if whole)
                continue
            if skip_lines is not None:
                yield from (_missing(number, row[1][0]) for number, _ in [right.take() for _ in range(skip_lines)])
                continue
        last = row[1][0]
        yield from _compare_cells(header, left.take(), right.take())
    surplus = left.first()
    if surplus is not None and whole:
        what = f"the rollout log has no line for the {left.count_rest()} rows from here on"
        yield finding("TABLE_ROW_SURPLUS", what, file=_PATH, line=surplus[1][0])
    if right.first() is not None:
        what = f"the table has rows for the first {right.taken} of {right.taken + right.count_rest()} lines of the log"
        yield finding("SNAPSHOT_OUTDATED", what, file=_PATH, line=last)


def _name_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_spelled(values.get(key)) for key in _IDENTITY)


def _spelled(value: Any) -> str:
    """Spell a cell or a value so that equal ones are equal texts."""
    if isinstance(value, str):
        number = _number(value)
        return value if number is None else repr(number)
    return repr(float(value)) if isinstance(value, int | float) else ""


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
            # Python writes True, a spreadsheet that saves the table TRUE.
            return cell.lower() in (_TRUE if value else _FALSE)
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
