"""How an episode ended: by the laboratory, or by what the model did or did not write."""

from __future__ import annotations

from molforge_env.completions import ParsedCompletion
from molforge_env.tools import ToolOutcome
from molforge_eval.records.fields import EndedBy


def laboratory_ending(outcome: ToolOutcome) -> EndedBy:
    """Name the ending that the laboratory gave with its last outcome, which is done."""
    if outcome.scores["submitted_score"] == 1.0:
        return "submit"
    # The rules look at the steps before they look at the budget.
    return "step_limit" if any(name == "step_limit" for name, _ in outcome.components) else "budget"


def ending_without_call(parsed: ParsedCompletion, *, is_full: bool) -> EndedBy:
    """Name the ending of an episode whose last completion holds no call.

    Args:
        parsed: The completion.
        is_full: The turns of the episode together are as long as they may be.
    """
    if is_full:
        return "length_limit"
    return "no_call" if parsed.malformed is None else "malformed_call"
