"""Which action a policy came to call more, and which less, from the evaluation before to the one after."""

from __future__ import annotations

from collections.abc import Sequence

from molforge_eval import layout
from molforge_eval.report.evidence import PhaseRow
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import percent
from molforge_eval.report.section_evidence import ActionShift

_SOURCES = {"before": (layout.BEFORE, "/episodes/*/steps"), "after": (layout.AFTER, "/episodes/*/steps")}


def put_shift(book: NumberBook, phases: Sequence[PhaseRow]) -> ActionShift | None:
    """Put the shares of the two actions down that moved most; `None` when a side has no call."""
    shares = {phase.phase: {share.action: share.share for share in phase.actions} for phase in phases}
    if "before" not in shares or "after" not in shares:
        return None
    before, after = shares["before"], shares["after"]
    # Evaluations of nothing but failed episodes have no call, and so no mix that could move.
    if not before or not after:
        return None
    moved = {action: after.get(action, 0.0) - before.get(action, 0.0) for action in dict.fromkeys((*before, *after))}
    grew, shrank = max(moved, key=moved.__getitem__), min(moved, key=moved.__getitem__)
    shift = ActionShift(
        grew=grew if moved[grew] > 0 else None,
        shrank=shrank if moved[shrank] < 0 else None,
    )
    for name, action in (("grew", shift.grew), ("shrank", shift.shrank)):
        for arm, source in _SOURCES.items():
            share = None if action is None else shares[arm].get(action, 0.0)
            book.put(f"mix.{name}.{arm}", share, percent(share), source, reason=f"no action {name}")
    return shift
