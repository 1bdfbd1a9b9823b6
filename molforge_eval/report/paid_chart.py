"""The chart of what was paid for what: one mark a training episode, its strict score against its training reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.section_evidence import PaidEpisode
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    from molforge_eval.report.render import Chart


_TIP = (
    r"datum.phase + '\nstrict score: ' + format(datum.score, '.2f')"
    r" + '\ntraining reward: ' + format(datum.reward, '.2f')"
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


def paid_chart(
    episodes: Sequence[PaidEpisode], *, size: Size, legend_columns: int | None = None, live: bool = False
) -> Chart:
    """Draw every episode that the evidence holds, the late ones on top.

    Args:
        episodes: The episodes.
        size: Inner size.
        legend_columns: Entries of the legend side by side; all of them when absent.
        live: Say what a mark is.
    """
    import altair as alt

    used = [phase for phase in PHASES if any(episode.phase == phase.name for episode in episodes)]
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
    layers = []
    for phase in used:
        rows = [
            {"score": episode.score, "reward": episode.reward, "phase": phase.label}
            for episode in episodes
            if episode.phase == phase.name
        ]
        layer = (
            alt.Chart(alt.InlineData(values=rows))
            .mark_point(size=24, strokeWidth=1.1, opacity=0.75)
            .encode(
                x=x,
                y=y,
                shape=alt.Shape(
                    "phase:N", scale=alt.Scale(domain=labels, range=[phase.shape for phase in used]), legend=legend
                ),
                stroke=alt.Stroke("phase:N", scale=alt.Scale(domain=labels, range=strokes), legend=legend),
                fill=alt.Fill("phase:N", scale=alt.Scale(domain=labels, range=fills), legend=legend),
            )
        )
        layers.append(layer.encode(tooltip=alt.value(alt.ExprRef(expr=_TIP))) if live else layer)
    return alt.layer(*layers).properties(width=size.width, height=size.height)
