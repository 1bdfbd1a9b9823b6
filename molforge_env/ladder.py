"""The ladder: what players without a model reach on the official tasks, under the strict reward mode.

Every before and after of a training run is shown on it. The means weigh each task the same.
"""

from __future__ import annotations

from collections.abc import Callable

from molforge_env.arithmetic import fold
from molforge_env.ceiling import find_ceiling, official_ceilings
from molforge_env.frozen import FrozenModel
from molforge_env.policies import POLICIES, play_scripted
from molforge_env.suites import SCENARIO_IDS, ResolvedScenario, resolve_scenario

DEFAULT_EPISODES = 1000
CEILING = "ceiling"


class Rung(FrozenModel):
    """One player on the official tasks."""

    name: str
    episodes_per_task: int
    """How many episodes each mean is over; 1 when nothing is drawn."""
    scores: dict[str, float]
    """Mean final score by scenario."""
    mean: float
    """Equal-weight mean over the tasks."""


class Ladder(FrozenModel):
    """The rungs from the lowest idea to the best attainable."""

    reward_mode: str
    seed: int
    """Seed of the first random episode of each task; the next ones follow."""
    rungs: tuple[Rung, ...]


def measure_ladder(
    *,
    episodes: int = DEFAULT_EPISODES,
    seed: int = 0,
    search: bool = False,
    on_progress: Callable[[str], None] = lambda _name: None,
) -> Ladder:
    """Play every reference policy on the official tasks.

    Args:
        episodes: Episodes a task for the policies that draw.
        seed: First seed of those episodes.
        search: Search the ceilings again instead of reading the kept ones.
        on_progress: Is told the name of each rung before it is measured.
    """
    tasks = [resolve_scenario(scenario_id=scenario_id) for scenario_id in SCENARIO_IDS]
    rungs = []
    for policy in POLICIES.values():
        on_progress(policy.name)
        count = episodes if policy.is_random else 1
        rungs.append(
            _rung(policy.name, count, {task.scenario_id: _mean_score(policy.name, task, count, seed) for task in tasks})
        )
    on_progress(CEILING)
    ceilings = official_ceilings()
    rungs.append(
        _rung(
            CEILING,
            1,
            {
                task.scenario_id: (find_ceiling(task) if search else ceilings[task.scenario_id]).final_score
                for task in tasks
            },
        )
    )
    return Ladder(reward_mode="assay_gated", seed=seed, rungs=tuple(rungs))


def _mean_score(name: str, task: ResolvedScenario, episodes: int, seed: int) -> float:
    return fold(play_scripted(name, task, seed + index).scores["final_score"] for index in range(episodes)) / episodes


def _rung(name: str, episodes: int, scores: dict[str, float]) -> Rung:
    return Rung(name=name, episodes_per_task=episodes, scores=scores, mean=fold(scores.values()) / len(scores))
