"""Rows of a chart, taken from a run's tables: curves with their gaps, action shares, scores of training episodes.

A value that is not finite is a gap, never a point; a row that does not carry the key at all (a step without generation)
is neither. A curve never runs on across a resume or backwards in steps: each stretch has its own segment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import polars as pl

from molforge_env.frozen import FrozenModel
from molforge_eval.findings import Finding
from molforge_eval.log_tables import gaps_of

AVERAGE_WINDOW = 10
"""Points of a trailing moving average."""
MOST_POINTS = 1_200
"""Points that a drawn curve keeps; numbers are always taken from all of them."""
SHORTEST_TREND = 5
"""Points below which no trend is claimed."""
ACTIONS = ("edit", "run_assay", "submit", "restart", "defer", "none")
OTHER_ACTION = "other"
"""Name under which a log of format version 0 counts whatever is no action of the laboratory."""


class Point(NamedTuple):
    """One logged value."""

    segment: int
    step: int
    value: float | None
    """`None` where the logged number was not finite."""
    average: float | None
    """Mean of the last points of the segment, this one included."""
    line: int


class Curve(FrozenModel):
    """One column of the trainer log over optimizer steps."""

    column: str
    points: tuple[Point, ...]
    gaps: int
    """Points whose number was not finite."""
    kept_every: int = 1
    """1 when all points are here, n when only every n-th and the last one are."""

    def finite(self) -> tuple[Point, ...]:
        """Return the points that have a value."""
        return tuple(point for point in self.points if point.value is not None)


class ActionShare(NamedTuple):
    """How often one action was called in one phase."""

    phase: str
    action: str
    calls: int
    share: float


def curve_of(rows: Sequence[Mapping[str, Any]], column: str, *, window: int = AVERAGE_WINDOW) -> Curve:
    """Take one column of the `train` rows as a curve.

    Args:
        rows: Rows of the trainer log in file order, with `type`, `step`, `line` and `non_finite`.
        column: Key of the wanted number; text and flags under it are passed over.
        window: Points of the trailing average; it starts anew in every segment.
    """
    points: list[Point] = []
    segment, last_step, recent = 0, None, list[float]()
    gaps = 0
    for row in rows:
        step = row["step"]
        if row["type"] == "resume" or (row["type"] == "train" and last_step is not None and step < last_step):
            segment, last_step, recent = segment + 1, None, []
        if row["type"] != "train" or step is None:
            continue
        last_step = step
        value, broken = _number(row, column)
        if value is None and not broken:
            continue
        gaps += broken
        if value is not None:
            recent = [*recent, value][-window:]
        average = _mean(recent) if value is not None else None
        points.append(Point(segment, step, value, average, row["line"]))
    return Curve(column=column, points=tuple(points), gaps=gaps)


def curve_over_steps(steps: Sequence[int], values: Sequence[float | None], column: str) -> Curve:
    """Take the mean of some values at each optimizer step as a curve.

    Args:
        steps: Step of each value; any order.
        values: The values; `None` is left out of the mean.
        column: Name of what was averaged.
    """
    grouped: dict[int, list[float]] = {}
    for step, value in zip(steps, values, strict=True):
        if value is not None:
            grouped.setdefault(step, []).append(value)
    points, recent = [], list[float]()
    for step in sorted(grouped):
        mean = _mean(grouped[step])
        recent = [*recent, mean][-AVERAGE_WINDOW:]
        points.append(Point(0, step, mean, _mean(recent), 0))
    return Curve(column=column, points=tuple(points), gaps=0)


def thinned(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """Keep every n-th point, and the last one, of a curve that is too long to be drawn; gaps are always kept."""
    if len(curve.points) <= most:
        return curve
    every = -(-len(curve.points) // most)
    last = len(curve.points) - 1
    kept = (p for number, p in enumerate(curve.points) if number % every == 0 or number == last or p.value is None)
    return Curve(column=curve.column, points=tuple(kept), gaps=curve.gaps, kept_every=every)


def action_shares(phase: str, actions: Sequence[str]) -> tuple[ActionShare, ...]:
    """Count each kind of action; an action that was never called has a row of zero, an empty phase has no rows."""
    if not actions:
        return ()
    counts = Counter(actions)
    return tuple(ActionShare(phase, action, counts[action], counts[action] / len(actions)) for action in ACTIONS)


def thirds(rollouts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut the rollout lines by optimizer step into the first third and the last third of the steps seen.

    With fewer than three distinct steps both halves are what there is: nothing early differs from anything late, so
    the second is empty. Every column given is copied: of a long log, give those that are wanted.
    """
    steps = rollouts["trainer_step"].drop_nulls().unique().sort().to_list()
    if not steps:
        return rollouts, rollouts
    third = len(steps) // 3
    if third == 0:
        return rollouts, rollouts.clear()
    return (
        rollouts.filter(pl.col("trainer_step") <= steps[third - 1]),
        rollouts.filter(pl.col("trainer_step") >= steps[-third]),
    )


def trainer_rows(trainer_log: pl.DataFrame, findings: Sequence[Finding] = (), file: str = "") -> list[dict[str, Any]]:
    """Give the trainer log as rows, in file order.

    A number that is not finite and stands in the file as it is was read as nothing, and only its finding tells of it:
    it is named under `non_finite` as one that was written so, for it was logged.

    Args:
        trainer_log: The log.
        findings: What reading the run has found.
        file: Where the log stands.
    """
    rows = trainer_log.to_dicts()
    lost = gaps_of(findings, file)
    for row in rows if lost else ():
        if row["line"] in lost:
            named = orjson.loads(row["non_finite"] or "{}")
            row["non_finite"] = orjson.dumps({**lost[row["line"]], **named}).decode()
    return rows


def _number(row: Mapping[str, Any], column: str) -> tuple[float | None, bool]:
    """Return the value and whether it is a gap."""
    if column in _non_finite(row.get("non_finite")):
        return None, True
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, False
    return float(value), False


def _non_finite(value: Any) -> frozenset[str]:
    """Read the names under `non_finite`, whether the table holds an object or its JSON text."""
    if isinstance(value, str):
        value = orjson.loads(value)
    if not isinstance(value, Mapping):
        return frozenset()
    return frozenset(key for key, kind in value.items() if kind is not None)


def _mean(values: Sequence[float]) -> float:
    # Each is divided before it is added: a sum of huge numbers would leave the range of floats.
    total = 0.0
    for value in values:
        total += value / len(values)
    return total
