"""The trainer's log of a run that was not made by this product: lines, a bare list of rows, or the host's own state.

A number that is not finite is the host's own word here, for its writers spell NaN: it becomes a gap that is named in
`non_finite`, as our trainer writes it, and the checks of the training judge it by its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import orjson
import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding, Place
from molforge_eval.json_lines import read_lines
from molforge_eval.ledger import Ledger
from molforge_eval.limits import Limits
from molforge_eval.log_tables import fits, trainer_frame, within_room
from molforge_eval.record_files import read_json, record_of
from molforge_eval.records.fields import utc_text
from molforge_eval.records.old import OldTrainerState
from molforge_eval.run_files import RunFiles
from molforge_eval.shape import shape_of
from molforge_eval.strict_json import BYTE_ORDER_MARK, Fault, unescape_step

Form = Literal["lines", "list", "state"]
HISTORY = "log_history"
_LISTS = ("logs/trainer_log_history.json", "trainer_log_history.json", "logs/log_history.json", "log_history.json")
_STATES = tuple(f"{folder}{layout.TRAINER_STATE}" for folder in ("", "logs/", "trainer/", "adapters/"))
_CHECKPOINT = re.compile(r"(?:trainer/|adapters/)?checkpoint-([0-9]{1,12})/" + re.escape(layout.TRAINER_STATE))
_SUMMARY_KEYS = frozenset({"train_runtime", "train_samples_per_second", "train_steps_per_second"})
_TYPES = ("train", "eval", "summary", "resume")
_LEFT_ASIDE = frozenset({"format_version", "line", "run_id", "step", "type", "time", "non_finite", "elapsed_seconds"})


class OldTrainerLog(NamedTuple):
    """The rows, and where they come from."""

    frame: pl.DataFrame
    """As `log_tables.read_trainer_log` gives it; `line` counts rows where the source is no log of lines."""
    latest: Mapping[str, Any] | None
    """The last row, of whatever type, as it was written; what was not finite in it is `None`."""
    source: str | None
    form: Form
    state: OldTrainerState | None
    """The state that the rows stand in, without them."""


def find_source(files: RunFiles) -> str | None:
    """Find the file that holds the trainer's rows: the log, a list of rows, a state, or that of the last checkpoint."""
    for path in (layout.TRAINER_LOG, *_LISTS, *_STATES):
        if path in files:
            return path
    found = checkpoints(files)
    return found[-1][1] if found else None


def checkpoints(files: RunFiles) -> list[tuple[int, str]]:
    """List the states in folders of checkpoints: the step that the folder names, and the path; the newest last."""
    return sorted((int(found.group(1)), path) for path in files.sizes if (found := _CHECKPOINT.fullmatch(path)))


def other_states(files: RunFiles, source: str | None) -> list[str]:
    """List states of the host trainer beside the file that the rows were read from; of checkpoints the newest."""
    found = [path for path in _STATES if path in files]
    found += [path for _, path in checkpoints(files)[-1:]]
    return [path for path in found if path != source]


def read_old_trainer_log(files: RunFiles, ledger: Ledger, limits: Limits) -> OldTrainerLog:
    """Read the rows from wherever they stand; a run without any has an empty table."""
    source = find_source(files)
    state: OldTrainerState | None = None
    form: Form = "lines"
    if source is None:
        rows: list[_Row] = []
    elif source == layout.TRAINER_LOG and not _is_document(files, source):
        rows = list(_rows_of_lines(files, source, ledger, limits))
    else:
        rows, form, state = _rows_of_document(files, source, ledger, limits)
    path = source or layout.TRAINER_LOG
    mixed = Ledger(limits.findings_a_code)
    numbered = ((row.number, _table_row(row)) for row in rows)
    frame = trainer_frame([row for _, row in within_room(numbered, mixed, limits, path)], mixed, path)
    ledger.extend(in_source(item, path, form) for item in mixed.findings())
    return OldTrainerLog(frame, dict(rows[-1].value) if rows else None, source, form, state)


def in_source(item: Finding, source: str, form: Form) -> Finding:
    """Place a finding about a row in the file that the row was read from.

    Args:
        item: A finding whose line is the number of a row.
        source: File of the rows.
        form: How they stand in it; in one JSON text a row has a pointer and no line.
    """
    where = item.where
    if form == "lines":
        return (
            item
            if where.file == source
            else item.model_copy(update={"where": where.model_copy(update={"file": source})})
        )
    head = f"/{HISTORY}" if form == "state" else ""
    pointer = where.pointer if where.line is None else f"{head}/{where.line - 1}{where.pointer or ''}"
    place = Place(file=source, pointer=pointer, episode=where.episode, step=where.step)
    return item.model_copy(update={"where": place})


def type_of(row: Mapping[str, Any]) -> str:
    """Tell what kind of row the host wrote, by its keys.

    >>> type_of({"step": 4, "loss": 0.1}), type_of({"step": 4, "eval_loss": 0.1}), type_of({"train_runtime": 9.5})
    ('train', 'eval', 'summary')
    """
    if row.get("type") in _TYPES:
        return str(row["type"])
    if not _SUMMARY_KEYS.isdisjoint(row) or ("train_loss" in row and "loss" not in row):
        return "summary"
    return "eval" if any(key.startswith("eval_") for key in row) and "loss" not in row else "train"


def moment_text(moment: float | str | None) -> str | None:
    """Spell a moment as the logs of this version do; a text stands as it is."""
    return utc_text(datetime.fromtimestamp(moment, UTC)) if isinstance(moment, int | float) else moment


class _Row(NamedTuple):
    number: int
    value: Mapping[str, Any]
    non_finite: Mapping[str, str]


def _rows_of_lines(files: RunFiles, path: str, ledger: Ledger, limits: Limits) -> Iterator[_Row]:
    try:
        with files.open(path) as handle:
            for line in read_lines(handle, limits):
                gaps, faults = split_gaps(line.faults, "")
                for fault in faults:
                    ledger.add(finding(fault.code, fault.what, file=path, line=line.number, pointer=fault.pointer))
                if line.value is not None and fits(line.value, "trainer_row_v0", path, line.number, ledger):
                    yield _Row(line.number, line.value, gaps)
    except OSError as error:
        ledger.add(finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path))


def _rows_of_document(
    files: RunFiles, path: str, ledger: Ledger, limits: Limits
) -> tuple[list[_Row], Form, OldTrainerState | None]:
    silent = Ledger(limits.findings_a_code)
    parsed = read_json(files, path, silent, limits)
    if not parsed.faults:
        ledger.extend(silent.findings())
    is_state = isinstance(parsed.value, dict)
    form: Form = "state" if is_state else "list"
    history = parsed.value.get(HISTORY) if is_state else parsed.value
    head = f"/{HISTORY}" if is_state else ""
    gaps: dict[int, dict[str, str]] = {}
    for fault in parsed.faults:
        place, key = _place_of(fault, head)
        if place is None:
            ledger.add(finding(fault.code, fault.what, file=path, pointer=fault.pointer))
        else:
            gaps.setdefault(place, {})[key] = _spelling(fault)
    if not parsed.usable:
        return [], form, None
    state = None
    if is_state:
        bare = {**parsed.value, HISTORY: [] if isinstance(history, list) else history}
        if not fits(bare, "trainer_state", path, None, ledger):
            return [], form, None
        state = record_of(bare, path, OldTrainerState, ledger)
    if not isinstance(history, list):
        fits(parsed.value, "trainer_state", path, None, ledger)
        return [], form, None
    rows = []
    for index, value in enumerate(history):
        if _fits_row(value, path, f"{head}/{index}", ledger):
            rows.append(_Row(index + 1, value, gaps.get(index, {})))
    return rows, form, state


def _fits_row(value: Any, path: str, pointer: str, ledger: Ledger) -> bool:
    shape = shape_of("trainer_row_v0")
    if shape.fits(value):
        return True
    for misfit in shape.explain(value):
        ledger.add(finding("SCHEMA_UNMET", misfit.what, file=path, pointer=f"{pointer}{misfit.pointer}"))
    return False


def split_gaps(faults: Sequence[Fault], head: str) -> tuple[dict[str, str], list[Fault]]:
    """Take the numbers that are not finite out of the faults of a text.

    Args:
        faults: Faults of one row, or of the file that it stands in.
        head: Pointer of the row.

    Returns:
        Key and spelling of each number of the row that is not finite, and the other faults.
    """
    gaps: dict[str, str] = {}
    others: list[Fault] = []
    for fault in faults:
        key = (fault.pointer or "").removeprefix(f"{head}/")
        if fault.code == "NUMBER_NOT_FINITE" and fault.pointer != key and _is_one_step(key):
            gaps[unescape_step(key)] = _spelling(fault)
        else:
            others.append(fault)
    return gaps, others


def _place_of(fault: Fault, head: str) -> tuple[int | None, str]:
    """Find row and key of a number that is not finite; no row for any other fault."""
    if fault.code != "NUMBER_NOT_FINITE":
        return None, ""
    found = re.fullmatch(re.escape(head) + r"/([0-9]{1,12})/([^/]+)", fault.pointer or "")
    return (int(found.group(1)), unescape_step(found.group(2))) if found else (None, "")


def _is_one_step(key: str) -> bool:
    return "/" not in key


def _spelling(fault: Fault) -> str:
    number = fault.what.removeprefix("number ")
    if number.startswith("NaN"):
        return "NaN"
    return "-Infinity" if number.startswith("-") else "Infinity"


def _table_row(row: _Row) -> dict[str, Any]:
    value = row.value
    own = {key: _flat(item) for key, item in value.items() if key not in _LEFT_ASIDE}
    if "line" in value:
        own["line_"] = _flat(value["line"])
    elapsed = value.get("elapsed_seconds")
    return {
        "line": row.number,
        "run_id": value["run_id"] if isinstance(value.get("run_id"), str) else None,
        "type": type_of(value),
        "step": int(value["step"]),
        "time": moment_text(value.get("time")),
        "elapsed_seconds": elapsed if isinstance(elapsed, int | float) else None,
        "non_finite": orjson.dumps({**row.non_finite}).decode(),
        **own,
    }


def _flat(value: Any) -> Any:
    """A table holds numbers and texts: what is nested stands as its JSON text."""
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value


def _is_document(files: RunFiles, path: str) -> bool:
    """Tell whether a log is in truth one JSON text: a list, or an object that goes on beyond its first line."""
    try:
        with files.open(path) as handle:
            head = handle.read(2**16).removeprefix(BYTE_ORDER_MARK).lstrip()
    except OSError:
        return False
    if head.startswith(b"["):
        return True
    first = head.partition(b"\n")[0]
    return head.startswith(b"{") and (first.strip() == b"{" or f'"{HISTORY}"'.encode() in first)
