from __future__ import annotations

import pytest

from molforge_env import RULES_VERSION
from molforge_env.errors import UsageError
from molforge_env.suites import SCENARIO_IDS, SuiteName
from molforge_eval.ladder import Ladder, ladder, ladder_of, measure_ladder
from molforge_eval.plan import standard_plan


def test_the_ladder_goes_up_from_the_floor_to_the_exact_ceiling() -> None:
    found = ladder()

    assert [rung.name for rung in found.rungs] == ["do_nothing", "random_valid", "heuristic", "ceiling"]
    assert [rung.mean for rung in found.rungs] == sorted(rung.mean for rung in found.rungs)
    assert [found.score("ceiling", task) for task in SCENARIO_IDS] == [0.878, 0.8926, 0.9032]
    assert found.rules_version == RULES_VERSION
    assert found.reward_mode == "assay_gated"


def test_no_policy_is_above_the_ceiling_of_its_task() -> None:
    found = ladder()

    for rung in found.rungs:
        for task in rung.tasks:
            assert task.score <= found.score("ceiling", task.scenario_id)


def test_a_policy_that_draws_is_averaged_and_the_others_are_played_once() -> None:
    episodes = {rung.name: rung.tasks[0].episodes for rung in ladder().rungs}

    assert episodes == {"do_nothing": 1, "random_valid": 64, "heuristic": 1, "ceiling": 1}


def test_the_ladder_that_is_shipped_is_the_one_that_is_measured() -> None:
    assert ladder() == measure_ladder()


@pytest.mark.parametrize("suite", ["randomized", "holdout"])
def test_the_ladder_of_variants_is_the_one_that_is_measured(suite: SuiteName) -> None:
    found = ladder(suite)

    assert found == measure_ladder(suite)
    assert {task.episodes for rung in found.rungs for task in rung.tasks} == {16}
    assert found.mean("do_nothing") < found.mean("heuristic") < found.mean("ceiling") != ladder().mean("ceiling")


def test_a_plan_is_read_against_the_ladder_of_its_suite() -> None:
    assert ladder_of(standard_plan()) == ladder_of(standard_plan(seeds=0)) == ladder()
    assert ladder_of(standard_plan(suite="holdout")) == ladder("holdout")


def test_the_ladder_survives_json() -> None:
    assert Ladder.model_validate_json(ladder().model_dump_json()) == ladder()


@pytest.mark.parametrize(("rung", "task"), [("grandmaster", SCENARIO_IDS[0]), ("ceiling", "level_9")])
def test_an_unknown_rung_or_task_is_named(rung: str, task: str) -> None:
    with pytest.raises(UsageError, match=f"{rung if rung != 'ceiling' else task}.* is not"):
        ladder().score(rung, task)
