"""Charts over optimizer steps: a logged column with its moving average, or several curves of one unit.

The axis follows two signals, so that the reader of a page can look closer; at first they hold the whole. A chart
carries the words by which a page tells a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from molforge_eval.report.series import AVERAGE_WINDOW, Curve
from molforge_eval.report.theme import colour, variable
from molforge_eval.report.vega_lite import Channel, Chart, amount, kept, layer, layered, mark, name

_FEW_POINTS = 40
_LINE_PIXELS = 15
_TICK_PIXELS = 75
STEP_TITLE = "optimizer step"
EPISODE_STEP_TITLE = "optimizer steps done before"
LINE_TITLE = "line of the rollout log"
_AVERAGE = f"mean of the last {AVERAGE_WINDOW} points"
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
    marks: Sequence[int] = (),
) -> Chart:
    """Draw one curve: the values pale, their moving average strong, a gap where a value was not finite.

    Args:
        curve: The points.
        y_title: What the values are.
        role: Colour of the curve.
        size: Inner size.
        averaged: Draw the moving average, too.
        x_title: What the steps are.
        marks: Steps at which a dashed rule stands.
    """
    rows = [
        {"segment": p.segment, "step": p.step, "value": p.value, "average": p.average, "line": p.line}
        for p in curve.points
    ]
    shade, clip = colour(role), _clip([curve])
    x, detail = _steps(x_title, size), name("segment")
    y = amount("value", title=y_title, **_level([point.value for point in curve.finite()], zero=False))
    thin, opacity = (1, 0.45) if averaged else (1.6, 1)
    line = mark("line", strokeWidth=thin, opacity=opacity, color=shade, clip=clip)
    layers = [layer(line, x=x, y=y, detail=detail)]
    if len(rows) <= _FEW_POINTS:
        point = mark("point", filled=True, size=14, color=shade, opacity=0.7, clip=clip)
        layers.append(layer(point, x=x, y=y, detail=detail))
    if averaged:
        strong = mark("line", strokeWidth=2.2, color=shade, clip=clip)
        layers.append(layer(strong, x=x, y=amount("average", title=y_title), detail=detail))
    fields = (("value", y_title), ("average", _AVERAGE)) if averaged else (("value", y_title),)
    answers = _answers([curve], x_title, fields, {"": role})
    layers = [kept(drawn, _stretch([curve])) for drawn in [*_rules(marks, clip), *layers]]
    return layered(layers, rows=rows, width=size.width, height=size.height, **answers)


def curves_chart(
    curves: Sequence[NamedCurve],
    *,
    y_title: str,
    size: Size,
    zero: bool = True,
    x_title: str = STEP_TITLE,
    marks: Sequence[int] = (),
) -> Chart:
    """Draw the moving averages of several curves of one unit, each named at its right end.

    Args:
        curves: The curves with their names and colours.
        y_title: What the values are.
        size: Inner size.
        zero: Let the axis begin at nought.
        x_title: What the steps are.
        marks: Steps at which a dashed rule stands.
    """
    plain = [named.curve for named in curves]
    rows, ends = [], []
    for label, role, curve in curves:
        rows += [
            {"curve": label, "segment": f"{role}{p.segment}", "step": p.step, "value": p.average} for p in curve.points
        ]
        known = [p for p in curve.points if p.average is not None]
        if known:
            ends.append({"curve": label, "step": known[-1].step, "value": known[-1].average, "role": role})
    scale = {"domain": [c.label for c in curves], "range": [colour(c.role) for c in curves]}
    hues = name("curve", scale=scale, legend=None)
    drawn = [p.average for _, _, curve in curves for p in curve.points if p.average is not None]
    lines = layer(
        mark("line", strokeWidth=2, clip=_clip(plain)),
        rows,
        x=_steps(x_title, size),
        y=amount("value", title=y_title, **_level(drawn, zero=zero)),
        color=hues,
        detail=name("segment"),
    )
    at_ends = layer(
        mark("text", align="left", dx=6, fontWeight=600),
        _spread(ends, drawn, size.height),
        x=amount("step"),
        y=amount("place"),
        text=name("curve"),
        color=hues,
    )
    roles = {named.label: named.role for named in curves}
    answers = _answers(plain, x_title, (("value", _AVERAGE),), roles)
    rules = [kept(drawn, _stretch(plain)) for drawn in _rules(marks, _clip(plain))]
    layers = [*rules, kept(lines, _stretch(plain)), kept(at_ends, _full_view(plain))]
    return layered(layers, width=size.width, height=size.height, **answers)


def _level(values: Sequence[float | None], *, zero: bool) -> dict[str, Any]:
    """Choose scale and ticks of the values' axis.

    Around a curve of one value the drawing library would choose ticks that do not hold it: there the one tick is the
    value itself.
    """
    found = {value for value in values if value is not None}
    if len(found) != 1 or (zero and found != {0.0}):
        return {"scale": {"zero": zero, "nice": True}, "axis": {"tickCount": 5}}
    (value,) = found
    reach = abs(value) / 2 or 1.0
    domain = [0.0 if zero else value - reach, value + reach]
    return {"scale": {"domain": domain}, "axis": {"values": [value], "format": ".3~g"}}


def _rules(marks: Sequence[int], clip: dict[str, str]) -> list[Chart]:
    if not marks:
        return []
    dashed = mark("rule", strokeDash=[3, 3], strokeWidth=1, color=colour("muted"), clip=clip)
    return [layer(dashed, [{"step": step} for step in marks], x=amount("step"))]


def _spread(ends: list[dict[str, Any]], drawn: Sequence[float], height: int) -> list[dict[str, Any]]:
    """Keep the names at the curves' ends apart by at least the height of a line."""
    if not ends:
        return []
    ordered = sorted(ends, key=lambda end: end["value"])
    least = (max(drawn) - min(*drawn, 0.0) or 1.0) * _LINE_PIXELS / height
    placed: list[dict[str, Any]] = []
    for end in ordered:
        place = end["value"] if not placed else max(end["value"], placed[-1]["place"] + least)
        placed.append({**end, "place": place})
    return placed


def _steps(title: str, size: Size) -> Channel:
    # Between two whole steps there is nothing to name.
    label = "datum.value % 1 ? '' : datum.label"
    ticks = min(6, max(3, size.width // _TICK_PIXELS))
    return amount(
        "step",
        title=title,
        scale={"domain": [{"expr": "first"}, {"expr": "last"}], "nice": False},
        axis={"tickCount": ticks, "format": "d", "tickMinStep": 1, "labelExpr": label},
    )


def _last_step(curves: Sequence[Curve]) -> int:
    return max((point.step for curve in curves for point in curve.points), default=1) or 1


def _stretch(curves: Sequence[Curve]) -> str:
    """Leave out what lies beyond the shown stretch, but for the points that a line needs to reach its edges."""
    steps = sorted({point.step for curve in curves for point in curve.points})
    reach = max((after - before for before, after in pairwise(steps)), default=0)
    return f"datum.step >= first - {reach} && datum.step <= last + {reach}"


def _full_view(curves: Sequence[Curve]) -> str:
    return _FULL_VIEW.format(low=0, high=_last_step(curves))


def _clip(curves: Sequence[Curve]) -> dict[str, str]:
    """Cut marks to the shown stretch; at full range a line at the edge keeps its whole width."""
    return {"expr": f"!({_full_view(curves)})"}


def _answers(
    curves: Sequence[Curve], x_title: str, fields: Sequence[tuple[str, str]], roles: dict[str, str]
) -> dict[str, Any]:
    """Return the signals of the shown stretch and the words of a point, as properties of the chart."""
    last = _last_step(curves)
    reading = {
        "kind": "curve",
        "x": x_title,
        "ends": [0, last],
        "fields": fields,
        "hues": {label: variable(role) for label, role in roles.items()},
    }
    return {"params": [{"name": "first", "value": 0}, {"name": "last", "value": last}], "usermeta": reading}
