"""Whether the moments of a run stand in the order in which they must have been (rule R7)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.checks.moments import moment_of
from molforge_eval.findings import Finding
from molforge_eval.records.fields import utc_text
from molforge_eval.run_directory import RunDirectory


def check(run: RunDirectory) -> Iterator[Finding]:
    """Walk the moments of a run, then those within its logs."""
    yield from _check_order(run)
    yield from _check_logs(run)
    yield from _check_batches(run)


def _check_order(run: RunDirectory) -> Iterator[Finding]:
    last: tuple[str, datetime] | None = None
    for path, name, moment in _moments(run):
        if last is not None and moment < last[1]:
            what = f"{name} at {utc_text(moment)} is before {last[0]} at {utc_text(last[1])}"
            yield finding("TIME_REVERSED", what, file=path)
        else:
            last = name, moment


def _check_logs(run: RunDirectory) -> Iterator[Finding]:
    # Episodes of a batch are played side by side: only within one of them do lines stand in the order of time.
    lines = run.every_rollout.select("line", order="episode_id", moment=moment_of("timestamp"))
    rows = run.every_trainer_row.select("line", order=pl.lit(""), moment=moment_of("time"))
    for path, moments, column in ((layout.ROLLOUTS, lines, "timestamp"), (layout.TRAINER_LOG, rows, "time")):
        back = moments.filter(pl.col("moment") < pl.col("moment").cum_max().over("order"))
        if len(back):
            what = f"{len(back)} lines are older than one before them, the first is this one"
            yield finding("TIME_REVERSED", what, file=path, line=back["line"][0], pointer=f"/{column}")


def _check_batches(run: RunDirectory) -> Iterator[Finding]:
    """Episodes of a step are played after the rows and episodes of the steps before it, and before its own row."""
    lines = run.rollouts.select("line", "trainer_step", moment=moment_of("timestamp")).drop_nulls()
    if not len(lines):
        return
    first, last = _training_of(run)
    stray = lines.filter((pl.col("moment") < first) | (pl.col("moment") > last))
    if len(stray):
        what = f"{len(stray)} lines are not from the time of the training, the first is this one"
        yield finding("TIME_REVERSED", what, file=layout.ROLLOUTS, line=stray["line"][0], pointer="/timestamp")
        return
    rows = run.trainer_log.filter(pl.col("type") != "summary")
    steps = rows["step"].to_list()
    if "resume" in rows["type"].to_list() or steps != sorted(set(steps)):
        # Steps that were done twice have lines of two times; rows in disorder are named by another check.
        return
    spans = lines.group_by("trainer_step").agg(
        start=pl.col("moment").min(), end=pl.col("moment").max(), line=pl.col("line").min()
    )
    played = spans.select("start", "end", "line", at=pl.col("trainer_step"), order=1)
    # A row of step 3 is written when the third step, which is number 2, has ended.
    logged = rows.select(
        start=moment_of("time"), end=moment_of("time"), line=pl.lit(None, pl.Int64), at=pl.col("step") - 1, order=2
    )
    walk = pl.concat([played.cast({"order": pl.Int32}), logged.cast({"order": pl.Int32})]).drop_nulls("start")
    walk = walk.sort("at", "order", maintain_order=True).with_columns(before=pl.col("end").cum_max().shift(1))
    for line, step in walk.filter(pl.col("start") < pl.col("before")).select("line", "at").iter_rows():
        if line is None:
            what = f"the row of step {step + 1} is older than an episode that was played for it"
            yield finding("TIME_REVERSED", what, file=layout.TRAINER_LOG)
        else:
            what = f"step {step} has lines from before the end of the step before it"
            yield finding("TIME_REVERSED", what, file=layout.ROLLOUTS, line=line, pointer="/timestamp")


def _training_of(run: RunDirectory) -> tuple[pl.Expr, pl.Expr]:
    """Return the moments between which the training must lie; what is not recorded bounds nothing."""
    manifest = run.manifest
    starts = [None if run.before is None else run.before.ended_at, None if manifest is None else manifest.started_at]
    ends = [None if run.after is None else run.after.started_at, None if manifest is None else manifest.ended_at]
    first = next((moment for moment in starts if moment is not None), datetime.min.replace(tzinfo=UTC))
    last = next((moment for moment in ends if moment is not None), datetime.max.replace(tzinfo=UTC))
    return _whole(first), _whole(last)


def _whole(moment: datetime) -> pl.Expr:
    return pl.lit(moment.replace(microsecond=0), pl.Datetime("us", "UTC"))


def _moments(run: RunDirectory) -> Iterator[tuple[str, str, datetime]]:
    manifest = run.manifest
    if manifest is not None:
        yield layout.MANIFEST, "the start of the run", manifest.started_at
    if run.before is not None:
        yield layout.BEFORE, "the start of the before evaluation", run.before.started_at
        yield layout.BEFORE, "the end of the before evaluation", run.before.ended_at
    rows = run.trainer_log.select(moment=moment_of("time")).drop_nulls()["moment"]
    if len(rows):
        yield layout.TRAINER_LOG, "the first trainer row", rows[0]
        yield layout.TRAINER_LOG, "the last trainer row", rows[-1]
    if run.after is not None:
        yield layout.AFTER, "the start of the after evaluation", run.after.started_at
        yield layout.AFTER, "the end of the after evaluation", run.after.ended_at
    if manifest is not None and manifest.ended_at is not None:
        yield layout.MANIFEST, "the end of the run", manifest.ended_at
