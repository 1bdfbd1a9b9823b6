"""The learning curves of the packet, and the few numbers that may be said about a curve.

A curve is described by the mean of its first and of its last tenth and by its slope; a peak is only ever called a peak.
Below five points no slope is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.findings import Finding
from molforge_eval.report.evidence import CurveNote, Trend
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, scientific, whole
from molforge_eval.report.series import SHORTEST_TREND, Curve, Point, curve_of, curve_over_steps, thinned, trainer_rows
from molforge_eval.statistics import student_quantile

TRAINER_COLUMNS = ("reward", "loss", "grad_norm", "learning_rate", "entropy", "kl", "step_time")
EPISODE_COLUMNS = {"training_reward": "training_reward", "strict_score": "episode_score"}
_FINE = frozenset({"learning_rate", "loss", "kl", "grad_norm"})
_CONFIDENCE = 0.95
_STEPS_OF_SLOPE = 10
"""A stretch that every run with a slope has seen: a longer one would tell of a rise that never was."""
_TOO_SHORT = "fewer than five points"


class Slope(NamedTuple):
    """Least-squares slope of a curve over 10 optimizer steps, with its 95 % interval."""

    value: float
    low: float
    high: float


def put_curves(
    book: NumberBook,
    trainer_log: pl.DataFrame,
    rollouts: pl.DataFrame,
    *,
    trainer_file: str = layout.TRAINER_LOG,
    findings: Sequence[Finding] = (),
) -> tuple[CurveNote, ...]:
    """Put the numbers of every logged curve down, and return the curves that have points.

    Curves come from the trainer log, and, for reward and strict score of the training episodes, from the rollout log.

    Args:
        book: Where the numbers go.
        trainer_log: The trainer's rows.
        rollouts: The rollout log.
        trainer_file: Where the trainer's rows stand.
        findings: What reading the run has found: it tells of numbers that are not finite and stand in the file so.
    """
    rows = trainer_rows(trainer_log, findings, trainer_file)
    curves = {column: (curve_of(rows, column), trainer_file, column) for column in TRAINER_COLUMNS}
    ends = episode_ends(rollouts.select("trainer_step", "ended_by", *EPISODE_COLUMNS.values()))
    for name, column in EPISODE_COLUMNS.items():
        curve = curve_over_steps(ends["trainer_step"].to_list(), ends[column].to_list(), name)
        curves[name] = (curve, layout.ROLLOUTS, column)
    notes = []
    for name, (curve, file, column) in curves.items():
        if curve.points:
            _put_curve(book, name, curve, (file, f"column {column}{_lines(curve)}"))
            notes.append(CurveNote(name=name, curve=thinned(curve), trend=trend_of(curve)))
    _put_rows(book, rows, trainer_file)
    return tuple(notes)


def episode_ends(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Return the last line of each training episode, the only one that carries its score."""
    return rollouts.filter(pl.col("ended_by").is_not_null())


def slope_of(curve: Curve) -> Slope | None:
    """Fit a line to the finite points; `None` below five steps, or when the numbers leave the range of floats."""
    points = curve.finite()
    if len({point.step for point in points}) < SHORTEST_TREND:
        return None
    try:
        return _fit(points)
    except (OverflowError, ValueError):  # `fsum` raises the latter for infinities of both signs
        return None


def _fit(points: Sequence[Point]) -> Slope:
    values = [point.value for point in points if point.value is not None]
    count = len(values)
    middle, level = _mean([point.step for point in points]), _mean(values)
    spread = math.fsum((point.step - middle) ** 2 for point in points)
    products = ((p.step - middle) * (value - level) for p, value in zip(points, values, strict=True))
    slope = math.fsum(products) / spread
    # From the residuals themselves: by way of the correlation, a perfect line gives the root of a negative number.
    misses = ((v - level - slope * (p.step - middle)) ** 2 for p, v in zip(points, values, strict=True))
    error = math.sqrt(math.fsum(misses) / (count - 2) / spread)
    reach = student_quantile(0.5 + _CONFIDENCE / 2, count - 2) * error
    return Slope(_STEPS_OF_SLOPE * slope, _STEPS_OF_SLOPE * (slope - reach), _STEPS_OF_SLOPE * (slope + reach))


def trend_of(curve: Curve | None) -> Trend:
    """Say whether a curve rose or fell, by the sign of its slope's whole interval."""
    slope = None if curve is None else slope_of(curve)
    if slope is None:
        return "unknown"
    if slope.low > 0:
        return "rose"
    return "fell" if slope.high < 0 else "flat"


def first_and_last(curve: Curve) -> tuple[float, float] | None:
    """Return the means of the first and of the last tenth of the finite points; `None` without any."""
    return tenths_of([point.value for point in curve.points if point.value is not None])


def tenths_of(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the means of the first and of the last tenth of some values, at least one each; `None` without any."""
    tenth = max(1, len(values) // 10)
    return (_mean(values[:tenth]), _mean(values[-tenth:])) if values else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)


def put_ends(
    book: NumberBook, name: str, curve: Curve, source: tuple[str, str], spell: Callable[[float | None], str]
) -> None:
    """Put the means of the first and of the last tenth of a curve down."""
    ends = first_and_last(curve)
    for field, value in (("first", ends[0] if ends else None), ("last", ends[1] if ends else None)):
        book.put(f"curve.{name}.{field}", value, spell(value), source, reason="no finite point")


def _put_curve(book: NumberBook, name: str, curve: Curve, source: tuple[str, str]) -> None:
    spell = scientific if name in _FINE else decimal
    book.put(f"curve.{name}.points", len(curve.points), whole(len(curve.points)), source)
    book.put(f"curve.{name}.gaps", curve.gaps, whole(curve.gaps), source)
    values = [point.value for point in curve.points if point.value is not None]
    put_ends(book, name, curve, source, spell)
    known: Mapping[str, float | None] = {
        "lowest": min(values) if values else None,
        "peak": max(values) if values else None,
    }
    for field, value in known.items():
        book.put(f"curve.{name}.{field}", value, spell(value), source, reason="no finite point")
    slope = slope_of(curve)
    for field, end in (("slope", "value"), ("slope_low", "low"), ("slope_high", "high")):
        value = None if slope is None else getattr(slope, end)
        text = scientific(value) if name in _FINE else decimal(value, signed=True)
        book.put(f"curve.{name}.{field}", value, text, source, reason=_TOO_SHORT)


def _put_rows(book: NumberBook, rows: Sequence[Mapping[str, Any]], file: str) -> None:
    train = [row for row in rows if row["type"] == "train"]
    broken = [row for row in train if row["non_finite"] not in {"{}", None}]
    source = (file, "column type")
    book.put("training.rows", len(train), whole(len(train)), source)
    book.put("training.non_finite", len(broken), whole(len(broken)), (file, "column non_finite"))


def _lines(curve: Curve) -> str:
    lines = [point.line for point in curve.points]
    return f", lines {min(lines)}–{max(lines)}" if min(lines) > 0 else ""  # noqa: RUF001 # a range of lines
