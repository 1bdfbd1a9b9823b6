"""The laboratory in the shape that OpenEnv hosts expect: `reset`, `step`, `state`.

A thin adapter; no host package is imported. Every episode can be named (suite, scenario, seed, reward mode) and is
then the same in any order; a reset without a name goes through the scenarios in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from molforge_env.configuration import LaboratoryConfiguration
from molforge_env.laboratory import Laboratory
from molforge_env.models import Action, RewardMode
from molforge_env.scenarios import SCENARIO_IDS
from molforge_env.seeding import stream_seed
from molforge_env.states import LaboratoryState, report_state
from molforge_env.suites import ResolvedScenario, resolve_scenario, sequential_draws
from molforge_env.views import Observation


class MolForgeEnvironment:
    """Holds one laboratory for a host.

    It can be played before the first reset: construction opens the first scenario, as the public environment does.

    Args:
        configuration: Defaults of every reset.
    """

    def __init__(self, configuration: LaboratoryConfiguration | None = None) -> None:
        self._configuration = LaboratoryConfiguration() if configuration is None else configuration
        self._laboratory = Laboratory()
        self._draws: Iterator[ResolvedScenario] = sequential_draws(self._configuration.stream_seed)
        self._resets = count()
        self._episode_id = ""
        self._open(self._resolve(0, self._configuration.suite, None, None), 0, None, self._configuration.reward_mode)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        suite: str | None = None,
        scenario: str | None = None,
        reward_mode: RewardMode | None = None,
    ) -> Observation:
        """Start an episode.

        Args:
            seed: Of the episode; with it a variant is the same at any time and place.
            episode_id: Name of the episode, made from its task and number when absent.
            suite: Instead of the configured one.
            scenario: Instead of the one whose turn it is.
            reward_mode: Instead of the configured one.

        Raises:
            UnknownScenarioError: The suite or the scenario is not known.
        """
        index = next(self._resets)
        resolved = self._resolve(index, self._configuration.suite if suite is None else suite, scenario, seed)
        mode = self._configuration.reward_mode if reward_mode is None else reward_mode
        return self._open(resolved, index, episode_id, mode)

    def step(self, action: Action) -> Observation:
        """Play one action.

        Raises:
            EpisodeOverError: The episode is over; nothing has changed.
        """
        self._laboratory.step(action)
        return self._laboratory.observation

    @property
    def state(self) -> LaboratoryState:
        """The state of the current episode."""
        return report_state(
            self._laboratory.episode, episode_id=self._episode_id, debug=self._configuration.debug_state
        )

    @property
    def scenario(self) -> ResolvedScenario:
        """The task of the current episode, with every number settled."""
        return self._laboratory.scenario

    def _resolve(self, index: int, suite: str, scenario: str | None, seed: int | None) -> ResolvedScenario:
        if suite in ("randomized", "holdout") and seed is None:
            if scenario is None and suite == "randomized":
                return next(self._draws)
            # A stream of one environment cannot serve a named scenario without moving the draws of the others.
            seed = stream_seed(index, self._configuration.stream_seed) % 2**32
        elif suite == "official" and scenario is None:
            scenario = SCENARIO_IDS[index % len(SCENARIO_IDS)]
        return resolve_scenario(suite=suite, scenario_id=scenario, seed=seed)

    def _open(
        self, resolved: ResolvedScenario, index: int, episode_id: str | None, reward_mode: RewardMode
    ) -> Observation:
        derived = f"{resolved.suite}-{resolved.scenario_id}-{resolved.seed}-{index}"
        self._episode_id = derived if episode_id is None else episode_id
        return self._laboratory.start(
            resolved, reward_mode=reward_mode, task_index=SCENARIO_IDS.index(resolved.scenario_id)
        )
