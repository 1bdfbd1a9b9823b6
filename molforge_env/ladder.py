"""The ladder: what players without a model reach on the tasks of a suite, under the strict reward mode.

Every before and after of a training run is shown on it. The means weigh each task the same.
"""

from __future__ import annotations

from collections.abc import Callable

from molforge_env.arithmetic import fold
from molforge_env.ceiling import ceiling_of, find_ceiling
from molforge_env.frozen import FrozenModel
from molforge_env.policies import POLICIES, play_scripted
from molforge_env.suites import SCENARIO_IDS, ResolvedScenario, SuiteName, resolve_scenario

DEFAULT_EPISODES = 1000
DEFAULT_VARIANTS = 16
CEILING = "ceiling"


class Rung(FrozenModel):
    """One player on the tasks of a suite."""

    name: str
    episodes_per_task: int
    """How many episodes each mean is over: 1 for a player that draws nothing on a task that does not vary."""
    scores: dict[str, float]
    """Mean final score by scenario."""
    mean: float
    """Equal-weight mean over the tasks."""


class Ladder(FrozenModel):
    """The rungs from the lowest idea to the best attainable."""

    suite: SuiteName = "official"
    reward_mode: str
    seed: int
    """Seed of the first variant, or else of the first random episode, of each task; the next ones follow."""
    rungs: tuple[Rung, ...]


def measure_ladder(
    *,
    suite: SuiteName = "official",
    episodes: int | None = None,
    seed: int = 0,
    search: bool = False,
    on_progress: Callable[[str], None] = lambda _name: None,
) -> Ladder:
    """Play every reference policy on the tasks of a suite.

    Args:
        suite: Family of the tasks.
        episodes: Episodes a task: on official tasks of the policies that draw (1,000 when absent), of variants one
            episode each (16 when absent).
        seed: First seed of those episodes.
        search: Search the ceilings again instead of reading the kept ones.
        on_progress: Is told the name of each rung before it is measured.
    """
    played = (DEFAULT_EPISODES if suite == "official" else DEFAULT_VARIANTS) if episodes is None else episodes
    seeds = range(seed, seed + played)
    varies = suite != "official"
    tasks = {
        name: [resolve_scenario(suite=suite, scenario_id=name, seed=variant if varies else None) for variant in drawn]
        for drawn in [seeds if varies else seeds[:1]]
        for name in SCENARIO_IDS
    }
    rungs = []
    for policy in POLICIES.values():
        on_progress(policy.name)
        own = seeds if policy.is_random or varies else seeds[:1]
        rungs.append(
            _rung(policy.name, len(own), {name: _mean(policy.name, rows, own) for name, rows in tasks.items()})
        )
    on_progress(CEILING)
    best = find_ceiling if search else ceiling_of
    ceilings = {name: fold(best(row).final_score for row in rows) / len(rows) for name, rows in tasks.items()}
    rungs.append(_rung(CEILING, len(tasks[SCENARIO_IDS[0]]), ceilings))
    return Ladder(suite=suite, reward_mode="assay_gated", seed=seed, rungs=tuple(rungs))


def _mean(name: str, tasks: list[ResolvedScenario], seeds: range) -> float:
    pairs = [(tasks[place % len(tasks)], seed) for place, seed in enumerate(seeds)]
    return fold(play_scripted(name, task, seed).scores["final_score"] for task, seed in pairs) / len(pairs)


def _rung(name: str, episodes: int, scores: dict[str, float]) -> Rung:
    return Rung(name=name, episodes_per_task=episodes, scores=scores, mean=fold(scores.values()) / len(scores))
