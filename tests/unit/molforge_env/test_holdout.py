"""The family that is kept for evaluation: out of training's reach, solvable, and the same from its record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_env.ceiling import ceiling_of, find_ceiling
from molforge_env.errors import UsageError
from molforge_env.grading import grade
from molforge_env.holdout import HoldoutDraw, narrowest, start_molecules, vary
from molforge_env.interface import observation_text
from molforge_env.scenarios import SCENARIO_IDS, SCENARIOS, find_scenario
from molforge_env.suites import (
    SUITES,
    TRAINING_SUITES,
    ResolvedScenario,
    check_trainable,
    open_episode,
    resolve_scenario,
)
from molforge_env.tool_schemas import TOOL_ARGUMENTS
from molforge_env.tools import ToolSession
from molforge_env.views import observe

WAYS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "holdout_ways.jsonl").read_text("utf-8").splitlines()
]
SEEDS = st.integers(0, 2**31 - 1)
TASKS = st.sampled_from(SCENARIO_IDS)


def _substitutions(one: str, other: str) -> int:
    return sum(left != right for left, right in zip(one, other, strict=True))


def _variant(scenario_id: str, start: str, draw: HoldoutDraw) -> ResolvedScenario:
    scenario = find_scenario(scenario_id)
    base = resolve_scenario(suite="holdout", scenario_id=scenario_id, seed=0)
    budget = round(scenario.budget * draw.budget_scale)
    return base.model_copy(update={"start_molecule": start, "max_budget": budget, "draw": draw})


def _play(task: ResolvedScenario, calls: list[list[str]]) -> ToolSession:
    session = ToolSession()
    session.start(task)
    for tool, *values in calls:
        session.call(tool, dict(zip(TOOL_ARGUMENTS[tool], values, strict=False)))
    return session


def _is_solved(session: ToolSession) -> bool:
    scores = session.scores
    proven = min(scores["submitted_score"], scores["constraint_score"], scores["evidence_score"]) >= 0.9999
    return proven and scores["candidate_score"] >= session.episode.scenario.baseline


def test_each_start_molecule_is_two_substitutions_from_its_own_and_no_less_from_the_others() -> None:
    official = {name: scenario.start_molecule for name, scenario in SCENARIOS.items()}
    for name in SCENARIO_IDS:
        starts = start_molecules(name)
        assert len(starts) == len(set(starts)) >= 20
        for code in starts:
            assert _substitutions(code, official[name]) == 2
            assert min(_substitutions(code, other) for other in official.values()) == 2


@given(seed=SEEDS, task=st.none() | TASKS)
def test_what_training_draws_is_never_a_holdout_variant(seed: int, task: str | None) -> None:
    drawn = resolve_scenario(suite="randomized", scenario_id=task, seed=seed)

    assert all(drawn.start_molecule not in start_molecules(name) for name in SCENARIO_IDS)


@given(seed=SEEDS, task=st.none() | TASKS)
def test_a_holdout_variant_is_nothing_that_training_draws(seed: int, task: str | None) -> None:
    variant = resolve_scenario(suite="holdout", scenario_id=task, seed=seed)
    official = find_scenario(variant.scenario_id)
    varied = open_episode(variant).scenario

    assert variant == resolve_scenario(suite="holdout", scenario_id=variant.scenario_id, seed=seed)
    assert ResolvedScenario.model_validate_json(variant.model_dump_json()) == variant
    assert all(_substitutions(variant.start_molecule, row.start_molecule) >= 2 for row in SCENARIOS.values())
    assert not 0.85 * official.budget - 1 <= variant.max_budget <= 1.15 * official.budget + 1
    assert varied.potency_min != official.potency_min
    assert varied.toxicity_max != official.toxicity_max
    assert varied.synth_min != official.synth_min
    assert (varied.shift_step is None) == (official.shift_step is None)
    assert varied.shift_step is None or varied.shift_step != official.shift_step
    kept = {"weights", "baseline", "brief", "restart_molecule", "trap", "max_steps", "budget", "start_molecule"}
    assert varied.model_dump(include=kept) == official.model_dump(include=kept)


@given(seed=SEEDS, task=TASKS)
def test_the_player_reads_the_limits_of_the_variant_and_nothing_of_its_shift(seed: int, task: str) -> None:
    variant = resolve_scenario(suite="holdout", scenario_id=task, seed=seed)
    scenario = open_episode(variant).scenario
    assert isinstance(variant.draw, HoldoutDraw)
    for length in ("full", "compact"):
        text = observation_text(observe(open_episode(variant)), length)
        assert all(
            f"{limit:.2f}" in text for limit in (scenario.potency_min, scenario.toxicity_max, scenario.synth_min)
        )
        other = variant.model_copy(update={"draw": variant.draw.model_copy(update={"shift_step": 8})})
        assert observation_text(observe(open_episode(other)), length) == text


def test_every_start_molecule_has_a_way_for_each_shift_step() -> None:
    found = {(way["scenario_id"], way["start_molecule"], way["shift_step"]) for way in WAYS}
    wanted = {
        (name, code, step)
        for name in SCENARIO_IDS
        for code in start_molecules(name)
        for step in ((None,) if SCENARIOS[name].shift_step is None else (3, 5))
    }

    assert found == wanted


@pytest.mark.parametrize("part", range(8))
def test_each_way_reaches_a_valid_submission_under_the_narrowest_limits(part: int) -> None:
    for way in WAYS[part::8]:
        draw = narrowest(find_scenario(way["scenario_id"]), way["shift_step"])
        session = _play(_variant(way["scenario_id"], way["start_molecule"], draw), way["calls"])
        assert _is_solved(session), way
        assert grade(session.episode)["final_score"] == way["final_score"]


@given(seed=SEEDS, task=TASKS)
def test_the_way_of_its_start_molecule_solves_any_variant(seed: int, task: str) -> None:
    variant = resolve_scenario(suite="holdout", scenario_id=task, seed=seed)
    shift_step = open_episode(variant).scenario.shift_step
    [way] = [
        way
        for way in WAYS
        if (way["scenario_id"], way["start_molecule"], way["shift_step"]) == (task, variant.start_molecule, shift_step)
    ]

    assert _is_solved(_play(variant, way["calls"]))


@pytest.mark.parametrize("way", [WAYS[3], WAYS[47], WAYS[-2]], ids=lambda way: way["scenario_id"])
def test_the_search_gives_the_score_of_a_way_again(way: dict[str, Any]) -> None:
    draw = narrowest(find_scenario(way["scenario_id"]), way["shift_step"])

    assert find_ceiling(_variant(way["scenario_id"], way["start_molecule"], draw)).final_score == way["final_score"]


@pytest.mark.parametrize("suite", ["randomized", "holdout"])
@pytest.mark.parametrize("task", SCENARIO_IDS)
def test_the_kept_ceilings_of_variants_are_reached_by_their_calls(suite: str, task: str) -> None:
    for seed in range(16):
        kept = ceiling_of(resolve_scenario(suite=suite, scenario_id=task, seed=seed))
        session = _play(kept.scenario, [[tool, *arguments.values()] for tool, arguments in kept.calls])
        assert session.scores["final_score"] == kept.final_score > 0.85


@pytest.mark.parametrize(("suite", "task", "seed"), [("holdout", "level_0_easy", 2), ("randomized", "level_2_hard", 7)])
def test_the_search_gives_a_kept_ceiling_of_a_variant_again(suite: str, task: str, seed: int) -> None:
    variant = resolve_scenario(suite=suite, scenario_id=task, seed=seed)

    assert find_ceiling(variant) == ceiling_of(variant)


def test_a_ceiling_that_is_not_kept_is_searched() -> None:
    variant = resolve_scenario(suite="holdout", scenario_id="level_0_easy", seed=1002)

    assert ceiling_of(variant) == find_ceiling(variant)
    assert ceiling_of(resolve_scenario(scenario_id="level_0_easy", seed=3)).final_score == 0.878


def test_the_scoring_rules_of_a_variant_are_those_of_its_scenario() -> None:
    scenario = find_scenario("level_2_hard")
    varied = vary(scenario, narrowest(scenario, 5))

    changed = {name for name in type(scenario).model_fields if getattr(scenario, name) != getattr(varied, name)}
    assert changed == {"potency_min", "toxicity_max", "synth_min", "shift_step"}


def test_training_on_the_holdout_suite_is_refused_in_three_lines() -> None:
    assert set(SUITES) - set(TRAINING_SUITES) == {"holdout"}
    for suite in TRAINING_SUITES:
        check_trainable(suite)
    with pytest.raises(UsageError) as caught:
        check_trainable("holdout")

    assert "training was asked to play the suite 'holdout'" in caught.value.what
    assert "where: suite" in str(caught.value)
    assert "mend:  Train on official or randomized" in str(caught.value)
