"""Whether the trainer's log shows a training that happened: steps in order, numbers finite, a gradient to speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.log_tables import gaps_of
from molforge_eval.records import RunManifest
from molforge_eval.resumes import resumes_of
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_PATH = layout.TRAINER_LOG
_MAIN_KEYS = frozenset({"loss", "grad_norm", "reward", "reward_std", "learning_rate", "kl", "entropy", "train_loss"})
"""Keys whose numbers carry the claim of training; a number that is not finite under another key is a warning."""

_LOSS_ROOM = 1e-4
"""Versions of the host round the logged loss to four decimals."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the trainer log, and at what the manifest says of the training."""
    yield from _check_finite(run)
    yield from _check_order(run.every_trainer_row)
    yield from _check_signal(run.trainer_log.filter(pl.col("type") == "train"))
    if run.manifest is not None:
        yield from _check_manifest(run, run.manifest)


def _check_finite(run: RunDirectory) -> Iterator[Finding]:
    rows_with_gaps = 0
    for line, kind, names in run.every_trainer_row.select("line", "type", "non_finite").iter_rows():
        gaps: Mapping[str, str] = orjson.loads(names)
        rows_with_gaps += bool(gaps) and kind == "train"
        for key, spelling in sorted(gaps.items()):
            code = "TRAINING_NOT_FINITE" if key in _MAIN_KEYS else "METRIC_NOT_FINITE"
            beside = ": a partly absent reward" if key.startswith("rewards/") else ""
            pointer = f"/{escape_step(key)}"
            yield finding(code, f"{key} is {spelling}{beside}", file=_PATH, line=line, pointer=pointer)
            yield from _check_absent(run, line, key)
    manifest = run.manifest
    # A run that was killed may have written a row that its manifest does not count yet.
    counted = {rows_with_gaps, rows_with_gaps - (manifest is not None and manifest.status == "running")}
    if manifest is not None and _PATH in run.files and manifest.non_finite_steps not in counted:
        what = f"non_finite_steps is {manifest.non_finite_steps}, the trainer log has {rows_with_gaps} such rows"
        yield finding("COUNT_DIFFERS", what, file=layout.MANIFEST, pointer="/non_finite_steps")


def _check_absent(run: RunDirectory, line: int, key: str) -> Iterator[Finding]:
    """A number named as not finite must stand as null, never as a number."""
    if key in run.every_trainer_row.columns:
        value = run.every_trainer_row.filter(pl.col("line") == line)[key][0]
        if value is not None:
            what = f"{key} is named as not finite and has the value {seen(value)}"
            yield finding("NUMBER_CONTRADICTED", what, file=_PATH, line=line, pointer=f"/{key}")


def _check_order(log: pl.DataFrame) -> Iterator[Finding]:
    """Walk the rows in file order; a resume row allows steps to be done again, nothing else does."""
    latest: dict[str, int] = {}
    ended: int | None = None
    for line, kind, step in log.select("line", "type", "step").iter_rows():
        place: dict[str, Any] = {"file": _PATH, "line": line, "pointer": "/step"}
        if kind == "resume":
            last = latest.get("train")
            if last is not None and step < last:
                what = (
                    f"training went on from step {step} after step {last}: steps {step + 1} to {last} were done twice"
                )
                yield finding("STEPS_RESUMED", what, **place)
            latest = {"train": step}
            ended = None
            continue
        elif ended is not None and step < ended and kind not in latest:
            what = f"step {step} after the summary row of step {ended} with no resume row"
            yield finding("STEPS_OVERLAP", what, **place)
        elif kind in latest and step == latest[kind]:
            yield finding("STEP_REPEATED", f"step {step} has a second row of type {kind}", **place)
        elif kind in latest and step < latest[kind]:
            what = f"step {step} after step {latest[kind]} with no resume row: steps {step} to {latest[kind]} overlap"
            yield finding("STEPS_OVERLAP", what, **place)
        latest[kind] = step
        ended = step if kind == "summary" else ended


def _check_signal(rows: pl.DataFrame) -> Iterator[Finding]:
    """Find a training in which no row had anything to learn from."""
    if _is_constant(rows, "frac_reward_zero_std", 1.0) or (
        _is_constant(rows, "reward_std", 0.0) and _is_constant(rows, "grad_norm", 0.0)
    ):
        what = f"no learning signal: every group had equal rewards in {len(rows)} of {len(rows)} rows"
        yield finding("SIGNAL_ABSENT", what, file=_PATH, line=rows["line"][0])
    if _is_constant(rows, "completions/clipped_ratio", 1.0):
        what = f"every completion was cut at its limit in {len(rows)} of {len(rows)} rows"
        yield finding("COMPLETIONS_CUT", what, file=_PATH, line=rows["line"][0], pointer="/completions~1clipped_ratio")


def is_logged(run: RunDirectory, rows: pl.DataFrame, key: str) -> bool:
    """Tell whether some row carries a key, were it with a number that is not finite.

    Args:
        run: The run, whose reading has found the numbers that are written as they are.
        rows: Rows of its trainer log.
        key: The key.
    """
    if key in rows.columns and rows[key].null_count() < len(rows):
        return True
    if any(key in orjson.loads(named or "{}") for named in rows["non_finite"].to_list()):
        return True
    return any(key in gaps for gaps in gaps_of(run.findings, _PATH).values())


def _is_constant(rows: pl.DataFrame, key: str, value: float) -> bool:
    """Tell whether a key has one value wherever it is logged, and is logged at all."""
    if key not in rows.columns or rows.schema[key] != pl.Float64:
        return False
    values = rows[key].drop_nulls()
    return len(values) > 0 and bool((values == value).all())


def _check_manifest(run: RunDirectory, manifest: RunManifest) -> Iterator[Finding]:
    settings = manifest.configuration
    if manifest.steps_completed > settings.max_steps:
        what = f"steps_completed is {manifest.steps_completed}, max_steps is {settings.max_steps}"
        yield finding("STEPS_DIFFER", what, file=layout.MANIFEST, pointer="/steps_completed")
    if manifest.status != "complete":
        what = f"incomplete: {manifest.steps_completed} of {settings.max_steps} steps, status {manifest.status}"
        yield finding("RUN_INCOMPLETE", what, file=layout.MANIFEST, pointer="/status")
    elif manifest.steps_completed < settings.max_steps:
        what = f"incomplete: {manifest.steps_completed} of {settings.max_steps} steps, and the status is complete"
        yield finding("STEPS_DIFFER", what, file=layout.MANIFEST, pointer="/steps_completed")
    if manifest.status != "running" and manifest.ended_at is None:
        what = f"status is {manifest.status} and there is no end time"
        yield finding("STATUS_DIFFERS", what, file=layout.MANIFEST, pointer="/ended_at")
    rows = run.trainer_log.filter(pl.col("type") == "train")
    # Of a line that could not be read nobody knows what it was.
    is_whole = not any(item.where.file == _PATH and item.severity == "error" for item in run.findings)
    if not len(rows):
        if _PATH in run.files and manifest.steps_completed and is_whole:
            what = f"{manifest.steps_completed} steps were completed and no row of type train was logged"
            yield finding("STEPS_DIFFER", what, file=_PATH)
        return
    yield from _check_last_step(rows, manifest)
    yield from _check_summary_row(run, rows, manifest, is_whole=is_whole)
    if settings.beta > 0 and not is_logged(run, rows, "kl"):
        what = f"beta is {settings.beta} and no row has the key kl"
        yield finding("KL_MISSING", what, file=_PATH, line=rows["line"][0], pointer="/kl")


def _check_summary_row(
    run: RunDirectory, rows: pl.DataFrame, manifest: RunManifest, *, is_whole: bool
) -> Iterator[Finding]:
    """The summary row stands at the end and repeats the mean loss of the steps since training last began."""
    log = run.trainer_log
    resumes = [item for item in resumes_of(run.every_trainer_row) if item.is_marked]
    begun, last_step = max(((item.line, item.step) for item in resumes), default=(0, 0))
    rows = rows.filter(pl.col("line") > begun)
    if manifest.status == "complete" and is_whole and "summary" not in log["type"].to_list():
        what = "the run is complete and its log has no summary row, which the host writes last"
        yield finding("LOG_UNFINISHED", what, file=_PATH, line=int(log["line"].to_list()[-1]))
    for row in log.filter(pl.col("type") == "summary").iter_rows(named=True):
        if row["step"] != manifest.steps_completed:
            what = f"the summary row is of step {row['step']}, the manifest says {manifest.steps_completed} steps"
            yield finding("STEPS_DIFFER", what, file=_PATH, line=row["line"], pointer="/step")
        recorded = row.get("train_loss")
        losses = rows["loss"].drop_nulls() if rows.schema.get("loss") == pl.Float64 else pl.Series(dtype=pl.Float64)
        # With a row for every step the mean over rows is the mean over steps, up to the host's rounding.
        if isinstance(recorded, float) and len(losses) == manifest.steps_completed - last_step > 0:
            mean = float(losses.to_numpy().mean())
            if abs(recorded - mean) > _LOSS_ROOM * max(1.0, abs(mean)):
                what = f"train_loss is {recorded}, the mean of the {len(losses)} rows is {mean}"
                yield finding("TRAINER_MEAN_DIFFERS", what, file=_PATH, line=row["line"], pointer="/train_loss")


def _check_last_step(rows: pl.DataFrame, manifest: RunManifest) -> Iterator[Finding]:
    last = int(rows["step"].to_list()[-1])
    behind = manifest.steps_completed - last
    # A row comes every `logging_steps` steps, so the last one may lag by fewer than that; a run that was killed may
    # have counted a step whose row was not written yet.
    unwritten = 1 if manifest.status == "running" else 0
    if not 0 <= behind < max(1, manifest.configuration.logging_steps) + unwritten:
        what = f"incomplete: the last row is step {last}, the manifest says {manifest.steps_completed} steps"
        yield finding("STEPS_DIFFER", what, file=_PATH, line=int(rows["line"].to_list()[-1]), pointer="/step")
