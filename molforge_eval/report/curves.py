"""Charts over optimizer steps: a logged column with its moving average, or several curves of one unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from molforge_eval.report.series import Curve
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    import altair as alt

    from molforge_eval.report.render import Chart

_FEW_POINTS = 40
_LINE_PIXELS = 15
STEP_TITLE = "optimizer step"
LINE_TITLE = "line of the rollout log"


class Size(NamedTuple):
    """Inner size of a chart, in pixels."""

    width: int
    height: int


class NamedCurve(NamedTuple):
    """A curve with the words and the colour that mark it."""

    label: str
    role: str
    curve: Curve


def curve_chart(
    curve: Curve, *, y_title: str, role: str, size: Size, averaged: bool = True, x_title: str = STEP_TITLE
) -> Chart:
    """Draw one curve: the values pale, their moving average strong, a gap where a value was not finite."""
    import altair as alt

    rows = [{"segment": p.segment, "step": p.step, "value": p.value, "average": p.average} for p in curve.points]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=_steps(curve, x_title), detail=alt.Detail("segment:N"))
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5))
    shade = colour(role)
    layers = [
        base.mark_line(strokeWidth=1 if averaged else 1.6, opacity=0.45 if averaged else 1, color=shade).encode(y=y)
    ]
    if len(rows) <= _FEW_POINTS:
        layers.append(base.mark_point(filled=True, size=14, color=shade, opacity=0.7).encode(y=y))
    if averaged:
        layers.append(base.mark_line(strokeWidth=2.2, color=shade).encode(y=alt.Y("average:Q", title=y_title)))
    return alt.layer(*layers).properties(width=size.width, height=size.height)


def curves_chart(curves: Sequence[NamedCurve], *, y_title: str, size: Size, zero: bool = True) -> Chart:
    """Draw the moving averages of several curves of one unit, each named at its right end."""
    import altair as alt

    rows, ends = [], []
    for label, role, curve in curves:
        rows += [
            {"curve": label, "segment": f"{role}{p.segment}", "step": p.step, "value": p.average} for p in curve.points
        ]
        known = [p for p in curve.points if p.average is not None]
        if known:
            ends.append({"curve": label, "step": known[-1].step, "value": known[-1].average, "role": role})
    hues = alt.Color(
        "curve:N",
        scale=alt.Scale(domain=[c.label for c in curves], range=[colour(c.role) for c in curves]),
        legend=None,
    )
    drawn = [p.average for _, _, curve in curves for p in curve.points if p.average is not None]
    longest = max(curves, key=lambda named: len(named.curve.points)).curve
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=zero, nice=True), axis=alt.Axis(tickCount=5))
    lines = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(strokeWidth=2)
        .encode(x=_steps(longest, STEP_TITLE), y=y, color=hues, detail=alt.Detail("segment:N"))
    )
    names = (
        alt.Chart(alt.InlineData(values=_spread(ends, drawn, size.height)))
        .mark_text(align="left", dx=6, fontWeight=600)
        .encode(x=alt.X("step:Q"), y=alt.Y("place:Q"), text="curve:N", color=hues)
    )
    return alt.layer(lines, names).properties(width=size.width, height=size.height)


def _spread(ends: list[dict[str, Any]], drawn: Sequence[float], height: int) -> list[dict[str, Any]]:
    """Keep the names at the curves' ends apart by at least the height of a line."""
    if not ends:
        return []
    ordered = sorted(ends, key=lambda end: end["value"])
    least = max(max(drawn) - min(*drawn, 0.0), 1e-9) * _LINE_PIXELS / height
    placed: list[dict[str, Any]] = []
    for end in ordered:
        place = end["value"] if not placed else max(end["value"], placed[-1]["place"] + least)
        placed.append({**end, "place": place})
    return placed


def _steps(curve: Curve, title: str) -> alt.X:
    import altair as alt

    last = max((point.step for point in curve.points), default=1)
    return alt.X(
        "step:Q",
        title=title,
        scale=alt.Scale(domain=[0, max(last, 1)], nice=False),
        axis=alt.Axis(tickCount=6, format="d", tickMinStep=1),
    )
