"""The words of the laboratory and the actions that are said with them.

An [`Action`][molforge_env.models.Action] is checked here and only here: its shape is this module's affair, whether the
rules permit it is an event of the episode. Unknown keys are refused on an action and ignored on a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field

from molforge_env.frozen import FrozenModel

Slot = Literal["warhead", "hinge", "solvent_tail", "back_pocket"]
ActionType = Literal["edit", "run_assay", "submit", "restart", "defer"]
EditType = Literal["add_fragment", "substitute", "remove", "undo_last_edit"]
ToolName = Literal[
    "evaluate_properties",
    "search_literature",
    "dock_target",
    "estimate_synthesizability",
    "evaluate_novelty",
    "assay_toxicity",
    "run_md_simulation",
]
Role = Literal["lead_chemist", "toxicologist", "assay_planner", "process_chemist", "team"]
MessageType = Literal[
    "proposal",
    "objection",
    "risk_flag",
    "assay_request",
    "approval",
    "rejection",
    "revision_request",
    "submission_recommendation",
]
Severity = Literal["low", "medium", "high", "critical"]
Direction = Literal["up", "down", "neutral", "unknown", "not_applicable"]
RewardMode = Literal["assay_gated", "curriculum", "dense"]
GovernanceStatus = Literal["ready", "executed", "needs_revision", "policy_veto"]

SLOTS: tuple[Slot, ...] = get_args(Slot)
ACTION_TYPES: tuple[ActionType, ...] = get_args(ActionType)
TOOLS: tuple[ToolName, ...] = get_args(ToolName)
ROLES: tuple[Role, ...] = ("lead_chemist", "toxicologist", "assay_planner", "process_chemist")
REVIEWERS: tuple[Role, ...] = ("toxicologist", "assay_planner", "process_chemist")
REWARD_MODES: tuple[RewardMode, ...] = get_args(RewardMode)
MEASURED = ("potency", "toxicity", "synth")
PROPERTIES = ("potency", "toxicity", "synth", "novelty")
RATIONALE_LIMIT = 400
SUMMARY_LIMIT = 240


class Message(FrozenModel):
    """What one role says about an action; only the sender and the type ever move the laboratory."""

    model_config = ConfigDict(extra="ignore")

    message_id: str = ""
    sender: Role
    receiver: str = "team"
    message_type: MessageType
    severity: Severity = "low"
    reference_action_type: ActionType | None = None
    summary: str = Field(default="", max_length=SUMMARY_LIMIT)
    payload: Mapping[str, Any] = Field(default_factory=dict)

    @cached_property
    def as_map(self) -> dict[str, Any]:
        """The message as plain data; callers share it and must not change it."""
        # By hand, because an observation shows many messages and a general dump is slow.
        return {
            "message_id": self.message_id,
            "sender": self.sender,
            "receiver": self.receiver,
            "message_type": self.message_type,
            "severity": self.severity,
            "reference_action_type": self.reference_action_type,
            "summary": self.summary,
            "payload": self.payload,
        }


class Action(FrozenModel):
    """One turn of the laboratory, with its reasons and the messages of the team."""

    action_type: ActionType
    acting_role: Role = "lead_chemist"
    edit_type: EditType | None = None
    slot: Slot | None = None
    fragment: str | None = None
    tool_name: ToolName | None = None
    messages: tuple[Message, ...] = ()
    rationale: str = Field(default="", max_length=RATIONALE_LIMIT)
    evidence: tuple[str, ...] = Field(default=(), max_length=5)
    expected_effects: Mapping[str, Direction] = Field(default_factory=dict)
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @cached_property
    def as_map(self) -> dict[str, Any]:
        """The action as plain data without absent fields; callers share it and must not change it."""
        return self.model_dump(exclude_none=True)
