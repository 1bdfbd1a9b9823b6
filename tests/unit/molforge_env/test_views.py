from __future__ import annotations

import dataclasses

import orjson
import pytest

from molforge_env.reasoning import EDIT_EFFECTS
from molforge_env.views import Observation, digest_of, observe

ALL_APPROVE = {
    "lead_chemist": "proposal",
    "toxicologist": "approval",
    "assay_planner": "approval",
    "process_chemist": "approval",
}
FIELDS = [
    "done",
    "reward",
    "metadata",
    "scenario_id",
    "difficulty",
    "state_label",
    "state_path",
    "coordination_mode",
    "enabled_roles",
    "task_brief",
    "target_name",
    "current_molecule",
    "molecule_slots",
    "editable_slots",
    "step_index",
    "max_steps",
    "remaining_budget",
    "budget_used",
    "max_budget",
    "known_assays",
    "role_observations",
    "message_log",
    "governance",
    "last_transition_summary",
    "visible_metrics",
    "constraint_status",
    "reward_breakdown",
    "allowed_actions",
    "report_card",
]


def _role(observation: Observation, role: str) -> dict:
    return next(row["observation"] for row in observation.role_observations if row["role"] == role)


def test_the_fields_stand_in_the_contractual_order() -> None:
    assert [field.name for field in dataclasses.fields(Observation)] == FIELDS


def test_a_fresh_observation_has_no_reward_and_waits(opened) -> None:
    seen = observe(opened(), task_index=0)

    assert (seen.done, seen.reward, seen.reward_breakdown, seen.report_card) == (False, 0.0, (), "")
    assert seen.governance["status"] == "ready"
    assert seen.governance["executable"] is True
    assert seen.state_label == "[start]"
    assert seen.metadata["task_index"] == 0
    assert "terminal_grader_scores" not in seen.metadata


def test_constraints_are_judged_by_readings(opened, play) -> None:
    unknown = observe(opened()).constraint_status
    episode, _ = play(opened(), "run_assay", tool_name="run_md_simulation")
    known = observe(episode).constraint_status

    assert [(row.name, row.target, row.satisfied, row.evidence_status) for row in unknown] == [
        ("potency_min", ">= 0.84", None, "unknown"),
        ("toxicity_max", "<= 0.28", None, "unknown"),
        ("synth_min", ">= 0.62", None, "unknown"),
    ]
    assert [(row.satisfied, row.actual) for row in known] == [(False, 0.7458), (False, 0.4854), (True, 0.8355)]


def test_metrics_show_only_what_is_known_of_the_current_molecule(opened, play) -> None:
    episode, _ = play(opened(start_molecule="0100"), "run_assay", tool_name="evaluate_properties")
    moved, _ = play(episode, "edit", slot="hinge", fragment="azaindole")

    assert list(observe(episode).visible_metrics) == [
        "budget_fraction_remaining",
        "current_molecule_assay_count",
        "potency",
        "novelty",
    ]
    assert observe(episode).visible_metrics["current_molecule_assay_count"] == 2.0
    assert list(observe(moved).visible_metrics) == ["budget_fraction_remaining", "current_molecule_assay_count"]
    assert len(observe(moved).known_assays) == 2


def test_the_log_shows_the_last_eight_messages(opened, play) -> None:
    episode = opened()
    for _ in range(3):
        episode, _ = play(episode, "submit", say=ALL_APPROVE)

    assert [row["message_id"] for row in observe(episode).message_log] == [
        f"msg_{step:03d}_{number:03d}" for step, number in zip([2] * 4 + [3] * 4, range(4, 12), strict=True)
    ]


def test_the_lead_sees_its_last_four_edits_failed_ones_too(opened, play) -> None:
    episode = opened(max_steps=20)
    for fragment in ("benzene", "azaindole", "azaindole", "quinazoline", "pyridine"):
        episode, _ = play(episode, "edit", slot="hinge", fragment=fragment)
    lead = _role(observe(episode), "lead_chemist")

    assert [row["fragment"] for row in lead["edit_history"]] == ["azaindole", "azaindole", "quinazoline", "pyridine"]
    assert "tool_name" not in lead["edit_history"][0]
    assert lead["open_questions"] == ["potency", "toxicity", "synth"]


def test_the_toxicologist_sees_alerts_and_its_own_last_messages(opened, play) -> None:
    episode = opened("medium")
    for _ in range(6):
        episode, _ = play(episode, "submit", say=ALL_APPROVE)
    seen = _role(observe(episode), "toxicologist")

    assert len(seen["safety_alerts"]) == 2  # the tail, and fluorophenyl beside chloro
    assert [row["sender"] for row in seen["risk_history"]] == ["toxicologist"] * 4
    assert seen["hard_threshold"] == 0.34


def test_the_planner_sees_money_prices_and_gaps(opened, play) -> None:
    episode, _ = play(opened("medium"), "run_assay", tool_name="assay_toxicity")
    seen = _role(observe(episode), "assay_planner")

    assert seen["budget_ledger"] == {"remaining_budget": 2300, "budget_used": 2000, "max_budget": 4300}
    assert seen["evidence_gaps"] == ["potency", "synth"]
    assert seen["tool_usage_history"] == {f"{episode.molecule.signature}::assay_toxicity": 1}
    assert seen["estimated_information_value"]["assay_toxicity"] == 0.312
    assert seen["tool_costs"]["assay_toxicity"] == 2000


def test_the_process_chemist_sees_warnings_about_the_route(opened) -> None:
    heavy = _role(observe(opened("hard")), "process_chemist")
    light = _role(observe(opened()), "process_chemist")
    reactive = _role(observe(opened(start_molecule="3100")), "process_chemist")

    assert heavy["feasibility_flags"] == {"heavy_hinge": True, "reactive_warhead": False, "lipophilic_tail": True}
    assert len(heavy["route_warnings"]) == 2
    assert light["route_warnings"] == []
    assert len(reactive["route_warnings"]) == 1


def test_permissions_are_those_of_the_rules(opened) -> None:
    permissions = {row["role"]: row["permissions"] for row in observe(opened()).role_observations}

    assert permissions["lead_chemist"] == ["edit", "submit", "restart", "defer"]
    assert permissions["assay_planner"][:2] == ["run_assay", "proposal"]
    assert "rejection" not in permissions["process_chemist"]


def test_candidate_edits_are_the_first_eight_in_alphabetical_order(opened) -> None:
    candidates = observe(opened()).metadata["candidate_edits"]

    assert [row["fragment"] for row in candidates] == [
        "nitrile",
        "reversible_cyanoacrylamide",
        "vinyl_sulfonamide",
        "azaindole",
        "fluorophenyl",
        "quinazoline",
        "dimethylamino",
        "morpholine",
    ]


def test_every_part_of_a_reward_is_explained(opened, play) -> None:
    episode, _ = play(opened("hard"), "submit", say={"toxicologist": "approval", "assay_planner": "approval"})
    shown = observe(episode).reward_breakdown

    assert [row["name"] for row in shown] == [
        "missing_proposal",
        "misaligned_review_toxicologist",
        "misaligned_review_assay_planner",
        "missing_review_process_chemist",
        "policy_veto",
    ]
    assert all(row["explanation"].endswith(".") for row in shown)


def test_no_explanation_names_the_type_that_a_reviewer_was_expected_to_send(opened, play) -> None:
    said = {role: text for role, text in ALL_APPROVE.items() if role != "lead_chemist"}
    episode, _ = play(opened(), "submit", say=said)
    texts = " ".join(row["explanation"] for row in observe(episode).reward_breakdown)

    assert not any(word in texts for word in ("objection", "approval", "rejection", "assay_request"))


def test_a_finished_episode_shows_scores_and_the_report_card(opened, play) -> None:
    episode, _ = play(opened(max_steps=1), "defer")
    seen = observe(episode)

    assert seen.metadata["terminal_grader_scores"]["final_score"] == 0.0833
    assert "true properties: potency 0.811, toxicity 0.515, synth 0.766, novelty 0.295" in seen.report_card
    assert "nothing was submitted" in seen.report_card


def test_the_report_card_tells_of_shift_and_restart(opened, play) -> None:
    episode, _ = play(opened("hard", max_steps=5), "restart")
    for _ in range(4):
        episode, _ = play(episode, "defer")
    card = observe(episode).report_card

    assert "the target shifted" in card
    assert "the series was restarted" in card
    assert "potency >= 0.780: pass" in card


def test_the_report_card_of_a_submission_does_not_say_that_nothing_was_submitted(opened, play) -> None:
    episode = opened("medium", start_molecule="0003")
    episode, _ = play(episode, "run_assay", tool_name="run_md_simulation")
    episode, _ = play(episode, "submit")
    card = observe(episode).report_card

    assert "nothing was submitted" not in card
    assert "submission_score" in card


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_an_observation_is_plain_json_with_a_stable_hash(opened, difficulty) -> None:
    seen = observe(opened(difficulty))

    assert list(orjson.loads(orjson.dumps(seen))) == FIELDS
    assert digest_of(seen) == digest_of(observe(opened(difficulty)))


def test_every_edit_with_a_known_effect_names_a_real_edit(opened) -> None:
    seen = observe(opened())

    assert all(slot in seen.editable_slots for slot, _ in EDIT_EFFECTS)


def test_the_trap_flag_changes_nothing_that_is_visible(opened) -> None:
    assert observe(opened("hard", trap=True)) == observe(opened("hard", trap=False))
