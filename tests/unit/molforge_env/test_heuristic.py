"""The decision list, rule by rule, on states that the official tasks do not reach."""

from __future__ import annotations

import pytest

from molforge_env.assays import Reading
from molforge_env.heuristic import choose_call
from molforge_env.views import observe


def _known(episode, **estimates: float):
    """Give an episode readings of its molecule with these estimates."""
    tools = {"potency": "dock_target", "toxicity": "assay_toxicity", "synth": "estimate_synthesizability"}
    readings = tuple(
        Reading(tools[name], name, value, 0.0, 1.0, 1, episode.molecule.code) for name, value in estimates.items()
    )
    return episode._replace(readings=readings)


def _choose(episode):
    tool, arguments = choose_call(observe(episode))
    return " ".join((tool, *arguments.values()))


def test_proven_and_within_the_limits_it_submits(opened) -> None:
    assert _choose(_known(opened(start_molecule="2003"), potency=0.9, toxicity=0.1, synth=0.7)) == "submit"


def test_the_planned_molecule_is_submitted_although_a_reading_is_bad(opened) -> None:
    assert _choose(_known(opened(start_molecule="0003"), potency=0.9, toxicity=0.9, synth=0.7)) == "submit"


def test_on_the_last_step_it_submits_whatever_is_proven(opened) -> None:
    episode = _known(opened(start_molecule="2003"), potency=0.1, toxicity=0.9, synth=0.7)

    assert _choose(episode._replace(step=6)) == "submit"


def test_the_hard_series_is_restarted_when_it_can_be_paid(opened) -> None:
    assert _choose(opened("hard")) == "restart"
    assert _choose(opened("hard", max_budget=300)) != "restart"


@pytest.mark.parametrize(
    ("molecule", "call"),
    [
        ("0121", "edit solvent_tail morpholine"),
        ("0101", "edit back_pocket cyano"),
        ("0103", "edit hinge azaindole"),
        ("0003", "run_assay assay_toxicity"),
    ],
)
def test_the_first_edits_come_in_order(opened, molecule, call) -> None:
    assert _choose(opened(start_molecule=molecule)) == call


def test_potency_waits_for_the_shift_on_the_hard_task(opened) -> None:
    episode = _known(opened("hard", start_molecule="2003"), toxicity=0.2, synth=0.7)

    assert _choose(episode) == "run_assay evaluate_properties"  # the list falls through to its cheap reading
    assert _choose(episode._replace(step=3)) == "run_assay dock_target"


def test_old_evidence_of_the_hard_task_is_docked_again(opened) -> None:
    episode = _known(opened("hard", start_molecule="2003"), potency=0.9, toxicity=0.2, synth=0.7)

    assert _choose(episode._replace(step=3)) == "run_assay dock_target"
    assert _choose(episode._replace(step=4)) == "submit"


def test_a_risky_molecule_is_made_safer(opened) -> None:
    poor = {"max_budget": 100}

    assert _choose(opened("hard", start_molecule="2030", **poor)) == "edit solvent_tail morpholine"
    assert _choose(opened("hard", start_molecule="2002", **poor)) == "edit back_pocket cyano"
    assert _choose(opened("hard", start_molecule="2201", **poor)) == "edit back_pocket cyano"
    toxic = _known(opened("hard", start_molecule="2003", **poor), toxicity=0.9)
    assert _choose(toxic) == "edit warhead reversible_cyanoacrylamide"
    toxic = _known(opened("hard", start_molecule="1103", **poor), toxicity=0.9)
    assert _choose(toxic) == "edit hinge azaindole"


def test_a_weak_molecule_is_made_more_potent(opened) -> None:
    poor = {"max_budget": 40}

    assert _choose(opened("hard", start_molecule="1103", **poor)) == "edit hinge azaindole"
    assert _choose(opened("hard", start_molecule="1000", **poor)) == "edit back_pocket cyano"
    assert _choose(opened("hard", start_molecule="1003", **poor)) == "edit warhead nitrile"
    assert _choose(opened("easy", start_molecule="1003", **poor)) == "edit warhead acrylamide"
    weak = _known(opened("easy", start_molecule="1003", **poor), potency=0.1)
    assert _choose(weak) == "edit warhead acrylamide"


def test_the_cheap_potency_is_tried_once(opened) -> None:
    episode = opened("easy", start_molecule="0003", max_budget=90)

    assert _choose(episode) == "run_assay evaluate_properties"

    tried = Reading("evaluate_properties", "novelty", 0.4, 0.0, 1.0, 1, "0003")
    assert _choose(episode._replace(readings=(tried,))) == "defer"


def test_docking_is_the_second_way_to_potency_before_the_shift(opened) -> None:
    tried = Reading("evaluate_properties", "novelty", 0.4, 0.0, 1.0, 1, "2003")
    episode = _known(opened("hard", start_molecule="2003"), toxicity=0.2, synth=0.7)

    assert _choose(episode._replace(readings=(*episode.readings, tried))) == "run_assay dock_target"


def test_a_long_route_is_shortened(opened) -> None:
    strong = {"potency": 0.9, "synth": 0.3}

    assert _choose(_known(opened("easy", start_molecule="0003", max_budget=90), **strong)) == "edit hinge pyridine"
    assert _choose(_known(opened("hard", start_molecule="2103", max_budget=90), **strong)) == "edit back_pocket methoxy"
    assert _choose(_known(opened("hard", start_molecule="2100", max_budget=90), **strong)) == "defer"


def test_before_the_shift_the_last_chance_is_taken_with_old_evidence(opened) -> None:
    episode = opened("hard", start_molecule="2003", max_steps=4, max_budget=90)
    proven = _known(episode, potency=0.9, toxicity=0.2, synth=0.7)

    assert _choose(proven._replace(step=3)) == "submit"


def test_with_money_and_nothing_to_do_it_reads_and_without_it_waits(opened) -> None:
    known = {"potency": 0.9, "synth": 0.7}

    assert _choose(_known(opened("hard", start_molecule="2003", max_budget=150), **known)) == (
        "run_assay search_literature"
    )
    assert _choose(_known(opened("hard", start_molecule="2003", max_budget=90), **known)) == "defer"
