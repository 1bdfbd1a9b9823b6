from __future__ import annotations

import pytest

from molforge_env.oracles import objective, true_properties


def _parts(turn) -> dict[str, float]:
    return {part.name: part.value for part in turn.components}


def test_an_edit_is_paid_by_the_sign_of_its_effect(opened, play) -> None:
    better, up = play(opened(), "edit", slot="solvent_tail", fragment="morpholine")
    _, down = play(better, "edit", slot="back_pocket", fragment="methoxy")

    assert _parts(up)["edit_delta"] == 0.04
    assert _parts(up)["turn_cost"] == -0.12
    assert _parts(down)["edit_delta"] in (0.04, -0.04)


def test_dense_pay_is_twice_the_change_of_the_objective(opened, play) -> None:
    episode = opened(reward_mode="dense")
    before = objective(episode.scenario, true_properties(episode.molecule, trap=False, shift=False))
    after, turn = play(episode, "edit", slot="solvent_tail", fragment="morpholine")
    gain = objective(episode.scenario, true_properties(after.molecule, trap=False, shift=False)) - before

    assert _parts(turn)["edit_delta"] == pytest.approx(2 * gain, abs=1e-4)


def test_an_edit_that_moves_nothing_is_worth_nothing(opened, play) -> None:
    _, turn = play(opened(start_molecule="2003"), "edit", slot="solvent_tail", edit_type="remove")

    assert _parts(turn)["edit_delta"] == 0.0
    assert _parts(turn)["loop_penalty"] == -0.35


def test_going_back_costs_the_loop_penalty(opened, play) -> None:
    there, first = play(opened(start_molecule="0100"), "edit", slot="hinge", fragment="azaindole")
    back, second = play(there, "edit", slot="hinge", fragment="pyridine")

    assert "loop_penalty" not in _parts(first)
    assert _parts(second)["loop_penalty"] == -0.35
    assert back.visited == ("0100", "0000")


def test_readings_become_current_again_when_the_molecule_returns(opened, play) -> None:
    episode, _ = play(opened(start_molecule="0100"), "run_assay", tool_name="dock_target")
    away, _ = play(episode, "edit", slot="hinge", fragment="azaindole")
    back, _ = play(away, "edit", slot="hinge", fragment="pyridine")

    assert back.readings == episode.readings


def test_a_removal_puts_the_default_fragment_in(opened, play) -> None:
    episode, _ = play(opened(), "edit", slot="solvent_tail", edit_type="remove")

    assert episode.molecule.fragment_in("solvent_tail") == "morpholine"


def test_an_undo_with_a_fragment_is_a_substitution(opened, play) -> None:
    episode, _ = play(opened(), "edit", slot="solvent_tail", edit_type="undo_last_edit", fragment="morpholine")

    assert episode.molecule.code == "0101"


def test_a_first_assay_pays_more_than_a_repeated_one(opened, play) -> None:
    once, first = play(opened(), "run_assay", tool_name="evaluate_novelty")
    twice, second = play(once, "run_assay", tool_name="evaluate_novelty")

    assert _parts(first)["assay_information_gain"] == 0.12
    assert _parts(second)["assay_information_gain"] == -0.06
    assert _parts(first)["budget_spend"] == -0.0222
    assert twice.remaining_budget == 3600 - 160
    assert [entry.runs for entry in twice.oracle_log] == [1, 2]


def test_literature_pays_a_little_more(opened, play) -> None:
    _, turn = play(opened(), "run_assay", tool_name="search_literature")

    assert _parts(turn)["assay_information_gain"] == 0.16


def test_curriculum_lists_first_evidence_twice_and_pays_it_once(opened, play) -> None:
    episode = opened(reward_mode="curriculum")
    measured, first = play(episode, "run_assay", tool_name="run_md_simulation")
    _, second = play(measured, "run_assay", tool_name="estimate_synthesizability")
    _, none = play(episode, "run_assay", tool_name="evaluate_novelty")

    assert _parts(first)["curriculum_evidence_gate"] == 0.24
    assert _parts(first)["assay_information_gain"] == 0.36
    assert _parts(second)["curriculum_evidence_gate"] == 0.08
    assert "curriculum_evidence_gate" not in _parts(none)


def test_a_restart_clears_the_evidence_and_the_trap_and_keeps_the_log(opened, play) -> None:
    measured, _ = play(opened("hard"), "run_assay", tool_name="dock_target")
    episode, turn = play(measured, "restart")

    assert episode.molecule.code == "2003"
    assert (episode.readings, dict(episode.runs), episode.trap) == ((), {}, False)
    assert len(episode.oracle_log) == 1
    assert episode.remaining_budget == 5000 - 300 - 350
    assert _parts(turn)["restart_penalty"] == -0.4


def test_a_restart_onto_a_visited_molecule_visits_it_once(opened, play) -> None:
    episode, _ = play(opened("hard", start_molecule="2003"), "restart")

    assert episode.visited == ("2003",)


def _prove(episode, play):
    for tool in ("evaluate_properties", "assay_toxicity", "estimate_synthesizability"):
        episode, _ = play(episode, "run_assay", tool_name=tool)
    return episode


def test_a_valid_submission_gets_the_bonus_and_pay_for_thrift(opened, play) -> None:
    episode, turn = play(_prove(opened(start_molecule="0003"), play), "submit")
    parts = _parts(turn)

    assert episode.submitted
    assert episode.done
    assert parts["hard_constraints"] == 3.5
    assert parts["budget_efficiency"] == pytest.approx(0.7 * 1430 / 3600, abs=1e-4)
    assert turn.reward == pytest.approx(
        parts["submission_quality"] + 3.5 + parts["budget_efficiency"] - 0.06 - 3 * 0.08, abs=2e-4
    )


def test_a_submission_without_potency_is_charged_for_the_gap_and_the_baseline(opened, play) -> None:
    _, turn = play(_prove(opened(start_molecule="2101"), play), "submit")
    parts = _parts(turn)

    assert parts["hard_constraints"] < 0
    assert parts["baseline_gate"] == -0.6
    assert parts["budget_efficiency"] == 0.0


def test_old_potency_is_charged_after_the_shift(opened, play) -> None:
    episode = _prove(opened("hard", start_molecule="2003", trap=False), play)
    early, _ = play(episode._replace(step=2), "submit")
    late, turn = play(episode, "submit")

    assert early.last_turn is not None
    assert _parts(early.last_turn)["post_shift_evidence"] == 0.0
    assert _parts(turn)["post_shift_evidence"] == -0.8
    assert _parts(turn)["hard_constraints"] == 0.0
    assert late.submitted


def test_curriculum_pays_for_evidence_at_the_submission(opened, play) -> None:
    sound, good = play(_prove(opened(start_molecule="0003", reward_mode="curriculum"), play), "submit")
    _, weak = play(_prove(opened(start_molecule="2101", reward_mode="curriculum"), play), "submit")
    _, late = play(_prove(opened("hard", start_molecule="2003", trap=False, reward_mode="curriculum"), play), "submit")

    assert sound.submitted
    assert _parts(good)["curriculum_evidence_supported_submit"] == 0.5
    assert _parts(weak)["curriculum_evidence_supported_submit"] == 0.35
    assert "curriculum_evidence_supported_submit" not in _parts(late)
