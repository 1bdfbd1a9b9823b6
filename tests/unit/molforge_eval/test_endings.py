from __future__ import annotations

import pytest

from molforge_env.interface import parse_completion
from molforge_env.policies import play_scripted
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.endings import ending_without_call, laboratory_ending


def test_a_submission_and_a_full_horizon_are_told_apart() -> None:
    scenario = resolve_scenario(scenario_id="level_0_easy")

    assert laboratory_ending(play_scripted("heuristic", scenario).outcomes[-1]) == "submit"
    assert laboratory_ending(play_scripted("do_nothing", scenario).outcomes[-1]) == "step_limit"


def test_an_empty_purse_ends_by_budget() -> None:
    session = ToolSession()
    scenario = resolve_scenario(scenario_id="level_0_easy").model_copy(update={"max_budget": 2000})
    session.start(scenario)
    outcome = session.call("run_assay", {"tool_name": "assay_toxicity"})

    assert outcome.done
    assert laboratory_ending(outcome) == "budget"


@pytest.mark.parametrize(
    ("raw", "is_full", "ending"),
    [
        ("I am done.", False, "no_call"),
        ("<tool_call>\n{oops}\n</tool_call>", False, "malformed_call"),
        ("<tool_call>\n{oops}\n</tool_call>", True, "length_limit"),
        ("", True, "length_limit"),
    ],
)
def test_a_completion_without_a_call_says_why_the_episode_ended(raw: str, is_full: bool, ending: str) -> None:
    assert ending_without_call(parse_completion(raw), is_full=is_full) == ending
