"""Transcripts: variants only, nothing hidden, nothing drawn twice differently."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_env.holdout import start_molecules
from molforge_env.interface import TOOL_ARGUMENTS, TOOL_NAMES
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import true_properties
from molforge_env.seeding import stream
from molforge_env.suites import SCENARIO_IDS, ScenarioDraw, resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.conversations import is_official
from molforge_train.teachers import TEACHERS
from molforge_train.transcripts import (
    TranscriptRecipe,
    draw_variants,
    generate_transcripts,
    play_messages,
)

MIXTURE = {"expert": 0.45, "habit": 0.30, "random": 0.25}
RECIPE = TranscriptRecipe(conversations=120, mixture=MIXTURE, observation_length="compact")


@pytest.fixture(scope="module")
def conversations():
    return list(generate_transcripts(RECIPE, seed=3))


def calls_of(messages):
    for message in messages:
        for call in message.tool_calls or ():
            yield call.function.name, json.loads(call.function.arguments)


def test_equal_seeds_give_equal_conversations(conversations):
    assert list(generate_transcripts(RECIPE, seed=3)) == conversations


def test_another_seed_gives_other_conversations(conversations):
    assert list(generate_transcripts(RECIPE, seed=4)) != conversations


def test_no_conversation_plays_an_official_task(conversations):
    assert not [item for item in conversations if item.scenario.suite != "randomized" or is_official(item.scenario)]


@given(seed=st.integers(0, 2**63 - 1))
def test_neither_fine_tuning_nor_warm_start_draws_a_holdout_variant(seed):
    reserved = {code for name in SCENARIO_IDS for code in start_molecules(name)}

    assert not [item for item in islice(draw_variants(seed), 12) if item.start_molecule in reserved]


@pytest.mark.parametrize("name", SCENARIO_IDS)
def test_a_draw_that_changes_nothing_counts_as_official(name):
    official = resolve_scenario(scenario_id=name)
    draw = ScenarioDraw(budget_scale=1.0, step_delta=0, slot=None, fragment=None)
    unchanged = official.model_copy(update={"suite": "randomized", "seed": 9, "draw": draw})

    assert is_official(unchanged)


@pytest.mark.parametrize(
    "change", [{"max_budget": 3601}, {"max_steps": 8}, {"start_molecule": "0120"}, {"scenario_id": "level_2_hard"}]
)
def test_a_draw_that_changes_one_number_is_a_variant(change):
    assert not is_official(resolve_scenario(scenario_id="level_0_easy").model_copy(update=change))


def test_variants_cover_the_three_scenarios_and_leave_official_tasks_out():
    variants = list(islice(draw_variants(1), 300))

    assert set(Counter(item.scenario_id for item in variants)) == set(SCENARIO_IDS)
    assert not [item for item in variants if is_official(item)]


def test_playing_the_calls_again_gives_the_same_texts(conversations):
    for item in conversations[:30]:
        session = ToolSession(observation_length="compact")
        opening = session.start(item.scenario)
        texts = [session.call(tool, arguments).text for tool, arguments in calls_of(item.messages)]

        assert item.messages[0].content.endswith(opening)
        assert texts == [message.content for message in item.messages if message.role == "tool"]
        assert session.done


def test_no_text_changes_when_a_hidden_value_is_written_differently(conversations):
    # A true value has four decimals; a text shows two decimals of a reading that carries noise.
    for item in conversations:
        texts = "\n".join(message.content for message in item.messages)
        molecule = molecule_from_code(item.scenario.start_molecule)
        hidden = true_properties(molecule, trap=False, shift=False)

        assert not [value for value in hidden if f"{value:.4f}" in texts]


def test_every_call_fits_the_schema_of_its_tool(conversations):
    for item in conversations:
        for tool, arguments in calls_of(item.messages):
            assert tool in TOOL_NAMES
            assert set(arguments) <= set(TOOL_ARGUMENTS[tool])


def test_teachers_take_part_by_their_shares(conversations):
    shares = {name: count / len(conversations) for name, count in Counter(i.teacher for i in conversations).items()}

    assert shares == pytest.approx(MIXTURE, abs=0.12)


def score_of(teacher, seed):
    variant = next(draw_variants(seed))
    messages = play_messages(teacher, variant, "compact", stream(seed, "test"))
    session = ToolSession(observation_length="compact")
    session.start(variant)
    for tool, arguments in calls_of(messages):
        session.call(tool, arguments)
    return session.scores["final_score"]


def test_the_expert_is_good_and_the_others_are_not():
    means = {name: sum(score_of(name, seed) for seed in range(40)) / 40 for name in TEACHERS}

    assert means["expert"] > 0.7
    assert max(means["habit"], means["random"]) < 0.25
