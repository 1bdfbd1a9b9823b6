"""States of the host trainer beside the log of an old run: both are of the same steps and rows (rule R7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.rounding import agrees
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.old_trainer_log import HISTORY, checkpoints, other_states, type_of
from molforge_eval.record_files import read_json
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_HEAD = ("step", "type", "line", "run_id", "time", "non_finite", "elapsed_seconds")
_ROOM = 1e-6
_MOST_CHECKPOINTS = 20
"""Checkpoints whose state is opened, the newest ones; each repeats the rows of all before it."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare every state with the folder that it stands in, and the newest with manifest and log."""
    if run.old is None:
        return
    values = {path: _read(run, path) for path in other_states(run.files, run.old.trainer_source)}
    for number, path in checkpoints(run.files)[-_MOST_CHECKPOINTS:]:
        value = values[path] if path in values else _read(run, path)
        step = _count(value.get("global_step"))
        if step not in (None, number):
            what = f"global_step is {step}, the folder is that of step {number}"
            yield finding("STEPS_DIFFER", what, file=path, pointer="/global_step")
    for path, value in values.items():
        yield from _check_steps(run, path, value)
        yield from _check_rows(run, path, value)


def _read(run: RunDirectory, path: str) -> Mapping[str, Any]:
    """Read a state; what cannot be read of the host's own folder says nothing of the run."""
    value = read_json(run.files, path, Ledger(0), run.limits).value
    return value if isinstance(value, Mapping) else {}


def _rows_of(value: Mapping[str, Any]) -> Sequence[Any]:
    history = value.get(HISTORY)
    return history if isinstance(history, list) else ()


def _check_steps(run: RunDirectory, path: str, value: Mapping[str, Any]) -> Iterator[Finding]:
    manifest = None if run.old is None else run.old.manifest
    asked = None if manifest is None else manifest.rl_max_steps
    wanted, done = _count(value.get("max_steps")), _count(value.get("global_step"))
    if None not in (asked, wanted) and wanted != asked:
        what = f"max_steps is {wanted}, the manifest says {asked}"
        yield finding("STEPS_DIFFER", what, file=path, pointer="/max_steps")
    last = max((_count(row.get("step")) or 0 for row in _rows_of(value) if isinstance(row, Mapping)), default=0)
    if done is not None and done < last:
        what = f"global_step is {done}, a row of the state is of step {last}"
        yield finding("STEPS_DIFFER", what, file=path, pointer="/global_step")


def _check_rows(run: RunDirectory, path: str, value: Mapping[str, Any]) -> Iterator[Finding]:
    """A state repeats the rows of the log: the first number that is another is named, and the first row too many."""
    # A step that was trained twice stands in the log twice, and which of them the state has is not known.
    once = run.trainer_log.filter(~pl.struct("type", "step").is_duplicated())
    rows = {(row["type"], row["step"]): row for row in once.iter_rows(named=True)}
    source = layout.TRAINER_LOG if run.old is None else run.old.trainer_source
    latest: Any = run.trainer_log["step"].max()
    for index, entry in enumerate(_rows_of(value)):
        step = _count(entry.get("step")) if isinstance(entry, Mapping) else None
        if step is None:
            continue
        if latest is not None and step > latest:
            what = f"the state has a row of step {step}, the last of {source} is of step {latest}"
            yield finding("TRAINER_ROW_DIFFERS", what, file=path, pointer=f"/{HISTORY}/{index}/step")
            return
        row = rows.get((type_of(entry), step))
        unlike = None if row is None else next(_unlike(entry, row), None)
        if unlike is not None:
            key, own, told = unlike
            what = f"{key} of step {step} is {seen(own)}, {source} has {seen(told)}"
            yield finding("TRAINER_ROW_DIFFERS", what, file=path, pointer=f"/{HISTORY}/{index}/{escape_step(key)}")
            return


def _unlike(entry: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    for key, own in entry.items():
        logged = row.get(key)
        if key in _HEAD or not (_is_number(own) and _is_number(logged)) or logged is None:
            continue
        is_near = abs(own - logged) <= _ROOM * max(abs(own), abs(logged))
        if not is_near and not agrees(own, logged) and not agrees(logged, own):
            yield key, own, logged


def _count(value: Any) -> int | None:
    """Read a count; where the host was given epochs it writes -1."""
    return int(value) if _is_number(value) and value >= 0 else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
