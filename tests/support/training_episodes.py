"""Training episodes with rewards and scores of one's own, in a run that was checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import polars as pl

from molforge_eval.report.assembly import Checked


def with_episodes(checked: Checked, rewards: Sequence[float], scores: Sequence[float]) -> Checked:
    """Give the training episodes other rewards and scores, one episode a step."""
    count = len(rewards)
    ends = pl.DataFrame(
        {
            "line": list(range(1, count + 1)),
            "episode_id": [f"e{step}" for step in range(count)],
            "trainer_step": list(range(count)),
            "training_reward": rewards,
            "episode_score": scores,
            "ended_by": ["submit"] * count,
        }
    )
    schema = checked.run.rollouts.schema
    empty = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in ends.columns]
    rollouts = ends.with_columns(empty).select(list(schema)).with_columns(action_type=pl.lit("submit"))
    return checked._replace(run=dataclasses.replace(checked.run, rollouts=rollouts))
