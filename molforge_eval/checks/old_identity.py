"""Whether the files of an old run are of one run (rule R7), as far as they name it, and moments that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.bounds import escaped
from molforge_eval.checks.rounding import agrees
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.old_trainer_log import HISTORY, other_states, type_of
from molforge_eval.record_files import read_json
from molforge_eval.records.old import RUN_NAMES, OldRun
from molforge_eval.run_directory import RunDirectory

_MOMENTS = re.compile(r"(.*_)?(created|started|ended|finished|updated|date|time|timestamp|datetime)(_at|_on|_utc)?")
_DIGIT = re.compile(r"[0-9]")
_HEAD = ("step", "type", "line", "run_id", "time", "non_finite", "elapsed_seconds")
_ROOM = 1e-6


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare names of the run, its moments, and the rows that stand in two files."""
    if run.old is None:
        return
    yield from _check_names(run, run.old)
    yield from _check_moments(run, run.old)
    yield from _check_states(run, run.old)


def _records(old: OldRun) -> Iterator[tuple[str, Mapping[str, Any]]]:
    records = ((layout.MANIFEST, old.manifest), (layout.BEFORE, old.before), (layout.AFTER, old.after))
    for path, record in (*records, (layout.SUMMARY, old.summary)):
        if record is not None:
            yield path, {**(record.model_extra or {}), **{key: getattr(record, key, None) for key in ("run_name",)}}


def _check_names(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    """The first file that names the run says which it is; the public pair of names is compared with the summary."""
    for key in RUN_NAMES:
        told: list[tuple[str, int | None, str]] = [
            (path, None, values[key]) for path, values in _records(old) if isinstance(values.get(key), str)
        ]
        told += [(layout.ROLLOUTS, item.line, item.name) for item in old.line_names if item.key == key]
        if key in run.trainer_log.columns and run.trainer_log.schema[key] == pl.String:
            rows = run.trainer_log.drop_nulls(key).group_by(key).agg(pl.col("line").min()).sort("line").head(10)
            source, is_log = old.trainer_source or layout.TRAINER_LOG, old.trainer_form == "lines"
            told += [(source, line if is_log else None, name) for name, line in rows.iter_rows()]
        for path, line, name in told[1:]:
            is_public = key == "run_name" and path == layout.SUMMARY and old.manifest is not None
            if name != told[0][2] and not is_public:
                what = f"{key} is {seen(name)}, {told[0][0]} says {seen(told[0][2])}"
                yield finding("RUN_ID_DIFFERS", what, file=path, line=line, pointer=f"/{key}")


def _check_moments(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    """A text without a digit is no moment, however a script spells moments."""
    for path, values in _records(old):
        for key, value in values.items():
            if isinstance(value, str) and value and _MOMENTS.fullmatch(key.lower()) and not _DIGIT.search(value):
                what = f"{key} is {seen(value)}, which is no moment"
                yield finding("SCHEMA_UNMET", what, file=path, pointer=f"/{escaped(key)}")
    source = old.trainer_source or layout.TRAINER_LOG
    for path, table, key in ((layout.ROLLOUTS, run.rollouts, "timestamp"), (source, run.trainer_log, "time")):
        wrong = table.filter((pl.col(key) != "") & ~pl.col(key).str.contains("[0-9]")).select("line", key)
        if len(wrong):
            line, value = wrong.row(0)
            what = f"{key} is {seen(value)}, which is no moment; {len(wrong)} of {len(table)} lines"
            is_line = path == layout.ROLLOUTS or old.trainer_form == "lines"
            yield finding("SCHEMA_UNMET", what, file=path, line=line if is_line else None, pointer=f"/{key}")


def _check_states(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    """A state of the host trainer beside the log repeats its rows: the first number that is another is named."""
    paths = other_states(run.files, old.trainer_source)
    if not paths:
        return
    # A step that was trained twice stands in the log twice, and which of them the state has is not known.
    once = run.trainer_log.filter(~pl.struct("type", "step").is_duplicated())
    rows = {(row["type"], row["step"]): row for row in once.iter_rows(named=True)}
    for path in paths:
        value = read_json(run.files, path, Ledger(0), run.limits).value
        history = value.get(HISTORY) if isinstance(value, Mapping) else None
        for index, entry in enumerate(history if isinstance(history, list) else ()):
            if not isinstance(entry, Mapping) or not isinstance(entry.get("step"), int | float):
                continue
            row = rows.get((type_of(entry), int(entry["step"])))
            unlike = None if row is None else next(_unlike(entry, row), None)
            if unlike is not None:
                key, own, logged = unlike
                what = f"{key} of step {entry['step']} is {seen(own)}, {old.trainer_source} has {seen(logged)}"
                place = f"/{HISTORY}/{index}/{escaped(key)}"
                yield finding("TRAINER_ROW_DIFFERS", what, file=path, pointer=place)
                break


def _unlike(entry: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    for key, own in entry.items():
        logged = row.get(key)
        if key in _HEAD or not (_is_number(own) and _is_number(logged)) or logged is None:
            continue
        is_near = abs(own - logged) <= _ROOM * max(abs(own), abs(logged))
        if not is_near and not agrees(own, logged) and not agrees(logged, own):
            yield key, own, logged


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
