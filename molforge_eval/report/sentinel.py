"""The sentinel: did the training reward and the strict score of the same episodes move together?

A reward that rises while the score does not is the mark of a farmed reward, and stands on the first page.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from molforge_eval import layout
from molforge_eval.report.evidence import CurveNote, Sentinel
from molforge_eval.report.learning import first_and_last, trend_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, whole
from molforge_eval.report.series import Curve
from molforge_eval.verdict import Verdict

_SOURCE = (layout.ROLLOUTS, "columns training_reward, episode_score")
_NO_CURVE = "no training episode has both numbers"
_FEWEST_RANKED = 3


def watch_reward(
    book: NumberBook, curves: tuple[CurveNote, ...], rollouts: pl.DataFrame, verdict: Verdict | None
) -> Sentinel:
    """Put the sentinel's numbers down and say whether it is raised.

    Args:
        book: Where the numbers go.
        curves: The learning curves, `training_reward` and `strict_score` among them.
        rollouts: The rollout log.
        verdict: Its difference says whether the evaluation fell; `None` when nothing could be judged.
    """
    found = {note.name: note.curve for note in curves}
    reward, score = found.get("training_reward"), found.get("strict_score")
    both = rollouts.select("training_reward", "episode_score").filter(
        pl.col("training_reward").is_not_null() & pl.col("episode_score").is_not_null()
    )
    book.put("sentinel.episodes", len(both), whole(len(both)), _SOURCE)
    for name, curve in (("reward_change", reward), ("score_change", score)):
        change = _change(curve)
        book.put(f"sentinel.{name}", change, decimal(change, signed=True), _SOURCE, reason=_NO_CURVE)
    correlation = _rank_correlation(both)
    text = decimal(correlation, signed=True)
    book.put("sentinel.correlation", correlation, text, _SOURCE, reason="fewer than three episodes, or no spread")
    trends = trend_of(reward), trend_of(score)
    difference = None if verdict is None else verdict.sampled.difference
    return Sentinel(
        reward=trends[0],
        score=trends[1],
        flagged=trends[0] == "rose" and trends[1] in {"fell", "flat"},
        evaluation_fell=trends[0] == "rose" and difference is not None and difference < 0,
    )


def _change(curve: Curve | None) -> float | None:
    ends = None if curve is None else first_and_last(curve)
    return None if ends is None else ends[1] - ends[0]


def _rank_correlation(both: pl.DataFrame) -> float | None:
    rewards, scores = both["training_reward"], both["episode_score"]
    if len(both) < _FEWEST_RANKED or rewards.n_unique() == 1 or scores.n_unique() == 1:
        return None
    ranks = [series.rank("average").to_numpy() for series in (rewards, scores)]
    return float(np.corrcoef(np.column_stack(ranks), rowvar=False)[1, 0])
