"""The chart of what was paid for what: training episodes by strict score and training reward.

A mark stands for the episodes of one score and one reward; its area grows with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.section_evidence import PaidPoint
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Chart, amount, fixed, layer, layered, mark, name

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
    used = [phase for phase in PHASES if any(point.phase == phase.name for point in points)]
    labels = [phase.label for phase in used]
    strokes = [colour(phase.role) for phase in used]
    fills = [colour(phase.role if phase.is_filled else "paper") for phase in used]
    legend = {"symbolSize": 60, "columns": legend_columns or len(used)}
    most = max((point.episodes for point in points), default=1)
    channels = {
        "x": amount(
            "score",
            title="strict final_score of the episode",
            scale={"domain": [0, 1]},
            axis={"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "format": ".1f"},
        ),
        "y": amount("reward", title="training reward of the episode", scale={"zero": True}, axis={"tickCount": 5}),
        "size": amount(
            "episodes",
            scale={"type": "linear", "domain": [0, max(most, 10)], "range": [14, 420]},
            legend={
                "title": "episodes",
                "orient": "right" if legend_columns is None else "top",
                "values": [count for count in _SHOWN_COUNTS if count <= max(most, 10)],
                "format": "d",
                "symbolFillColor": colour("muted"),
                "symbolStrokeColor": colour("muted"),
            },
        ),
        "shape": name("phase", scale={"domain": labels, "range": [phase.shape for phase in used]}, legend=legend),
        "stroke": name("phase", scale={"domain": labels, "range": strokes}, legend=legend),
        "fill": name("phase", scale={"domain": labels, "range": fills}, legend=legend),
        "tooltip": fixed({"expr": _TIP}),
    }
    layers = []
    for phase in used:
        rows = [
            {"score": point.score, "reward": point.reward, "phase": phase.label, "episodes": point.episodes}
            for point in points
            if point.phase == phase.name
        ]
        layers.append(layer(mark("point", strokeWidth=1.1, opacity=0.75), rows, **channels))
    return layered(layers, width=size.width, height=size.height)
