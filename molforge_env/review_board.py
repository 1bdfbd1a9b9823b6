"""The deterministic review board: reasons and messages that a tool call brings along.

A player of the tools says what to do and why; the team's messages, the evidence and the expected effects are attached
here, from the observation before the step. Nothing hidden takes part, so the board can be wrong and then costs reward.
"""

from __future__ import annotations

from typing import NamedTuple

from molforge_env.arithmetic import text_of
from molforge_env.models import (
    PROPERTIES,
    SUMMARY_LIMIT,
    Action,
    ActionType,
    Direction,
    Message,
    MessageType,
    Role,
    Severity,
    Slot,
    ToolName,
)
from molforge_env.reasoning import EDIT_EFFECTS
from molforge_env.tables import read_table
from molforge_env.views import ConstraintStatus, Observation

_SAFER_EDITS = {(row["slot"], row["fragment"]) for row in read_table("effects")["safer_edits"]}
_EVIDENCE_LIMIT = 5
_SHOWN_METRICS = 3


class ToolIntent(NamedTuple):
    """What a tool call asks for, checked against the tool's schema."""

    action_type: ActionType
    rationale: str
    slot: Slot | None = None
    fragment: str | None = None
    tool_name: ToolName | None = None


def compose_action(observation: Observation, intent: ToolIntent) -> Action:
    """Make the full action of a tool call.

    Args:
        observation: What was visible before the step.
        intent: The checked tool call.
    """
    is_edit = intent.action_type == "edit"
    return Action(
        action_type=intent.action_type,
        acting_role="assay_planner" if intent.action_type == "run_assay" else "lead_chemist",
        edit_type="substitute" if is_edit else None,
        slot=intent.slot,
        fragment=intent.fragment,
        tool_name=intent.tool_name,
        messages=compose_messages(observation, intent),
        rationale=intent.rationale,
        evidence=collect_evidence(observation, intent),
        expected_effects=expect_effects(observation, intent),
    )


def collect_evidence(observation: Observation, intent: ToolIntent) -> tuple[str, ...]:
    """Name the visible facts that the action rests on, five at most."""
    unknown = ",".join(row.name for row in observation.constraint_status if row.evidence_status == "unknown")
    metrics = observation.visible_metrics
    known = [f"{name}={text_of(metrics[name], decimals=3)}" for name in PROPERTIES if name in metrics]
    items = [
        f"scenario={observation.scenario_id}",
        f"budget={observation.remaining_budget}/{observation.max_budget}",
        f"step={observation.step_index}/{observation.max_steps}",
        f"visible_metrics:{','.join(known[:_SHOWN_METRICS])}" if known else f"unknown_constraints:{unknown}",
    ]
    if intent.action_type == "edit" and intent.fragment and intent.slot is not None:
        items.append(f"current_{intent.slot}={observation.fragment_in(intent.slot)}")
        items.append(f"candidate_{intent.slot}={intent.fragment}")
    elif intent.action_type == "run_assay":
        items.append(f"tool={intent.tool_name}")
    elif intent.action_type == "submit":
        names = ",".join(row.name for row in observation.constraint_status if row.evidence_status == "known")
        items.append(f"known_constraints:{names}" if names else "known_constraints=none")
    elif intent.action_type == "restart":
        items.append("restart_available=true")
    return tuple(items[:_EVIDENCE_LIMIT])


def expect_effects(observation: Observation, intent: ToolIntent) -> dict[str, Direction]:
    """State which way the action should move the four properties and the budget."""
    kind = intent.action_type
    unmoved: Direction = "not_applicable" if kind in ("run_assay", "submit") else "unknown"
    effects: dict[str, Direction] = dict.fromkeys(PROPERTIES, unmoved)
    effects["budget"] = "down" if kind in ("run_assay", "restart") else "neutral"
    is_hard = observation.difficulty == "hard"
    if kind == "restart":
        effects["toxicity"] = "down"
        effects["synth"] = "up"
        if is_hard:
            effects["potency"] = "up"
    elif kind == "edit" and intent.slot is not None and intent.fragment is not None:
        effects.update(EDIT_EFFECTS.get((intent.slot, intent.fragment), {}))
        if is_hard and intent.fragment == "nitrile" and intent.slot == "warhead":
            effects["potency"] = "up"
    return effects


def compose_messages(observation: Observation, intent: ToolIntent) -> tuple[Message, ...]:
    """Let the roles speak: the actor proposes, the reviewers answer in review order."""
    kind = intent.action_type
    if kind == "run_assay":
        return (
            _say("assay_planner", "proposal", "medium", intent),
            _say("toxicologist", "approval", "medium", intent),
            _say("process_chemist", "approval", "low", intent),
        )
    proposal = _say("lead_chemist", "proposal", "medium", intent)
    if kind == "defer":
        return (proposal,)
    if kind == "restart":
        return (
            proposal,
            _say("toxicologist", "approval", "high", intent),
            _say("assay_planner", "approval", "high", intent),
            _say("process_chemist", "approval", "medium", intent),
        )
    return (proposal, *(_review_submit(observation, intent) if kind == "submit" else _review_edit(observation, intent)))


def _review_submit(observation: Observation, intent: ToolIntent) -> tuple[Message, ...]:
    potency, toxicity, synth = observation.constraint_status
    toxicologist = _judge(toxicity)
    proven = toxicologist == "approval" and potency.actual is not None and synth.actual is not None
    return (
        _say("toxicologist", toxicologist, "medium" if toxicologist == "approval" else "high", intent),
        _say("assay_planner", "approval" if proven else "assay_request", "medium", intent),
        _say("process_chemist", _judge(synth), "medium", intent),
    )


def _judge(constraint: ConstraintStatus) -> MessageType:
    if constraint.satisfied is None:
        return "assay_request"
    return "approval" if constraint.satisfied else "objection"


def _review_edit(observation: Observation, intent: ToolIntent) -> tuple[Message, ...]:
    is_heavy = (intent.slot, intent.fragment) == ("hinge", "quinazoline")
    return (
        _say("toxicologist", "approval" if _looks_safer(observation, intent) else "risk_flag", "medium", intent),
        _say("assay_planner", "approval", "low", intent),
        _say("process_chemist", "objection", "medium", intent)
        if is_heavy
        else _say("process_chemist", "approval", "low", intent),
    )


def _looks_safer(observation: Observation, intent: ToolIntent) -> bool:
    if (intent.slot, intent.fragment) in _SAFER_EDITS:
        return True
    within = observation.constraint_status[1].satisfied
    return observation.fragment_in("solvent_tail") != "dimethylamino" if within is None else within


def _say(sender: Role, message_type: MessageType, severity: Severity, intent: ToolIntent) -> Message:
    subject = intent.tool_name or intent.fragment or "the candidate"
    return Message(
        sender=sender,
        message_type=message_type,
        severity=severity,
        reference_action_type=intent.action_type,
        summary=f"{message_type} of {intent.action_type}: {subject}"[:SUMMARY_LIMIT],
    )
