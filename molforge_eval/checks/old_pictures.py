"""Pictures of a run of format version 0: readable, of this run as far as they tell, and with data behind them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.pictures import read_picture
from molforge_eval.findings import Finding
from molforge_eval.run_directory import RunDirectory

_OF_CALLS = "logs/openenv_tool_rollouts.jsonl has no line"


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at every picture in `plots/`."""
    if run.old is None:
        return
    lacking = _lacking_sources(run)
    for path in run.files.sizes:
        if path.startswith("plots/") and path.endswith(".png"):
            yield from _check_picture(run, path)
            if path in lacking:
                yield finding("PLOT_UNSOURCED", f"the picture has no data behind it: {lacking[path]}", file=path)


def _lacking_sources(run: RunDirectory) -> dict[str, str]:
    """Tell which pictures of the layout nothing in the run could give the points of, and why."""
    lacking: dict[str, str] = {}
    rows = run.trainer_log.filter(pl.col("type") == "train")
    for column in ("loss", "grad_norm"):
        if rows.schema.get(column) != pl.Float64 or not len(rows[column].drop_nulls()):
            lacking[f"plots/{column}_curve.png"] = f"no row of the trainer has the key {column}"
    if not len(run.rollouts):
        lacking |= dict.fromkeys(("plots/action_distribution.png", "plots/final_score_curve.png"), _OF_CALLS)
        if rows.schema.get("reward") != pl.Float64:
            lacking["plots/reward_curve.png"] = _OF_CALLS
    if run.old is not None:
        played = [name for name, _ in run.old.evaluations()]
        missing = [name for name in ("before", "after") if name not in played]
        if missing:
            lacking["plots/eval_before_after.png"] = f"there is no {' and no '.join(missing)} evaluation"
    return lacking


def _check_picture(run: RunDirectory, path: str) -> Iterator[Finding]:
    picture = yield from read_picture(run, path)
    if picture is None:
        return
    run_id = picture.texts.get("molforge:run_id")
    if run_id is not None:
        what = f"the picture is of run {seen(run_id)}, and this run has no id"
        yield finding("RUN_ID_DIFFERS", what, file=path)
