"""Whether an action may be tried at all: the checks in their order, the first failure wins.

A failure is an event of the episode with a code, never an exception. What the data model already refuses (an unknown
slot or tool) never reaches this place.
"""

from __future__ import annotations

from molforge_env.assays import RESTART_COST, TOOL_COSTS
from molforge_env.episodes import Episode
from molforge_env.models import ROLES, Action
from molforge_env.molecules import FRAGMENT_NAMES
from molforge_env.tables import read_table

_TABLE = read_table("governance")
_ROLES = _TABLE["roles"]
_MESSAGE_LIMIT: int = _TABLE["message_limit"]
MAY_ACT: dict[str, tuple[str, ...]] = {role: tuple(_ROLES[role]["may_act"]) for role in ROLES}
MAY_SAY: dict[str, tuple[str, ...]] = {role: tuple(_ROLES[role]["may_say"]) for role in ROLES}


def find_error(episode: Episode, action: Action) -> str:
    """Find the first rule that the action breaks.

    Returns:
        Its code, or the empty text when the action may be tried.
    """
    return _find_role_error(action) or _find_message_error(action) or _find_payload_error(episode, action)


def _find_role_error(action: Action) -> str:
    if action.acting_role not in MAY_ACT:
        return "ROLE_DISABLED"
    if action.action_type not in MAY_ACT[action.acting_role]:
        return "ROLE_PERMISSION_DENIED"
    return ""


def _find_message_error(action: Action) -> str:
    if len(action.messages) > _MESSAGE_LIMIT:
        return "MESSAGE_LIMIT_EXCEEDED"
    seen = set()
    for message in action.messages:
        sender = message.sender
        if sender not in MAY_SAY:
            return "MESSAGE_ROLE_INVALID"
        if sender in seen:
            return "DUPLICATE_ROLE_MESSAGE"
        if message.message_type not in MAY_SAY[sender]:
            return "MESSAGE_PERMISSION_DENIED"
        seen.add(sender)
    return ""


def _find_payload_error(episode: Episode, action: Action) -> str:
    if action.action_type == "edit":
        return _find_edit_error(episode, action)
    if action.action_type == "run_assay":
        if action.tool_name is None:
            return "MISSING_TOOL_NAME"
        return "BUDGET_EXCEEDED" if episode.remaining_budget < TOOL_COSTS[action.tool_name] else ""
    if action.action_type == "restart":
        if episode.restart_used:
            return "RESTART_ALREADY_USED"
        return "BUDGET_EXCEEDED" if episode.remaining_budget < RESTART_COST else ""
    return ""


def _find_edit_error(episode: Episode, action: Action) -> str:
    if action.slot is None or action.edit_type is None:
        return "MISSING_EDIT_FIELDS"
    if not action.fragment:
        # Only a removal knows its fragment by itself; an undo without one has nothing to put into the slot.
        return "" if action.edit_type == "remove" else "MISSING_FRAGMENT"
    if action.fragment not in FRAGMENT_NAMES[action.slot]:
        return "UNKNOWN_FRAGMENT"
    return "NO_STATE_CHANGE" if action.fragment == episode.molecule.fragment_in(action.slot) else ""
