"""The chart of a comparison: every run's before and after on one axis, and the reference policies through all rows.

Rows stand in the order in which the runs were named. A run whose scores are withheld keeps its row, empty, with the
word for it; one of format version 0 has hollow points, because its means are as the files list them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from molforge_eval.report.comparison_evidence import ComparedRun, ComparisonEvidence
from molforge_eval.report.curves import Size
from molforge_eval.report.numerals import decimal
from molforge_eval.report.rivals import REFERENCE
from molforge_eval.report.scores import MEAN
from molforge_eval.report.spans import span_layers
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    import altair as alt

    from molforge_eval.report.render import Chart

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
    import altair as alt

    labels = [run.label for run in evidence.runs]
    rows = [*([REFERENCE] if evidence.has_ladder else []), *labels]
    axis = alt.Axis(ticks=False, domain=False, labelPadding=10, labelFontWeight=500, labelLimit=size.width)
    y = alt.Y("row:N", title=None, sort=rows, scale=alt.Scale(domain=rows), axis=axis)
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f")
    x = alt.X("value:Q", title="final_score, strict", scale=alt.Scale(domain=[0, 1]), axis=ticks)
    spans = [({"row": run.label}, partial(_score, evidence, run)) for run in evidence.runs]
    layers = [*_rules(evidence, x), *span_layers(spans, x, y), _points(evidence, x, y, legend_columns)]
    layers.append(_texts(evidence, y, size))
    return alt.layer(*layers).properties(width=size.width, height=ROW_HEIGHT * len(rows))


def _score(evidence: ComparisonEvidence, run: ComparedRun, field: str) -> float | None:
    # What the table does not show is not drawn either: a mean over a part of the plan is no score of the run.
    value = None if run.state in _WORDS else evidence.value(f"run.{run.key}.{field}")
    # A mean of a stranger's file that is no score has no place on the axis; the text beside the row tells it.
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _rung(evidence: ComparisonEvidence, name: str) -> float | None:
    return evidence.value(f"score.{MEAN}.{name}")


def _rules(evidence: ComparisonEvidence, x: alt.X) -> Iterator[alt.Chart]:
    """A pale upright line at each reference policy, through every row."""
    import altair as alt

    for name, mark in _RUNGS.items():
        value = _rung(evidence, name)
        if value is not None:
            dash = [1, 0] if name in {"do_nothing", "ceiling"} else [2, 2]
            yield (
                alt.Chart(alt.InlineData(values=[{"value": value}]))
                .mark_rule(strokeWidth=1, color=colour(mark.role), opacity=0.55, strokeDash=dash)
                .encode(x=x)
            )


def _points(evidence: ComparisonEvidence, x: alt.X, y: alt.Y, legend_columns: int | None) -> alt.Chart:
    import altair as alt

    values: list[dict[str, Any]] = []
    for run in evidence.runs:
        for side in ("before", "after"):
            value = _score(evidence, run, side)
            if value is not None:
                mark = _SIDES[side, run.state != "unpaired"]
                values.append({"row": run.label, "mark": mark.label, "value": value})
    for name, mark in _RUNGS.items():
        value = _rung(evidence, name)
        if value is not None:
            values.append({"row": REFERENCE, "mark": mark.label, "value": value})
    drawn = {value["mark"] for value in values}
    used = [mark for mark in (*_SIDES.values(), *_RUNGS.values()) if mark.label in drawn]
    domain = [mark.label for mark in used]
    fills = [colour(mark.role if mark.is_filled else "paper") for mark in used]
    legend = alt.Legend(columns=legend_columns or len(used), symbolSize=60, columnPadding=10)
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_point(size=62, strokeWidth=1.6, opacity=1)
        .encode(
            x=x,
            y=y,
            shape=alt.Shape("mark:N", scale=alt.Scale(domain=domain, range=[m.shape for m in used]), legend=legend),
            stroke=alt.Stroke(
                "mark:N", scale=alt.Scale(domain=domain, range=[colour(m.role) for m in used]), legend=legend
            ),
            fill=alt.Fill("mark:N", scale=alt.Scale(domain=domain, range=fills), legend=legend),
        )
    )
    return chart


def _texts(evidence: ComparisonEvidence, y: alt.Y, size: Size) -> alt.Chart:
    import altair as alt

    values = [{"row": run.label, "text": _text(evidence, run)} for run in evidence.runs]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_text(align="left", fontWeight=600, color=colour("ink"))
        .encode(x=alt.value(size.width + _GAP), y=y, text="text:N")
    )
    return chart


def _text(evidence: ComparisonEvidence, run: ComparedRun) -> str:
    if run.state in _WORDS:
        return _WORDS[run.state] + (f" {run.same_as}" if run.same_as else "")
    before, after = (evidence.value(f"run.{run.key}.{side}") for side in ("before", "after"))
    return f"{decimal(before)} → {decimal(after)}" + (f"   {run.letters}" if run.letters else "")
