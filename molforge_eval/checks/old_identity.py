"""Whether the files of an old run are of one run (rule R7), as far as they name it, and moments that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.moments import instant_of
from molforge_eval.checks.rounding import number_of
from molforge_eval.findings import Finding
from molforge_eval.records.old import RUN_NAMES, OldRun
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_MOMENTS = re.compile(r"(.*_)?(created|started|ended|finished|updated|date|time|timestamp|datetime)(_at|_on|_utc)?")
_DIGIT = re.compile(r"[0-9]")
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([T ]|$)")
_ZONED = re.compile(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", re.IGNORECASE)
_SPANS = (("started_at", "ended_at"), ("started_at", "finished_at"), ("start_time", "end_time"))


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare names of the run and look at its moments."""
    if run.old is None:
        return
    yield from _check_names(run, run.old)
    yield from _check_moments(run, run.old)


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


def _check_span(path: str, values: Mapping[str, Any]) -> Iterator[Finding]:
    """What ends before it starts, where a record says both in one spelling."""
    for start, end in _SPANS:
        told = [values.get(key) for key in (start, end)]
        texts = [value for value in told if isinstance(value, str)]
        known = [_seconds_of(value) for value in told]
        is_of_one_kind = len(texts) in (0, 2) and len({bool(_ZONED.search(text)) for text in texts}) <= 1
        if is_of_one_kind and known[0] is not None and known[1] is not None and known[1] < known[0]:
            what = f"{end} is {seen(told[1])}, before {start}, which is {seen(told[0])}"
            yield finding("TIME_REVERSED", what, file=path, pointer=f"/{escape_step(end)}")


def _seconds_of(value: Any) -> float | None:
    moment = instant_of(value) if isinstance(value, str) else None
    return number_of(value) if moment is None else moment.timestamp()


def _check_moments(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    """A text without a digit or of a day that no calendar has is no moment, however a script spells moments."""
    for path, values in _records(old):
        for key, value in values.items():
            if not isinstance(value, str) or not value or not _MOMENTS.fullmatch(key.lower()):
                continue
            day = _DAY.match(value)
            if not _DIGIT.search(value) or (day is not None and instant_of(day.group(1)) is None):
                what = f"{key} is {seen(value)}, which is no moment"
                yield finding("SCHEMA_UNMET", what, file=path, pointer=f"/{escape_step(key)}")
        yield from _check_span(path, values)
    source = old.trainer_source or layout.TRAINER_LOG
    for path, table, key in ((layout.ROLLOUTS, run.rollouts, "timestamp"), (source, run.trainer_log, "time")):
        wrong = table.filter((pl.col(key) != "") & ~pl.col(key).str.contains("[0-9]")).select("line", key)
        if len(wrong):
            line, value = wrong.row(0)
            what = f"{key} is {seen(value)}, which is no moment; {len(wrong)} of {len(table)} lines"
            is_line = path == layout.ROLLOUTS or old.trainer_form == "lines"
            yield finding("SCHEMA_UNMET", what, file=path, line=line if is_line else None, pointer=f"/{key}")
