"""What a run of format version 0 logged of its calls: action mix, rewards and scores in the order of the log.

A line names neither episode nor optimizer step, so the log is read in its own order: its first and its last third stand
for early and late, and a curve runs over its lines. Long logs are drawn by the means of equal stretches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.report.conduct import put_shares
from molforge_eval.report.evidence import CurveNote, PhaseRow
from molforge_eval.report.learning import tenths_of, trend_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, percent, whole
from molforge_eval.report.old_arms import Arm
from molforge_eval.report.series import ACTIONS, AVERAGE_WINDOW, OTHER_ACTION, ActionShare, Curve, Point

MOST_STRETCHES = 240
PHASES = {
    "before": "before",
    "early": "log, first third",
    "late": "log, last third",
    "after": "after",
}
_NOT_IN_TRACE = "a trace does not record it"
_NOT_IN_LOG = "the log does not record it"
_NO_VALUE = "no line has the number"


class Calls(NamedTuple):
    """The calls of one phase."""

    actions: tuple[str, ...]
    vetoed: int | None
    errors: int | None
    ended: int | None


def put_calls(book: NumberBook, arms: tuple[Arm, Arm], rollouts: pl.DataFrame) -> tuple[PhaseRow, ...]:
    """Put the calls of every phase down, and return the phases that have one."""
    third = len(rollouts) // 3
    early, late = (rollouts.head(third), rollouts.tail(third)) if third else (rollouts, rollouts.clear())
    before, after = arms
    phases = {
        "before": (_of_traces(before), before.file),
        "early": (_of_log(early), layout.ROLLOUTS),
        "late": (_of_log(late), layout.ROLLOUTS),
        "after": (_of_traces(after), after.file),
    }
    labels = PHASES if third else {**PHASES, "early": "log"}
    rows = []
    for phase, (calls, file) in phases.items():
        _put_phase(book, phase, calls, file)
        if calls.actions:
            shares = _shares(labels[phase], calls.actions)
            put_shares(book, f"calls.{phase}", shares, _actions_of(file))
            rows.append(PhaseRow(phase=phase, label=labels[phase], actions=shares))
    return tuple(rows)


def put_log(book: NumberBook, rollouts: pl.DataFrame) -> tuple[CurveNote, ...]:
    """Put the rewards and the scores of the log down, and return them as curves over its lines."""
    book.put("training.lines", len(rollouts), whole(len(rollouts)), (layout.ROLLOUTS, "lines"))
    ends = rollouts.filter(pl.col("done").fill_null(value=False))
    book.put("log.ended", len(ends), whole(len(ends)), (layout.ROLLOUTS, "column done"))
    notes = []
    for name, lines, column in (("reward", rollouts, "reward"), ("score", ends, "final_score")):
        known = lines.filter(pl.col(column).is_not_null())
        curve, each = curve_over_lines(known["line"].to_list(), known[column].to_list(), f"call_{name}")
        _put_series(book, name, known[column].to_list(), each, (layout.ROLLOUTS, f"column {column}"))
        if curve.points:
            notes.append(CurveNote(name=f"call_{name}", curve=curve, trend=trend_of(curve)))
    return tuple(notes)


def curve_over_lines(lines: Sequence[int], values: Sequence[float], name: str) -> tuple[Curve, int]:
    """Take values in the order of a log as a curve of at most `MOST_STRETCHES` points.

    Returns:
        The curve, each point the mean of a stretch at the line where the stretch ends, and the values in a stretch.
    """
    each = max(1, -(-len(values) // MOST_STRETCHES))
    points, recent = [], list[float]()
    for start in range(0, len(values), each):
        stretch = values[start : start + each]
        mean = _mean(stretch)
        recent = [*recent, mean][-AVERAGE_WINDOW:]
        points.append(Point(0, lines[start + len(stretch) - 1], mean, _mean(recent), 0))
    return Curve(column=name, points=tuple(points), gaps=0), each


def _put_series(book: NumberBook, name: str, values: Sequence[float], each: int, source: tuple[str, str]) -> None:
    at = f"log.{name}"
    book.put(f"{at}_count", len(values), whole(len(values)), source)
    book.put(f"{at}_each", each, whole(each), source)
    ends = tenths_of(values)
    known = {
        "first": ends[0] if ends else None,
        "last": ends[1] if ends else None,
        "lowest": min(values, default=None),
        "peak": max(values, default=None),
    }
    for field, value in known.items():
        book.put(f"{at}_{field}", value, decimal(value), source, reason=_NO_VALUE)


def _of_traces(arm: Arm) -> Calls:
    steps = [step for episode in arm.episodes for step in episode.trace]
    return Calls(
        actions=tuple(step.action for step in steps if step.action is not None),
        vetoed=None,
        errors=len([step for step in steps if step.error is not None]),
        ended=None,
    )


def _of_log(lines: pl.DataFrame) -> Calls:
    statuses = lines["governance_status"].drop_nulls()
    return Calls(
        actions=tuple(lines["action_type"].drop_nulls().to_list()),
        vetoed=int((statuses == "policy_veto").sum()) if len(statuses) else None,
        errors=None,
        ended=int(lines["done"].fill_null(value=False).sum()),
    )


def _actions_of(file: str) -> tuple[str, str]:
    return file, "/episodes/*/trace" if file != layout.ROLLOUTS else "columns action_type, governance_status, done"


def _put_phase(book: NumberBook, phase: str, calls: Calls, file: str) -> None:
    count = len(calls.actions)
    source = _actions_of(file)
    book.put(f"calls.{phase}.count", count, whole(count), source)
    share = calls.vetoed / count if calls.vetoed is not None and count else None
    book.put(f"calls.{phase}.vetoed", share, percent(share, 1), source, reason=_NOT_IN_TRACE)
    book.put(f"calls.{phase}.errors", calls.errors, whole(calls.errors), source, reason=_NOT_IN_LOG)
    book.put(f"calls.{phase}.ended", calls.ended, whole(calls.ended), source, reason=_NOT_IN_TRACE)


def _shares(label: str, actions: Sequence[str]) -> tuple[ActionShare, ...]:
    """Count each kind of action; whatever is none of the laboratory's goes under one name."""
    named = [action if action in ACTIONS else OTHER_ACTION for action in actions]
    counts = Counter(named)
    return tuple(
        ActionShare(label, action, counts[action], counts[action] / len(named)) for action in (*ACTIONS, OTHER_ACTION)
    )


def _mean(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:
        total += value / len(values)
    return total
