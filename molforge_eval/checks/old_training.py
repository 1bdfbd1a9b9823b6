"""Whether the trainer's log of a run of format version 0 shows the training that the manifest speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks import training
from molforge_eval.checks.bounds import contradictions
from molforge_eval.checks.magnitudes import check_course
from molforge_eval.checks.moments import has_zones, moment_of
from molforge_eval.findings import Finding
from molforge_eval.old_trainer_log import in_source
from molforge_eval.records.fields import utc_text
from molforge_eval.records.old import OldRun
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_HEAD = frozenset({"line", "run_id", "type", "step", "time", "non_finite"})
_CLOCK_ROOM = 60
"""Seconds that a clock may be set back, or two processes may be apart."""
_ROWS_THAT_MEET = 10
"""Rows from which the two logs of one training cannot stand apart in time."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the trainer log, and at what the manifest says of it."""
    old = run.old
    if old is None:
        return
    rows = run.trainer_log.filter(pl.col("type") == "train")
    own = (_check_numbers(run.trainer_log), check_course(run.trainer_log), _check_settings(run, old, rows))
    for item in chain(training.check(run), *own):
        yield _in_source(item, old)
    yield from _check_steps(run, old, rows)
    yield from _check_times(run, old)


def _in_source(item: Finding, old: OldRun) -> Finding:
    if item.where.file != layout.TRAINER_LOG or old.trainer_source is None:
        return item
    return in_source(item, old.trainer_source, old.trainer_form)


def _check_numbers(log: pl.DataFrame) -> Iterator[Finding]:
    for row in log.iter_rows(named=True):
        values = {key: value for key, value in row.items() if key not in _HEAD and value is not None}
        for key, what in contradictions(values):
            place: dict[str, Any] = {"file": layout.TRAINER_LOG, "pointer": f"/{escape_step(key)}"}
            yield finding("NUMBER_IMPOSSIBLE", what, line=row["line"], **place)


def _check_settings(run: RunDirectory, old: OldRun, rows: pl.DataFrame) -> Iterator[Finding]:
    """Whatever the schedule, no rate is above the one that it starts from; a penalty that is paid is logged."""
    manifest = old.manifest
    if manifest is None or not len(rows):
        return
    peak = manifest.learning_rate
    if peak is not None and rows.schema.get("learning_rate") == pl.Float64:
        above = rows.filter(pl.col("learning_rate") > peak * (1.0 + 1e-6))
        for line, rate in above.select("line", "learning_rate").head(1).iter_rows():
            what = f"learning_rate is {seen(rate)}, the manifest says {seen(peak)}"
            yield finding("SCHEDULE_DIFFERS", what, file=layout.TRAINER_LOG, line=line, pointer="/learning_rate")
    beta = (manifest.model_extra or {}).get("beta")
    is_paid = isinstance(beta, int | float) and beta > 0
    if is_paid and not training.is_logged(run, rows, "kl"):
        what = f"beta is {seen(beta)} and no row has the key kl"
        yield finding("KL_MISSING", what, file=layout.TRAINER_LOG, line=rows["line"][0], pointer="/kl")


def _check_steps(run: RunDirectory, old: OldRun, rows: pl.DataFrame) -> Iterator[Finding]:
    """Hold the steps that were asked for to the last row; the row at the end says that the host came to its end."""
    asked = None if old.manifest is None else old.manifest.rl_max_steps
    state = old.trainer_state
    if state is not None and state.max_steps not in (None, -1, asked) and asked is not None:
        what = f"max_steps is {state.max_steps}, the manifest says {asked}"
        yield finding("STEPS_DIFFER", what, file=old.trainer_source, pointer="/max_steps")
    wanted = asked if asked is not None or state is None else state.max_steps
    done = int(rows["step"].max() or 0)  # type: ignore[arg-type] # a count
    ends = run.trainer_log.filter(pl.col("type") == "summary")["step"]
    done = max(done, *ends.to_list(), 0)
    if state is not None and state.global_step is not None and state.global_step < done:
        what = f"global_step is {state.global_step}, a row is of step {done}"
        yield finding("STEPS_DIFFER", what, file=old.trainer_source, pointer="/global_step")
    if wanted is None or wanted <= 0:
        return
    place: dict[str, Any] = {"file": layout.MANIFEST, "pointer": "/rl_max_steps"}
    if asked is None:
        place = {"file": str(old.trainer_source), "pointer": "/max_steps"}
    if done > wanted:
        yield finding("STEPS_DIFFER", f"a row is of step {done}, {wanted} were asked for", **place)
    elif done < wanted:
        end = "" if len(ends) else ", and no row tells the end of the training"
        yield finding("RUN_INCOMPLETE", f"incomplete: {done} of {wanted} steps{end}", **place)


def _check_times(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    """Both logs are written as it happens, by one training: neither goes back, and the two go side by side."""
    calls = run.rollouts.select("line", moment=moment_of("timestamp")).drop_nulls()
    rows = run.trainer_log.filter(pl.col("type") == "train").select("line", moment=moment_of("time")).drop_nulls()
    room = pl.duration(seconds=_CLOCK_ROOM)
    for path, log, key in ((layout.ROLLOUTS, calls, "timestamp"), (layout.TRAINER_LOG, rows, "time")):
        back = log.filter(pl.col("moment") + room < pl.col("moment").cum_max())
        if len(back):
            what = f"{len(back)} lines are older than one before them, the first is this one"
            item = finding("TIME_REVERSED", what, file=path, line=back["line"][0], pointer=f"/{key}")
            yield _in_source(item, old)
            return
    is_zoned = has_zones(run.rollouts["timestamp"]) and has_zones(run.trainer_log["time"])
    if not len(calls) or not len(rows) or not is_zoned:
        return
    first, last = calls["moment"][0], calls["moment"][-1]
    begun = rows["moment"][0]
    if (first - begun).total_seconds() > _CLOCK_ROOM:
        what = f"the first row of the trainer is of {utc_text(begun)}, the first tool call of {utc_text(first)}"
    elif len(rows) >= _ROWS_THAT_MEET and (begun - last).total_seconds() > _CLOCK_ROOM:
        what = f"the last tool call is of {utc_text(last)}, the first row of the trainer of {utc_text(begun)}"
    else:
        return
    yield finding("LOGS_APART", what, file=layout.ROLLOUTS, line=int(calls["line"][0]), pointer="/timestamp")
