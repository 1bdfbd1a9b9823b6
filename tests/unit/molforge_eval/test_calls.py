from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool, recordable_arguments, step_record
from molforge_eval.canonical import canonical_bytes
from molforge_eval.training_reward import AFTER_END_CODE, REFUSED_CODE


@pytest.fixture
def session() -> ToolSession:
    session = ToolSession(observation_length="compact")
    session.reset(scenario_id="level_0_easy")
    return session


def test_a_sound_call_is_stepped(session: ToolSession) -> None:
    result = call_tool(session, "edit", {"slot": "hinge", "fragment": "azaindole"})

    assert result.outcome is not None
    assert (result.status, result.error_code, result.text) == ("ok", "", result.outcome.text)
    assert session.step_count == 1


def test_a_step_that_the_rules_call_invalid_is_invalid_and_counts(session: ToolSession) -> None:
    result = call_tool(session, "edit", {"slot": "hinge", "fragment": "gold"})
    record = step_record(session, "edit", result, turn=0)

    assert (record.status, record.error_code, record.reward, record.step) == ("invalid", "UNKNOWN_FRAGMENT", -1.0, 1)
    assert record.governance_status == "needs_revision"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("mix", {}, "Tool mix not found."),
        ("reset", {"seed": 1}, "Tool reset not found."),
        ("edit", {"slot": "hinge"}, "argument 'fragment' is missing"),
        ("defer", {"dose": 1}, "argument 'dose' is not an argument of this tool"),
        ("defer", [1], "defer() argument after ** must be a mapping, not list"),
        ("edit", "{}", "edit() argument after ** must be a mapping, not str"),
        ("run_assay", {"tool_name": 7}, "argument 'tool_name' is int, not text"),
    ],
)
def test_a_refused_call_leaves_the_laboratory_where_it_was(
    session: ToolSession, tool: str, arguments: Any, said: str
) -> None:
    before = session.observation
    result = call_tool(session, tool, arguments)
    record = step_record(session, tool, result, turn=3)

    assert said in result.text
    assert result.text.startswith("{'error': ")
    assert (record.status, record.error_code, record.reward, record.step) == ("invalid", REFUSED_CODE, None, 0)
    assert record.turn == 3
    assert session.observation == before


def test_an_unknown_tool_is_recorded_as_no_action(session: ToolSession) -> None:
    record = step_record(session, "mix", call_tool(session, "mix", {}), turn=0)

    assert (record.tool, record.action_type) == ("mix", "none")


def test_a_call_after_the_end_is_refused_and_says_so(session: ToolSession) -> None:
    while not session.done:
        call_tool(session, "defer", {})
    result = call_tool(session, "defer", {})
    record = step_record(session, "defer", result, turn=9)

    assert (result.status, result.error_code) == ("invalid", AFTER_END_CODE)
    assert (record.done, record.reward) == (True, None)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers() | st.just("\ud800"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    )
)
def test_whatever_a_model_sends_can_be_recorded_and_sent_again(arguments: Any) -> None:
    sent = recordable_arguments(arguments)

    canonical_bytes(sent)
    assert recordable_arguments(sent) == sent


def test_deep_and_long_values_become_text() -> None:
    deep: Any = []
    for _ in range(40):
        deep = [deep]
    sent = recordable_arguments({"slot": deep, "dose": 2**70, "nan": float("nan")})

    canonical_bytes(sent)
    assert sent["dose"] == "an integer longer than 64 bits"
    assert sent["nan"] == "nan"
    assert recordable_arguments(sent) == sent
