"""The numbers of two unpaired evaluations: means with their n, by scenario and by metric, beside the ladder."""

from __future__ import annotations

import re
from collections.abc import Sequence

from molforge_env.suites import SCENARIO_IDS
from molforge_eval.ladder import Ladder
from molforge_eval.report.metrics import SideMeans
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, whole
from molforge_eval.report.old_arms import Arm, absence, refusal
from molforge_eval.report.old_evidence import ListedTask
from molforge_eval.report.scores import MEAN, RUNGS, put_rung, task_label

MOST_TASKS = 40
_SAFE_KEY = re.compile(r"[A-Za-z0-9_:-]{1,80}")
_NOT_COUNTED = "no episode of it was counted"
_NO_MEAN = "no mean over every listed scenario"


def put_unpaired(
    book: NumberBook, arms: tuple[Arm, Arm], ladder: Ladder, *, barred: str | None
) -> tuple[ListedTask, ...]:
    """Put every mean down as `unpaired.<task>.<field>`, and return the scenarios in the order of the files.

    Args:
        book: Where the numbers go.
        arms: Before and after.
        ladder: Reference policies, for scenarios that are official.
        barred: Why no difference may be stated at all; `None` when the evaluations alone decide that.
    """
    before, after = arms
    tasks = tuple(dict.fromkeys((*before.tasks(), *after.tasks())))
    reason = refusal(before, after) or barred
    for arm in arms:
        _put_arm(book, arm)
    _put_difference(book, MEAN, before.mean(), after.mean(), arms, reason)
    official = is_official(arms)
    for rung in RUNGS:
        put_rung(book, MEAN, rung, ladder.mean(rung) if official else None)
    rows = []
    for number, task in enumerate(tasks[:MOST_TASKS]):
        key = task if _SAFE_KEY.fullmatch(task) and task != MEAN else f"task-{number}"
        for arm in arms:
            _put_task(book, key, task, arm)
        same_n = before.counts().get(task, 0) == after.counts().get(task, 0)
        why = (None if same_n else "the two sides counted it unequally often") or barred
        _put_difference(book, key, before.task_mean(task), after.task_mean(task), arms, why)
        for rung in RUNGS:
            put_rung(book, key, rung, ladder.score(rung, task) if task in SCENARIO_IDS else None)
        rows.append(ListedTask(task=key, label=task_label(task), is_official=task in SCENARIO_IDS))
    changes = [(before.task_mean(task), after.task_mean(task)) for task in tasks]
    up = (
        None
        if reason
        else len([left for left, right in changes if left is not None and right is not None and left < right])
    )
    sources = tuple((arm.file, "/episodes/*/final_score") for arm in arms)
    book.put("tasks.listed", len(tasks), whole(len(tasks)), *sources)
    book.put("tasks.up", up, whole(up), *sources, reason=reason)
    return tuple(rows)


def metrics_of(arms: tuple[Arm, Arm]) -> tuple[SideMeans, SideMeans]:
    """Average every listed metric of both evaluations, each scenario weighing the same."""
    before, after = (
        SideMeans(arm.name, arm.file, {key: arm.mean(key) for episode in arm.counted() for key in episode.metrics})
        for arm in arms
    )
    return before, after


def is_official(arms: Sequence[Arm]) -> bool:
    """Tell whether every evaluation that lists episodes lists the three official scenarios and no other."""
    listed = [set(arm.tasks()) for arm in arms if arm.episodes]
    return bool(listed) and all(tasks == set(SCENARIO_IDS) for tasks in listed)


def _put_arm(book: NumberBook, arm: Arm) -> None:
    source = (arm.file, "/episodes/*/final_score")
    at = f"unpaired.{MEAN}.{arm.name}"
    mean = arm.mean()
    book.put(at, mean, decimal(mean), source, reason=absence(arm) or _NO_MEAN)
    counts = {
        "listed": len(arm.episodes),
        "episodes": len(arm.counted()),
        "errors": len([episode for episode in arm.episodes if episode.has_error()]),
        "distinct": arm.distinct(),
    }
    for name, count in counts.items():
        known = count if arm.episodes else None
        part = (arm.file, "/episodes")
        book.put(f"{at}_{name}", known, whole(known), part, reason=absence(arm) or "no episode is listed")
    stated = arm.stated_mean
    book.put(
        f"{at}_stated",
        stated,
        decimal(stated, 4),
        (arm.file, "/average_final_score"),
        reason=absence(arm) or "the file writes no mean",
    )


def _put_task(book: NumberBook, key: str, task: str, arm: Arm) -> None:
    mean = arm.task_mean(task)
    count = arm.counts().get(task, 0) if arm.episodes else None
    source = (arm.file, "/episodes/*/final_score")
    book.put(f"unpaired.{key}.{arm.name}", mean, decimal(mean), source, reason=absence(arm) or _NOT_COUNTED)
    at = f"unpaired.{key}.{arm.name}_episodes"
    book.put(at, count, whole(count), (arm.file, "/episodes"), reason=absence(arm) or _NOT_COUNTED)


def _put_difference(
    book: NumberBook, key: str, before: float | None, after: float | None, arms: tuple[Arm, Arm], reason: str | None
) -> None:
    value = None if reason or before is None or after is None else after - before
    sources = tuple((arm.file, "/episodes/*/final_score") for arm in arms)
    why = reason or "one side has no mean"
    book.put(f"unpaired.{key}.difference", value, decimal(value, signed=True), *sources, reason=why)
