"""The evaluation plan and the two evaluations, one sealed record an episode.

Planned = completed + errored + excluded in every part, so no episode vanishes from a mean.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_env.suites import ResolvedScenario, SuiteName
from molforge_eval.records.fields import (
    ActionType,
    Count,
    EndedBy,
    EpisodeId,
    FormatVersion,
    GovernanceStatus,
    MoleculeCode,
    Moment,
    ObservationLength,
    RewardMode,
    RunId,
    Score,
    Seed,
    Sha256,
)

PartName = Literal["greedy", "sampled"]


class Decoding(FrozenModel):
    """How tokens are chosen."""

    method: Literal["greedy", "sampled"]
    temperature: float = Field(ge=0.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: Count = 0
    """0 keeps every token."""
    max_new_tokens: Annotated[int, Field(ge=1)]
    """Limit of one turn, in tokens."""
    max_completion_length: Annotated[int, Field(ge=1)]
    """Limit of all turns of an episode with the tool results between them, in tokens."""


class EvaluationPart(FrozenModel):
    """One block of planned episodes: every task with every seed."""

    name: PartName
    suite: SuiteName
    tasks: tuple[str, ...]
    seeds: tuple[Seed, ...]
    decoding: Decoding


class DecisionRule(FrozenModel):
    """The rule that turns episodes into a verdict, fixed before the run."""

    primary_metric: Literal["final_score"] = "final_score"
    part: PartName = "sampled"
    unit: Literal["seed, equal-weight mean over tasks"] = "seed, equal-weight mean over tasks"
    test: Literal["two-sided paired sign-flip"] = "two-sided paired sign-flip"
    alpha: float = Field(default=0.05, ge=0.0001, le=0.05)
    """A rule may be stricter than the standard one, and no looser."""
    margin: float = Field(default=0.05, ge=0.0001, le=1.0)
    """Half-width of the band around zero inside which the interval must lie for `no change shown`."""
    confidence: float = Field(default=0.95, ge=0.95, le=0.9999)
    exact_flips_up_to: int = Field(default=2**20, ge=1, le=2**22)
    flip_draws: int = Field(default=100_000, ge=1_000, le=10_000_000)
    bootstrap_resamples: int = Field(default=10_000, ge=50, le=1_000_000)
    """A plan is a stranger's file: what it may ask of the machine that judges by it is bounded."""
    statistics_seed: int = 20_260_101


class EvaluationPlan(FrozenModel):
    """What will be played and how it will be judged; its digest enters the manifest before step 0."""

    format_version: FormatVersion
    run_id: RunId | None
    """`None` for an evaluation outside a training run."""
    reward_mode: Literal["assay_gated"]
    """An evaluation is strict, whatever the training was paid by."""
    interface: Literal["tools"]
    observation_length: ObservationLength
    turn_limit: Annotated[int, Field(ge=1)]
    parts: tuple[EvaluationPart, ...]
    decision: DecisionRule


class PolicyIdentity(FrozenModel):
    """Who played. Hashes are over file contents, so a renamed copy is the same policy."""

    kind: Literal["hf", "scripted"]
    name: str
    base_model: str | None
    base_model_sha256: Sha256 | None
    adapter: str | None
    adapter_sha256: Sha256 | None
    tokenizer_sha256: Sha256 | None
    chat_template_sha256: Sha256 | None
    dtype: str | None
    adapter_merged: bool | None


class StepRecord(FrozenModel):
    """One tool call and what the laboratory answered."""

    step: Count
    """Step counter after the call; a refused call leaves it where it was."""
    turn: Count
    tool: str
    """Name as sent; a name outside the five is refused."""
    arguments: dict[str, Any]
    """Arguments as sent."""
    action_type: ActionType
    status: Literal["ok", "invalid", "env_error"]
    """`invalid`: refused by the tool schema, or a step that the rules call invalid."""
    reward: float | None
    """Transition reward; `None` where the laboratory was not stepped."""
    done: bool
    error_code: str
    governance_status: GovernanceStatus | None
    vetoes: tuple[str, ...]
    molecule: MoleculeCode
    remaining_budget: Count
    observation_sha256: Sha256
    response: str
    """Text that the model was given back."""


class TurnRecord(FrozenModel):
    """One completion of the model."""

    turn: Count
    prompt: str
    """Text that is new to the model since its last completion; at turn 0 the whole prompt."""
    raw_completion: str
    prompt_tokens: Count
    """Length of the whole context, in tokens."""
    completion_tokens: Count
    prompt_ids_sha256: Sha256 | None
    """Digest of the token ids of the whole context; `None` for a scripted policy."""


class EpisodeRecord(FrozenModel):
    """An episode, complete enough to be played again without the model."""

    episode_id: EpisodeId
    part: PartName
    suite: SuiteName
    scenario_id: str
    difficulty: str
    seed: Seed
    scenario: ResolvedScenario
    reward_mode: RewardMode
    policy_sha256: Sha256
    steps: tuple[StepRecord, ...]
    turns: tuple[TurnRecord, ...]
    ended_by: EndedBy
    error: str | None
    """What broke, for `env_error`."""
    final_score: Score | None
    """The headline score; 0.0 for an episode that the model left unfinished, `None` for `env_error`."""
    submission_score: Score | None
    progress_score: Score | None
    scores: dict[str, float] | None
    """The 14 grader scores; `None` where the laboratory did not end the episode."""
    total_reward: float | None
    prompt_tokens: Count
    completion_tokens: Count
    wall_time_seconds: float = Field(ge=0.0)
    """Share of the batch's time; not compared by replay."""
    seal: Sha256
    """Digest of the record without this field."""


class TaskSummary(FrozenModel):
    """The mean over one task's counted episodes."""

    scenario_id: str
    planned: Count
    counted: Count
    mean_final_score: Score | None
    mean_submission_score: Score | None
    mean_progress_score: Score | None


class PartSummary(FrozenModel):
    """Counts and means of one part; everything here can be computed again from the episodes."""

    part: PartName
    planned: Count
    completed: Count
    errored: Count
    excluded: Count
    excluded_reasons: dict[str, int]
    tasks: tuple[TaskSummary, ...]
    mean_final_score: Score | None
    """Each task weighs the same; `None` when a task has no counted episode."""
    distinct_scores: Count
    reason: str | None
    """Why the mean is `None`."""


class Evaluation(FrozenModel):
    """All rollouts of one policy under one plan."""

    format_version: FormatVersion
    run_id: RunId | None
    label: str
    plan: EvaluationPlan
    """The plan that was played, whole: two evaluations under unlike plans can name every key that differs."""
    plan_sha256: Sha256
    """Digest of `plan`."""
    policy: PolicyIdentity
    rules_version: str
    backend_fingerprint: Sha256
    seed_honoured: bool
    """Two resets with one seed gave one observation."""
    started_at: Moment
    ended_at: Moment
    average_final_score: Score | None
    """Mean of the greedy part, as the public file has it."""
    summaries: tuple[PartSummary, ...]
    episodes: tuple[EpisodeRecord, ...]
