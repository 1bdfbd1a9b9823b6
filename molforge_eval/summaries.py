"""Counts and means of an evaluation's parts, computed from its episodes and from nothing else.

Planned = completed + errored + excluded, so no episode vanishes from a mean. The evaluator writes these numbers, and
validation computes them again with the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from molforge_eval.records.evaluation import (
    EpisodeRecord,
    EvaluationPart,
    EvaluationPlan,
    PartSummary,
    TaskSummary,
)
from molforge_eval.statistics import distinct_count, mean_of

NOT_PLAYED = "not played"
"""Reason of a planned episode that has no record."""


def summarise(plan: EvaluationPlan, episodes: Sequence[EpisodeRecord]) -> tuple[PartSummary, ...]:
    """Summarise every part of the plan."""
    return tuple(summarise_part(part, episodes) for part in plan.parts)


def summarise_part(part: EvaluationPart, episodes: Sequence[EpisodeRecord]) -> PartSummary:
    """Summarise one part; an episode that broke in the environment is counted as errored and averaged nowhere."""
    own = [episode for episode in episodes if episode.part == part.name]
    counted = [episode for episode in own if episode.final_score is not None]
    planned = len(part.tasks) * len(part.seeds)
    absent = max(0, planned - len(own))
    tasks = tuple(_summarise_task(task, len(part.seeds), counted) for task in part.tasks)
    empty = [task.scenario_id for task in tasks if task.mean_final_score is None]
    means = [task.mean_final_score for task in tasks if task.mean_final_score is not None]
    return PartSummary(
        part=part.name,
        planned=planned,
        completed=len(counted),
        errored=len(own) - len(counted),
        excluded=absent,
        excluded_reasons={NOT_PLAYED: absent} if absent else {},
        tasks=tasks,
        mean_final_score=None if empty or not means else mean_of(means),
        distinct_scores=distinct_count([episode.final_score for episode in counted if episode.final_score is not None]),
        reason=f"no counted episode of {', '.join(empty)}" if empty else None,
    )


def average_final_score(summaries: Sequence[PartSummary]) -> float | None:
    """Return the mean of the greedy part, `None` when there is none."""
    return next((summary.mean_final_score for summary in summaries if summary.part == "greedy"), None)


def _summarise_task(task: str, planned: int, counted: Sequence[EpisodeRecord]) -> TaskSummary:
    own = [episode for episode in counted if episode.scenario_id == task]
    return TaskSummary(
        scenario_id=task,
        planned=planned,
        counted=len(own),
        mean_final_score=_mean([episode.final_score for episode in own]),
        mean_submission_score=_mean([episode.submission_score for episode in own]),
        mean_progress_score=_mean([episode.progress_score for episode in own]),
    )


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return mean_of(known) if known else None
