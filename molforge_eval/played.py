"""A finished episode on its way into the records, and the sealing that ends the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from molforge_env.suites import ResolvedScenario
from molforge_eval.canonical import seal_of
from molforge_eval.plan import PlannedEpisode
from molforge_eval.records.evaluation import EpisodeRecord, EvaluationPlan, PolicyIdentity, StepRecord, TurnRecord
from molforge_eval.records.fields import COMPLETED_ENDINGS, EndedBy, RewardMode

UNFINISHED_SCORE = 0.0
"""Final score of an episode that the model left unfinished."""
_UNSEALED = "0" * 64


class PlayedEpisode(NamedTuple):
    """What a player hands back."""

    planned: PlannedEpisode
    scenario: ResolvedScenario
    steps: tuple[StepRecord, ...]
    turns: tuple[TurnRecord, ...]
    ended_by: EndedBy
    error: str | None
    """What broke, for `env_error`."""
    scores: dict[str, float] | None
    """The grader scores, when the laboratory ended the episode."""
    prompt_tokens: int
    """Read and not written by the model: the prompt and the answers of the laboratory."""
    completion_tokens: int
    wall_time_seconds: float


class Player(Protocol):
    """Whoever plays the episodes of a plan."""

    @property
    def identity(self) -> PolicyIdentity:
        """Who it is."""

    def play(self, planned: Sequence[PlannedEpisode], plan: EvaluationPlan) -> Iterator[PlayedEpisode]:
        """Play every episode once, in any order; how they are batched changes no draw."""


def seal_episode(played: PlayedEpisode, *, reward_mode: RewardMode, policy_sha256: str) -> EpisodeRecord:
    """Write an episode down and seal it.

    Args:
        played: The finished episode.
        reward_mode: How steps were paid.
        policy_sha256: Digest of the player's identity.
    """
    scores = played.scores if played.ended_by in COMPLETED_ENDINGS else None
    record = EpisodeRecord(
        episode_id=played.planned.episode_id,
        part=played.planned.part,
        suite=played.planned.suite,
        scenario_id=played.planned.scenario_id,
        difficulty=played.scenario.difficulty,
        seed=played.planned.seed,
        scenario=played.scenario,
        reward_mode=reward_mode,
        policy_sha256=policy_sha256,
        steps=played.steps,
        turns=played.turns,
        ended_by=played.ended_by,
        error=played.error,
        final_score=_headline(played, scores),
        submission_score=None if scores is None else scores["submission_score"],
        progress_score=None if scores is None else scores["progress_score"],
        scores=scores,
        total_reward=None if played.ended_by == "env_error" else total_reward(played.steps),
        prompt_tokens=played.prompt_tokens,
        completion_tokens=played.completion_tokens,
        wall_time_seconds=round(played.wall_time_seconds, 6),
        seal=_UNSEALED,
    )
    return record.model_copy(update={"seal": seal_of(record)})


def total_reward(steps: Sequence[StepRecord]) -> float:
    """Add the rewards of the steps that were played, rounded after each one as the laboratory rounds its total."""
    total = 0.0
    for step in steps:
        if step.reward is not None:
            total = round(total + step.reward, 4)
    return total


def _headline(played: PlayedEpisode, scores: dict[str, float] | None) -> float | None:
    if played.ended_by == "env_error":
        return None
    return UNFINISHED_SCORE if scores is None else scores["final_score"]
