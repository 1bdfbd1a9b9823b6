"""The one interface that training, evaluation and replay share: prompt, tools, observation text, call parsing.

Its name is recorded with every episode. Two runs with different names, lengths or turn limits are not comparable.
"""

from __future__ import annotations

from molforge_env.arithmetic import text_of
from molforge_env.completions import ParsedCompletion, Spelling, ToolCall, parse_completion, spelling_of
from molforge_env.tool_schemas import (
    OBSERVATION_LENGTHS,
    TOOL_ARGUMENTS,
    TOOL_NAMES,
    ObservationLength,
    default_rationale,
    tool_docstring,
    tool_schemas,
    wording_of,
)
from molforge_env.views import ConstraintStatus, Observation

__all__ = [  # noqa: RUF022 - in the order of `sorted`, which the surface test holds
    "DEFAULT_TURN_LIMIT",
    "INTERFACE_NAME",
    "OBSERVATION_LENGTHS",
    "ObservationLength",
    "ParsedCompletion",
    "Spelling",
    "TOOL_ARGUMENTS",
    "TOOL_NAMES",
    "ToolCall",
    "after_step_text",
    "default_rationale",
    "observation_text",
    "parse_completion",
    "prompt_text",
    "spelling_of",
    "tool_docstring",
    "tool_schemas",
]

INTERFACE_NAME = "tools"
DEFAULT_TURN_LIMIT = 11
_SHOWN_ASSAYS = 5
_PROPERTY_OF = {"potency_min": "potency", "toxicity_max": "toxicity", "synth_min": "synth"}


def prompt_text(observation_length: ObservationLength = "full") -> str:
    """Give the fixed instruction; the reset text is appended to it without a separator."""
    return str(wording_of(observation_length)["prompt"])


def observation_text(observation: Observation, observation_length: ObservationLength = "full") -> str:
    """Write the observation after a reset, as the model reads it."""
    if observation_length == "compact":
        limits = " ".join(
            f"{_PROPERTY_OF[row.name]}{row.target.replace(' ', '')}" for row in observation.constraint_status
        )
        return f"{observation.scenario_id} {limits}\n{observation.governance['status']} {_compact_body(observation)}"
    return f"{observation.task_brief}\n{_full_body(observation)}"


def after_step_text(observation: Observation, observation_length: ObservationLength = "full") -> str:
    """Write the observation after a step, as the model reads it."""
    if observation_length == "compact":
        # A player who is not told that the episode is over goes on calling.
        status = "over" if observation.done else observation.governance["status"]
        return f"{status} {_compact_body(observation)}"
    return f"{_full_body(observation)}\n{observation.last_transition_summary}"


def _compact_body(observation: Observation) -> str:
    fragments = " ".join(str(row["fragment"]) for row in observation.molecule_slots)
    known = " ".join(_compact_constraint(row) for row in observation.constraint_status)
    place = f"{observation.step_index}/{observation.max_steps} {observation.remaining_budget}"
    return f"{place}\n{fragments}\n{known}"


def _compact_constraint(row: ConstraintStatus) -> str:
    name = _PROPERTY_OF[row.name]
    if row.actual is None:
        return f"{name} ?"
    return f"{name} {text_of(row.actual, decimals=2)} {'ok' if row.satisfied else 'bad'}"


def _full_body(observation: Observation) -> str:
    words = wording_of("full")
    shown = ", ".join(
        f"{row['property_name']}={text_of(row['estimate'], decimals=3)}"
        for row in observation.known_assays[-_SHOWN_ASSAYS:]
    )
    constraints = ", ".join(_full_constraint(row) for row in observation.constraint_status)
    return (
        f"scenario: {observation.scenario_id} ({observation.difficulty}), target {observation.target_name}\n"
        f"step: {observation.step_index}/{observation.max_steps}, "
        f"budget: {observation.remaining_budget}/{observation.max_budget}\n"
        f"molecule: {observation.current_molecule}\n"
        f"assays: {shown or 'none'}\n"
        f"constraints: {constraints}\n"
        f"{words['over' if observation.done else 'instruction']}"
    )


def _full_constraint(row: ConstraintStatus) -> str:
    actual = "unknown" if row.actual is None else text_of(row.actual, decimals=3)
    status = "unknown" if row.satisfied is None else "satisfied" if row.satisfied else "violated"
    return f"{row.name} {row.target}:{status}:{actual}"
