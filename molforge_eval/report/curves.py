"""Charts over optimizer steps: a logged column with its moving average, or several curves of one unit.

The axis follows two signals, so that the reader of a page can look closer; at first they hold the whole. A chart
carries the words by which a page tells a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from molforge_eval.report.series import AVERAGE_WINDOW, Curve
from molforge_eval.report.theme import colour, variable

if TYPE_CHECKING:
    import altair as alt

    from molforge_eval.report.render import Chart

_FEW_POINTS = 40
_LINE_PIXELS = 15
_TICK_PIXELS = 75
STEP_TITLE = "optimizer step"
LINE_TITLE = "line of the rollout log"
_AVERAGE = f"mean of the last {AVERAGE_WINDOW}"
_FULL_VIEW = "first <= {low} && last >= {high}"


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
    curve: Curve,
    *,
    y_title: str,
    role: str,
    size: Size,
    averaged: bool = True,
    x_title: str = STEP_TITLE,
) -> Chart:
    """Draw one curve: the values pale, their moving average strong, a gap where a value was not finite.

    Args:
        curve: The points.
        y_title: What the values are.
        role: Colour of the curve.
        size: Inner size.
        averaged: Draw the moving average, too.
        x_title: What the steps are.
    """
    import altair as alt

    rows = [
        {"segment": p.segment, "step": p.step, "value": p.value, "average": p.average, "line": p.line}
        for p in curve.points
    ]
    # Altair copies a chart's own rows at each call; rows that are only named are copied once.
    base = _stretch(alt.Chart(alt.NamedData("points")), [curve]).encode(
        x=_steps(x_title, size), detail=alt.Detail("segment:N")
    )
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5))
    shade = colour(role)
    layers = [
        base.mark_line(strokeWidth=1 if averaged else 1.6, opacity=0.45 if averaged else 1, color=shade).encode(y=y)
    ]
    if len(rows) <= _FEW_POINTS:
        layers.append(base.mark_point(filled=True, size=14, color=shade, opacity=0.7).encode(y=y))
    if averaged:
        layers.append(base.mark_line(strokeWidth=2.2, color=shade).encode(y=alt.Y("average:Q", title=y_title)))
    fields = (("value", y_title), ("average", _AVERAGE)) if averaged else (("value", y_title),)
    answers = _followed(layers, [curve], x_title, fields, {"": role})
    return alt.layer(*layers).properties(width=size.width, height=size.height, datasets={"points": rows}, **answers)


def curves_chart(curves: Sequence[NamedCurve], *, y_title: str, size: Size, zero: bool = True) -> Chart:
    """Draw the moving averages of several curves of one unit, each named at its right end.

    Args:
        curves: The curves with their names and colours.
        y_title: What the values are.
        size: Inner size.
        zero: Let the axis begin at nought.
    """
    import altair as alt

    plain = [named.curve for named in curves]
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
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=zero, nice=True), axis=alt.Axis(tickCount=5))
    shown = _stretch(alt.Chart(alt.NamedData("points")), plain)
    lines = shown.mark_line(strokeWidth=2).encode(
        x=_steps(STEP_TITLE, size), y=y, color=hues, detail=alt.Detail("segment:N")
    )
    ended = alt.Chart(alt.InlineData(values=_spread(ends, drawn, size.height)))
    ended = ended.transform_filter(_FULL_VIEW.format(low=0, high=_last_step(plain)))
    style: dict[str, Any] = {"align": "left", "dx": 6, "fontWeight": 600}
    at_ends = ended.mark_text(**style).encode(x=alt.X("step:Q"), y=alt.Y("place:Q"), text="curve:N", color=hues)
    layers = [lines, at_ends]
    roles = {named.label: named.role for named in curves}
    answers = _followed(layers, plain, STEP_TITLE, (("value", _AVERAGE),), roles)
    return alt.layer(*layers).properties(width=size.width, height=size.height, datasets={"points": rows}, **answers)


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


def _steps(title: str, size: Size) -> alt.X:
    import altair as alt

    # Between two whole steps there is nothing to name.
    label = "datum.value % 1 ? '' : datum.label"
    ticks = min(6, max(3, size.width // _TICK_PIXELS))
    return alt.X(
        "step:Q",
        title=title,
        scale=alt.Scale(domain=[{"expr": "first"}, {"expr": "last"}], nice=False),
        axis=alt.Axis(tickCount=ticks, format="d", tickMinStep=1, labelExpr=label),
    )


def _last_step(curves: Sequence[Curve]) -> int:
    return max((point.step for curve in curves for point in curve.points), default=1) or 1


def _stretch(chart: alt.Chart, curves: Sequence[Curve]) -> alt.Chart:
    """Leave out what lies beyond the shown stretch, but for the points that a line needs to reach its edges."""
    steps = sorted({point.step for curve in curves for point in curve.points})
    reach = max((after - before for before, after in pairwise(steps)), default=0)
    return chart.transform_filter(f"datum.step >= first - {reach} && datum.step <= last + {reach}")


def _followed(
    layers: Sequence[alt.Chart],
    curves: Sequence[Curve],
    x_title: str,
    fields: Sequence[tuple[str, str]],
    roles: dict[str, str],
) -> dict[str, Any]:
    """Cut the layers to the shown stretch; return its signals and the words of a point, as properties of the chart."""
    import altair as alt

    last = _last_step(curves)
    reading = {
        "kind": "curve",
        "x": x_title,
        "ends": [0, last],
        "fields": fields,
        "hues": {label: variable(role) for label, role in roles.items()},
    }
    # At full range a line at the edge keeps its whole width.
    clip = alt.ExprRef(expr=f"!({_FULL_VIEW.format(low=0, high=last)})")
    for layer in layers:
        if layer.mark.type != "text":
            layer.mark.clip = clip
    signals = [alt.VariableParameter(name="first", value=0), alt.VariableParameter(name="last", value=last)]
    return {"params": signals, "usermeta": reading}
