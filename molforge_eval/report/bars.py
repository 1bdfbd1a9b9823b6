"""Charts of shares and scores: the action mix of several phases, the score of each task before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.numerals import decimal, percent, whole
from molforge_eval.report.series import ACTIONS, OTHER_ACTION, ActionShare
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    from molforge_eval.report.render import Chart

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
    import altair as alt

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
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("phase:N", title=None, sort=list(phases), axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    )
    hues = alt.Color(
        "action:N",
        scale=alt.Scale(domain=[_label(a) for a in used], range=[colour(a) for a in used]),
        legend=alt.Legend(symbolType="square", columns=legend_columns or len(used)),
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    bars = base.mark_bar(height={"band": 0.72}, stroke=colour("paper"), strokeWidth=1.5).encode(
        x=alt.X("from:Q", title="share of calls", scale=scale, axis=alt.Axis(format=".0%", tickCount=5)),
        x2=alt.X2("to:Q"),
        color=hues,
        tooltip="tip:N",
    )
    text = base.mark_text(fontWeight=600).encode(
        x=alt.X("middle:Q"), text="text:N", color=alt.Color("shade:N", scale=None)
    )
    return alt.layer(bars, text).properties(width=size.width, height=size.height)


def score_chart(scores: Sequence[TaskScore], tasks: Sequence[str], *, y_title: str, size: Size) -> Chart:
    """Draw before and after side by side for each task, with whiskers where intervals are; a missing arm is absent."""
    import altair as alt

    rows = [{**s._asdict(), "top": max(s.score, s.high or 0.0), "text": decimal(s.score)} for s in scores]
    arms = [arm for arm in ("before", "after") if any(s.arm == arm for s in scores)]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("task:N", title=None, sort=list(tasks), axis=alt.Axis(labelAngle=0, ticks=False, labelPadding=8)),
        xOffset=alt.XOffset("arm:N", sort=arms),
    )
    y = alt.Y("score:Q", title=y_title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
    hues = alt.Color("arm:N", scale=alt.Scale(domain=arms, range=[colour(arm) for arm in arms]), legend=alt.Legend())
    bars = base.mark_bar(cornerRadiusEnd=2).encode(y=y, color=hues)
    whiskers = base.mark_rule(color=colour("ink"), strokeWidth=1.4).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    text = base.mark_text(dy=-8, fontWeight=600).encode(y=alt.Y("top:Q"), text="text:N")
    return alt.layer(bars, whiskers, text).properties(width=size.width, height=size.height)


def _label(action: str) -> str:
    return _ACTION_LABELS.get(action, action)
