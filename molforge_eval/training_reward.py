"""What a training episode is paid: one pure formula that the trainer pays by and that replay recomputes.

Terminal graders pay only when the laboratory has ended the episode, so progress on an unfinished episode cannot be
farmed. Penalties count calls; an episode that broke in the environment is paid nothing at all, which is `None`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval.records.manifest import Configuration, RewardPhase

GRADERS: Mapping[str, str] = {
    "final_score": "final_score",
    "constraint": "constraint_score",
    "evidence": "evidence_score",
    "candidate": "candidate_score",
}
"""Weight to the grader score that it multiplies; paid in this order, only when the episode is done."""

PENALTIES = ("invalid_call", "vetoed_call", "after_end_call", "unfinished")
"""Weights that are taken off; written as positive numbers."""

STEPS = "step_rewards"
"""Weight of the sum of the laboratory's own rewards for the steps, which depends on the reward mode; can be farmed."""

REWARD_PARTS = (*GRADERS, *PENALTIES, STEPS)

AFTER_END_CODE = "EPISODE_OVER"
"""Error code of a call after the end of its episode, in rollout lines and episode records."""

REFUSED_CODE = "ARGUMENTS_REFUSED"
"""Error code of a call that the tool schema refuses (unknown tool, unknown value, over-long text)."""


class EpisodeConduct(FrozenModel):
    """How an episode went, as far as its pay depends on it."""

    done: bool
    """The laboratory ended the episode (submit, step limit or budget)."""
    invalid_calls: int = Field(ge=0)
    """Calls refused by the tool schema and steps that the rules call invalid; calls after the end stand apart."""
    vetoed_calls: int = Field(ge=0)
    after_end_calls: int = Field(ge=0)
    step_rewards: float = 0.0
    """Sum of the laboratory's rewards for the steps that were taken."""


class JudgedCall(NamedTuple):
    """What a call's pay depends on, as a rollout line has it."""

    status: str
    error_code: str
    governance_status: str | None
    reward: float | None = None
    """The laboratory's reward for the step; `None` where none was taken."""
    assay: tuple[str, str] | None = None
    """Tool and molecule of an assay that was carried out."""


def judged_line(row: Mapping[str, Any]) -> JudgedCall:
    """Take from a rollout line what the pay of its call depends on."""
    assay = None
    if row["action_type"] == "run_assay" and row["governance_status"] == "executed":
        assay = (str(row["tool_name"]), str(row["molecule"]))
    return JudgedCall(row["status"], row["error_code"], row["governance_status"], row["transition_reward"], assay)


def phase_at(configuration: Configuration, step: int) -> RewardPhase:
    """Tell how the episodes that are generated at an optimizer step are paid."""
    mode, weights = configuration.reward_mode, configuration.reward_weights
    phases = [RewardPhase(from_step=0, reward_mode=mode, reward_weights=weights), *configuration.reward_phases]
    return [phase for phase in phases if phase.from_step <= step][-1]


def conduct_of(calls: Iterable[tuple[Any, ...]], *, done: bool, anti_farming: bool = False) -> EpisodeConduct:
    """Count the calls of an episode that cost something, and add up what the laboratory paid for its steps.

    Args:
        calls: The fields of `JudgedCall` of each call; a completion without a call is no call.
        done: The laboratory ended the episode.
        anti_farming: A gain from an assay that was carried out before on the same molecule counts nothing.
    """
    invalid = vetoed = after_end = 0
    step_rewards = 0.0
    assays: set[tuple[str, str]] = set()
    for call in calls:
        status, error_code, governance, reward, assay = JudgedCall(*call)
        gain = 0.0 if reward is None else reward
        step_rewards += min(0.0, gain) if anti_farming and assay in assays else gain
        if assay is not None:
            assays.add(assay)
        if error_code == AFTER_END_CODE:
            after_end += 1
        elif status == "invalid":
            invalid += 1
        elif governance == "policy_veto":
            vetoed += 1
    return EpisodeConduct(
        done=done,
        invalid_calls=invalid,
        vetoed_calls=vetoed,
        after_end_calls=after_end,
        step_rewards=step_rewards,
    )


def training_reward(conduct: EpisodeConduct, scores: Mapping[str, float] | None, weights: Mapping[str, float]) -> float:
    """Compute the pay of one episode.

    Args:
        conduct: Whether it is done, and its costly calls.
        scores: The 14 grader scores; read only when the episode is done.
        weights: Weight per part of `REWARD_PARTS`; an absent part weighs nothing.

    Raises:
        UsageError: A weight names no part, or the scores of a finished episode are absent.

    >>> conduct = EpisodeConduct(done=False, invalid_calls=2, vetoed_calls=0, after_end_calls=0)
    >>> training_reward(conduct, None, {"final_score": 1.0, "invalid_call": 0.01, "unfinished": 0.1})
    -0.12
    """
    unknown = sorted(set(weights) - set(REWARD_PARTS))
    if unknown:
        raise UsageError(
            f"reward weight {unknown[0]!r} names no part of the training reward",
            where="configuration key reward_weights",
            mend=f"Use the parts {', '.join(REWARD_PARTS)}.",
        )
    total = 0.0
    if conduct.done:
        if scores is None:
            raise UsageError(
                "a finished episode has no grader scores",
                where="training reward",
                mend="Pass the scores of the tool session that ended.",
            )
        for part, grader in GRADERS.items():
            total += weights.get(part, 0.0) * scores[grader]
    total -= weights.get("invalid_call", 0.0) * conduct.invalid_calls
    total -= weights.get("vetoed_call", 0.0) * conduct.vetoed_calls
    total -= weights.get("after_end_call", 0.0) * conduct.after_end_calls
    if not conduct.done:
        total -= weights.get("unfinished", 0.0)
    total += weights.get(STEPS, 0.0) * conduct.step_rewards
    # Ten decimals: far under any difference that matters, and free of the residue of binary sums.
    return round(total, 10)
