from __future__ import annotations

from molforge_env.episodes import Governance, post_shift_potency_known


def test_only_a_ready_or_executed_turn_is_executable() -> None:
    verdicts = {
        status: Governance(status).executable for status in ("ready", "executed", "needs_revision", "policy_veto")
    }

    assert verdicts == {"ready": True, "executed": True, "needs_revision": False, "policy_veto": False}


def test_a_fresh_episode_has_no_turn_and_has_spent_nothing(opened) -> None:
    assert opened().last_turn is None
    assert opened().budget_used == 0
    assert opened().state_path == ("[start]",)
    assert opened().governance.required_roles == ("toxicologist", "assay_planner", "process_chemist")


def test_potency_is_fresh_only_after_the_shift_and_for_its_molecule(opened, play) -> None:
    early, _ = play(opened("hard"), "run_assay", tool_name="dock_target")
    late = early._replace(step=4)
    again, _ = play(late, "run_assay", tool_name="dock_target")
    other, _ = play(late, "run_assay", tool_name="estimate_synthesizability")
    moved = again._replace(molecule=opened("hard", start_molecule="0000").molecule)

    assert not post_shift_potency_known(late)
    assert post_shift_potency_known(again)
    assert not post_shift_potency_known(other)
    assert not post_shift_potency_known(moved)


def test_a_task_without_a_shift_has_no_fresh_potency(opened, play) -> None:
    episode, _ = play(opened(), "run_assay", tool_name="dock_target")

    assert not episode.shift
    assert not post_shift_potency_known(episode)
