from __future__ import annotations

import pytest

from molforge_env.review_board import ToolIntent, collect_evidence, compose_action, compose_messages, expect_effects
from molforge_env.views import observe


def _said(observation, intent) -> list[tuple[str, str, str]]:
    return [(row.sender, row.message_type, row.severity) for row in compose_messages(observation, intent)]


def test_evidence_without_a_reading_names_the_unknown_constraints(opened) -> None:
    seen = observe(opened())

    assert collect_evidence(seen, ToolIntent("edit", "r", slot="hinge", fragment="azaindole")) == (
        "scenario=level_0_easy",
        "budget=3600/3600",
        "step=0/7",
        "unknown_constraints:potency_min,toxicity_max,synth_min",
        "current_hinge=pyridine",
    )


def test_evidence_with_readings_names_three_metrics_at_most(opened, play) -> None:
    episode, _ = play(opened(), "run_assay", tool_name="run_md_simulation")
    episode, _ = play(episode, "run_assay", tool_name="evaluate_novelty")
    evidence = collect_evidence(observe(episode), ToolIntent("run_assay", "r", tool_name="dock_target"))

    assert evidence[3] == "visible_metrics:potency=0.746,toxicity=0.485,synth=0.836"
    assert evidence[4] == "tool=dock_target"


@pytest.mark.parametrize(
    ("intent", "last"),
    [
        (ToolIntent("submit", "r"), "known_constraints=none"),
        (ToolIntent("restart", "r"), "restart_available=true"),
        (ToolIntent("defer", "r"), "unknown_constraints:potency_min,toxicity_max,synth_min"),
        (ToolIntent("edit", "r", slot="hinge", fragment=""), "unknown_constraints:potency_min,toxicity_max,synth_min"),
    ],
)
def test_the_last_item_of_evidence_depends_on_the_action(opened, intent, last) -> None:
    assert collect_evidence(observe(opened()), intent)[-1] == last


def test_a_submission_names_the_constraints_that_are_known(opened, play) -> None:
    episode, _ = play(opened(), "run_assay", tool_name="assay_toxicity")

    assert collect_evidence(observe(episode), ToolIntent("submit", "r"))[-1] == "known_constraints:toxicity_max"


@pytest.mark.parametrize(
    ("difficulty", "intent", "changed"),
    [
        ("easy", ToolIntent("defer", "r"), {}),
        ("easy", ToolIntent("restart", "r"), {"toxicity": "down", "synth": "up", "budget": "down"}),
        ("hard", ToolIntent("restart", "r"), {"toxicity": "down", "synth": "up", "budget": "down", "potency": "up"}),
        ("easy", ToolIntent("edit", "r", slot="warhead", fragment="nitrile"), {"toxicity": "down"}),
        ("hard", ToolIntent("edit", "r", slot="warhead", fragment="nitrile"), {"toxicity": "down", "potency": "up"}),
        ("hard", ToolIntent("edit", "r", slot="hinge", fragment="nitrile"), {}),
        ("easy", ToolIntent("edit", "r", slot="back_pocket", fragment="chloro"), {"potency": "up", "toxicity": "up"}),
        ("easy", ToolIntent("edit", "r", slot="hinge", fragment="pyridine"), {}),
    ],
)
def test_expected_effects_start_unknown_and_change_with_the_action(opened, difficulty, intent, changed) -> None:
    unknown = dict.fromkeys(("potency", "toxicity", "synth", "novelty"), "unknown") | {"budget": "neutral"}

    assert expect_effects(observe(opened(difficulty)), intent) == unknown | changed


def test_assays_and_submissions_expect_no_property_to_move(opened) -> None:
    seen = observe(opened())
    still = dict.fromkeys(("potency", "toxicity", "synth", "novelty"), "not_applicable")

    assert expect_effects(seen, ToolIntent("run_assay", "r")) == still | {"budget": "down"}
    assert expect_effects(seen, ToolIntent("submit", "r")) == still | {"budget": "neutral"}


@pytest.mark.parametrize(
    ("molecule", "slot", "fragment", "toxicologist", "process"),
    [
        ("0131", "solvent_tail", "morpholine", "approval", ("approval", "low")),
        ("0131", "back_pocket", "cyano", "approval", ("approval", "low")),
        ("0131", "warhead", "reversible_cyanoacrylamide", "approval", ("approval", "low")),
        ("0131", "hinge", "azaindole", "risk_flag", ("approval", "low")),
        ("0121", "hinge", "azaindole", "approval", ("approval", "low")),
        ("0121", "hinge", "quinazoline", "approval", ("objection", "medium")),
        ("0121", "hinge", "nonsense", "approval", ("approval", "low")),
    ],
)
def test_an_edit_is_reviewed_by_what_can_be_seen(opened, molecule, slot, fragment, toxicologist, process) -> None:
    said = _said(observe(opened(start_molecule=molecule)), ToolIntent("edit", "r", slot=slot, fragment=fragment))

    assert said == [
        ("lead_chemist", "proposal", "medium"),
        ("toxicologist", toxicologist, "medium"),
        ("assay_planner", "approval", "low"),
        ("process_chemist", *process),
    ]


def test_a_known_toxicity_decides_about_an_edit_that_is_not_safer_by_itself(opened, play) -> None:
    toxic, _ = play(opened(), "run_assay", tool_name="assay_toxicity")
    tame, _ = play(opened("medium", start_molecule="0003"), "run_assay", tool_name="assay_toxicity")
    intent = ToolIntent("edit", "r", slot="hinge", fragment="fluorophenyl")

    assert _said(observe(toxic), intent)[1][1] == "risk_flag"
    assert _said(observe(tame), intent)[1][1] == "approval"


def test_a_submission_is_reviewed_by_what_is_known(opened, play) -> None:
    start = opened("hard", start_molecule="2003", trap=False)
    tox, _ = play(start, "run_assay", tool_name="assay_toxicity")
    synth, _ = play(tox, "run_assay", tool_name="estimate_synthesizability")
    ready, _ = play(synth, "run_assay", tool_name="dock_target")
    bad, _ = play(opened(start_molecule="0002"), "run_assay", tool_name="run_md_simulation")
    said = {
        name: [(text, severity) for _, text, severity in _said(observe(episode), ToolIntent("submit", "r"))[1:]]
        for name, episode in {"start": start, "tox": tox, "synth": synth, "ready": ready, "bad": bad}.items()
    }

    assert said["start"] == [("assay_request", "high"), ("assay_request", "medium"), ("assay_request", "medium")]
    assert said["tox"] == [("approval", "medium"), ("assay_request", "medium"), ("assay_request", "medium")]
    assert said["synth"] == [("approval", "medium"), ("assay_request", "medium"), ("approval", "medium")]
    assert said["ready"] == [("approval", "medium")] * 3
    assert said["bad"] == [("objection", "high"), ("assay_request", "medium"), ("objection", "medium")]


def test_assay_restart_and_deferral_have_fixed_voices(opened) -> None:
    seen = observe(opened())

    assert _said(seen, ToolIntent("run_assay", "r", tool_name="dock_target")) == [
        ("assay_planner", "proposal", "medium"),
        ("toxicologist", "approval", "medium"),
        ("process_chemist", "approval", "low"),
    ]
    assert [row[2] for row in _said(seen, ToolIntent("restart", "r"))] == ["medium", "high", "high", "medium"]
    assert _said(seen, ToolIntent("defer", "r")) == [("lead_chemist", "proposal", "medium")]


def test_a_long_fragment_is_cut_in_the_summary_and_kept_in_the_action(opened) -> None:
    action = compose_action(observe(opened()), ToolIntent("edit", "r", slot="hinge", fragment="x" * 300))

    assert action.fragment == "x" * 300
    assert all(len(message.summary) <= 240 for message in action.messages)
