from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest

from molforge_env.errors import EpisodeOverError, ToolArgumentError, UsageError
from molforge_env.interface import OBSERVATION_LENGTHS, TOOL_NAMES, tool_schemas
from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool
from molforge_eval.training_reward import JudgedCall
from molforge_train.tool_environment import tool_environment

ROW = {"suite": "official", "scenario_id": "level_0_easy", "seed": 5, "reward_mode": "assay_gated", "prompt": []}
EDIT = {"slot": "warhead", "fragment": "nitrile"}


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def environment():
    made = tool_environment("compact", clock)()
    made.reset(**ROW)
    return made


def test_the_public_methods_are_the_five_tools_and_reset() -> None:
    kind = tool_environment("full", clock)
    public = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert public == {*TOOL_NAMES, "reset"}


@pytest.mark.parametrize("length", OBSERVATION_LENGTHS)
def test_the_host_derives_the_schemas_that_the_interface_sends(length) -> None:
    from transformers.utils import get_json_schema

    made = tool_environment(length, clock)()
    schemas = {schema["function"]["name"]: schema for schema in tool_schemas(length)}

    for name in TOOL_NAMES:
        derived = get_json_schema(getattr(made, name))
        assert derived == schemas[name]
        # Prompts hold the keys in this order.
        assert list(derived["function"]["parameters"]["properties"]) == list(
            schemas[name]["function"]["parameters"]["properties"]
        )


def test_reset_gives_the_text_of_the_tool_session_and_passes_seed_suite_and_mode_on() -> None:
    made = tool_environment("compact", clock)()
    text = made.reset(**{**ROW, "suite": "randomized", "seed": 11, "reward_mode": "curriculum"})
    session = ToolSession(observation_length="compact")

    assert text == session.reset(suite="randomized", scenario_id="level_0_easy", seed=11, reward_mode="curriculum")
    assert made.played.scenario == session.scenario
    assert (made.played.seed, made.played.reward_mode) == (11, "curriculum")


def test_a_row_of_the_holdout_suite_is_refused(environment) -> None:
    before = environment.played
    with pytest.raises(UsageError, match="asked to play the suite 'holdout'"):
        environment.reset(**{**ROW, "suite": "holdout"})

    assert environment.played is before


def test_reset_forgets_the_episode_before(environment) -> None:
    first = environment.reset(**ROW)
    environment.edit(**EDIT)
    environment.run_assay(tool_name="dock_target")

    assert environment.reset(**ROW) == first
    assert environment.played.calls == []


def test_two_instances_do_not_disturb_each_other(environment) -> None:
    other = tool_environment("compact", clock)()
    other.reset(**ROW)
    alone = environment.edit(**EDIT)
    other.run_assay(tool_name="dock_target")

    assert other.edit(**EDIT) != alone
    assert len(environment.played.calls) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit", {"slot": "roof", "fragment": "nitrile"}),
        ("edit", {"slot": "warhead"}),
        ("edit", {**EDIT, "colour": "red"}),
        ("edit", {**EDIT, "self": "me"}),
        ("edit", {"slot": 5, "fragment": None}),
        ("run_assay", {"tool_name": "guess"}),
        ("submit", {"rationale": "x" * 500}),
    ],
)
def test_a_refused_call_shows_what_evaluation_shows_and_moves_nothing(environment, tool, arguments) -> None:
    with pytest.raises(ToolArgumentError) as refusal:
        getattr(environment, tool)(**arguments)
    session = ToolSession(observation_length="compact")
    session.reset(scenario_id="level_0_easy")
    shown = call_tool(session, tool, arguments)

    assert str({"error": str(refusal.value)}) == shown.text
    (call,) = environment.played.calls
    assert (call.outcome, call.status, call.error_code) == (None, "invalid", shown.error_code)


def test_a_call_after_the_end_is_refused_and_noted(environment) -> None:
    for _ in range(7):
        environment.defer()
    with pytest.raises(EpisodeOverError):
        environment.submit()

    assert environment.played.calls[-2].outcome.done
    assert environment.played.calls[-1].judged == JudgedCall("invalid", "EPISODE_OVER", None)
