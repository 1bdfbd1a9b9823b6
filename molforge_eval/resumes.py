"""Which part of the logs of a resumed run stands, and which a later part has taken the place of.

A run that was killed goes on from its last checkpoint. Nothing that it logged after that is deleted: the row of type
`resume` says how many lines the rollout log had, and those of them from the step of the checkpoint on are superseded.
What stands reads like the logs of a run that was never interrupted, and every mean is taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

MARKS = ("rollout_lines", "superseded_episodes")
"""Keys of a `resume` row: lines of the rollout log when the run went on, and how many episodes of them
give way, those of an earlier resume included."""


class Resume(NamedTuple):
    """A place at which a run went on."""

    line: int
    """Of its row in the trainer log."""
    step: int
    """Of the checkpoint: steps done when it went on."""
    rollout_lines: float | None
    """Lines of the rollout log before it; `None` where the row marks nothing."""
    superseded_episodes: float | None

    @property
    def is_marked(self) -> bool:
        """Tell whether the row says what it supersedes."""
        return self.rollout_lines is not None


class Standing(NamedTuple):
    """What stands of both logs."""

    rollouts: pl.DataFrame
    trainer_log: pl.DataFrame


def resumes_of(trainer_log: pl.DataFrame) -> tuple[Resume, ...]:
    """List the rows of type `resume`, in file order.

    Args:
        trainer_log: All rows; columns of `log_tables.TRAINER_HEAD`, then the trainer's own keys.
    """
    rows = trainer_log.filter(pl.col("type") == "resume").to_dicts()
    return tuple(Resume(row["line"], row["step"], *(_number(row.get(key)) for key in MARKS)) for row in rows)


def is_marked(row: Mapping[str, object]) -> bool:
    """Tell whether a row of type `resume` says what it supersedes."""
    return _number(row.get(MARKS[0])) is not None


def standing_of(rollouts: pl.DataFrame, trainer_log: pl.DataFrame) -> Standing:
    """Leave out what was superseded; a log without a marked `resume` row stands as it is.

    Args:
        rollouts: All lines; columns of `rollout_table.ROLLOUT_SCHEMA`.
        trainer_log: All rows.
    """
    for resume in resumes_of(trainer_log):
        if resume.is_marked:
            rollouts = rollouts.filter(~superseded_by(resume).fill_null(value=False))
            row, step = pl.col("line"), pl.col("step")
            gives_way = (row < resume.line) & ((step > resume.step) | (pl.col("type") == "summary"))
            trainer_log = trainer_log.filter(~(gives_way | (row == resume.line)))
    return Standing(rollouts, trainer_log)


def superseded_by(resume: Resume) -> pl.Expr:
    """Tell of each line of the rollout log whether a marked `resume` row supersedes it."""
    return (pl.col("line") <= resume.rollout_lines) & (pl.col("trainer_step") >= resume.step)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
