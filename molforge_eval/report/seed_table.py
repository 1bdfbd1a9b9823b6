"""Seed by seed: the score of each episode of the deciding part before and after, and the mean over tasks.

The seed is the unit of the test, so its mean decides and its tasks are shown. A seed that was not counted on a side has
no number there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from molforge_eval import layout
from molforge_eval.records.evaluation import Evaluation, PartName
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal
from molforge_eval.report.scores import MEAN, Sides, task_key
from molforge_eval.report.section_evidence import SeedLine, SeedPair, SeedTable
from molforge_eval.statistics import mean_of
from molforge_eval.verdict import Verdict

MOST_LINES = 200
MOST_LINES_WITH_TASKS = 64
MOST_TASKS = 4
ARMS = {"before": layout.BEFORE, "after": layout.AFTER}
_NOT_COUNTED = "the episode is missing or was not counted"
_NO_MEAN = "not every task of the seed was counted"
_NOT_CLAIMED = "no difference is claimed, or a side is missing"

Item = TypeVar("Item")


class Counted(NamedTuple):
    """A counted episode."""

    number: int
    """Its place in the file's list."""
    score: float


Episodes = Mapping[tuple[str, int], Counted]


def put_seed_table(book: NumberBook, sides: Sides, verdict: Verdict) -> SeedTable:
    """Put the scores of the shown seeds down, and return them in the order of the plan."""
    part = sides.plan.decision.part
    planned = next((block for block in sides.plan.parts if block.name == part), None)
    tasks = () if planned is None else tuple(dict.fromkeys(planned.tasks))
    seeds = () if planned is None else tuple(dict.fromkeys(planned.seeds))
    found = {arm: counted_episodes(getattr(sides, arm), part) for arm in ARMS}
    shown = evenly(seeds, MOST_LINES)
    has_tasks = len(tasks) <= MOST_TASKS and len(shown) <= MOST_LINES_WITH_TASKS
    is_claimed = verdict.sampled.difference is not None
    lines = tuple(_line(found, tasks, seed) for seed in shown)
    for line in lines:
        _put_line(book, line, tasks, found, has_tasks=has_tasks, is_claimed=is_claimed)
    return SeedTable(lines=lines, planned=len(seeds), has_tasks=has_tasks, is_claimed=is_claimed)


def counted_episodes(evaluation: Evaluation | None, part: PartName) -> Episodes:
    """Return the counted episodes of a part by task and seed; of two alike the last, as the pairing takes it."""
    episodes = () if evaluation is None else evaluation.episodes
    return {
        (episode.scenario_id, episode.seed): Counted(number, episode.final_score)
        for number, episode in enumerate(episodes)
        if episode.part == part and episode.final_score is not None
    }


def evenly(items: Sequence[Item], most: int) -> tuple[Item, ...]:
    """Keep so many of some items, evenly spread over them, the first and the last among them.

    >>> evenly(range(10), 4), evenly(range(3), 4)
    ((0, 3, 6, 9), (0, 1, 2))
    """
    if len(items) <= most:
        return tuple(items)
    return tuple(items[place * (len(items) - 1) // (most - 1)] for place in range(most))


def _line(found: Mapping[str, Episodes], tasks: Sequence[str], seed: int) -> SeedLine:
    pairs = [SeedPair(*(_score(found[arm], task, seed) for arm in ARMS)) for task in tasks]
    mean = SeedPair(_mean([pair.before for pair in pairs]), _mean([pair.after for pair in pairs]))
    return SeedLine(seed=seed, mean=mean, tasks=tuple(pairs))


def _score(episodes: Episodes, task: str, seed: int) -> float | None:
    counted = episodes.get((task, seed))
    return None if counted is None else counted.score


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return mean_of(known) if known and len(known) == len(scores) else None


def _put_line(
    book: NumberBook,
    line: SeedLine,
    tasks: Sequence[str],
    found: Mapping[str, Episodes],
    *,
    has_tasks: bool,
    is_claimed: bool,
) -> None:
    at = f"seed.{line.seed}"
    places = {arm: [_place(arm, found[arm], task, line.seed) for task in tasks] for arm in ARMS}
    if has_tasks:
        for number, (task, pair) in enumerate(zip(tasks, line.tasks, strict=True)):
            for arm in ARMS:
                score = getattr(pair, arm)
                key = f"{at}.{task_key(task, number)}.{arm}"
                book.put(key, score, decimal(score), places[arm][number], reason=_NOT_COUNTED)
    for arm in ARMS:
        mean = getattr(line.mean, arm)
        book.put(f"{at}.{MEAN}.{arm}", mean, decimal(mean), *places[arm], reason=_NO_MEAN)
    before, after = line.mean
    change = after - before if is_claimed and before is not None and after is not None else None
    text = decimal(change, signed=True)
    sources = (*places["before"], *places["after"])
    book.put(f"{at}.{MEAN}.difference", change, text, *sources, reason=_NOT_CLAIMED)


def _place(arm: str, episodes: Episodes, task: str, seed: int) -> tuple[str, str]:
    counted = episodes.get((task, seed))
    return ARMS[arm], f"/episodes/{'*' if counted is None else counted.number}/final_score"
