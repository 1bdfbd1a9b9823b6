from __future__ import annotations

from molforge_env.states import report_state


def test_the_state_counts_what_happened(opened, play) -> None:
    episode, _ = play(opened(), "run_assay", tool_name="dock_target", say={"toxicologist": "objection"})
    episode, _ = play(episode, "edit", slot="hinge", fragment="benzene")
    state = report_state(episode, episode_id="e")

    assert (state.step_count, state.decision_count, state.invalid_action_count) == (2, 2, 1)
    assert (state.oracle_call_count, state.known_assay_count, state.budget_used) == (1, 1, 300)
    assert (state.message_count, state.objection_count) == (1, 1)
    assert state.last_error_code == "UNKNOWN_FRAGMENT"
    assert state.state_path == ("[start]", "[decision_01]", "[invalid]")
    assert state.visited_states == (episode.molecule.signature,)
    assert state.metadata["role_metrics"]["toxicologist"] == {
        "messages_sent": 1,
        "correct_messages": 0,
        "incorrect_messages": 1,
    }
    assert [row["step"] for row in state.metadata["trace"]] == [1, 2]
    assert state.metadata["oracle_log"][0]["results"][0]["property_name"] == "potency"
    assert state.metadata["message_log"][0]["message_id"] == "msg_001_000"


def test_a_fresh_state_has_no_error(opened) -> None:
    assert report_state(opened(), episode_id="e").last_error_code == ""


def test_scores_of_an_episode_without_a_submission_stand_in_a_field_of_their_own(opened, play) -> None:
    episode, _ = play(opened(max_steps=1), "defer")
    metadata = report_state(episode, episode_id="e").metadata

    assert metadata["terminal_grader_scores"] == {}
    assert metadata["final_grader_scores"]["final_score"] == 0.0833


def test_scores_of_a_submission_stand_in_both_fields(opened, play) -> None:
    episode = opened("hard", start_molecule="2003", trap=False)
    episode, _ = play(episode, "run_assay", tool_name="run_md_simulation")
    episode, _ = play(episode, "submit")
    metadata = report_state(episode, episode_id="e").metadata

    assert metadata["terminal_grader_scores"] == metadata["final_grader_scores"]


def test_true_properties_show_only_when_they_are_asked_for(opened) -> None:
    plain = report_state(opened(), episode_id="e")
    debug = report_state(opened(), episode_id="e", debug=True)

    assert "debug_hidden_properties" not in plain.metadata
    assert debug.metadata["debug_hidden_properties"]["potency"] == 0.8115
