"""What was paid for what: the training reward of an episode beside its strict score.

A reward that pays for episodes which the grader gives nothing is the way in which a reward is farmed, so the two are
shown episode by episode, and the ends of the scale in words.
"""

from __future__ import annotations

import polars as pl

from molforge_eval import layout
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, whole
from molforge_eval.report.section_evidence import PaidEpisode, PaidPhase
from molforge_eval.report.seed_table import evenly
from molforge_eval.report.series import thirds

MOST_DRAWN = 600
FEWEST_RANKED = 10
_SOURCE = (layout.ROLLOUTS, "columns training_reward, episode_score")
_NONE = "no training episode has both numbers"


def put_paid(book: NumberBook, rollouts: pl.DataFrame) -> tuple[PaidEpisode, ...]:
    """Put down what the best and the worst paid episodes scored, and return the episodes to draw.

    Args:
        book: Where the numbers go.
        rollouts: The rollout log; an episode's last line carries both numbers.
    """
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
    return _drawn(both, rollouts)


def paid_episodes(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Return the lines that carry both a training reward and a strict score."""
    return rollouts.filter(pl.col("training_reward").is_not_null() & pl.col("episode_score").is_not_null())


def _drawn(both: pl.DataFrame, rollouts: pl.DataFrame) -> tuple[PaidEpisode, ...]:
    early, late = thirds(rollouts)
    last_early = early["trainer_step"].max()
    first_late = late["trainer_step"].min()
    rows = both.select("trainer_step", "training_reward", "episode_score").rows()
    ends = (last_early if isinstance(last_early, int) else None, first_late if isinstance(first_late, int) else None)
    return tuple(PaidEpisode(_phase(step, *ends), score, reward) for step, reward, score in evenly(rows, MOST_DRAWN))


def _phase(step: int | None, last_early: int | None, first_late: int | None) -> PaidPhase:
    if step is None:
        return "between"
    if first_late is not None and step >= first_late:
        return "late"
    return "early" if last_early is not None and step <= last_early else "between"


def _mean(lines: pl.DataFrame, column: str) -> float | None:
    mean = lines[column].mean()
    return float(mean) if isinstance(mean, int | float) else None
