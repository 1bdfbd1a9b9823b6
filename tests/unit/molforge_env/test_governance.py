from __future__ import annotations

import pytest

from molforge_env.governance import expect_reviews, required_reviewers, review
from molforge_env.oracles import true_properties

ALL_APPROVE = {
    "lead_chemist": "proposal",
    "toxicologist": "approval",
    "assay_planner": "approval",
    "process_chemist": "approval",
}
_APPROVES = ("approval", False)
_ASKS = ("assay_request", False)
_ASKS_AND_VETOES = ("assay_request", True)
_OBJECTS_AND_VETOES = ("objection", True)


def _before(episode):
    return true_properties(episode.molecule, trap=episode.trap, shift=episode.shift)


def _review(episode, action):
    return review(episode, action, _before(episode))


def _expect(episode, action):
    return expect_reviews(episode, action, _before(episode))


def test_the_reviewers_are_the_three_specialists_without_the_actor(action) -> None:
    assert required_reviewers(action("submit")) == ("toxicologist", "assay_planner", "process_chemist")
    assert required_reviewers(action("run_assay")) == ("toxicologist", "process_chemist")
    assert required_reviewers(action("defer")) == ()


def test_silence_costs_a_part_for_each_role(opened, action) -> None:
    verdict = _review(opened(), action("edit", slot="solvent_tail", fragment="morpholine"))

    assert verdict.components == (
        ("missing_proposal", -0.06),
        ("missing_review_toxicologist", -0.08),
        ("missing_review_assay_planner", -0.08),
        ("missing_review_process_chemist", -0.08),
    )
    assert verdict.governance.status == "executed"
    assert verdict.messages == ()


def test_right_messages_are_paid_logged_and_counted(opened, action) -> None:
    verdict = _review(opened(), action("edit", slot="solvent_tail", fragment="morpholine", say=ALL_APPROVE))

    assert [part.value for part in verdict.components] == [0.05, 0.12, 0.12, 0.12]
    assert verdict.governance.approvals == ("toxicologist", "assay_planner", "process_chemist")
    assert [entry.message_id for entry in verdict.messages] == [f"msg_000_00{index}" for index in range(4)]
    assert verdict.roles["lead_chemist"] == (1, 1, 0)


def test_the_callers_message_stays_as_it_was(opened, action) -> None:
    asked = action("edit", slot="solvent_tail", fragment="morpholine", say=ALL_APPROVE)
    _review(opened(), asked)

    assert [message.message_id for message in asked.messages] == [""] * 4


def test_a_message_that_has_an_id_keeps_it(opened, action) -> None:
    own = {"message_id": "mine", "sender": "lead_chemist", "message_type": "proposal"}
    verdict = _review(opened(), action("submit", messages=[own]))

    assert verdict.messages[0].message_id == "mine"


def test_a_wrong_message_costs_more_than_silence_and_counts_as_wrong(opened, action) -> None:
    said = {"toxicologist": "risk_flag"}
    verdict = _review(opened(), action("edit", slot="solvent_tail", fragment="morpholine", say=said))

    assert ("misaligned_review_toxicologist", -0.1) in verdict.components
    assert verdict.roles["toxicologist"] == (1, 0, 1)
    assert verdict.objection_messages == 1


def test_an_actor_that_says_something_else_has_proposed_nothing(opened, action) -> None:
    said = {"lead_chemist": "revision_request"}
    verdict = _review(opened(), action("submit", say=said))

    assert verdict.components[0] == ("missing_proposal", -0.06)
    assert verdict.messages == ()


def test_an_expected_objection_is_listed_as_one(opened, action) -> None:
    said = {"toxicologist": "rejection"}
    verdict = _review(opened(), action("submit", say=said))

    assert verdict.governance.objections == ("toxicologist",)
    assert verdict.governance.vetoes == ("toxicologist", "assay_planner")
    assert verdict.components[-1] == ("policy_veto", -0.35)


def test_vetoes_do_not_depend_on_messages(opened, action) -> None:
    silent = _review(opened(), action("submit"))
    talking = _review(opened(), action("submit", say=ALL_APPROVE))

    assert silent.governance.vetoes == talking.governance.vetoes == ("toxicologist", "assay_planner")


def test_nobody_is_asked_about_a_deferral_and_anybody_may_speak(opened, action) -> None:
    said = {"lead_chemist": "proposal", "toxicologist": "objection", "assay_planner": "approval"}
    verdict = _review(opened(), action("defer", say=said))

    assert verdict.components == (("optional_review_assay_planner", 0.02), ("optional_review_toxicologist", 0.02))
    assert [entry.message.sender for entry in verdict.messages] == ["assay_planner", "toxicologist"]


def test_a_lead_that_speaks_to_an_assay_is_optional(opened, action) -> None:
    verdict = _review(opened(), action("run_assay", tool_name="dock_target", say={"lead_chemist": "revision_request"}))

    assert verdict.components[-1] == ("optional_review_lead_chemist", 0.02)


def test_an_edit_that_raises_toxicity_much_is_vetoed(opened, action) -> None:
    expected = _expect(opened(start_molecule="0100"), action("edit", slot="back_pocket", fragment="trifluoromethyl"))

    assert expected["toxicologist"] == ("objection", True)


def test_an_edit_from_bad_to_equally_bad_is_vetoed(opened, action) -> None:
    expected = _expect(opened(), action("edit", slot="warhead", fragment="reversible_cyanoacrylamide"))
    unmoved = _expect(opened(), action("edit", slot="hinge", fragment="azaindole"))

    assert unmoved["toxicologist"] == ("objection", True)
    assert expected["toxicologist"] == ("approval", False)  # still bad, yet clearly better


def test_a_much_harder_route_is_objected_to_and_not_vetoed(opened, action) -> None:
    low = _expect(opened(start_molecule="1000"), action("edit", slot="hinge", fragment="quinazoline"))
    drop = _expect(opened(start_molecule="2121"), action("edit", slot="hinge", fragment="azaindole"))

    assert low["process_chemist"] == ("objection", False)
    assert drop["process_chemist"] == ("objection", False)


def test_a_removal_is_judged_by_the_default_fragment(opened, action) -> None:
    removal = _expect(opened(), action("edit", slot="solvent_tail", edit_type="remove"))
    substitution = _expect(opened(), action("edit", slot="solvent_tail", fragment="morpholine"))

    assert removal == substitution


def test_the_planner_approves_a_restart_only_out_of_a_trap_without_potency(opened, action) -> None:
    easy = _expect(opened(), action("restart"))
    potent = _expect(opened("hard"), action("restart"))
    weak = _expect(opened("hard", start_molecule="0100"), action("restart"))

    assert easy["assay_planner"] == ("rejection", False)
    assert potent["assay_planner"] == ("rejection", False)
    assert weak["assay_planner"] == ("approval", False)


def test_an_assay_is_always_approved(opened, action) -> None:
    expected = _expect(opened(), action("run_assay", tool_name="run_md_simulation"))

    assert expected == {"toxicologist": ("approval", False), "process_chemist": ("approval", False)}


@pytest.mark.parametrize(
    ("difficulty", "molecule", "assays", "voices"),
    [
        ("medium", "0003", "", (_ASKS_AND_VETOES, _ASKS_AND_VETOES, _ASKS)),
        ("medium", "0003", "assay_toxicity", (_APPROVES, _ASKS_AND_VETOES, _ASKS)),
        ("hard", "2003", "run_md_simulation", (_APPROVES, _APPROVES, _APPROVES)),
        ("easy", "0121", "", (_OBJECTS_AND_VETOES, _ASKS_AND_VETOES, _ASKS)),
        ("easy", "0121", "assay_toxicity", (_OBJECTS_AND_VETOES, _ASKS_AND_VETOES, _ASKS)),
        ("easy", "0002", "", (_OBJECTS_AND_VETOES, _ASKS_AND_VETOES, _OBJECTS_AND_VETOES)),
        ("easy", "0002", "estimate_synthesizability", (_OBJECTS_AND_VETOES, _ASKS_AND_VETOES, _OBJECTS_AND_VETOES)),
    ],
)
def test_a_submission_is_reviewed_by_what_is_known_and_what_is_true(
    opened, action, play, difficulty, molecule, assays, voices
) -> None:
    episode = opened(difficulty, start_molecule=molecule, trap=False)
    for tool in assays.split():
        episode, _ = play(episode, "run_assay", tool_name=tool)
    expected = _expect(episode, action("submit"))

    assert tuple(expected.values()) == voices


def test_a_reading_that_is_too_bad_calls_for_an_objection_without_a_veto(opened, action) -> None:
    """Noise can put a sound molecule over the limit: the roles must object, and the truth lets it pass."""
    from molforge_env.assays import read_assay
    from molforge_env.molecules import MOLECULES

    scenario = opened().scenario
    seen = {"assay_toxicity": False, "estimate_synthesizability": False}
    for code, molecule in MOLECULES.items():
        true = true_properties(molecule, trap=False, shift=False)
        for tool, role in (("assay_toxicity", "toxicologist"), ("estimate_synthesizability", "process_chemist")):
            reading = read_assay(molecule, tool, run=1, properties=true)
            looks_bad = (
                reading[0].estimate > scenario.toxicity_max
                if tool == "assay_toxicity"
                else reading[0].estimate < scenario.synth_min
            )
            is_bad = (
                true.toxicity > scenario.toxicity_max if tool == "assay_toxicity" else true.synth < scenario.synth_min
            )
            if looks_bad and not is_bad:
                episode = opened(start_molecule=code)._replace(readings=reading)
                seen[tool] = True

                assert _expect(episode, action("submit"))[role] == ("objection", False)

    assert all(seen.values())
