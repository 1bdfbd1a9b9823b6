"""What charts of scores share: their points in lanes, and beneath them a pale band and a whisker for each interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Channel, Chart, layer, mark, name

LANES = {"before": -4, "after": 4}
"""Pixels by which a side stands off the line of its row: what is alike would hide one under the other."""
Score = Callable[[str], float | None]
"""A score of a row by its name: `before`, `after`, and each with `_low` and `_high`; `None` when unknown."""


def span_layers(rows: Sequence[tuple[Mapping[str, Any], Score]], x: Channel, y: Channel) -> Iterator[Chart]:
    """Draw the bands and the whiskers of rows.

    Args:
        rows: The column by which the axis places a row, and the row's scores.
        x: Axis of the scores, from 0 to 1; a band that would leave it is not drawn.
        y: Axis of the rows.
    """
    bands = list[dict[str, Any]]()
    whiskers: dict[str, list[dict[str, Any]]] = {side: [] for side in LANES}
    for place, score in rows:
        before, after = score("before"), score("after")
        if before is not None and after is not None and min(before, after) >= 0.0 and max(before, after) <= 1.0:
            bands.append({**place, "value": before, "end": after})
        for side, found in whiskers.items():
            low, high = score(f"{side}_low"), score(f"{side}_high")
            if low is not None and high is not None:
                found.append({**place, "value": low, "end": high})
    end = {"field": "end"}
    band = mark("rule", strokeWidth=7, color=colour("after"), opacity=0.13, strokeCap="round")
    yield layer(band, bands, x=x, x2=end, y=y)
    for side, found in whiskers.items():
        yield layer(mark("rule", strokeWidth=1.8, color=colour(side), yOffset=LANES[side]), found, x=x, x2=end, y=y)


class Kind(Protocol):
    """How one kind of point is drawn, and what the legend calls it."""

    @property
    def label(self) -> str:
        """Its name in the legend."""

    @property
    def role(self) -> str:
        """Its colour."""

    @property
    def shape(self) -> str:
        """A name or path of the drawing library."""

    @property
    def is_filled(self) -> bool:
        """Whether it is more than an outline."""


def point_layers(
    points: Sequence[Mapping[str, Any]],
    kinds: Iterable[Kind],
    *,
    size: int,
    legend_columns: int | None,
    **channels: Channel,
) -> Iterator[Chart]:
    """Draw points with one legend, those of a lane together.

    Args:
        points: Rows with `mark`, the label of a kind, and `lane`, pixels off the line of their row.
        kinds: In the order of the legend; one without a point is left out.
        size: Area of a point, in square pixels.
        legend_columns: Entries of the legend side by side; all of them when absent.
        channels: Axes and the like.
    """
    drawn = {point["mark"] for point in points}
    used = [kind for kind in kinds if kind.label in drawn]
    domain = [kind.label for kind in used]
    legend = {"columns": legend_columns or len(used), "symbolSize": 60, "columnPadding": 10}
    ranges = {
        "shape": [kind.shape for kind in used],
        "stroke": [colour(kind.role) for kind in used],
        "fill": [colour(kind.role if kind.is_filled else "paper") for kind in used],
    }
    looks = {
        key: name("mark", scale={"domain": domain, "range": found}, legend=legend) for key, found in ranges.items()
    }
    for lane in sorted({point["lane"] for point in points}):
        dot = mark("point", size=size, strokeWidth=1.6, opacity=1, yOffset=lane)
        yield layer(dot, [dict(point) for point in points if point["lane"] == lane], **channels, **looks)
