"""The scores of the packet: sampled, greedy and ladder, for each task and for the mean, with their intervals.

Every number comes from the verdict or from the same pairing that the verdict used; nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from molforge_env.suites import SCENARIO_IDS
from molforge_eval import layout
from molforge_eval.comparison import Bounds, TaskComparison
from molforge_eval.decision import interval_of
from molforge_eval.ladder import Ladder
from molforge_eval.pairing import Cells, Pairing, pair_scores, score_table
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan
from molforge_eval.records.fields import EndedBy
from molforge_eval.report.evidence import SeedRow, TaskRow
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, percent, probability, whole
from molforge_eval.report.quoting import quote
from molforge_eval.statistics import Differences, Interval
from molforge_eval.verdict import Verdict

MEAN = "mean"
RUNGS = ("do_nothing", "random_valid", "heuristic", "ceiling")
LONGEST_LABEL = 40
_SAFE_KEY = re.compile(r"[A-Za-z0-9_:-]{1,80}")
_LADDER_FILE = "reference policies"
_NO_BEFORE = "the evaluation before training is missing"
_NO_AFTER = "the evaluation after training is missing"
_NO_CLAIM = "no difference is claimed"


class Sides(NamedTuple):
    """The two evaluations under one plan."""

    before: Evaluation | None
    after: Evaluation | None
    plan: EvaluationPlan


class Placed(NamedTuple):
    """Under which id a task's numbers go, and whether its greedy difference may be claimed."""

    key: str
    is_barred: bool


def put_scores(book: NumberBook, sides: Sides, verdict: Verdict, ladder: Ladder) -> tuple[TaskRow, ...]:
    """Put every score down as `score.<task>.<field>`, and return the tasks in planned order."""
    pairing = pair_scores(sides.before, sides.after, sides.plan, sides.plan.decision.part)
    _put_mean(book, sides, verdict)
    _put_counts(book, verdict)
    for rung in RUNGS:
        put_rung(book, MEAN, rung, ladder.mean(rung))
    rows = []
    for number, comparison in enumerate(_compared(sides, verdict)):
        task = comparison.scenario_id
        key = task_key(task, number)
        _put_task(book, sides, pairing, comparison, Placed(key, is_barred=verdict.greedy.difference is None))
        for rung in RUNGS:
            put_rung(book, key, rung, _rung_score(ladder, rung, task))
        endings = (_greedy_ending(sides.before, task), _greedy_ending(sides.after, task))
        rows.append(TaskRow(task=key, label=task_label(task), greedy_endings=endings))
    return tuple(rows)


def put_seeds(book: NumberBook, sides: Sides, verdict: Verdict) -> tuple[SeedRow, ...]:
    """Put down how many seeds rose, and return every paired seed with its mean over tasks on both sides."""
    pairing = pair_scores(sides.before, sides.after, sides.plan, sides.plan.decision.part)
    claimed = verdict.sampled.difference is not None
    rows: tuple[SeedRow, ...] = ()
    if claimed:
        left = score_table(pairing.before, pairing.tasks, pairing.paired_seeds).mean(axis=1)
        right = score_table(pairing.after, pairing.tasks, pairing.paired_seeds).mean(axis=1)
        rows = tuple(
            SeedRow(seed=seed, before=float(before), after=float(after))
            for seed, before, after in zip(pairing.paired_seeds, left, right, strict=True)
        )
    counts = {
        "rose": [row for row in rows if row.after > row.before],
        "fell": [row for row in rows if row.after < row.before],
        "equal": [row for row in rows if row.after == row.before],
    }
    for name, found in counts.items():
        value = len(found) if claimed else None
        book.put(f"seeds.{name}", value, whole(value), *_both("/episodes/*/final_score"), reason=_NO_CLAIM)
    return rows


def task_key(task: str, number: int) -> str:
    """Return what stands for a task in the ids of its numbers.

    Args:
        task: Its name, which a stranger chose.
        number: Its place in the plan.

    >>> task_key("level_0_easy", 0), task_key("two words", 1), task_key("mean", 2)
    ('level_0_easy', 'task-1', 'task-2')
    """
    return task if _SAFE_KEY.fullmatch(task) and task != MEAN else f"task-{number}"


def task_label(task: str) -> str:
    """Name a task for a reader: `level_0_easy` is `easy`."""
    return quote(task.rsplit("_", 1)[-1], LONGEST_LABEL)


def put_rung(book: NumberBook, task: str, rung: str, score: float | None) -> None:
    """Put the score of one reference policy down as `score.<task>.<rung>`; `None` where the ladder has none."""
    source = (_LADDER_FILE, f"{rung}, {task}")
    book.put(f"score.{task}.{rung}", score, decimal(score), source, reason="the task is not on the ladder")


def _compared(sides: Sides, verdict: Verdict) -> tuple[TaskComparison, ...]:
    """Return each task once: those of the deciding part, or, when the plan has none, those of the greedy part."""
    if verdict.tasks:
        return tuple({task.scenario_id: task for task in verdict.tasks}.values())
    greedy = pair_scores(sides.before, sides.after, sides.plan, "greedy")
    return tuple(
        TaskComparison(
            scenario_id=task,
            before_counted=0,
            after_counted=0,
            pairs=0,
            before_mean=None,
            after_mean=None,
            difference=None,
            p_value=None,
            holm_p_value=None,
            greedy_before=next((score for cell, score in greedy.before.items() if cell[0] == task), None),
            greedy_after=next((score for cell, score in greedy.after.items() if cell[0] == task), None),
        )
        for task in dict.fromkeys(greedy.tasks)
    )


def _rung_score(ladder: Ladder, rung: str, task: str) -> float | None:
    return ladder.score(rung, task) if task in SCENARIO_IDS else None


def _put_mean(book: NumberBook, sides: Sides, verdict: Verdict) -> None:
    sampled, greedy = verdict.sampled, verdict.greedy
    _put_side(book, MEAN, "before", sampled.before_mean, _interval(sampled.before_interval), sides.before)
    _put_side(book, MEAN, "after", sampled.after_mean, _interval(sampled.after_interval), sides.after)
    _put_signed(book, f"score.{MEAN}.difference", sampled.difference, _NO_CLAIM)
    bounds = sampled.interval
    reason = sampled.interval_reason or _NO_CLAIM
    _put_signed(book, f"score.{MEAN}.low", None if bounds is None else bounds.low, reason)
    _put_signed(book, f"score.{MEAN}.high", None if bounds is None else bounds.high, reason)
    _put(book, f"score.{MEAN}.p", sampled.p_value, probability(sampled.p_value), reason)
    book.put(f"score.{MEAN}.pairs", sampled.seeds_paired, whole(sampled.seeds_paired), *_both("/episodes/*/seed"))
    scale = verdict.scale
    _put(book, f"score.{MEAN}.gap", scale.gap_closed, percent(scale.gap_closed), scale.gap_reason or _NO_CLAIM)
    _put_greedy(book, MEAN, greedy.before_mean, greedy.after_mean, greedy.difference, sides)


def _put_counts(book: NumberBook, verdict: Verdict) -> None:
    sampled, greedy = verdict.sampled, verdict.greedy
    plan = (layout.PLAN, "/parts")
    rule = (layout.PLAN, "/decision")
    book.put("sampled.tasks", len(verdict.tasks), whole(len(verdict.tasks)), plan)
    book.put("sampled.seeds", sampled.seeds_planned, whole(sampled.seeds_planned), plan)
    book.put("sampled.planned", sampled.episodes_planned, whole(sampled.episodes_planned), plan)
    counts: Mapping[str, int] = {
        "before_counted": sampled.before_counted,
        "after_counted": sampled.after_counted,
        "before_distinct": sampled.before_distinct,
        "after_distinct": sampled.after_distinct,
    }
    for name, count in counts.items():
        book.put(f"sampled.{name}", count, whole(count), *_both("/episodes/*/final_score"))
    detectable = sampled.minimum_detectable_difference
    _put(book, "sampled.detectable", detectable, decimal(detectable, 3), "too few seeds, or no spread")
    for name, needed in (("seeds_needed", sampled.seeds_needed), ("episodes_needed", sampled.episodes_needed)):
        _put(book, f"sampled.{name}", needed, whole(needed), "too few seeds, or no spread")
    rose = [
        task
        for task in verdict.tasks
        if task.holm_p_value is not None and task.difference is not None
        if task.holm_p_value < verdict.alpha and task.difference > 0
    ]
    tested = any(task.holm_p_value is not None for task in verdict.tasks)
    _put(book, "tasks.rose", len(rose) if tested else None, whole(len(rose) if tested else None), _NO_CLAIM)
    book.put("greedy.tasks", greedy.tasks, whole(greedy.tasks), plan)
    _put(book, "greedy.p", greedy.p_value, probability(greedy.p_value), _NO_CLAIM)
    book.put("greedy.smallest_p", greedy.smallest_p_value, probability(greedy.smallest_p_value), plan)
    book.put("rule.alpha", verdict.alpha, decimal(verdict.alpha), rule)
    book.put("rule.margin", verdict.margin, decimal(verdict.margin), rule)
    book.put("rule.confidence", verdict.confidence, percent(verdict.confidence), rule)


def _put_task(book: NumberBook, sides: Sides, pairing: Pairing, task: TaskComparison, placed: Placed) -> None:
    name, rule = placed.key, sides.plan.decision
    for arm, mean, evaluation, cells in (
        ("before", task.before_mean, sides.before, pairing.before),
        ("after", task.after_mean, sides.after, pairing.after),
    ):
        table = _column(cells, pairing, task.scenario_id)
        found = None if table is None else interval_of(table, rule, f"{arm} {name}")
        _put_side(book, name, arm, mean, found, evaluation)
    found = None
    if task.difference is not None:
        found = interval_of(_differences(pairing, task.scenario_id), rule, f"difference {name}")
    _put_signed(book, f"score.{name}.difference", task.difference, _NO_CLAIM)
    reason = _NO_CLAIM if task.difference is None else "the task's paired seeds show no spread"
    _put_signed(book, f"score.{name}.low", None if found is None else found.low, reason)
    _put_signed(book, f"score.{name}.high", None if found is None else found.high, reason)
    _put(book, f"score.{name}.p", task.p_value, probability(task.p_value), _NO_CLAIM)
    _put(book, f"score.{name}.holm", task.holm_p_value, probability(task.holm_p_value), _NO_CLAIM)
    book.put(f"score.{name}.pairs", task.pairs, whole(task.pairs), *_both("/episodes/*/seed"))
    greedy = None
    if task.greedy_before is not None and task.greedy_after is not None and not placed.is_barred:
        greedy = task.greedy_after - task.greedy_before
    _put_greedy(book, name, task.greedy_before, task.greedy_after, greedy, sides)


def _put_side(
    book: NumberBook, task: str, arm: str, mean: float | None, bounds: Interval | None, evaluation: Evaluation | None
) -> None:
    file = layout.BEFORE if arm == "before" else layout.AFTER
    source = (file, "/episodes/*/final_score")
    missing = _NO_BEFORE if arm == "before" else _NO_AFTER
    reason = missing if evaluation is None else "a task has no counted episode"
    book.put(f"score.{task}.{arm}", mean, decimal(mean), source, reason=reason)
    flat = missing if evaluation is None else "the seeds show no spread"
    for end in ("low", "high"):
        value: float | None = None if bounds is None else getattr(bounds, end)
        book.put(f"score.{task}.{arm}_{end}", value, decimal(value), source, reason=flat)


def _put_greedy(
    book: NumberBook, task: str, before: float | None, after: float | None, difference: float | None, sides: Sides
) -> None:
    no_part = "the plan has no greedy part, or the episode was not counted"
    for arm, value, file, evaluation in (
        ("before", before, layout.BEFORE, sides.before),
        ("after", after, layout.AFTER, sides.after),
    ):
        missing = _NO_BEFORE if arm == "before" else _NO_AFTER
        reason = missing if evaluation is None else no_part
        book.put(f"score.{task}.greedy_{arm}", value, decimal(value), (file, "/episodes/*/final_score"), reason=reason)
    _put_signed(book, f"score.{task}.greedy_difference", difference, _NO_CLAIM)


def _put_signed(book: NumberBook, number_id: str, value: float | None, reason: str) -> None:
    _put(book, number_id, value, decimal(value, signed=True), reason)


def _put(book: NumberBook, number_id: str, value: float | None, text: str, reason: str) -> None:
    book.put(number_id, value, text, *_both("/episodes/*/final_score"), reason=reason)


def _both(part: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (layout.BEFORE, part), (layout.AFTER, part)


def _column(cells: Cells, pairing: Pairing, task: str) -> Differences | None:
    seeds = tuple(seed for seed in pairing.seeds if (task, seed) in cells)
    return score_table(cells, (task,), seeds) if seeds else None


def _differences(pairing: Pairing, task: str) -> Differences:
    cells = {cell: pairing.after[cell] - pairing.before[cell] for cell in pairing.before if cell in pairing.after}
    seeds = tuple(seed for seed in pairing.seeds if (task, seed) in cells)
    return score_table(cells, (task,), seeds)


def _interval(bounds: Bounds | None) -> Interval | None:
    return None if bounds is None else Interval(bounds.low, bounds.high)


def _greedy_ending(evaluation: Evaluation | None, task: str) -> EndedBy | None:
    if evaluation is None:
        return None
    return next((e.ended_by for e in evaluation.episodes if e.part == "greedy" and e.scenario_id == task), None)
