from __future__ import annotations

import pytest
from pydantic import ValidationError

from molforge_env.models import Action, Message


def test_an_action_refuses_an_unknown_key() -> None:
    with pytest.raises(ValidationError, match="dose"):
        Action.model_validate({"action_type": "defer", "dose": 3})


def test_a_message_ignores_an_unknown_key() -> None:
    message = Message.model_validate({"sender": "toxicologist", "message_type": "approval", "mood": "good"})

    assert message.sender == "toxicologist"


@pytest.mark.parametrize(
    "fields",
    [
        {"action_type": "synthesize"},
        {"action_type": "edit", "slot": "tail"},
        {"action_type": "run_assay", "tool_name": "nmr"},
        {"action_type": "defer", "acting_role": "intern"},
        {"action_type": "defer", "rationale": "r" * 401},
        {"action_type": "defer", "evidence": ["e"] * 6},
        {"action_type": "defer", "expected_effects": {"potency": "sideways"}},
        {"action_type": "defer", "messages": [{"sender": "toxicologist"}]},
        {"action_type": "defer", "messages": [{"sender": "team", "message_type": "approval", "summary": "s" * 241}]},
    ],
)
def test_a_shape_outside_the_schema_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Action.model_validate(fields)


def test_an_action_cannot_change_after_it_was_checked() -> None:
    action = Action(action_type="defer")

    with pytest.raises(ValidationError):
        action.rationale = "later"


def test_the_map_of_an_action_leaves_absent_fields_out() -> None:
    shown = Action(action_type="edit", edit_type="remove", slot="hinge").as_map

    assert shown["slot"] == "hinge"
    assert "fragment" not in shown
    assert "tool_name" not in shown


def test_the_map_of_a_message_holds_every_field_of_the_model() -> None:
    message = Message(sender="toxicologist", message_type="approval", summary="fine", payload={"dose": 1})

    assert message.as_map == message.model_dump()


def test_an_action_survives_the_way_through_json() -> None:
    action = Action(
        action_type="edit",
        edit_type="substitute",
        slot="hinge",
        fragment="azaindole",
        messages=(Message(sender="toxicologist", message_type="approval"),),
        evidence=("easy",),
        expected_effects={"potency": "up"},
    )

    assert Action.model_validate_json(action.model_dump_json()) == action
