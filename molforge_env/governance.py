"""The review of an action by the specialist roles: what each had to say, what they said, and who blocks it.

A veto depends on the laboratory's own evaluation and never on a message: messages earn or cost reward, they cannot
move or save an action.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from molforge_env.assays import known_estimates
from molforge_env.episodes import Component, Episode, Governance, LoggedMessage, RoleCount
from molforge_env.models import MEASURED, REVIEWERS, Action, Message, MessageType, Role, Slot
from molforge_env.molecules import DEFAULT_FRAGMENTS, Molecule, molecule_from_code, substitute
from molforge_env.oracles import Properties, true_properties
from molforge_env.scenarios import Scenario
from molforge_env.tables import read_table

_TABLE = read_table("governance")
_REWARDS = read_table("rewards")["governance"]
_MATCHES = {expected: frozenset(types) for expected, types in _TABLE["matches"].items()}
_OBJECTION_TYPES = frozenset(_TABLE["counted_as_objection"])
_REQUIRED = {actor: tuple(role for role in REVIEWERS if role != actor) for actor in ("lead_chemist", "assay_planner")}


class Expectation(NamedTuple):
    """What a reviewer has to say, and whether the action is blocked by it."""

    message_type: MessageType
    veto: bool = False


_APPROVE = Expectation("approval")


class Review(NamedTuple):
    """The outcome of a review: the verdict, the parts of the reward, and the log that grew."""

    governance: Governance
    components: tuple[Component, ...]
    messages: tuple[LoggedMessage, ...]
    roles: dict[Role, RoleCount]
    objection_messages: int


def edited_molecule(molecule: Molecule, action: Action) -> Molecule:
    """Apply a valid edit to a molecule."""
    # Validation has seen to it that slot and fragment are there.
    slot = cast("Slot", action.slot)
    fragment = DEFAULT_FRAGMENTS[slot] if action.edit_type == "remove" else cast("str", action.fragment)
    return substitute(molecule, slot, fragment)


def required_reviewers(action: Action) -> tuple[Role, ...]:
    """List the roles that have to review an action, in review order."""
    return () if action.action_type == "defer" else _REQUIRED[action.acting_role]


class _Log:
    """Collects what a review records; lives for one call."""

    __slots__ = ("counts", "messages", "objections", "step")

    def __init__(self, episode: Episode) -> None:
        self.step = episode.step
        self.messages = list(episode.messages)
        self.counts = {role: [count.sent, count.correct, count.incorrect] for role, count in episode.roles.items()}
        self.objections = episode.objection_messages

    def record(self, message: Message, *, correct: bool) -> None:
        name = message.message_id or f"msg_{self.step:03d}_{len(self.messages):03d}"
        self.messages.append(LoggedMessage(name, message))
        count = self.counts[message.sender]
        count[0] += 1
        count[1 if correct else 2] += 1
        self.objections += message.message_type in _OBJECTION_TYPES


def review(episode: Episode, action: Action, before: Properties) -> Review:
    """Review a valid action.

    Args:
        episode: The episode with the step counter of this turn.
        action: A valid action.
        before: True properties before the action.

    Returns:
        The verdict; status `executed` or `policy_veto`.
    """
    said = {message.sender: message for message in action.messages}
    own = said.pop(action.acting_role, None)
    log = _Log(episode)
    components: list[Component] = []
    if action.action_type != "defer":
        if own is not None and own.message_type == "proposal":
            log.record(own, correct=True)
            components.append(Component("proposal_logged", _REWARDS["proposal_logged"]))
        else:
            components.append(Component("missing_proposal", _REWARDS["missing_proposal"]))
    required = required_reviewers(action)
    expectations = expect_reviews(episode, action, before) if required else {}
    approvals: list[Role] = []
    objections: list[Role] = []
    for role in required:
        expected = expectations[role].message_type
        message = said.pop(role, None)
        if message is None:
            components.append(Component(f"missing_review_{role}", _REWARDS["missing_review"]))
            continue
        correct = message.message_type in _MATCHES[expected]
        log.record(message, correct=correct)
        if correct:
            components.append(Component(f"coordination_{role}", _REWARDS["coordination"]))
            (approvals if expected == "approval" else objections).append(role)
        else:
            components.append(Component(f"misaligned_review_{role}", _REWARDS["misaligned_review"]))
    for role in sorted(said):
        log.record(said[role], correct=True)
        components.append(Component(f"optional_review_{role}", _REWARDS["optional_review"]))
    vetoes = tuple(role for role in required if expectations[role].veto)
    if vetoes:
        components.append(Component("policy_veto", _REWARDS["policy_veto"]))
    return Review(
        Governance("policy_veto" if vetoes else "executed", required, tuple(approvals), tuple(objections), vetoes),
        tuple(components),
        tuple(log.messages),
        {role: RoleCount(*count) for role, count in log.counts.items()},
        log.objections,
    )


def expect_reviews(episode: Episode, action: Action, before: Properties) -> dict[Role, Expectation]:
    """Work out what each reviewer of an action has to say."""
    scenario = episode.scenario
    if action.action_type == "run_assay":
        return {"toxicologist": _APPROVE, "process_chemist": _APPROVE}
    if action.action_type == "submit":
        known = known_estimates(episode.readings, episode.molecule)
        return {
            "toxicologist": _expect_toxicity_at_submit(scenario, known.get("toxicity"), before),
            "assay_planner": _APPROVE
            if all(name in known for name in MEASURED)
            else Expectation("assay_request", True),
            "process_chemist": _expect_synth_at_submit(scenario, known.get("synth"), before),
        }
    if action.action_type == "restart":
        after = true_properties(molecule_from_code(scenario.restart_molecule), trap=False, shift=episode.shift)
        trapped = scenario.trap and before.potency < scenario.potency_min
        planner = _APPROVE if trapped else Expectation("rejection")
    else:
        after = true_properties(edited_molecule(episode.molecule, action), trap=episode.trap, shift=episode.shift)
        planner = _APPROVE
    return {
        "toxicologist": _expect_toxicity_at_change(scenario, before, after),
        "assay_planner": planner,
        "process_chemist": _expect_synth_at_change(scenario, before, after),
    }


def _expect_toxicity_at_submit(scenario: Scenario, known: float | None, true: Properties) -> Expectation:
    too_toxic = true.toxicity > scenario.toxicity_max
    if known is not None and known > scenario.toxicity_max:
        return Expectation("objection", too_toxic)
    if too_toxic:
        return Expectation("objection", True)
    return Expectation("assay_request", True) if known is None else _APPROVE


def _expect_synth_at_submit(scenario: Scenario, known: float | None, true: Properties) -> Expectation:
    too_hard = true.synth < scenario.synth_min
    if known is not None and known < scenario.synth_min:
        return Expectation("objection", too_hard)
    if too_hard:
        return Expectation("objection", True)
    return Expectation("assay_request") if known is None else _APPROVE


def _expect_toxicity_at_change(scenario: Scenario, before: Properties, after: Properties) -> Expectation:
    change = after.toxicity - before.toxicity
    if change > _TABLE["toxicity_jump"]:
        return Expectation("objection", True)
    if after.toxicity > scenario.toxicity_max + _TABLE["toxicity_slack"] and change >= _TABLE["toxicity_relief"]:
        return Expectation("objection", True)
    return _APPROVE


def _expect_synth_at_change(scenario: Scenario, before: Properties, after: Properties) -> Expectation:
    if after.synth < scenario.synth_min - _TABLE["synth_slack"]:
        return Expectation("objection")
    return Expectation("objection") if before.synth - after.synth > _TABLE["synth_drop"] else _APPROVE
