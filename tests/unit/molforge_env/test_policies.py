from __future__ import annotations

import gzip
import json

import pytest

from molforge_env.errors import UsageError
from molforge_env.policies import POLICIES, find_policy, play_scripted, valid_calls
from molforge_env.suites import SCENARIO_IDS, resolve_scenario
from molforge_env.tools import ToolSession
from molforge_env.views import observe

REACHED = {
    "do_nothing": (0.0833, 0.1167, 0.08),
    "immediate_submit": (0.0833, 0.1167, 0.08),
    "heuristic": (0.8703, 0.8733, 0.8883),
}


@pytest.mark.parametrize("name", REACHED)
def test_a_policy_reaches_its_known_score_on_each_task(name) -> None:
    scores = [play_scripted(name, resolve_scenario(scenario_id=task)).scores["final_score"] for task in SCENARIO_IDS]

    assert tuple(scores) == REACHED[name]


def test_the_heuristic_plays_the_recorded_calls(golden) -> None:
    played = 0
    with gzip.open(golden / "tool_episodes.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["policy"] == "heuristic":
                task = resolve_scenario(scenario_id=row["scenario"])
                session = play_scripted("heuristic", task, reward_mode=row["mode"])
                calls = [[outcome.action.action_type, _arguments(outcome.action)] for outcome in session.outcomes]
                played += 1

                assert calls == [[tool, _without_reason(arguments)] for tool, arguments in row["calls"]]

    assert played == 9


def _arguments(action) -> dict[str, str]:
    named = {"slot": action.slot, "fragment": action.fragment, "tool_name": action.tool_name}
    return {name: value for name, value in named.items() if value is not None}


def _without_reason(arguments: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in arguments.items() if name != "rationale"}


def test_random_play_is_the_same_for_a_seed_and_differs_between_seeds() -> None:
    task = resolve_scenario(scenario_id="level_1_medium")
    played = [[outcome.action for outcome in play_scripted("random_valid", task, seed).outcomes] for seed in (1, 1, 2)]

    assert played[0] == played[1]
    assert played[0] != played[2]


def test_random_play_is_never_refused() -> None:
    for seed in range(30):
        task = resolve_scenario(suite="randomized", seed=seed)
        session = play_scripted("random_valid", task, seed)

        assert {outcome.error_code for outcome in session.outcomes} == {""}


def test_valid_calls_are_those_that_can_be_paid(opened) -> None:
    rich = list(valid_calls(observe(opened()), restart_used=False))
    poor = list(valid_calls(observe(opened(max_budget=90)), restart_used=False))
    restarted = list(valid_calls(observe(opened()), restart_used=True))

    assert len(rich) == 12 + 7 + 3
    assert [arguments["tool_name"] for tool, arguments in poor if tool == "run_assay"] == [
        "evaluate_properties",
        "evaluate_novelty",
    ]
    assert ("restart", {}) not in poor
    assert ("restart", {}) not in restarted


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_plays_every_randomized_task_to_its_end(name) -> None:
    for seed in range(12):
        assert play_scripted(name, resolve_scenario(suite="randomized", seed=seed), seed).done


def test_a_policy_chooses_for_a_session_of_any_length() -> None:
    session = ToolSession(observation_length="compact")
    session.reset(scenario_id="level_0_easy")

    assert find_policy("heuristic").act(session, None) == (
        "edit",
        {"slot": "solvent_tail", "fragment": "morpholine"},
    )


def test_only_the_random_policy_draws() -> None:
    assert [policy.name for policy in POLICIES.values() if policy.is_random] == ["random_valid"]


def test_an_unknown_policy_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(UsageError, match="heuristic"):
        find_policy("oracle")
