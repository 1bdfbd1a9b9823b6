"""What was paid for what: the training reward of an episode beside its strict score.

A reward that pays for episodes which the grader gives nothing is the way in which a reward is farmed, so the two are
shown episode by episode, and the ends of the scale in words.
"""

from __future__ import annotations

import polars as pl

from molforge_eval import layout
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, whole
from molforge_eval.report.section_evidence import PaidPoint
from molforge_eval.report.series import thirds

MOST_DRAWN = 600
FEWEST_RANKED = 10
_SOURCE = (layout.ROLLOUTS, "columns training_reward, episode_score")
_NONE = "no training episode has both numbers"


def put_paid(book: NumberBook, rollouts: pl.DataFrame) -> tuple[PaidPoint, ...]:
    """Put down what the best and the worst paid episodes scored, and return the points to draw.

    Args:
        book: Where the numbers go.
        rollouts: The rollout log; an episode's last line carries both numbers.
    """
    rollouts = rollouts.select("line", "trainer_step", "training_reward", "episode_score")
    both = paid_episodes(rollouts)
    ordered = both.sort("training_reward", "line")
    tenth = max(1, len(both) // 10)
    enough = len(both) >= FEWEST_RANKED
    few = _NONE if not len(both) else f"fewer than {FEWEST_RANKED} training episodes have both numbers"
    for name, end in (("least", ordered.head(tenth)), ("most", ordered.tail(tenth))):
        score = _mean(end, "episode_score") if enough else None
        book.put(f"sentinel.{name}_paid_score", score, decimal(score), _SOURCE, reason=few)
    nothing = both.filter(pl.col("episode_score") == 0.0)
    something = both.filter(pl.col("episode_score") > 0.0)
    count = len(nothing) if len(both) else None
    book.put("sentinel.unscored", count, whole(count), _SOURCE, reason=_NONE)
    for name, lines in (("unscored", nothing), ("scored", something)):
        reward = _mean(lines, "training_reward")
        book.put(f"sentinel.{name}_reward", reward, decimal(reward), _SOURCE, reason="there is no such episode")
    points = paid_points(both, rollouts)
    distinct = len(points) or None
    book.put("sentinel.points", distinct, whole(distinct), _SOURCE, reason=_NONE)
    return tuple(PaidPoint(*row) for row in points.head(MOST_DRAWN).iter_rows())


def paid_episodes(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Return the lines that carry both a training reward and a strict score."""
    return rollouts.filter(pl.col("training_reward").is_not_null() & pl.col("episode_score").is_not_null())


def paid_points(both: pl.DataFrame, rollouts: pl.DataFrame) -> pl.DataFrame:
    """Count the episodes of each part of training by score and reward, to two decimals; the most frequent first."""
    early, late = thirds(rollouts.select("trainer_step"))
    step = pl.col("trainer_step")
    is_late = step.is_in(late["trainer_step"].drop_nulls().unique().to_list())
    is_early = step.is_in(early["trainer_step"].drop_nulls().unique().to_list())
    phase = pl.when(is_late).then(pl.lit("late")).when(is_early).then(pl.lit("early")).otherwise(pl.lit("between"))
    return (
        both.select(phase.alias("phase"), pl.col("episode_score").round(2), pl.col("training_reward").round(2))
        .group_by("phase", "episode_score", "training_reward")
        .len()
        .sort(["len", "phase", "episode_score", "training_reward"], descending=[True, False, False, False])
    )


def _mean(lines: pl.DataFrame, column: str) -> float | None:
    mean = lines[column].mean()
    return float(mean) if isinstance(mean, int | float) else None
