"""Every metric that the evaluations list, with its mean on both sides and which way it went.

`final_score` stands first and is the headline; the others are diagnostics and can change no verdict. They are listed
all the same: a run whose headline rose and whose other metrics fell has to say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from molforge_eval import layout
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation
from molforge_eval.report.evidence import Direction, MetricRow
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, whole
from molforge_eval.report.quoting import quote
from molforge_eval.report.scores import LONGEST_LABEL, Sides
from molforge_eval.statistics import mean_of

PRIMARY = "final_score"
DIAGNOSTICS = ("submission_score", "progress_score")
MOST_METRICS = 40
PLACES = 3
"""A small change has to show beside the word for it."""
_SAFE_KEY = re.compile(r"[A-Za-z0-9_:-]{1,80}")
_NOT_LISTED = "the evaluation does not list it"


class SideMeans(NamedTuple):
    """One evaluation's metrics."""

    name: str
    """`before` or `after`."""
    file: str
    means: Mapping[str, float | None]
    """Mean of each listed metric; `None` where one of the tasks has no value."""


def put_metrics(
    book: NumberBook, sides: tuple[SideMeans, SideMeans], *, refused: str | None, barred: str | None
) -> tuple[MetricRow, ...]:
    """Put the mean of every listed metric down, and how many rose and fell.

    What bars a difference as a claim leaves the way that a metric went, as the files list it, told all the same.

    Args:
        book: Where the numbers go.
        sides: Before and after.
        refused: Why the two sides are not compared at all; `None` when they are.
        barred: Why no difference may be claimed; `None` when one may.
    """
    found = dict.fromkeys(key for side in sides for key in side.means)
    order = [key for key in (PRIMARY, *DIAGNOSTICS) if key in found]
    order += sorted(key for key in found if key not in order)
    rows = []
    for number, metric in enumerate(order[:MOST_METRICS]):
        key = metric if _SAFE_KEY.fullmatch(metric) else f"metric-{number}"
        label = quote(metric, LONGEST_LABEL)
        sources = tuple((side.file, f"/episodes/*/{label}") for side in sides)
        before, after = (side.means.get(metric) for side in sides)
        for side, mean, source in zip(sides, (before, after), sources, strict=True):
            book.put(f"metric.{key}.{side.name}", mean, decimal(mean, PLACES), source, reason=_NOT_LISTED)
        change = None if refused or before is None or after is None else after - before
        claimed = None if barred else change
        text = decimal(claimed, PLACES, signed=True)
        reason = refused or barred or _NOT_LISTED
        book.put(f"metric.{key}.difference", claimed, text, *sources, reason=reason)
        rows.append(MetricRow(key=key, label=label, is_primary=metric == PRIMARY, direction=_direction(change)))
    _count_directions(book, rows, sides, len(order))
    return tuple(rows)


def sides_of(sides: Sides) -> tuple[SideMeans, SideMeans]:
    """Average the grader's scores of the deciding part, each task weighing the same."""
    part = sides.plan.decision.part
    found = []
    for name, file, evaluation in (("before", layout.BEFORE, sides.before), ("after", layout.AFTER, sides.after)):
        episodes = [episode for episode in _counted(evaluation) if episode.part == part]
        found.append(SideMeans(name, file, _means(episodes)))
    return found[0], found[1]


def _counted(evaluation: Evaluation | None) -> Iterator[EpisodeRecord]:
    for episode in () if evaluation is None else evaluation.episodes:
        if episode.final_score is not None:
            yield episode


def _means(episodes: Sequence[EpisodeRecord]) -> dict[str, float | None]:
    values: dict[str, dict[str, list[float]]] = {}
    tasks = dict.fromkeys(episode.scenario_id for episode in episodes)
    for episode in episodes:
        own = {key: getattr(episode, key) for key in (PRIMARY, *DIAGNOSTICS)}
        for metric, value in {**(episode.scores or {}), **own}.items():
            if value is not None:
                values.setdefault(metric, {}).setdefault(episode.scenario_id, []).append(value)
    return {
        metric: mean_of([mean_of(found) for found in by_task.values()]) if len(by_task) == len(tasks) else None
        for metric, by_task in values.items()
    }


def _direction(change: float | None) -> Direction:
    if change is None:
        return "unknown"
    if change == 0:
        return "equal"
    return "up" if change > 0 else "down"


def _count_directions(book: NumberBook, rows: Sequence[MetricRow], sides: Sequence[SideMeans], listed: int) -> None:
    sources = tuple((side.file, "/episodes/*") for side in sides)
    for direction in ("up", "down", "equal", "unknown"):
        count = len([row for row in rows if row.direction == direction])
        book.put(f"metrics.{direction}", count, whole(count), *sources)
    book.put("metrics.listed", listed, whole(listed), *sources)
