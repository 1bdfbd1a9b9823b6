"""The chart of the seeds: one line a seed from its score before to its score after, one panel a task and one the mean.

A hollow point is before, a filled one after; a seed that fell has a diamond and its own colour. Thin upright lines are
the do-nothing floor and the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.numerals import decimal
from molforge_eval.report.scores import MEAN
from molforge_eval.report.section_evidence import SeedLine, SeedPair
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Channel, Chart, amount, below, beside, layer, layered, mark, name

MOST_PANELS = 4
MOST_NAMED = 32
_LINE = 11
_GAP = 16
_HEIGHT = 260


class Kind(NamedTuple):
    """How the points of one kind are drawn."""

    label: str
    role: str
    shape: str


BEFORE = Kind("before", "before", "circle")
AFTER = Kind("after", "after", "circle")
ROSE = Kind("after, rose", "after", "circle")
FELL = Kind("after, fell", "caution", "diamond")
EQUAL = Kind("after, equal", "muted", "circle")


class Panel(NamedTuple):
    """One column of the chart."""

    task: str
    label: str
    place: int | None
    """Place of the task in a seed's line; `None` for the mean."""

    def pair(self, line: SeedLine) -> SeedPair:
        """Return what a seed has in this panel."""
        return line.mean if self.place is None else line.tasks[self.place]


def has_pair(evidence: Evidence) -> bool:
    """Tell whether some seed has a score to draw."""
    table = evidence.seed_table
    return table is not None and any(score is not None for line in table.lines for score in line.mean)


def seed_chart(evidence: Evidence, *, size: Size, per_row: int = MOST_PANELS) -> Chart:
    """Draw the seeds of the table, those that rose most on top where a difference is claimed.

    Args:
        evidence: Its seed table has a score.
        size: Inner size of the panels side by side; the height goes by the seeds.
        per_row: Most panels side by side.
    """
    table = evidence.seed_table
    is_claimed = table is not None and table.is_claimed
    # An order by the rise would claim what is not claimed.
    lines = () if table is None else sorted(table.lines, key=_order if is_claimed else _seed_of)
    panels = _panels(evidence)
    names = [str(line.seed) for line in lines]
    is_named = len(lines) <= MOST_NAMED
    height = _LINE * len(lines) if is_named else _HEIGHT
    axis = {"ticks": False, "domain": False, "labelFontSize": 9, "labelPadding": 8}
    axis |= {"labels": is_named, "grid": is_named}
    y = name("seed", sort=names, title="seed, the largest rise on top" if is_claimed else "seed", axis=axis)
    x = amount(
        "value",
        title="final_score, strict",
        scale={"domain": [0, 1]},
        axis={"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f", "titleFontWeight": 500},
    )
    columns = []
    for number, panel in enumerate(panels):
        shown = y if number % per_row == 0 else name("seed", sort=names, title=None, axis=None)
        layers = [*_rungs(evidence, panel), *_strips(lines, panel, x, shown, is_claimed=is_claimed)]
        look = {"anchor": "middle", "fontSize": 11, "fontWeight": 600, "color": colour("ink")}
        in_row = min(len(panels), per_row)
        width = (size.width - _GAP * (in_row - 1)) // in_row
        columns.append(layered(layers, width=width, height=max(height, 40), title={"text": panel.label, **look}))
    rows = [beside(columns[at : at + per_row], spacing=_GAP) for at in range(0, len(columns), per_row)]
    return rows[0] if len(rows) == 1 else below(rows, spacing=_GAP)


def _panels(evidence: Evidence) -> list[Panel]:
    rows = [Panel(row.task, row.label, place) for place, row in enumerate(evidence.tasks)]
    mean = Panel(MEAN, "mean over tasks", None)
    return [*rows, mean] if 1 < len(rows) < MOST_PANELS else [mean]


def _seed_of(line: SeedLine) -> int:
    return line.seed


def _order(line: SeedLine) -> tuple[float, int]:
    before, after = line.mean
    return (2.0 if before is None or after is None else before - after, line.seed)


def _strips(lines: Sequence[SeedLine], panel: Panel, x: Channel, y: Channel, *, is_claimed: bool) -> Iterator[Chart]:
    spans, points = list[dict[str, Any]](), list[dict[str, Any]]()
    for line in lines:
        before, after = panel.pair(line)
        kind = _kind(before, after) if is_claimed else AFTER
        tip = f"seed {line.seed}, {panel.label}\nbefore: {decimal(before)}\nafter: {decimal(after)}"
        if before is not None:
            points.append({"seed": str(line.seed), "value": before, "kind": BEFORE.label, "tip": tip})
        if after is not None:
            points.append({"seed": str(line.seed), "value": after, "kind": kind.label, "tip": tip})
        if before is not None and after is not None and is_claimed:
            spans.append({"seed": str(line.seed), "value": before, "end": after, "shade": colour(kind.role)})
    kinds = (BEFORE, ROSE, FELL, EQUAL) if is_claimed else (BEFORE, AFTER)
    domain = [kind.label for kind in kinds]
    strokes = [colour(kind.role) for kind in kinds]
    fills = [colour("paper" if kind is BEFORE else kind.role) for kind in kinds]
    legend = {"symbolSize": 50, "columns": len(kinds)}
    span = mark("rule", strokeWidth=2, opacity=0.45)
    yield layer(span, spans, x=x, x2={"field": "end"}, y=y, color=name("shade", scale=None))
    yield layer(
        mark("point", size=34, strokeWidth=1.5, opacity=1),
        points,
        x=x,
        y=y,
        shape=name("kind", scale={"domain": domain, "range": [kind.shape for kind in kinds]}, legend=legend),
        stroke=name("kind", scale={"domain": domain, "range": strokes}, legend=legend),
        fill=name("kind", scale={"domain": domain, "range": fills}, legend=legend),
        tooltip=name("tip"),
    )


def _rungs(evidence: Evidence, panel: Panel) -> Iterator[Chart]:
    for rung, dash in (("do_nothing", [2, 2]), ("ceiling", [1, 0])):
        number = evidence.by_id.get(f"score.{panel.task}.{rung}")
        if number is not None and number.value is not None:
            rule = mark("rule", strokeWidth=1.2, strokeDash=dash, color=colour("ink"), opacity=0.6)
            yield layer(rule, [{"value": number.value}], x=amount("value"))


def _kind(before: float | None, after: float | None) -> Kind:
    if before is None or after is None or after > before:
        return ROSE
    return FELL if after < before else EQUAL
