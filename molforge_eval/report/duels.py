"""Every two runs that measure the same thing, held against each other: paired by the seeds that both played.

The difference is that of the scores after training, first minus second. A pair that does not measure the same thing
gets no difference: every key that differs is listed. What p-values decide is decided after Holm's adjustment over all
pairs, with the rule that the product ships, because no run's own plan speaks of another run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from molforge_eval.comparability import Difference, list_barriers
from molforge_eval.decision import generator, interval_of, judge, lies_inside
from molforge_eval.pairing import Pairing, difference_table, pair_scores, played_copies
from molforge_eval.records.evaluation import DecisionRule, Evaluation
from molforge_eval.report.comparison_evidence import Meeting, Note
from molforge_eval.report.rivals import Rival
from molforge_eval.statistics import Interval, fewest_units, holm, mean_of, sign_flip_test, smallest_sign_flip_p

RULE = DecisionRule()
"""The standard rule; its part is that of the plans, which agree in it or are refused."""
FEWEST_SEEDS = fewest_units(RULE.alpha)
"""With fewer paired seeds no p-value is under the level."""
NO_SEEDS = "of the seeds that both planned none was counted in every task on both sides"
COPIES = "the seeds of both are copies of one deterministic episode a task: nothing to test"
UNCOUNTED = "some of the common seeds were not counted on both sides"


class TaskDuel(NamedTuple):
    """One task of a pair; shown, and deciding nothing."""

    task: str
    seeds: int
    difference: float | None
    interval: Interval | None
    p_value: float | None
    holm: float | None


class Duel(NamedTuple):
    """What two runs say about each other."""

    first: str
    second: str
    meeting: Meeting
    reason: str | None
    barriers: tuple[Difference, ...]
    seeds_common: int
    """Seeds that both planned."""
    seeds: int
    """Seeds whose every task was counted on both sides."""
    difference: float | None
    interval: Interval | None
    p_value: float | None
    holm: float | None
    tasks: tuple[TaskDuel, ...]

    @property
    def key(self) -> str:
        """Its key: those of the runs."""
        return f"{self.first}-{self.second}"


def hold_duels(rivals: Sequence[Rival]) -> tuple[Duel, ...]:
    """Hold every two runs that may be compared against each other, in the order of the runs."""
    able = [rival for rival in rivals if rival.is_compared() and rival.after is not None]
    return _adjusted([_hold(first, second) for first, second in combinations(able, 2)])


def note_of(duels: Sequence[Duel]) -> Note | None:
    """Say what has to be known of the tests as a whole."""
    least = smallest_p_of(duels)
    if least is None:
        return None
    if least >= RULE.alpha:
        return "no pair can be told apart"
    return "some pairs cannot be told apart" if list_short(duels) else None


def smallest_p_of(duels: Sequence[Duel]) -> float | None:
    """Return the least adjusted p-value that the tested pairs can give; `None` when none was tested.

    Holm's least value is multiplied by the number of pairs, and no pair can have it below that of the most seeds.
    """
    tested = [duel for duel in duels if duel.p_value is not None]
    if not tested:
        return None
    return min(1.0, len(tested) * smallest_sign_flip_p(max(duel.seeds for duel in tested)))


def list_short(duels: Sequence[Duel]) -> tuple[str, ...]:
    """List the tested pairs whose seeds are too few for any difference to tell them apart."""
    return tuple(d.key for d in duels if d.p_value is not None and d.seeds < FEWEST_SEEDS)


def _hold(first: Rival, second: Rival) -> Duel:
    left, right = _after(first), _after(second)
    barriers = list_barriers(left, right)
    part = left.plan.decision.part
    pairing = pair_scores(right, left, left.plan, part)
    planned = {seed for block in right.plan.parts if block.name == part for seed in block.seeds}
    common = len([seed for seed in pairing.seeds if seed in planned])
    duel = Duel(
        first=first.key,
        second=second.key,
        meeting="refused",
        reason=None,
        barriers=barriers,
        seeds_common=common,
        seeds=len(pairing.paired_seeds),
        difference=None,
        interval=None,
        p_value=None,
        holm=None,
        tasks=(),
    )
    if barriers:
        return duel
    if not pairing.paired_seeds:
        seeds = [list(block.seeds) for plan in (left.plan, right.plan) for block in plan.parts if block.name == part]
        unlike = Difference(key=f"plan.parts.{part}.seeds", before=seeds[0], after=seeds[1])
        return duel._replace(reason=NO_SEEDS, barriers=() if common else (unlike,))
    table = difference_table(pairing)
    duel = duel._replace(difference=mean_of(table.mean(axis=1)), tasks=tuple(_hold_tasks(pairing)))
    if played_copies(left, part) and played_copies(right, part):
        bare = tuple(task._replace(interval=None, p_value=None) for task in duel.tasks)
        return duel._replace(meeting="not tested", reason=COPIES, tasks=bare)
    judgement = judge(table, RULE)
    short = None if duel.seeds == common else UNCOUNTED
    return duel._replace(
        meeting="not told apart", interval=judgement.interval, p_value=judgement.test.p_value, reason=short
    )


def _hold_tasks(pairing: Pairing) -> Iterator[TaskDuel]:
    for task in dict.fromkeys(pairing.tasks):
        seeds = tuple(s for s in pairing.seeds if (task, s) in pairing.before and (task, s) in pairing.after)
        if not seeds:
            yield TaskDuel(task, 0, None, None, None, None)
            continue
        alone = pairing._replace(tasks=(task,), paired_seeds=seeds)
        column = difference_table(alone)
        test = sign_flip_test(
            column[:, 0],
            rng=generator(RULE, f"pair {task}"),
            exact_up_to=RULE.exact_flips_up_to,
            draws=RULE.flip_draws,
        )
        interval = interval_of(column, RULE, f"pair {task}")
        yield TaskDuel(task, len(seeds), mean_of(column[:, 0]), interval, test.p_value, None)


def _adjusted(duels: Sequence[Duel]) -> tuple[Duel, ...]:
    """Adjust the p-values, those of the means among themselves and those of the tasks among themselves, and decide."""
    over_pairs = iter(holm([duel.p_value for duel in duels if duel.p_value is not None]))
    over_tasks = iter(holm([t.p_value for duel in duels for t in duel.tasks if t.p_value is not None]))
    found = []
    for duel in duels:
        tasks = tuple(t if t.p_value is None else t._replace(holm=next(over_tasks)) for t in duel.tasks)
        adjusted = None if duel.p_value is None else next(over_pairs)
        decided = duel._replace(tasks=tasks, holm=adjusted)
        found.append(decided if adjusted is None else decided._replace(meeting=_meet(decided, adjusted)))
    return tuple(found)


def _meet(duel: Duel, adjusted: float) -> Meeting:
    if adjusted < RULE.alpha:
        return "higher" if (duel.difference or 0.0) > 0.0 else "lower"
    if duel.seeds >= FEWEST_SEEDS and lies_inside(duel.interval, RULE.margin):
        return "alike"
    return "not told apart"


def _after(rival: Rival) -> Evaluation:
    if rival.after is None:
        raise ValueError(f"run {rival.key} has no evaluation after training")
    return rival.after
