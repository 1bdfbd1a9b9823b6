"""The two logs of a run as tables with a stated schema.

A line passes the gate (readable, no repeated key, finite numbers) and its schema before it enters a table; one that
does not is named and left out. Nested values stand as their JSON text, so that a table holds no open types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.json_lines import Batch, read_batches
from molforge_eval.ledger import Ledger
from molforge_eval.limits import Limits
from molforge_eval.resumes import is_marked
from molforge_eval.rollout_chains import chains_hold, holds_chain
from molforge_eval.rollout_table import GrowingTable
from molforge_eval.run_files import RunFiles
from molforge_eval.second_half import SPLIT_BYTES, join, reading_second_half
from molforge_eval.shape import shape_of
from molforge_eval.strict_json import read_value, unescape_step

TRAINER_HEAD: Mapping[str, Any] = {
    "line": pl.Int64,
    "run_id": pl.String,
    "type": pl.String,
    "step": pl.Int64,
    "time": pl.String,
    "elapsed_seconds": pl.Float64,
    "non_finite": pl.String,
}
"""Columns that every trainer log has; `non_finite` is a JSON text. The trainer's own keys follow."""


def gaps_of(findings: Iterable[Finding], file: str) -> dict[int, dict[str, str]]:
    """Find the numbers that stand in a log as NaN or infinity and were read as nothing.

    Args:
        findings: What reading the run has found, the only trace of them.
        file: Where the log stands.

    Returns:
        Key and what was seen, by line.
    """
    gaps: dict[int, dict[str, str]] = {}
    for item in findings:
        where = item.where
        if item.code == "NUMBER_NOT_FINITE" and where.file == file and where.line and where.pointer:
            gaps.setdefault(where.line, {})[unescape_step(where.pointer.removeprefix("/"))] = item.what
    return gaps


def read_rollouts(files: RunFiles, ledger: Ledger, limits: Limits, *, split_bytes: int = SPLIT_BYTES) -> pl.DataFrame:
    """Read the rollout log; an absent one is an empty table.

    Args:
        files: The run.
        ledger: Told what is wrong.
        limits: Bounds on what is read.
        split_bytes: Size from which a second process reads the second half; it changes nothing but the time.
    """
    last: dict[str, str] = {}
    growing = GrowingTable()
    with reading_second_half(files, limits, split_bytes=split_bytes) as half:
        for batch in _gated_batches(files, layout.ROLLOUTS, ledger, limits):
            place = None if half is None else half.place_in(batch)
            _add_lines(growing, batch.part(0, place), last, ledger)
            if half is None or place is None:
                continue
            rest = half.wait()
            if rest is not None:
                rest = join(rest, files, limits, lines=batch.numbers[place] - 1, last=last)
            if rest is not None:
                growing.append(rest)
                break
            _add_lines(growing, batch.part(place, None), last, ledger)
    return growing.table()


def _add_lines(growing: GrowingTable, batch: Batch, last: dict[str, str], ledger: Ledger) -> None:
    rows = batch.values
    if all(map(shape_of("rollout_line").fits, rows)):
        growing.add(batch.numbers, batch.starts, rows, chains_hold(rows, last))
        return
    holds = [holds_chain(row, last) for row in rows]
    kept = [
        (number, start, row, held)
        for number, start, row, held in zip(batch.numbers, batch.starts, rows, holds, strict=True)
        if fits(row, "rollout_line", layout.ROLLOUTS, number, ledger)
    ]
    if kept:
        growing.add(*zip(*kept, strict=True))


class TrainerTable(NamedTuple):
    """The trainer log."""

    frame: pl.DataFrame
    latest: Mapping[str, Any] | None
    """The last row of type `train` that stands, as it was written."""


def read_trainer_log(files: RunFiles, ledger: Ledger, limits: Limits) -> TrainerTable:
    """Read the trainer log; every key that any row has is a column, wherever it first stands."""
    rows: list[dict[str, Any]] = []
    trained: list[Mapping[str, Any]] = []
    lines = gated_lines(files, layout.TRAINER_LOG, ledger, limits)
    for number, row in within_room(lines, ledger, limits, layout.TRAINER_LOG):
        if not fits(row, "trainer_row", layout.TRAINER_LOG, number, ledger):
            continue
        if row["type"] == "train":
            trained.append(dict(row))
        elif row["type"] == "resume" and is_marked(row):
            while trained and trained[-1]["step"] > row["step"]:
                trained.pop()
        row["non_finite"] = orjson.dumps(row["non_finite"]).decode()
        # A trainer's key of the same name as our line column keeps its value under another name.
        own_line = row.pop("line", None)
        if own_line is not None:
            row["line_"] = own_line
        rows.append({"line": number, **row})
    return TrainerTable(trainer_frame(rows, ledger, layout.TRAINER_LOG), trained[-1] if trained else None)


def within_room(
    rows: Iterable[tuple[int, dict[str, Any]]], ledger: Ledger, limits: Limits, path: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield numbered rows while their table stays within the limits; the first row beyond ends it, and is named.

    Rows of few keys each, but of other keys in each, make a table that is far larger than their file.

    Args:
        rows: Number and keys of each row.
        ledger: Told where the reading ends.
        limits: Bounds on columns, and on rows times columns.
        path: File that the rows stand in.
    """
    keys: set[str] = set()
    for count, (number, row) in enumerate(rows, 1):
        keys.update(row)
        if len(keys) > limits.trainer_keys:
            what = f"{len(keys)} different keys to here, the limit is {limits.trainer_keys}"
        elif count * len(keys) > limits.trainer_cells:
            what = f"{count} rows of {len(keys)} keys to here, the limit is {limits.trainer_cells} values"
        else:
            yield number, row
            continue
        ledger.add(finding("LOG_UNREAD", f"{what}; the rest was not read", file=path, line=number))
        return


def trainer_frame(rows: Sequence[Mapping[str, Any]], ledger: Ledger, path: str) -> pl.DataFrame:
    """Make the table of a trainer log; every key that any row has is a column.

    Args:
        rows: Rows with all columns of `TRAINER_HEAD`, and the trainer's own numbers and texts.
        ledger: Told of a key that is a number here and a text there.
        path: File that the rows stand in.
    """
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in TRAINER_HEAD}
    schema = dict(TRAINER_HEAD)
    others = dict.fromkeys(key for row in rows for key in row if key not in TRAINER_HEAD and key != "format_version")
    for key in others:
        values = [row.get(key) for row in rows]
        numbers = [value for value in values if isinstance(value, int | float)]
        texts = [(row["line"], value) for row, value in zip(rows, values, strict=True) if isinstance(value, str)]
        if numbers and texts:
            line, text = texts[0]
            what = f"key {key!r} is a number in {len(numbers)} rows and the text {text!r} here"
            ledger.add(finding("TRAINER_KEY_MIXED", what, file=path, line=line, pointer=f"/{key}"))
        if numbers or not texts:
            columns[key] = [float(value) if isinstance(value, int | float) else None for value in values]
            schema[key] = pl.Float64
        else:
            columns[key] = values
            schema[key] = pl.String
    return pl.DataFrame(columns, schema=schema)


def gated_lines(files: RunFiles, path: str, ledger: Ledger, limits: Limits) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of the lines of a log that hold one; what is wrong with any line goes to the ledger."""
    for batch in _gated_batches(files, path, ledger, limits):
        yield from zip(batch.numbers, batch.values, strict=True)


def _gated_batches(files: RunFiles, path: str, ledger: Ledger, limits: Limits) -> Iterator[Batch]:
    if path not in files:
        return
    try:
        with files.open(path) as handle:
            faults = 0
            for batch in read_batches(handle, limits):
                faults += len(batch.faults)
                for number, fault in batch.faults:
                    ledger.add(finding(fault.code, fault.what, file=path, line=number, pointer=fault.pointer))
                yield batch
                if faults > limits.log_faults:
                    what = f"{faults} faults to here, the limit is {limits.log_faults}; the rest was not read"
                    ledger.add(finding("LOG_UNREAD", what, file=path, line=batch.faults[-1][0]))
                    return
    except OSError as error:
        ledger.add(finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path))


def rows_at(
    files: RunFiles, limits: Limits, numbers: Sequence[int], starts: Sequence[int]
) -> Iterator[Mapping[str, Any]]:
    """Read lines of the rollout log again, each with its number as `line`.

    Args:
        files: The files of the run.
        limits: Bounds on what is read.
        numbers: Numbers of the lines.
        starts: Byte at which each begins.

    Raises:
        OSError: The log cannot be read.
    """
    if not numbers:
        return
    with files.open(layout.ROLLOUTS) as log:
        for number, start in zip(numbers, starts, strict=True):
            log.seek(start)
            text = log.readline(limits.line_bytes + 1).rstrip(b"\r\n")
            yield {**read_value(text, limits).value, "line": number}


def fits(value: Any, shape: str, path: str, line: int | None, ledger: Ledger) -> bool:
    """Check a value against a schema; each misfit goes to the ledger, unless it only follows from another."""
    gate = shape_of(shape)
    if gate.fits(value):
        return True
    if ledger.is_full("SCHEMA_UNMET"):
        # To explain takes a thousand times as long as to tell, and nobody reads so many.
        ledger.count_omitted({"SCHEMA_UNMET": 1})
        return False
    for misfit in gate.explain(value):
        unmet = finding("SCHEMA_UNMET", misfit.what, file=path, line=line, pointer=misfit.pointer)
        if not ledger.has_lost(unmet.where):
            ledger.add(unmet)
    return False
