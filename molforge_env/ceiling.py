"""The ceiling: the best final score that the five tools can reach, found by an exact search.

Best first, over the real rules. The bound of a state never falls below what can still be reached from it, states that
have the same future are one, and a state whose bound does not beat the best ending is dropped; so the result is exact.
Calls that the rules refuse are left out: a deferral passes the turn at no cost and so is at least as good.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from functools import cache
from itertools import count

from molforge_env import RULES_VERSION
from molforge_env.bounds import Bounds
from molforge_env.episodes import Episode, post_shift_potencies
from molforge_env.frozen import FrozenModel
from molforge_env.grading import count_reviews, grade
from molforge_env.models import Action
from molforge_env.policies import Call, play_scripted, valid_calls
from molforge_env.review_board import compose_action
from molforge_env.suites import ResolvedScenario, open_episode, resolve_scenario
from molforge_env.tables import read_table
from molforge_env.tools import read_intent
from molforge_env.transitions import step
from molforge_env.views import observe

_Path = tuple[Call, ...]


class Ceiling(FrozenModel):
    """The best final score of a task and the calls that reach it."""

    rules_version: str
    scenario: ResolvedScenario
    final_score: float
    calls: tuple[Call, ...]
    expanded: int
    """How many states the search opened."""


def find_ceiling(scenario: ResolvedScenario) -> Ceiling:
    """Search a task for its best ending.

    Args:
        scenario: Any resolved task.

    Returns:
        The exact ceiling and the way that the search met first, short ones before long ones; equal inputs give
        equal ways.
    """
    first = open_episode(scenario)
    bounds = Bounds(first.scenario)
    best, best_path = _score_of_heuristic(scenario)
    order = count()
    heap: list[tuple[float, int, int, Episode, _Path]] = [(-bounds.bound(first), 0, next(order), first, ())]
    met: set[Hashable] = set()
    expanded = 0
    while heap and -heap[0][0] > best:
        _, _, _, episode, path = heapq.heappop(heap)
        expanded += 1
        for call, action in _actions(episode):
            following = step(episode, action)
            if following.done:
                score = grade(following)["final_score"]
                if score > best:
                    best, best_path = score, (*path, call)
                continue
            future = _future_of(following)
            if future in met:
                continue
            met.add(future)
            bound = bounds.bound(following)
            if bound > best:
                heapq.heappush(heap, (-bound, following.step, next(order), following, (*path, call)))
    return Ceiling(rules_version=RULES_VERSION, scenario=scenario, final_score=best, calls=best_path, expanded=expanded)


@cache
def official_ceilings() -> dict[str, Ceiling]:
    """Read the ceilings of the official tasks, by scenario.

    They are kept in a data file, which the search gives again at any time.
    """
    rows = [Ceiling.model_validate(row) for row in read_table("ceilings")["ceilings"]]
    return {row.scenario.scenario_id: row for row in rows}


@cache
def ceiling_of(scenario: ResolvedScenario) -> Ceiling:
    """Look a task's ceiling up where it is kept, and search it otherwise; each is searched once.

    Kept are those of the official tasks and of the first variants of each other suite.
    """
    kept = official_ceilings().get(scenario.scenario_id) if scenario.suite == "official" else None
    if kept is not None:
        return kept.model_copy(update={"scenario": scenario})
    found = _variant_ceilings().get((scenario.suite, scenario.scenario_id, scenario.seed))
    return found if found is not None and found.scenario == scenario else find_ceiling(scenario)


@cache
def _variant_ceilings() -> dict[tuple[str, str, int | None], Ceiling]:
    rows = read_table("variant_ceilings")["ceilings"]
    found = {}
    for row in rows:
        key = row["suite"], row["scenario_id"], row["seed"]
        scenario = resolve_scenario(suite=key[0], scenario_id=key[1], seed=key[2])
        found[key] = Ceiling(
            rules_version=RULES_VERSION,
            scenario=scenario,
            final_score=row["final_score"],
            calls=tuple((tool, arguments) for tool, arguments in row["calls"]),
            expanded=row["expanded"],
        )
    return found


def _score_of_heuristic(scenario: ResolvedScenario) -> tuple[float, _Path]:
    session = play_scripted("heuristic", scenario)
    calls: list[Call] = []
    for outcome in session.outcomes:
        action = outcome.action
        names = {"slot": action.slot, "fragment": action.fragment, "tool_name": action.tool_name}
        calls.append((action.action_type, {name: value for name, value in names.items() if value is not None}))
    return session.scores["final_score"], tuple(calls)


def _actions(episode: Episode) -> Iterator[tuple[Call, Action]]:
    observation = observe(episode)
    for call in valid_calls(observation, restart_used=episode.restart_used):
        yield call, compose_action(observation, read_intent(*call))


def _future_of(episode: Episode) -> Hashable:
    """Name everything that the rest of an episode can depend on through the tools."""
    # Order counts only between readings of one property, so a stable sort makes equal futures equal.
    readings = sorted(episode.readings, key=lambda reading: (reading.molecule, reading.property_name))
    vetoes = [turn.governance.status for turn in episode.history].count("policy_veto")
    return (
        episode.molecule.code,
        episode.trap,
        episode.restart_used,
        episode.step,
        episode.remaining_budget,
        tuple((reading.molecule, reading.property_name, reading.tool_name, reading.estimate) for reading in readings),
        frozenset(episode.runs.items()),
        post_shift_potencies(episode),
        count_reviews(episode),
        vetoes,
    )
