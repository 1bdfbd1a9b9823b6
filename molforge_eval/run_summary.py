"""The summary of a run: aggregates over its logs and evaluations, computed from what stands on disk.

The trainer writes what these functions give, and validation computes it again with them: one definition of each number.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.records import Evaluation, RunSummary
from molforge_eval.records.fields import FORMAT_VERSION
from molforge_eval.records.training import EvaluationHeadline
from molforge_eval.run_directory import RunDirectory
from molforge_eval.statistics import mean_of

ACTIONS = ("edit", "run_assay", "submit", "restart", "defer", "none")
NOT_MADE = "not made"
"""Reason of an evaluation that has no file."""


def compute_summary(run: RunDirectory) -> RunSummary:
    """Compute the summary of a run from its manifest, logs and evaluations.

    Raises:
        UnreadableError: The run has no manifest that can be read.
    """
    if run.manifest is None:
        raise UnreadableError(
            "the run has no readable manifest",
            where=str(run.root / layout.MANIFEST),
            mend="Write run_manifest.json before the summary.",
        )
    settings = run.manifest.configuration
    return RunSummary(
        format_version=FORMAT_VERSION,
        run_id=run.manifest.run_id,
        run_name=run.manifest.run_name,
        base_model=settings.base_model,
        sft_adapter_path=settings.sft_adapter_path,
        **count_rollouts(run.rollouts),
        latest_trainer_log=None if run.latest_trainer_row is None else dict(run.latest_trainer_row),
        eval_before=headline_of(run.before, "before"),
        eval_after=headline_of(run.after, "after"),
    )


def count_rollouts(rollouts: pl.DataFrame) -> dict[str, Any]:
    """Count and average the lines of a rollout log.

    Args:
        rollouts: Columns of `rollout_table.ROLLOUT_SCHEMA`.

    Returns:
        The counting fields of a `RunSummary`; a mean or maximum of nothing is `None`.
    """
    calls = rollouts.select("tool", "action_type").filter(pl.col("tool").is_not_null())
    rewards = rollouts["reward"].drop_nulls().to_list()
    scores = rollouts["episode_score"].drop_nulls().to_list()
    actions = dict(calls["action_type"].value_counts().iter_rows())
    endings = dict(rollouts["ended_by"].drop_nulls().value_counts().iter_rows())
    return {
        "num_episodes": rollouts["episode_id"].n_unique(),
        "num_tool_calls": len(calls),
        "mean_tool_reward": mean_of(rewards) if rewards else None,
        "max_tool_reward": max(rewards) if rewards else None,
        "action_counts": {action: actions.get(action, 0) for action in ACTIONS},
        "ended_by_counts": dict(sorted(endings.items())),
        "veto_count": _count(rollouts["governance_status"], "policy_veto"),
        "invalid_count": _count(rollouts["status"], "invalid"),
        "env_error_count": _count(rollouts["status"], "env_error"),
        "mean_episode_score": mean_of(scores) if scores else None,
    }


def _count(column: pl.Series, value: str) -> int:
    return int((column == value).sum())


def headline_of(evaluation: Evaluation | None, label: str) -> EvaluationHeadline:
    """Repeat the two means of an evaluation; one that is absent is said to be skipped.

    Args:
        evaluation: The evaluation, if it was made.
        label: Used when it was not.
    """
    if evaluation is None:
        return EvaluationHeadline(
            label=label, average_final_score=None, sampled_mean_final_score=None, skipped=True, reason=NOT_MADE
        )
    sampled = next((part.mean_final_score for part in evaluation.summaries if part.part == "sampled"), None)
    return EvaluationHeadline(
        label=evaluation.label,
        average_final_score=evaluation.average_final_score,
        sampled_mean_final_score=sampled,
        skipped=False,
        reason=None,
    )
