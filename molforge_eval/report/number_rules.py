"""What each number is made from, by rule: rows of the run, other numbers, and the function that computes it.

The rules stand in `data/number_rules.toml`. That they say neither too much nor too little is held by a test that
changes one row after the other and looks which numbers move.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Literal

from molforge_env.frozen import FrozenModel

Part = Literal["decides", "greedy"]
Take = Literal[
    "all",
    "points",
    "first",
    "last",
    "ends",
    "paid",
    "early",
    "late",
    "early ends",
    "late ends",
    "values",
    "done values",
    "first third",
    "last third",
]
ANY_TASK = "<task>"
MEAN = "mean"
_FAMILIES_OF_TASKS = ("score", "unpaired")


class RowRule(FrozenModel):
    """What the numbers of some ids are made from."""

    ids: tuple[str, ...]
    """Patterns of ids."""
    evaluations: tuple[str, ...] = ()
    """`before`, `after`: evaluations whose episodes are read."""
    part: Part | None = None
    """Part of the plan whose episodes are read; all when absent."""
    task: str | None = None
    """The task, as ids name it, whose episodes are read; all when absent."""
    log: str | None = None
    """`rollouts`, `trainer`, `resumes` (with the number of one of these rows), or the name of a curve or column."""
    take: Take | None = None
    """Which lines of the log are read."""
    fields: tuple[str, ...] = ()
    """What is read of an episode or a line."""
    pointers: tuple[str, ...] = ()
    """Values of other records, as `file#pointer`."""
    sources: bool = False
    """The sources of the number stand before the rows of the rule."""
    needs: tuple[str, ...] = ()
    """Patterns of the numbers that it is made from."""
    by: str
    """The function that computes it, as `module:name`."""

    def has_rows(self) -> bool:
        """Tell whether the rule says of itself which rows are read."""
        return bool(self.evaluations or self.log or self.pointers)


PointTake = Literal["row", "ends", "step", "until", "stretch", "done stretch"]


class PointRule(FrozenModel):
    """What the points of some curves are made from."""

    curves: tuple[str, ...]
    """Patterns of names."""
    take: PointTake
    """Which lines are read."""
    field: str
    """What is read of a line."""
    formula: str
    """How a point is made, in words."""
    by: str
    """The function that computes it, as `module:name`."""


def point_rule_of(curve: str) -> PointRule:
    """Find the rule of a curve's points.

    >>> point_rule_of("loss").field, point_rule_of("strict_score").field
    ('loss', 'episode_score')
    """
    rule = next(rule for rule in _points() if any(fnmatchcase(curve, pattern) for pattern in rule.curves))
    return rule.model_copy(update={"field": rule.field.format(curve)})


def rule_of(number_id: str) -> RowRule | None:
    """Find the rule of a number, its places filled from the id; `None` when no rule names it.

    >>> rule_of("score.level_2_hard.after").task
    'level_2_hard'
    """
    for rule in _rules():
        for pattern in rule.ids:
            if fits(number_id, pattern):
                return _filled(rule, number_id, pattern)
    return None


def needs_of(number_id: str, known: Iterable[str]) -> tuple[str, ...]:
    """List the numbers that a number is made from, in the order of the known ones.

    Args:
        number_id: The number.
        known: Ids of all numbers.
    """
    rule = rule_of(number_id)
    if rule is None or not rule.needs:
        return ()
    found = [
        other for other in known if other != number_id and any(_is_needed(other, pattern) for pattern in rule.needs)
    ]
    return tuple(found)


def fits(number_id: str, pattern: str) -> bool:
    """Tell whether an id has the parts of a pattern."""
    return pattern.count(".") == number_id.count(".") and fnmatchcase(number_id, pattern)


def _is_needed(number_id: str, pattern: str) -> bool:
    if ANY_TASK not in pattern:
        return fits(number_id, pattern)
    family, task = number_id.split(".")[:2]
    is_task = family in _FAMILIES_OF_TASKS and task != MEAN
    return is_task and fits(number_id, pattern.replace(ANY_TASK, "*"))


def _filled(rule: RowRule, number_id: str, pattern: str) -> RowRule:
    parts = number_id.split(".")
    wild = [
        part[len(mark.partition("*")[0]) : len(part) - len(mark.partition("*")[2])]
        for part, mark in zip(parts, pattern.split("."), strict=True)
        if "*" in mark
    ]
    arm = "after" if "after" in parts[-1] else "before"

    def fill(text: str) -> str:
        return text.format(*wild, arm=arm)

    return rule.model_copy(
        update={
            "evaluations": tuple(map(fill, rule.evaluations)),
            "task": None if rule.task is None else fill(rule.task),
            "log": None if rule.log is None else fill(rule.log),
            "fields": tuple(map(fill, rule.fields)),
            "pointers": tuple(map(fill, rule.pointers)),
            "needs": tuple(map(fill, rule.needs)),
        }
    )


@cache
def _table() -> dict[str, Any]:
    text = resources.files("molforge_eval").joinpath("data", "number_rules.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _rules() -> tuple[RowRule, ...]:
    return tuple(RowRule.model_validate(entry) for entry in _table()["rule"])


@cache
def _points() -> tuple[PointRule, ...]:
    return tuple(PointRule.model_validate(entry) for entry in _table()["point"])
