from __future__ import annotations

import pytest

from molforge_env.bounds import Bounds
from molforge_env.ceiling import find_ceiling, official_ceilings
from molforge_env.policies import play_scripted
from molforge_env.suites import SCENARIO_IDS, open_episode, resolve_scenario
from molforge_env.tools import ToolSession

REACHED = {"level_0_easy": 0.8780, "level_1_medium": 0.8926, "level_2_hard": 0.9032}


@pytest.mark.parametrize("task", SCENARIO_IDS)
def test_the_search_gives_the_kept_ceiling_again(task) -> None:
    found = find_ceiling(resolve_scenario(scenario_id=task))

    assert found == official_ceilings()[task]
    assert found.final_score == REACHED[task]


@pytest.mark.parametrize("task", SCENARIO_IDS)
def test_the_calls_of_a_ceiling_reach_its_score(task) -> None:
    kept = official_ceilings()[task]
    session = ToolSession()
    session.start(kept.scenario)
    for tool, arguments in kept.calls:
        session.call(tool, arguments)

    assert session.done
    assert session.scores["final_score"] == kept.final_score


@pytest.mark.parametrize("seed", range(4))
def test_no_policy_beats_the_ceiling_of_a_randomized_task(seed) -> None:
    task = resolve_scenario(suite="randomized", seed=seed)
    ceiling = find_ceiling(task).final_score

    assert play_scripted("heuristic", task).scores["final_score"] <= ceiling
    assert max(play_scripted("random_valid", task, draw).scores["final_score"] for draw in range(20)) <= ceiling


def test_a_task_in_which_nothing_can_be_proven_has_a_low_ceiling_that_is_still_found() -> None:
    task = resolve_scenario(scenario_id="level_0_easy").model_copy(update={"max_steps": 2, "max_budget": 100})
    found = find_ceiling(task)

    assert found.final_score < 0.25
    assert len(found.calls) == 2


@pytest.mark.parametrize("task", SCENARIO_IDS)
def test_the_bound_of_the_first_state_is_not_under_the_ceiling(task) -> None:
    episode = open_episode(resolve_scenario(scenario_id=task))

    assert Bounds(episode.scenario).bound(episode) >= REACHED[task]
