"""What a chart of scores draws beneath its points: a pale band from before to after, a whisker for each interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Channel, Chart, layer, mark

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
