from __future__ import annotations

from itertools import islice

import pytest

from molforge_env.configuration import LaboratoryConfiguration
from molforge_env.environment import MolForgeEnvironment
from molforge_env.errors import EpisodeOverError, UnknownScenarioError
from molforge_env.models import Action
from molforge_env.suites import SCENARIO_IDS, resolve_scenario, sequential_draws

DEFER = Action(action_type="defer")


def test_resets_without_a_name_go_through_the_scenarios_in_turn() -> None:
    environment = MolForgeEnvironment()
    seen = [environment.reset().scenario_id for _ in range(4)]

    assert seen == [*SCENARIO_IDS, SCENARIO_IDS[0]]


def test_it_can_be_played_before_the_first_reset() -> None:
    environment = MolForgeEnvironment()

    assert environment.step(DEFER).step_index == 1
    assert environment.state.scenario_id == "level_0_easy"


def test_any_episode_can_be_named() -> None:
    environment = MolForgeEnvironment()
    environment.reset(scenario="level_2_hard", reward_mode="dense")

    assert environment.scenario == resolve_scenario(scenario_id="level_2_hard")
    assert (
        environment.reset(7, suite="randomized").max_budget == resolve_scenario(suite="randomized", seed=7).max_budget
    )
    assert environment.scenario.seed == 7


def test_a_named_episode_is_the_same_in_any_order() -> None:
    one, other = MolForgeEnvironment(), MolForgeEnvironment()
    first = [one.reset(seed, suite="randomized") for seed in (1, 2, 3)]
    second = [other.reset(seed, suite="randomized") for seed in (3, 2, 1)]

    assert first == second[::-1]


def test_randomized_resets_without_a_seed_follow_the_public_stream() -> None:
    environment = MolForgeEnvironment(LaboratoryConfiguration(suite="randomized", stream_seed="42"))
    seen = []
    for _ in range(5):
        environment.reset()
        seen.append(environment.scenario)

    assert seen == list(islice(sequential_draws("42"), 1, 6))


def test_a_named_randomized_scenario_without_a_seed_varies_with_the_reset() -> None:
    environment = MolForgeEnvironment()
    budgets = {environment.reset(suite="randomized", scenario="level_2_hard").max_budget for _ in range(4)}

    assert environment.scenario.scenario_id == "level_2_hard"
    assert len(budgets) == 4


def test_two_environments_with_other_seeds_draw_differently() -> None:
    drawn = []
    for seed in ("a", "b"):
        environment = MolForgeEnvironment(LaboratoryConfiguration(suite="randomized", stream_seed=seed))
        environment.reset()
        drawn.append(environment.scenario)

    assert drawn[0] != drawn[1]


def test_the_task_index_is_the_place_of_the_scenario_that_is_played() -> None:
    environment = MolForgeEnvironment()

    assert environment.reset(scenario="level_2_hard").metadata["task_index"] == 2


def test_an_episode_has_a_name_that_can_be_given() -> None:
    environment = MolForgeEnvironment()
    environment.reset()

    assert environment.state.episode_id == "official-level_0_easy-None-0"

    environment.reset(episode_id="mine")
    assert environment.state.episode_id == "mine"


def test_a_step_after_the_end_is_refused_and_changes_nothing() -> None:
    environment = MolForgeEnvironment()
    environment.reset()
    for _ in range(7):
        environment.step(DEFER)
    before = environment.state

    with pytest.raises(EpisodeOverError):
        environment.step(DEFER)
    assert environment.state == before


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(UnknownScenarioError):
        MolForgeEnvironment().reset(scenario="level_9")
