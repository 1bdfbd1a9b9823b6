"""One episode held, functions called: what the tool session and the hosted environment share."""

from __future__ import annotations

from molforge_env.episodes import Episode, Turn
from molforge_env.errors import UsageError
from molforge_env.models import Action, RewardMode
from molforge_env.suites import ResolvedScenario, open_episode
from molforge_env.transitions import step
from molforge_env.views import Observation, observe


class Laboratory:
    """Holds the current episode and its observation, which is built once a step."""

    __slots__ = ("_episode", "_observation", "_scenario", "_task_index")

    def __init__(self) -> None:
        self._episode: Episode | None = None
        self._observation: Observation | None = None
        self._scenario: ResolvedScenario | None = None
        self._task_index: int | None = None

    def start(
        self,
        scenario: ResolvedScenario,
        *,
        reward_mode: RewardMode = "assay_gated",
        task_index: int | None = None,
        noise_seed: int | None = None,
    ) -> Observation:
        """Open an episode and forget the one before."""
        self._scenario = scenario
        self._task_index = task_index
        self._episode = open_episode(scenario, reward_mode=reward_mode, noise_seed=noise_seed)
        self._observation = observe(self._episode, task_index=task_index)
        return self._observation

    def step(self, action: Action) -> Turn:
        """Play one action.

        Raises:
            EpisodeOverError: The episode is over; nothing has changed.
            UsageError: No episode was started.
        """
        self._episode = step(self.episode, action)
        self._observation = observe(self._episode, task_index=self._task_index)
        return self._episode.history[-1]

    def take_up(self, scenario: ResolvedScenario, episode: Episode, observation: Observation) -> None:
        """Stand where another laboratory stood: neither state ever changes."""
        self._scenario = scenario
        self._task_index = None
        self._episode = episode
        self._observation = observation

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            UsageError: No episode was started.
        """
        if self._episode is None:
            raise _not_started()
        return self._episode

    @property
    def observation(self) -> Observation:
        """What the player sees now.

        Raises:
            UsageError: No episode was started.
        """
        if self._observation is None:
            raise _not_started()
        return self._observation

    @property
    def scenario(self) -> ResolvedScenario:
        """The task of the current episode.

        Raises:
            UsageError: No episode was started.
        """
        if self._scenario is None:
            raise _not_started()
        return self._scenario


def _not_started() -> UsageError:
    return UsageError("no episode was started", where="laboratory", mend="Call `reset` first.")
