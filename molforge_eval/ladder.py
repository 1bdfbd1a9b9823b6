"""The ladder: what reference policies score on the tasks of a suite, under the strict reward mode.

A before and an after are read against it: a floor that takes no skill, a heuristic, and the exact ceiling. Measuring it
takes hundreds of episodes, so each stands in a data file; a test holds the files to what is measured.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

from molforge_env import RULES_VERSION
from molforge_env.ceiling import ceiling_of
from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_env.policies import find_policy, play_scripted
from molforge_env.suites import SCENARIO_IDS, ResolvedScenario, SuiteName, resolve_scenario
from molforge_eval.records.evaluation import EvaluationPlan
from molforge_eval.records.fields import Count, Score
from molforge_eval.statistics import mean_of

RungName = Literal["do_nothing", "random_valid", "heuristic", "ceiling"]
STRICT_MODE: Literal["assay_gated"] = "assay_gated"
RANDOM_SEEDS = 64
"""Episodes a task of a policy that draws, where a task is one scenario."""
VARIANT_SEEDS = 16
"""Variants of a task that a ladder is measured on, one episode each; the standard plan samples the same."""
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
    suite: SuiteName = "official"
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
def ladder(suite: SuiteName = "official") -> Ladder:
    """Return the ladder of a suite under the rules in use, as it was measured once."""
    name = "ladder.json" if suite == "official" else f"ladder_{suite}.json"
    text = resources.files("molforge_eval").joinpath("data", name).read_text(encoding="utf-8")
    return Ladder.model_validate_json(text)


def ladder_of(plan: EvaluationPlan) -> Ladder:
    """Return the ladder of the suite that a plan decides by; without a deciding part, the official one."""
    return ladder(next((part.suite for part in plan.parts if part.name == plan.decision.part), "official"))


def measure_ladder(suite: SuiteName = "official") -> Ladder:
    """Play the reference policies and return the ladder."""
    rungs = tuple(_make_rung(name, [_play(name, suite, task) for task in SCENARIO_IDS]) for name in _SCRIPTED)
    ceiling = _make_rung("ceiling", [_look_up(suite, task) for task in SCENARIO_IDS])
    return Ladder(rules_version=RULES_VERSION, suite=suite, reward_mode=STRICT_MODE, rungs=(*rungs, ceiling))


def _tasks(suite: SuiteName, task: str) -> list[ResolvedScenario]:
    seeds = [None] if suite == "official" else range(VARIANT_SEEDS)
    return [resolve_scenario(suite=suite, scenario_id=task, seed=seed) for seed in seeds]


def _make_rung(name: RungName, tasks: list[TaskRung]) -> Rung:
    return Rung(name=name, tasks=tuple(tasks), mean=mean_of([task.score for task in tasks]))


def _play(name: RungName, suite: SuiteName, task: str) -> TaskRung:
    tasks = _tasks(suite, task)
    seeds = range(RANDOM_SEEDS) if find_policy(name).is_random and len(tasks) == 1 else range(len(tasks))
    scores = [play_scripted(name, tasks[seed % len(tasks)], seed, STRICT_MODE).scores["final_score"] for seed in seeds]
    return TaskRung(scenario_id=task, episodes=len(scores), score=mean_of(scores))


def _look_up(suite: SuiteName, task: str) -> TaskRung:
    scores = [ceiling_of(variant).final_score for variant in _tasks(suite, task)]
    return TaskRung(scenario_id=task, episodes=len(scores), score=mean_of(scores))
