"""The five tools as a model is told about them: names, arguments, wording, JSON schemas, docstrings.

Wording stands once, in `data/interface.json`; the JSON schema and the docstring of a host's method are both made from
it, so what a trainer derives from the docstring equals what an evaluator sends.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, Literal

from molforge_env.tables import read_table

ObservationLength = Literal["full", "compact"]
OBSERVATION_LENGTHS: tuple[ObservationLength, ...] = ("full", "compact")
TOOL_NAMES = ("edit", "run_assay", "submit", "restart", "defer")
TOOL_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "edit": ("slot", "fragment", "rationale"),
    "run_assay": ("tool_name", "rationale"),
    "submit": ("rationale",),
    "restart": ("rationale",),
    "defer": ("rationale",),
}
OPTIONAL_ARGUMENTS = ("rationale",)


def wording_of(length: ObservationLength) -> dict[str, Any]:
    """Read the wording of one length."""
    words: dict[str, Any] = read_table("interface")[length]
    return words


def default_rationale(length: ObservationLength) -> str:
    """Name the rationale of a call that gives none."""
    return str(wording_of(length)["rationale"])


def tool_docstring(tool: str, length: ObservationLength) -> str:
    """Write the Google docstring of a host's method for a tool."""
    words = wording_of(length)
    arguments = "\n".join(f"    {name}: {words['arguments'][name]}" for name in TOOL_ARGUMENTS[tool])
    text = words["tools"][tool]
    return f"{text['does']}\n\nArgs:\n{arguments}\n\nReturns:\n    {text['returns']}\n"


@cache
def _schemas(length: ObservationLength) -> list[dict[str, Any]]:
    words = wording_of(length)
    return [_schema(tool, words) for tool in sorted(TOOL_NAMES)]


def _schema(tool: str, words: dict[str, Any]) -> dict[str, Any]:
    names = TOOL_ARGUMENTS[tool]
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "string", "description": words["arguments"][name]} for name in names},
    }
    required = [name for name in names if name not in OPTIONAL_ARGUMENTS]
    if required:
        parameters["required"] = required
    text = words["tools"][tool]
    return {
        "type": "function",
        "function": {
            "name": tool,
            "description": text["does"],
            "parameters": parameters,
            "return": {"type": "string", "description": text["returns"]},
        },
    }


def tool_schemas(observation_length: ObservationLength = "full") -> list[dict[str, Any]]:
    """List the JSON schemas of the five tools, as a chat template takes them.

    Returns:
        A fresh copy. Tools stand in alphabetical order, as a trainer that lists the methods of a class finds them;
        key order is that of the trainer's own conversion.
    """
    return deepcopy(_schemas(observation_length))
