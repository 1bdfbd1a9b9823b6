"""What a training episode is paid: one pure formula that the trainer pays by and that replay recomputes.

Terminal graders pay only when the laboratory has ended the episode, so progress on an unfinished episode cannot be
farmed. Penalties count calls; an episode that broke in the environment is paid nothing at all, which is `None`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel

GRADERS: Mapping[str, str] = {
    "final_score": "final_score",
    "constraint": "constraint_score",
    "evidence": "evidence_score",
    "candidate": "candidate_score",
}
"""Weight to the grader score that it multiplies; paid in this order, only when the episode is done."""

PENALTIES = ("invalid_call", "vetoed_call", "after_end_call", "unfinished")
"""Weights that are taken off; written as positive numbers."""

REWARD_PARTS = (*GRADERS, *PENALTIES)

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


def conduct_of(calls: Iterable[tuple[str, str, str | None]], *, done: bool) -> EpisodeConduct:
    """Count the calls of an episode that cost something.

    Args:
        calls: Status, error code and governance status of each call, as a rollout line has them; a completion
            without a call is no call.
        done: The laboratory ended the episode.
    """
    invalid = vetoed = after_end = 0
    for status, error_code, governance in calls:
        if error_code == AFTER_END_CODE:
            after_end += 1
        elif status == "invalid":
            invalid += 1
        elif governance == "policy_veto":
            vetoed += 1
    return EpisodeConduct(done=done, invalid_calls=invalid, vetoed_calls=vetoed, after_end_calls=after_end)


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
    # Ten decimals: far under any difference that matters, and free of the residue of binary sums.
    return round(total, 10)
