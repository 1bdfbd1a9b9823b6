from __future__ import annotations

import pytest

from molforge_env.episodes import Episode
from molforge_env.validation import find_error


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("submit", {"acting_role": "team"}, "ROLE_DISABLED"),
        ("submit", {"acting_role": "toxicologist"}, "ROLE_PERMISSION_DENIED"),
        ("run_assay", {"acting_role": "lead_chemist"}, "ROLE_PERMISSION_DENIED"),
        ("edit", {"acting_role": "assay_planner"}, "ROLE_PERMISSION_DENIED"),
        ("defer", {"say": {"team": "approval"}}, "MESSAGE_ROLE_INVALID"),
        ("defer", {"say": {"lead_chemist": "approval"}}, "MESSAGE_PERMISSION_DENIED"),
        ("defer", {"say": {"process_chemist": "rejection"}}, "MESSAGE_PERMISSION_DENIED"),
        ("edit", {"fragment": "azaindole"}, "MISSING_EDIT_FIELDS"),
        ("edit", {"slot": "hinge", "edit_type": None, "fragment": "azaindole"}, "MISSING_EDIT_FIELDS"),
        ("edit", {"slot": "hinge"}, "MISSING_FRAGMENT"),
        ("edit", {"slot": "hinge", "fragment": ""}, "MISSING_FRAGMENT"),
        ("edit", {"slot": "hinge", "edit_type": "add_fragment"}, "MISSING_FRAGMENT"),
        ("edit", {"slot": "hinge", "edit_type": "undo_last_edit"}, "MISSING_FRAGMENT"),
        ("edit", {"slot": "hinge", "fragment": "Azaindole"}, "UNKNOWN_FRAGMENT"),
        ("edit", {"slot": "hinge", "fragment": "morpholine"}, "UNKNOWN_FRAGMENT"),
        ("edit", {"slot": "hinge", "edit_type": "remove", "fragment": "benzene"}, "UNKNOWN_FRAGMENT"),
        ("edit", {"slot": "hinge", "fragment": "pyridine"}, "NO_STATE_CHANGE"),
        ("edit", {"slot": "hinge", "edit_type": "remove", "fragment": "pyridine"}, "NO_STATE_CHANGE"),
        ("run_assay", {}, "MISSING_TOOL_NAME"),
    ],
)
def test_the_first_broken_rule_names_the_error(opened, action, kind, fields, code) -> None:
    assert find_error(opened(), action(kind, **fields)) == code


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("submit", {}),
        ("defer", {"slot": "hinge", "tool_name": "dock_target"}),
        ("restart", {}),
        ("run_assay", {"tool_name": "dock_target"}),
        ("edit", {"slot": "hinge", "fragment": "azaindole"}),
        ("edit", {"slot": "hinge", "edit_type": "remove"}),
        ("edit", {"slot": "hinge", "edit_type": "undo_last_edit", "fragment": "azaindole"}),
    ],
)
def test_a_sound_action_has_no_error(opened, action, kind, fields) -> None:
    assert find_error(opened(), action(kind, **fields)) == ""


def test_four_messages_pass_and_five_do_not(opened, action) -> None:
    four = [
        {"sender": "lead_chemist", "message_type": "proposal"},
        {"sender": "toxicologist", "message_type": "approval"},
        {"sender": "assay_planner", "message_type": "approval"},
        {"sender": "process_chemist", "message_type": "approval"},
    ]

    assert find_error(opened(), action("submit", messages=four)) == ""
    assert find_error(opened(), action("submit", messages=[*four, four[0]])) == "MESSAGE_LIMIT_EXCEEDED"
    assert find_error(opened(), action("submit", messages=[four[0], four[0]])) == "DUPLICATE_ROLE_MESSAGE"


def test_a_repeated_sender_is_found_before_the_type_of_its_second_message(opened, action) -> None:
    messages = [
        {"sender": "lead_chemist", "message_type": "proposal"},
        {"sender": "lead_chemist", "message_type": "approval"},
    ]

    assert find_error(opened(), action("submit", messages=messages)) == "DUPLICATE_ROLE_MESSAGE"


def test_an_assay_or_a_restart_beyond_the_budget_is_refused(opened, action) -> None:
    poor: Episode = opened(max_budget=349)

    assert find_error(poor, action("restart")) == "BUDGET_EXCEEDED"
    assert find_error(poor, action("run_assay", tool_name="assay_toxicity")) == "BUDGET_EXCEEDED"
    assert find_error(poor, action("run_assay", tool_name="dock_target")) == ""


def test_what_costs_exactly_the_budget_is_paid(opened, action) -> None:
    assert find_error(opened(max_budget=350), action("restart")) == ""
    assert find_error(opened(max_budget=2000), action("run_assay", tool_name="assay_toxicity")) == ""


def test_the_restart_works_once(opened, action, play) -> None:
    episode, _ = play(opened("hard"), "restart")

    assert episode.restart_used
    assert find_error(episode, action("restart")) == "RESTART_ALREADY_USED"
