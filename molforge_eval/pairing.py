"""Scores of two evaluations laid side by side: which task and seed was counted, and on which sides.

Everything is read from the episodes, never from a summary. An episode that ended by `env_error` is counted nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from molforge_eval.records.evaluation import Evaluation, EvaluationPlan, PartName
from molforge_eval.statistics import Differences, distinct_count, mean_of

Cells = Mapping[tuple[str, int], float]
"""Score of each counted episode, by task and seed."""


class Pairing(NamedTuple):
    """One part of a plan with the scores that both sides have for it."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    """As planned."""
    before: Cells
    after: Cells
    paired_seeds: tuple[int, ...]
    """Seeds whose every task was counted on both sides."""


def counted_scores(evaluation: Evaluation | None, part: PartName) -> Cells:
    """Read the score of every counted episode of one part; a missing evaluation has none."""
    if evaluation is None:
        return {}
    return {
        (episode.scenario_id, episode.seed): episode.final_score
        for episode in evaluation.episodes
        if episode.part == part and episode.final_score is not None
    }


def pair_scores(before: Evaluation | None, after: Evaluation | None, plan: EvaluationPlan, part: PartName) -> Pairing:
    """Lay the planned episodes of one part side by side; a plan without the part gives an empty pairing."""
    planned = next((block for block in plan.parts if block.name == part), None)
    if planned is None:
        return Pairing((), (), {}, {}, ())
    cells = {(task, seed) for task in planned.tasks for seed in planned.seeds}
    left = {cell: score for cell, score in counted_scores(before, part).items() if cell in cells}
    right = {cell: score for cell, score in counted_scores(after, part).items() if cell in cells}
    paired = tuple(
        seed for seed in planned.seeds if all((task, seed) in left and (task, seed) in right for task in planned.tasks)
    )
    return Pairing(planned.tasks, planned.seeds, left, right, paired)


def score_table(cells: Cells, tasks: tuple[str, ...], seeds: tuple[int, ...]) -> Differences:
    """Return scores of shape (seeds, tasks); every cell must be there."""
    return np.array([[cells[task, seed] for task in tasks] for seed in seeds], dtype=np.float64).reshape(
        len(seeds), len(tasks)
    )


def difference_table(pairing: Pairing) -> Differences:
    """Return after minus before of shape (paired seeds, tasks)."""
    left = score_table(pairing.before, pairing.tasks, pairing.paired_seeds)
    return score_table(pairing.after, pairing.tasks, pairing.paired_seeds) - left


def task_scores(cells: Cells, task: str) -> tuple[float, ...]:
    """Return the counted scores of one task, in order of seed."""
    return tuple(cells[cell] for cell in sorted(cells) if cell[0] == task)


def equal_weight_mean(cells: Cells, tasks: tuple[str, ...]) -> float | None:
    """Return the mean over tasks of the task means; `None` when a task has no counted episode."""
    by_task = [task_scores(cells, task) for task in tasks]
    if not by_task or not all(by_task):
        return None
    return mean_of([mean_of(scores) for scores in by_task])


def played_copies(evaluation: Evaluation | None, part: PartName) -> bool:
    """Tell whether the seeds of a part are copies of one deterministic episode a task.

    Copies are many records of one fact: they may be averaged, but they cannot be counted. Greedy decoding makes
    them, and so does a scripted policy that plays every seed alike.
    """
    if evaluation is None:
        return False
    planned = next((block for block in evaluation.plan.parts if block.name == part), None)
    if planned is None or len(planned.seeds) < 2:
        return False
    if planned.decoding.method == "greedy":
        return True
    if evaluation.policy.kind != "scripted":
        return False
    played: dict[str, set[str]] = {}
    for episode in evaluation.episodes:
        if episode.part == part:
            played.setdefault(episode.scenario_id, set()).add(
                repr([(step.tool, sorted(step.arguments.items())) for step in episode.steps])
            )
    return all(len(sequences) == 1 for sequences in played.values())


def distinct_scores(cells: Cells) -> int:
    """Count unlike scores."""
    return distinct_count(tuple(cells.values()))
