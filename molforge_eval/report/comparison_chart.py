"""The chart of a comparison: every run's before and after on one axis, and the reference policies through all rows.

Rows stand in the order in which the runs were named. A run whose scores are withheld keeps its row, empty, with the
word for it; one of format version 0 has hollow points, because its means are as the files list them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from molforge_eval.report.comparison_evidence import ComparedRun, ComparisonEvidence
from molforge_eval.report.curves import Size
from molforge_eval.report.numerals import decimal
from molforge_eval.report.rivals import REFERENCE
from molforge_eval.report.scores import MEAN
from molforge_eval.report.spans import LANES, point_layers, span_layers
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Channel, Chart, amount, fixed, layer, layered, mark, name

ROW_HEIGHT = 21
WIDE = Size(430, 0)
NARROW = Size(150, 0)
_GAP = 14


class _Mark(NamedTuple):
    label: str
    role: str
    shape: str
    is_filled: bool


_RUNGS = {
    "do_nothing": _Mark("do nothing", "floor", "M0,-1.1V1.1", is_filled=False),
    "random_valid": _Mark("random valid", "floor", "cross", is_filled=True),
    "heuristic": _Mark("heuristic", "floor", "triangle-up", is_filled=True),
    "ceiling": _Mark("ceiling", "ceiling", "M0,-1.4V1.4", is_filled=False),
}
_SIDES = {
    ("before", True): _Mark("before", "before", "circle", is_filled=True),
    ("after", True): _Mark("after", "after", "circle", is_filled=True),
    ("before", False): _Mark("before, as listed", "before", "circle", is_filled=False),
    ("after", False): _Mark("after, as listed", "after", "circle", is_filled=False),
}
_WORDS = {"withheld": "withheld", "repeated": "repeats", "unreadable": "not read", "incomplete": "no score"}


def has_score(evidence: ComparisonEvidence) -> bool:
    """Tell whether a run has a score to draw; reference policies alone are no chart of runs."""
    return any(_score(evidence, run, side) is not None for run in evidence.runs for side in ("before", "after"))


def comparison_chart(evidence: ComparisonEvidence, *, size: Size, legend_columns: int | None = None) -> Chart:
    """Draw the ladder of all runs.

    Args:
        evidence: The runs with their numbers.
        size: Inner width; the height goes by the rows.
        legend_columns: Entries of the legend side by side; all of them when absent.
    """
    labels = [run.label for run in evidence.runs]
    rows = [*([REFERENCE] if evidence.has_ladder else []), *labels]
    axis = {"ticks": False, "domain": False, "labelPadding": 10, "labelFontWeight": 500, "labelLimit": size.width}
    y = name("row", title=None, sort=rows, scale={"domain": rows}, axis=axis)
    ticks = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "format": ".1f"}
    x = amount("value", title="final_score, strict", scale={"domain": [0, 1]}, axis=ticks)
    spans = [({"row": run.label}, partial(_score, evidence, run)) for run in evidence.runs]
    layers = [*_rules(evidence, x), *span_layers(spans, x, y), *_points(evidence, x, y, legend_columns)]
    layers.append(_texts(evidence, y, size))
    return layered(layers, width=size.width, height=ROW_HEIGHT * len(rows))


def _score(evidence: ComparisonEvidence, run: ComparedRun, field: str) -> float | None:
    # What the table does not show is not drawn either: a mean over a part of the plan is no score of the run.
    value = None if run.state in _WORDS else evidence.value(f"run.{run.key}.{field}")
    # A mean of a stranger's file that is no score has no place on the axis; the text beside the row tells it.
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _rung(evidence: ComparisonEvidence, policy: str) -> float | None:
    return evidence.value(f"score.{MEAN}.{policy}")


def _rules(evidence: ComparisonEvidence, x: Channel) -> Iterator[Chart]:
    """A pale upright line at each reference policy, through every row."""
    for policy, kind in _RUNGS.items():
        value = _rung(evidence, policy)
        if value is not None:
            dash = [1, 0] if policy in {"do_nothing", "ceiling"} else [2, 2]
            rule = mark("rule", strokeWidth=1, color=colour(kind.role), opacity=0.55, strokeDash=dash)
            yield layer(rule, [{"value": value}], x=x)


def _points(evidence: ComparisonEvidence, x: Channel, y: Channel, legend_columns: int | None) -> Iterator[Chart]:
    values: list[dict[str, Any]] = []
    for run in evidence.runs:
        for side in ("before", "after"):
            value = _score(evidence, run, side)
            if value is not None:
                kind = _SIDES[side, run.state != "unpaired"]
                values.append({"row": run.label, "mark": kind.label, "value": value, "lane": LANES[side]})
    for policy, kind in _RUNGS.items():
        value = _rung(evidence, policy)
        if value is not None:
            values.append({"row": REFERENCE, "mark": kind.label, "value": value, "lane": 0})
    kinds = (*_SIDES.values(), *_RUNGS.values())
    return point_layers(values, kinds, size=62, legend_columns=legend_columns, x=x, y=y)


def _texts(evidence: ComparisonEvidence, y: Channel, size: Size) -> Chart:
    values = [{"row": run.label, "text": _text(evidence, run)} for run in evidence.runs]
    look = mark("text", align="left", fontWeight=600, color=colour("ink"))
    return layer(look, values, x=fixed(size.width + _GAP), y=y, text=name("text"))


def _text(evidence: ComparisonEvidence, run: ComparedRun) -> str:
    if run.state in _WORDS:
        return _WORDS[run.state] + (f" {run.same_as}" if run.same_as else "")
    before, after = (evidence.value(f"run.{run.key}.{side}") for side in ("before", "after"))
    return f"{decimal(before)} → {decimal(after)}" + (f"   {run.letters}" if run.letters else "")
