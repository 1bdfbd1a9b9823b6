"""The numbers of a before and an after: sampled, greedy, by task, and on the ladder.

A number that must not be claimed is `None`. Means stand for themselves; a difference is always over pairs.
"""

from __future__ import annotations

from typing import Literal

from molforge_env.frozen import FrozenModel
from molforge_eval.decision import Judgement, generator, interval_of
from molforge_eval.ladder import Ladder
from molforge_eval.pairing import (
    Cells,
    Pairing,
    difference_table,
    distinct_scores,
    equal_weight_mean,
    pair_scores,
    score_table,
    task_scores,
)
from molforge_eval.records.evaluation import DecisionRule, Evaluation, EvaluationPlan, PartName
from molforge_eval.records.fields import Count, Score
from molforge_eval.statistics import (
    Interval,
    holm,
    mean_of,
    minimum_detectable_difference,
    seeds_needed,
    sign_flip_test,
    smallest_sign_flip_p,
)

Against = Literal["under", "at", "above"]
SAME_SCORE = 1e-9
"""Means closer than this are at each other, not under or above."""


class Bounds(FrozenModel):
    """An interval of a mean."""

    low: float
    high: float


class SampledComparison(FrozenModel):
    """The part that decides: paired by seed, each task weighing the same."""

    part: PartName
    seeds_planned: Count
    seeds_paired: Count
    """Seeds whose every task was counted on both sides."""
    episodes_planned: Count
    before_counted: Count
    after_counted: Count
    before_distinct: Count
    """Unlike scores among the counted ones."""
    after_distinct: Count
    before_mean: Score | None
    after_mean: Score | None
    before_interval: Bounds | None
    after_interval: Bounds | None
    difference: float | None
    interval: Bounds | None
    interval_reason: str | None
    """Why there is no interval."""
    p_value: float | None
    p_method: Literal["exact", "drawn"] | None
    p_flips: Count | None
    minimum_detectable_difference: float | None
    """What these seeds would show in four runs of five."""
    seeds_needed: Count | None
    """Seeds a task that would show a difference as small as the margin."""
    episodes_needed: Count | None


class GreedyComparison(FrozenModel):
    """The deterministic episodes, one a task; by themselves they carry no interval."""

    tasks: Count
    before_mean: Score | None
    after_mean: Score | None
    difference: float | None
    p_value: float | None
    """Exact sign-flip value over the tasks."""
    smallest_p_value: float
    """The least value that so few episodes could give."""


class TaskComparison(FrozenModel):
    """One task, shown and deciding nothing."""

    scenario_id: str
    before_counted: Count
    after_counted: Count
    pairs: Count
    """Seeds counted on both sides."""
    before_mean: Score | None
    after_mean: Score | None
    difference: float | None
    """Mean of the paired differences."""
    p_value: float | None
    holm_p_value: float | None
    greedy_before: Score | None
    greedy_after: Score | None


class Scale(FrozenModel):
    """Where the means stand on the ladder of reference policies."""

    floor: Score
    ceiling: Score
    before_against_floor: Against | None
    after_against_floor: Against | None
    gap_closed: float | None
    """Difference over what was left to gain: (after - before) / (ceiling - before)."""
    gap_reason: str | None
    """Why the gap is unknown."""


def compare_sampled(
    pairing: Pairing, rule: DecisionRule, judgement: Judgement | None, *, claim: bool
) -> SampledComparison:
    """Fill in the part that decides.

    Args:
        pairing: The planned episodes with both scores.
        rule: Level, margin and draws.
        judgement: What the rule said; `None` when it was not asked.
        claim: Whether a difference may be claimed at all.
    """
    units = difference_table(pairing).mean(axis=1) if claim else None
    needed = None if judgement is None or units is None else seeds_needed(units, alpha=rule.alpha, effect=rule.margin)
    detectable = None if judgement is None or units is None else minimum_detectable_difference(units, alpha=rule.alpha)
    return SampledComparison(
        part=rule.part,
        seeds_planned=len(pairing.seeds),
        seeds_paired=len(pairing.paired_seeds),
        episodes_planned=len(pairing.tasks) * len(pairing.seeds),
        before_counted=len(pairing.before),
        after_counted=len(pairing.after),
        before_distinct=distinct_scores(pairing.before),
        after_distinct=distinct_scores(pairing.after),
        before_mean=equal_weight_mean(pairing.before, pairing.tasks),
        after_mean=equal_weight_mean(pairing.after, pairing.tasks),
        before_interval=_side_interval(pairing.before, pairing, rule, "before"),
        after_interval=_side_interval(pairing.after, pairing, rule, "after"),
        difference=None if units is None else mean_of(units),
        interval=None if judgement is None else _bounds(judgement.interval),
        interval_reason=_interval_reason(judgement, len(pairing.paired_seeds), claim=claim),
        p_value=None if judgement is None else judgement.test.p_value,
        p_method=None if judgement is None else judgement.test.method,
        p_flips=None if judgement is None else judgement.test.flips,
        minimum_detectable_difference=detectable,
        seeds_needed=needed,
        episodes_needed=None if needed is None else needed * len(pairing.tasks),
    )


def compare_greedy(
    before: Evaluation | None, after: Evaluation | None, plan: EvaluationPlan, *, claim: bool
) -> GreedyComparison:
    """Fill in the greedy part; a plan with several greedy seeds is read at its first one, the others are copies."""
    pairing = pair_scores(before, after, plan, "greedy")
    differences = difference_table(pairing)[0] if claim and pairing.tasks and pairing.paired_seeds else None
    test = None if differences is None else sign_flip_test(differences, rng=generator(plan.decision, "greedy"))
    return GreedyComparison(
        tasks=len(pairing.tasks),
        before_mean=equal_weight_mean(pairing.before, pairing.tasks),
        after_mean=equal_weight_mean(pairing.after, pairing.tasks),
        difference=None if differences is None else mean_of(differences),
        p_value=None if test is None else test.p_value,
        smallest_p_value=smallest_sign_flip_p(len(pairing.tasks)),
    )


def compare_tasks(
    before: Evaluation | None, after: Evaluation | None, plan: EvaluationPlan, *, claim: bool
) -> tuple[TaskComparison, ...]:
    """Fill in the per-task table, with p-values adjusted for looking at every task.

    Args:
        before: Evaluation before training, or `None`.
        after: Evaluation after training, or `None`.
        plan: Its deciding part names the tasks.
        claim: Whether differences and p-values may be claimed.
    """
    pairing = pair_scores(before, after, plan, plan.decision.part)
    greedy = pair_scores(before, after, plan, "greedy")
    differences = [_task_differences(pairing, task) for task in pairing.tasks]
    p_values: list[float | None] = [
        sign_flip_test(
            values,
            rng=generator(plan.decision, f"task {task}"),
            exact_up_to=plan.decision.exact_flips_up_to,
            draws=plan.decision.flip_draws,
        ).p_value
        if claim and values
        else None
        for task, values in zip(pairing.tasks, differences, strict=True)
    ]
    adjusted = iter(holm([value for value in p_values if value is not None]))
    return tuple(
        TaskComparison(
            scenario_id=task,
            before_counted=len(task_scores(pairing.before, task)),
            after_counted=len(task_scores(pairing.after, task)),
            pairs=len(values),
            before_mean=_mean_or_none(task_scores(pairing.before, task)),
            after_mean=_mean_or_none(task_scores(pairing.after, task)),
            difference=mean_of(values) if claim and values else None,
            p_value=p_value,
            holm_p_value=None if p_value is None else next(adjusted),
            greedy_before=_mean_or_none(task_scores(greedy.before, task)),
            greedy_after=_mean_or_none(task_scores(greedy.after, task)),
        )
        for task, values, p_value in zip(pairing.tasks, differences, p_values, strict=True)
    )


def place_on_ladder(sampled: SampledComparison, ladder: Ladder) -> Scale:
    """Say where the means stand between the do-nothing floor and the ceiling."""
    floor, ceiling = ladder.mean("do_nothing"), ladder.mean("ceiling")
    gap = reason = None
    if sampled.difference is None or sampled.before_mean is None:
        reason = "no difference is claimed"
    elif sampled.before_mean >= ceiling - SAME_SCORE:
        reason = "before training the score was at the ceiling: nothing was left to gain"
    else:
        gap = sampled.difference / (ceiling - sampled.before_mean)
    return Scale(
        floor=floor,
        ceiling=ceiling,
        before_against_floor=_against(sampled.before_mean, floor),
        after_against_floor=_against(sampled.after_mean, floor),
        gap_closed=gap,
        gap_reason=reason,
    )


def _against(mean: float | None, floor: float) -> Against | None:
    if mean is None:
        return None
    if abs(mean - floor) <= SAME_SCORE:
        return "at"
    return "under" if mean < floor else "above"


def _interval_reason(judgement: Judgement | None, pairs: int, *, claim: bool) -> str | None:
    if not claim:
        return "no difference is claimed"
    if judgement is None:
        return "the seeds are copies of one deterministic episode, which say nothing about spread"
    if judgement.interval is None:
        if pairs == 1:
            return "one paired seed says nothing about spread"
        return "every paired seed gave the same difference, which says nothing about spread"
    return None


def _side_interval(cells: Cells, pairing: Pairing, rule: DecisionRule, name: str) -> Bounds | None:
    whole = tuple(seed for seed in pairing.seeds if all((task, seed) in cells for task in pairing.tasks))
    return _bounds(interval_of(score_table(cells, pairing.tasks, whole), rule, name)) if whole else None


def _task_differences(pairing: Pairing, task: str) -> tuple[float, ...]:
    return tuple(
        pairing.after[task, seed] - pairing.before[task, seed]
        for seed in pairing.seeds
        if (task, seed) in pairing.before and (task, seed) in pairing.after
    )


def _mean_or_none(scores: tuple[float, ...]) -> float | None:
    return mean_of(scores) if scores else None


def _bounds(interval: Interval | None) -> Bounds | None:
    return None if interval is None else Bounds(low=interval.low, high=interval.high)
