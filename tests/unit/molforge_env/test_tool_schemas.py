"""The five tools as a trainer's own conversion would write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from molforge_env.interface import OBSERVATION_LENGTHS, TOOL_ARGUMENTS, TOOL_NAMES, tool_docstring, tool_schemas


def _plain_functions() -> dict[str, Callable[..., str]]:
    def edit(slot: str, fragment: str, rationale: str = "r") -> str: ...

    def run_assay(tool_name: str, rationale: str = "r") -> str: ...

    def submit(rationale: str = "r") -> str: ...

    def restart(rationale: str = "r") -> str: ...

    def defer(rationale: str = "r") -> str: ...

    return {function.__name__: function for function in (edit, run_assay, submit, restart, defer)}


@pytest.mark.parametrize("length", OBSERVATION_LENGTHS)
def test_the_schemas_equal_what_the_trainer_derives_from_the_docstrings(length) -> None:
    from transformers.utils import get_json_schema

    functions = _plain_functions()
    for name, function in functions.items():
        function.__doc__ = tool_docstring(name, length)
    # A trainer lists the methods of a class by name.
    derived = [get_json_schema(functions[name]) for name in sorted(functions)]

    assert tool_schemas(length) == derived
    assert [str(row) for row in tool_schemas(length)] == [str(row) for row in derived]  # key order is prompt order


def test_there_are_exactly_five_tools() -> None:
    assert TOOL_NAMES == ("edit", "run_assay", "submit", "restart", "defer")
    assert tuple(TOOL_ARGUMENTS) == TOOL_NAMES


def test_only_the_rationale_is_optional() -> None:
    required = {row["function"]["name"]: row["function"]["parameters"].get("required") for row in tool_schemas()}

    assert required == {
        "edit": ["slot", "fragment"],
        "run_assay": ["tool_name"],
        "submit": None,
        "restart": None,
        "defer": None,
    }


def test_a_caller_gets_a_copy_of_its_own() -> None:
    tool_schemas("compact").clear()

    assert len(tool_schemas("compact")) == 5


def test_the_compact_wording_is_shorter() -> None:
    assert len(str(tool_schemas("compact"))) < len(str(tool_schemas("full"))) / 1.4
