from __future__ import annotations

import pytest

from molforge_env.interface import (
    OBSERVATION_LENGTHS,
    after_step_text,
    observation_text,
    prompt_text,
)
from molforge_env.models import SLOTS, TOOLS
from molforge_env.molecules import FRAGMENT_NAMES
from molforge_env.views import observe


def test_the_full_prompt_names_every_fragment_slot_and_assay() -> None:
    words = prompt_text("full")

    assert all(slot in words for slot in SLOTS)
    assert all(name in words for names in FRAGMENT_NAMES.values() for name in names)
    assert all(tool in words for tool in TOOLS)


@pytest.mark.parametrize("length", OBSERVATION_LENGTHS)
@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_the_first_text_holds_what_is_needed_to_play(opened, length, difficulty) -> None:
    episode = opened(difficulty)
    text = observation_text(observe(episode), length)

    assert difficulty in text
    assert str(episode.max_budget) in text
    assert f"0/{episode.max_steps}" in text
    assert all(name in text for name in episode.molecule.fragments)
    for limit in (episode.scenario.potency_min, episode.scenario.toxicity_max, episode.scenario.synth_min):
        assert f"{limit:.2f}" in text


@pytest.mark.parametrize("length", OBSERVATION_LENGTHS)
def test_a_text_after_a_step_tells_readings_status_and_what_happened(opened, play, length) -> None:
    episode, _ = play(opened("medium", start_molecule="0003"), "run_assay", tool_name="assay_toxicity")
    text = after_step_text(observe(episode), length)

    assert "1/8" in text
    assert "2300" in text
    assert f"{episode.readings[0].estimate:.2f}" in text


def test_the_compact_text_is_regular_and_short(opened, play) -> None:
    episode, _ = play(opened("hard", start_molecule="2003"), "run_assay", tool_name="run_md_simulation")

    place, fragments, constraints = after_step_text(observe(episode), "compact").splitlines()

    assert place == "executed 1/9 2500"
    assert fragments == "nitrile azaindole morpholine cyano"
    assert [word for word in constraints.split() if word.isalpha()][::2] == ["potency", "toxicity", "synth"]


def test_a_refused_and_a_vetoed_step_read_differently_from_an_executed_one(opened, play) -> None:
    texts = set()
    for kind, fields in (("defer", {}), ("submit", {}), ("edit", {"slot": "hinge", "fragment": "benzene"})):
        episode, _ = play(opened(), kind, **fields)
        texts.add(after_step_text(observe(episode), "compact"))

    assert len(texts) == 3


def test_the_full_text_shows_the_last_five_assays_or_none(opened, play) -> None:
    episode = opened()

    assert "assays: none" in observation_text(observe(episode), "full")

    for tool in ("run_md_simulation", "search_literature", "dock_target", "evaluate_novelty"):
        episode, _turn = play(episode, "run_assay", tool_name=tool)
    text = after_step_text(observe(episode), "full")

    assert text.count("toxicity=") == 1
    assert "potency=0.746" not in text  # the first of six readings
    assert "literature_signal=0.530" in text


def test_the_shift_is_never_told_in_a_text(opened, play) -> None:
    episode = opened("hard")
    for _ in range(3):
        episode, _turn = play(episode, "defer")
    before = after_step_text(observe(episode), "full")
    episode, _turn = play(episode, "defer")
    after = after_step_text(observe(episode), "full")

    assert before.replace("3/9", "4/9") == after


@pytest.mark.parametrize(("length", "words"), [("full", "The episode is over."), ("compact", "over ")])
def test_the_last_text_says_that_the_episode_is_over(opened, play, length, words) -> None:
    episode, _turn = play(opened(max_steps=2), "defer")
    last, _turn = play(episode, "defer")

    assert words not in after_step_text(observe(episode), length)
    assert words in after_step_text(observe(last), length)
