"""The chart of what was paid for what: training episodes by strict score and training reward.

A mark stands for the episodes of one score and one reward; its area grows with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.section_evidence import PaidPoint
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    from molforge_eval.report.render import Chart

_SHOWN_COUNTS = (1, 10, 100, 1_000, 10_000)


_TIP = (
    r"datum.phase + '\nstrict score: ' + format(datum.score, '.2f')"
    r" + '\ntraining reward: ' + format(datum.reward, '.2f') + '\nepisodes: ' + datum.episodes"
)
"""What a mark says; there are too many of them to carry it one by one."""


class Phase(NamedTuple):
    """How the episodes of one part of training are drawn."""

    name: str
    label: str
    role: str
    shape: str
    is_filled: bool


PHASES = (
    Phase("early", "first third of training", "caution", "circle", is_filled=False),
    Phase("between", "between", "floor", "cross", is_filled=True),
    Phase("late", "last third", "after", "triangle-up", is_filled=True),
)


def paid_chart(points: Sequence[PaidPoint], *, size: Size, legend_columns: int | None = None) -> Chart:
    """Draw every point that the evidence holds, the late ones on top.

    Args:
        points: The points.
        size: Inner size.
        legend_columns: Entries of the legend side by side; all of them when absent.
    """
    import altair as alt

    used = [phase for phase in PHASES if any(point.phase == phase.name for point in points)]
    labels = [phase.label for phase in used]
    strokes = [colour(phase.role) for phase in used]
    fills = [colour(phase.role if phase.is_filled else "paper") for phase in used]
    legend = alt.Legend(symbolSize=60, columns=legend_columns or len(used))
    x = alt.X(
        "score:Q",
        title="strict final_score of the episode",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f"),
    )
    y = alt.Y(
        "reward:Q", title="training reward of the episode", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5)
    )
    most = max((point.episodes for point in points), default=1)
    area = alt.Size(
        "episodes:Q",
        scale=alt.Scale(type="linear", domain=[0, max(most, 10)], range=[14, 420]),
        legend=alt.Legend(
            title="episodes",
            orient="right" if legend_columns is None else "top",
            values=[count for count in _SHOWN_COUNTS if count <= max(most, 10)],
            format="d",
            symbolFillColor=colour("muted"),
            symbolStrokeColor=colour("muted"),
        ),
    )
    layers = []
    for phase in used:
        rows = [
            {"score": point.score, "reward": point.reward, "phase": phase.label, "episodes": point.episodes}
            for point in points
            if point.phase == phase.name
        ]
        layer = (
            alt.Chart(alt.InlineData(values=rows))
            .mark_point(strokeWidth=1.1, opacity=0.75)
            .encode(
                x=x,
                y=y,
                size=area,
                shape=alt.Shape(
                    "phase:N", scale=alt.Scale(domain=labels, range=[phase.shape for phase in used]), legend=legend
                ),
                stroke=alt.Stroke("phase:N", scale=alt.Scale(domain=labels, range=strokes), legend=legend),
                fill=alt.Fill("phase:N", scale=alt.Scale(domain=labels, range=fills), legend=legend),
            )
        )
        layers.append(layer.encode(tooltip=alt.value(alt.ExprRef(expr=_TIP))))
    return alt.layer(*layers).properties(width=size.width, height=size.height)
