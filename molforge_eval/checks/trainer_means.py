"""The means in the trainer's log, computed again from the episodes that were generated for each row (rule R4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.records.fields import COMPLETED_ENDINGS
from molforge_eval.run_directory import RunDirectory

_ROOM = 2e-5
"""The host trainer averages in single precision."""

_ENDED = pl.col("ended_by").is_in(sorted(COMPLETED_ENDINGS))
_COUNTED = pl.col("episode_score").is_not_null()
_MEANS = {
    "reward": pl.col("training_reward").mean(),
    "rewards/episode_reward/mean": pl.col("training_reward").mean(),
    "strict_score": pl.col("episode_score").mean(),
    "submit_rate": (pl.col("ended_by") == "submit").filter(_COUNTED).mean(),
    "unfinished_rate": (~_ENDED).filter(_COUNTED).mean(),
}


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare each row of the trainer log with its episodes, and the rows with the steps that they must cover."""
    if run.manifest is None or layout.ROLLOUTS not in run.files:
        return
    rows = run.trainer_log.filter(pl.col("type").is_in(["train", "resume"]))
    ends = run.rollouts.filter(pl.col("ended_by").is_not_null())
    keys = [key for key in _MEANS if rows.schema.get(key) == pl.Float64]
    every = max(1, run.manifest.configuration.logging_steps)
    before = 0
    for row in rows.select("line", "type", "step", *keys).iter_rows(named=True):
        step = row["step"]
        if row["type"] == "resume" or step <= before:
            # Steps that were done twice have twice the episodes; which row they belong to is not recorded.
            return
        if step - before > every:
            what = f"no row for steps {before + 1} to {step - 1}, and a row is due every {every} steps"
            yield finding("STEPS_MISSING", what, file=layout.TRAINER_LOG, line=row["line"], pointer="/step")
        yield from _check_row(row, keys, ends.filter(pl.col("trainer_step").is_between(before, step - 1)))
        before = step


def _check_row(row: dict[str, Any], keys: list[str], episodes: pl.DataFrame) -> Iterator[Finding]:
    given = episodes.select(_MEANS[key].alias(key) for key in keys).row(0, named=True) if len(episodes) else {}
    for key in keys:
        recorded, computed = row[key], given.get(key)
        if recorded is None or computed is None:
            is_same = recorded is computed
        else:
            is_same = abs(recorded - computed) <= _ROOM * max(1.0, abs(computed))
        if not is_same:
            what = f"{key} is {seen(recorded)}, the {len(episodes)} episodes of the row give {seen(computed)}"
            pointer = "/" + key.replace("~", "~0").replace("/", "~1")
            yield finding("TRAINER_MEAN_DIFFERS", what, file=layout.TRAINER_LOG, line=row["line"], pointer=pointer)
