"""Charts of shares and scores: the action mix of several phases, the score of each task before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.numerals import decimal, percent, whole
from molforge_eval.report.series import ACTIONS, OTHER_ACTION, ActionShare
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Chart, amount, layer, layered, mark, name

_LABEL_PIXELS = 30
_DARK_FILLS = frozenset({"edit", "submit"})
_ACTION_LABELS = {"none": "no call"}


class TaskScore(NamedTuple):
    """The mean score of one task in one arm."""

    task: str
    arm: str
    """`before` or `after`."""
    score: float
    low: float | None
    high: float | None


def action_chart(
    shares: Sequence[ActionShare],
    phases: Sequence[str],
    *,
    size: Size,
    legend_columns: int | None = None,
) -> Chart:
    """Draw each phase as one bar of the whole, cut by action; a part that is wide enough is labelled.

    Args:
        shares: How often each action was called in each phase.
        phases: The phases from top to bottom.
        size: Inner size.
        legend_columns: Entries of the legend side by side; all of them when absent.
    """
    used = [action for action in (*ACTIONS, OTHER_ACTION) if any(s.calls for s in shares if s.action == action)]
    rows = []
    for phase in phases:
        left = 0.0
        calls = sum(s.calls for s in shares if s.phase == phase)
        for share in (s for s in shares if s.phase == phase and s.calls):
            rows.append(
                {
                    "phase": phase,
                    "action": _label(share.action),
                    "from": left,
                    "to": left + share.share,
                    "middle": left + share.share / 2,
                    "shade": colour("paper" if share.action in _DARK_FILLS else "label"),
                    "text": percent(share.share) if share.share * size.width >= _LABEL_PIXELS else "",
                    "tip": f"{phase}\n{_label(share.action)}: {whole(share.calls)} of {whole(calls)} calls, "
                    f"{percent(share.share)}",
                }
            )
            left += share.share
    axis = {"ticks": False, "domain": False, "labelPadding": 8}
    y = name("phase", title=None, sort=list(phases), axis=axis)
    scale = {"domain": [0, 1], "nice": False}
    bars = layer(
        mark("bar", height={"band": 0.72}, stroke=colour("paper"), strokeWidth=1.5),
        x=amount("from", title="share of calls", scale=scale, axis={"format": ".0%", "tickCount": 5}),
        x2={"field": "to"},
        y=y,
        color=name(
            "action",
            scale={"domain": [_label(a) for a in used], "range": [colour(a) for a in used]},
            legend={"symbolType": "square", "columns": legend_columns or len(used)},
        ),
        tooltip=name("tip"),
    )
    text = layer(
        mark("text", fontWeight=600), x=amount("middle"), y=y, text=name("text"), color=name("shade", scale=None)
    )
    return layered([bars, text], rows=rows, width=size.width, height=size.height)


def score_chart(scores: Sequence[TaskScore], tasks: Sequence[str], *, y_title: str, size: Size) -> Chart:
    """Draw before and after side by side for each task, with whiskers where intervals are; a missing arm is absent."""
    rows = [{**s._asdict(), "top": max(s.score, s.high or 0.0), "text": decimal(s.score)} for s in scores]
    arms = [arm for arm in ("before", "after") if any(s.arm == arm for s in scores)]
    axis = {"labelAngle": 0, "ticks": False, "labelPadding": 8}
    place = {"x": name("task", title=None, sort=list(tasks), axis=axis), "xOffset": name("arm", sort=arms)}
    y = amount("score", title=y_title, scale={"domain": [0, 1]}, axis={"tickCount": 5})
    hues = name("arm", scale={"domain": arms, "range": [colour(arm) for arm in arms]}, legend={})
    bars = layer(mark("bar", cornerRadiusEnd=2), **place, y=y, color=hues)
    rule = mark("rule", color=colour("ink"), strokeWidth=1.4)
    whiskers = layer(rule, **place, y=amount("low"), y2={"field": "high"})
    text = layer(mark("text", dy=-8, fontWeight=600), **place, y=amount("top"), text=name("text"))
    return layered([bars, whiskers, text], rows=rows, width=size.width, height=size.height)


def _label(action: str) -> str:
    return _ACTION_LABELS.get(action, action)
