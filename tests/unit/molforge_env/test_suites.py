from __future__ import annotations

from itertools import islice

import pytest

from molforge_env.errors import UnknownScenarioError, UsageError
from molforge_env.scenarios import SCENARIOS
from molforge_env.suites import SCENARIO_IDS, ResolvedScenario, open_episode, resolve_scenario, sequential_draws


def test_an_official_task_is_the_scenario_itself() -> None:
    resolved = resolve_scenario(scenario_id="level_2_hard")

    assert (resolved.max_budget, resolved.max_steps, resolved.start_molecule) == (5000, 9, "0332")
    assert resolved.draw is None
    assert resolved.seed is None


def test_an_official_task_does_not_move_with_its_seed() -> None:
    one, other = (resolve_scenario(scenario_id="level_0_easy", seed=seed) for seed in (1, 2))

    assert one.model_copy(update={"seed": 2}) == other


def test_equal_seeds_give_equal_randomized_tasks_and_other_seeds_others() -> None:
    drawn = [resolve_scenario(suite="randomized", seed=seed) for seed in range(40)]

    assert drawn == [resolve_scenario(suite="randomized", seed=seed) for seed in range(40)]
    assert len({(row.scenario_id, row.max_budget, row.max_steps, row.start_molecule) for row in drawn}) > 35
    assert {row.scenario_id for row in drawn} == set(SCENARIO_IDS)


@pytest.mark.parametrize("seed", range(20))
def test_a_named_scenario_keeps_the_other_draws_of_the_seed(seed: int) -> None:
    free = resolve_scenario(suite="randomized", seed=seed)
    named = [resolve_scenario(suite="randomized", scenario_id=name, seed=seed) for name in SCENARIO_IDS]

    assert free in named
    assert {row.draw.budget_scale for row in named if row.draw} == {free.draw.budget_scale if free.draw else None}


def test_a_draw_explains_every_number_of_the_task() -> None:
    for resolved in islice(sequential_draws("explain"), 200):
        scenario = SCENARIOS[resolved.scenario_id]
        draw = resolved.draw
        assert draw is not None
        assert resolved.max_budget == round(scenario.budget * draw.budget_scale)
        assert resolved.max_steps == max(4, scenario.max_steps + draw.step_delta)
        changed = resolved.start_molecule != scenario.start_molecule
        assert changed is (draw.slot is not None) is (draw.fragment is not None)


def test_a_resolved_scenario_survives_the_way_through_json() -> None:
    for resolved in islice(sequential_draws("json"), 30):
        assert ResolvedScenario.model_validate_json(resolved.model_dump_json()) == resolved


def test_an_episode_opens_with_the_resolved_numbers() -> None:
    resolved = next(iter(sequential_draws("open")))
    episode = open_episode(resolved, reward_mode="dense")

    assert (episode.max_budget, episode.max_steps) == (resolved.max_budget, resolved.max_steps)
    assert episode.molecule.code == resolved.start_molecule
    assert episode.reward_mode == "dense"


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"suite": "final"}, UnknownScenarioError, "official, randomized"),
        ({"scenario_id": "level_9"}, UnknownScenarioError, "level_0_easy"),
        ({"suite": "randomized", "scenario_id": "level_9", "seed": 1}, UnknownScenarioError, "level_0_easy"),
        ({}, UsageError, "level_0_easy"),
        ({"suite": "randomized"}, UsageError, "seed"),
    ],
)
def test_a_task_that_cannot_be_settled_is_refused_in_three_lines(arguments, error, named) -> None:
    with pytest.raises(error) as caught:
        resolve_scenario(**arguments)

    assert len(str(caught.value).splitlines()) == 3
    assert named in str(caught.value)
