from __future__ import annotations

import pytest

from molforge_env.errors import UnknownScenarioError
from molforge_env.scenarios import SCENARIO_IDS, SCENARIOS, find_scenario


def test_the_rotation_goes_from_easy_to_hard() -> None:
    assert SCENARIO_IDS == ("level_0_easy", "level_1_medium", "level_2_hard")
    assert [SCENARIOS[name].difficulty for name in SCENARIO_IDS] == ["easy", "medium", "hard"]


def test_the_weights_of_a_scenario_add_up_to_one() -> None:
    for scenario in SCENARIOS.values():
        weights = scenario.weights
        total = weights.potency + weights.safety + weights.synth + weights.novelty

        assert total == pytest.approx(1)


def test_only_the_hard_scenario_has_a_trap_and_a_shift() -> None:
    assert [(row.trap, row.shift_step) for row in SCENARIOS.values()] == [(False, None), (False, None), (True, 4)]


def test_an_unknown_name_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(UnknownScenarioError) as caught:
        find_scenario("level_9")

    what, where, mend = str(caught.value).splitlines()
    assert "level_9" in what
    assert "scenario_id" in where
    assert all(name in mend for name in SCENARIO_IDS)
