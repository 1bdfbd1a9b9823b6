"""The training logs: a line a tool call, a row a trainer log, and the summary over both."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from molforge_env.frozen import FrozenModel
from molforge_env.suites import ResolvedScenario
from molforge_eval.records.fields import (
    ActionType,
    Count,
    EndedBy,
    EpisodeId,
    FormatVersion,
    GovernanceStatus,
    MoleculeCode,
    Moment,
    RewardMode,
    RunId,
    Score,
    Seed,
    Sha256,
)


class RolloutLine(FrozenModel):
    """One tool call of a training episode, or the completion without a call that ended one.

    The last line of an episode, and only that one, carries `ended_by` and `episode_score`; the first one carries
    `prompt` and `scenario`, so that the episode can be played again from its lines alone.
    """

    format_version: FormatVersion
    run_id: RunId
    episode_id: EpisodeId
    timestamp: Moment
    trainer_step: Count
    """Optimizer step at which the episode was generated."""
    generation: Count
    """Index within the group of completions of one prompt."""
    turn: Count
    seed: Seed
    scenario_id: str
    difficulty: str
    scenario: ResolvedScenario | None
    reward_mode: RewardMode
    step_index: Count
    tool: str | None
    """Name of the called tool as sent, known or not; `None` for a completion without a call."""
    action_type: ActionType
    """`none` for a completion without a call, and for a call of a tool that does not exist."""
    acting_role: str | None
    slot: str | None
    fragment: str | None
    tool_name: str | None
    """Assay of a `run_assay` call."""
    arguments: dict[str, Any]
    """Arguments as sent."""
    rationale: str | None
    reward: float | None
    """Tool reward: the final score when the episode is done, else the transition reward; `None` without a step."""
    transition_reward: float | None
    done: bool
    governance_status: GovernanceStatus | None
    vetoes: tuple[str, ...]
    error_code: str
    remaining_budget: Count
    molecule: MoleculeCode
    observation_sha256: Sha256 | None
    final_score: Score | None
    """Grader scores; `None` until the laboratory has ended the episode."""
    submission_score: Score | None
    progress_score: Score | None
    summary: str
    prompt: str | None
    raw_completion: str | None
    """Text of the completion that held the call; on the first of its calls only."""
    source: Literal["model", "fallback"]
    status: Literal["ok", "invalid", "env_error"]
    ended_by: EndedBy | None
    episode_score: Score | None
    """Strict score of the whole episode: `final_score`, 0.0 when unfinished, `None` for `env_error`."""
    training_reward: float | None
    """What the trainer was paid for the episode; on its last line."""
    chain: Sha256


class TrainerRow(FrozenModel):
    """One row of the trainer's log: our typed head, then the trainer's own keys, flat.

    A number that is not finite is written as `null` and named in `non_finite`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, float | int | str | None]

    format_version: FormatVersion
    run_id: RunId
    type: Literal["train", "eval", "summary", "resume"]
    step: Count
    time: Moment
    elapsed_seconds: float = Field(ge=0.0)
    non_finite: dict[str, Literal["NaN", "Infinity", "-Infinity"]]


class EvaluationHeadline(FrozenModel):
    """The numbers that the summary repeats from an evaluation."""

    label: str
    average_final_score: Score | None
    sampled_mean_final_score: Score | None
    skipped: bool
    reason: str | None


class RunSummary(FrozenModel):
    """Aggregates over the logs; every number can be computed again from them."""

    format_version: FormatVersion
    run_id: RunId
    run_name: str
    base_model: str
    sft_adapter_path: str | None
    num_episodes: Count
    num_tool_calls: Count
    """Lines that hold a call."""
    mean_tool_reward: float | None
    max_tool_reward: float | None
    action_counts: dict[str, int]
    ended_by_counts: dict[str, int]
    veto_count: Count
    invalid_count: Count
    env_error_count: Count
    mean_episode_score: Score | None
    """Over the training episodes that did not end by `env_error`."""
    latest_trainer_log: dict[str, Any] | None
    eval_before: EvaluationHeadline
    eval_after: EvaluationHeadline
