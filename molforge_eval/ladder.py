"""The ladder: what reference policies score on the official tasks, under the strict reward mode.

A before and an after are read against it: a floor that takes no skill, a heuristic, and the exact ceiling. Measuring it
takes two hundred episodes, so it stands in `data/ladder.json`; a test holds the file to what is measured.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

from molforge_env import RULES_VERSION
from molforge_env.ceiling import official_ceilings
from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_env.policies import find_policy, play_scripted
from molforge_env.suites import SCENARIO_IDS, resolve_scenario
from molforge_eval.records.fields import Count, Score
from molforge_eval.statistics import mean_of

RungName = Literal["do_nothing", "random_valid", "heuristic", "ceiling"]
STRICT_MODE: Literal["assay_gated"] = "assay_gated"
RANDOM_SEEDS = 64
"""Episodes a task of a policy that draws."""
_SCRIPTED: tuple[RungName, ...] = ("do_nothing", "random_valid", "heuristic")


class TaskRung(FrozenModel):
    """The mean score of one policy on one task."""

    scenario_id: str
    episodes: Count
    score: Score


class Rung(FrozenModel):
    """One reference policy."""

    name: RungName
    tasks: tuple[TaskRung, ...]
    mean: Score
    """Each task weighs the same."""


class Ladder(FrozenModel):
    """The reference policies from floor to ceiling."""

    rules_version: str
    reward_mode: Literal["assay_gated"]
    rungs: tuple[Rung, ...]

    def rung(self, name: str) -> Rung:
        """Find a rung.

        Raises:
            UsageError: The ladder has no such rung.
        """
        found = next((rung for rung in self.rungs if rung.name == name), None)
        if found is None:
            known = ", ".join(rung.name for rung in self.rungs)
            raise UsageError(f"rung {name!r} is not known", where="ladder", mend=f"Choose one of {known}.")
        return found

    def mean(self, name: str) -> float:
        """Return a rung's mean over tasks."""
        return self.rung(name).mean

    def score(self, name: str, scenario_id: str) -> float:
        """Return a rung's score on one task.

        Raises:
            UsageError: The ladder has no such rung or task.
        """
        found = next((task for task in self.rung(name).tasks if task.scenario_id == scenario_id), None)
        if found is None:
            raise UsageError(
                f"task {scenario_id!r} is not on the ladder",
                where=f"ladder, rung {name}",
                mend=f"Choose one of {', '.join(SCENARIO_IDS)}.",
            )
        return found.score


@cache
def ladder() -> Ladder:
    """Return the ladder of the rules in use, as it was measured once."""
    text = resources.files("molforge_eval").joinpath("data", "ladder.json").read_text(encoding="utf-8")
    return Ladder.model_validate_json(text)


def measure_ladder() -> Ladder:
    """Play the reference policies and return the ladder."""
    rungs = tuple(_make_rung(name, [_play(name, task) for task in SCENARIO_IDS]) for name in _SCRIPTED)
    ceiling = _make_rung("ceiling", [_look_up(task) for task in SCENARIO_IDS])
    return Ladder(rules_version=RULES_VERSION, reward_mode=STRICT_MODE, rungs=(*rungs, ceiling))


def _make_rung(name: RungName, tasks: list[TaskRung]) -> Rung:
    return Rung(name=name, tasks=tuple(tasks), mean=mean_of([task.score for task in tasks]))


def _play(name: RungName, task: str) -> TaskRung:
    seeds = range(RANDOM_SEEDS) if find_policy(name).is_random else range(1)
    scenario = resolve_scenario(scenario_id=task)
    scores = [play_scripted(name, scenario, seed, STRICT_MODE).scores["final_score"] for seed in seeds]
    return TaskRung(scenario_id=task, episodes=len(scores), score=mean_of(scores))


def _look_up(task: str) -> TaskRung:
    return TaskRung(scenario_id=task, episodes=1, score=official_ceilings()[task].final_score)
