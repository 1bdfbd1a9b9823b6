"""One tool call as evaluation, replay and the host trainer carry it out, refusals included.

A refusal is data: the laboratory stays where it was and the model reads the text that the host trainer shows for the
same call, so that a transcript holds the same tokens whoever played it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from molforge_env.errors import EpisodeOverError, ToolArgumentError
from molforge_env.interface import TOOL_NAMES
from molforge_env.tools import ToolOutcome, ToolSession
from molforge_env.views import digest_of
from molforge_eval.records.evaluation import StepRecord
from molforge_eval.training_reward import AFTER_END_CODE, REFUSED_CODE

NO_OBJECT_KEY = "*"
"""Under this key stands what a model sent in place of an object of arguments."""
BROKEN_CODE = "ENVIRONMENT_ERROR"
"""Error code of a call that the laboratory itself failed on."""

_DEEPEST = 16
_LARGEST = 2**63


class CallResult(NamedTuple):
    """What a call did."""

    arguments: dict[str, Any]
    """As they are recorded; calling again with them does the same."""
    text: str
    """What the model reads."""
    outcome: ToolOutcome | None
    """`None` where nothing was stepped."""
    status: Literal["ok", "invalid"]
    error_code: str


def call_tool(session: ToolSession, tool: str, arguments: object) -> CallResult:
    """Carry out a call, or refuse it.

    Args:
        session: The episode.
        tool: Name as the model sent it.
        arguments: What the model sent; an object by rights.

    Returns:
        The outcome, or the refusal. Whatever else the laboratory raises is its own fault and passes through.
    """
    sent = recordable_arguments(arguments)
    try:
        if tool not in TOOL_NAMES:
            return _refused(sent, f"Tool {tool} not found.")
        if set(sent) == {NO_OBJECT_KEY}:
            kind = type(sent[NO_OBJECT_KEY]).__name__
            return _refused(sent, f"{tool}() argument after ** must be a mapping, not {kind}")
        outcome = session.call(tool, sent)
    except ToolArgumentError as error:
        return _refused(sent, str(error))
    except EpisodeOverError as error:
        return _refused(sent, str(error), code=AFTER_END_CODE)
    return CallResult(sent, outcome.text, outcome, "invalid" if outcome.error_code else "ok", outcome.error_code)


def step_record(session: ToolSession, tool: str, result: CallResult, *, turn: int) -> StepRecord:
    """Write down a call with the state that it left behind."""
    outcome = result.outcome
    return StepRecord(
        step=session.step_count,
        turn=turn,
        tool=recordable(tool),
        arguments=result.arguments,
        action_type=tool if tool in TOOL_NAMES else "none",  # type: ignore[arg-type] # the five names are the literals
        status=result.status,
        reward=None if outcome is None else outcome.reward,
        done=session.done,
        error_code=result.error_code,
        governance_status=None if outcome is None else outcome.governance_status,  # type: ignore[arg-type] # checked by the model
        vetoes=() if outcome is None else outcome.vetoes,
        molecule=session.episode.molecule.code,
        remaining_budget=session.episode.remaining_budget,
        observation_sha256=digest_of(session.observation) if outcome is None else outcome.observation_sha256,
        response=result.text,
    )


def recordable_arguments(arguments: object) -> dict[str, Any]:
    """Turn what a model sent as arguments into an object that strict JSON can hold.

    >>> recordable_arguments({"slot": float("nan")}), recordable_arguments([1])
    ({'slot': 'nan'}, {'*': [1]})
    """
    value = recordable(arguments if isinstance(arguments, Mapping) else {NO_OBJECT_KEY: arguments})
    return dict(value)


def recordable(value: Any, depth: int = 0) -> Any:
    """Turn a value that a model wrote as JSON into one that strict JSON can hold.

    A number that is not finite or longer than 64 bits becomes its text, a lone surrogate a question mark, and what is
    nested deeper than 16 levels its text; the model's own spelling stands in the raw completion.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping | list) and depth >= _DEEPEST:
        return repr(value)[:200].encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {recordable(str(key)): recordable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [recordable(inner, depth + 1) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return "an integer longer than 64 bits"
    return value


def _refused(arguments: dict[str, Any], text: str, *, code: str = REFUSED_CODE) -> CallResult:
    # The spelling of the host trainer: it shows `str({"error": ...})` for whatever a tool raises.
    return CallResult(arguments, str({"error": text}), None, "invalid", code)
