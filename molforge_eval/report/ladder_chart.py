"""The chart of the first page: before, after and the reference policies of every task on one axis.

Filled points are means over seeds with their intervals, hollow ones the single greedy episode. What is not known has no
mark: a missing evaluation is a gap in its row, never a point at 0. Rows are told apart by their place, not by the text
of a label: a run of format version 0 names its own tasks, and what it wrote is data of the chart, no part of its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from molforge_eval.report.curves import Size
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.numerals import decimal
from molforge_eval.report.scores import MEAN
from molforge_eval.report.spans import LANES, point_layers, span_layers
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Channel, Chart, amount, fixed, kept, layer, layered, mark, name, rank

ROW_HEIGHT = 40
_NAME_GAP = 10


class Mark(NamedTuple):
    """How one kind of value is drawn."""

    field: str
    label: str
    role: str
    shape: str
    is_filled: bool
    says: str
    """What such a value is."""


MARKS = (
    Mark("before", "before", "before", "circle", is_filled=True, says="mean before training"),
    Mark("after", "after", "after", "circle", is_filled=True, says="mean after training"),
    Mark("greedy_before", "before, greedy", "before", "diamond", is_filled=False, says="greedy, before training"),
    Mark("greedy_after", "after, greedy", "after", "diamond", is_filled=False, says="greedy, after training"),
    Mark("do_nothing", "do nothing", "floor", "M0,-1.1V1.1", is_filled=False, says="policy that does nothing"),
    Mark("random_valid", "random valid", "floor", "cross", is_filled=True, says="policy of random valid actions"),
    Mark("heuristic", "heuristic", "floor", "triangle-up", is_filled=True, says="heuristic policy"),
    Mark("ceiling", "ceiling", "ceiling", "M0,-1.4V1.4", is_filled=False, says="exact ceiling"),
)
_LANES = {**LANES, "greedy_before": 13, "greedy_after": 13}
_LADDER_LANE = -13
"""Pixels off a row's line, where a reference policy stands."""
_OWN = ("before", "after", "greedy_before", "greedy_after")


def has_own_score(evidence: Evidence) -> bool:
    """Tell whether the run has a score to draw; reference policies alone are no chart of it."""
    return any(_value(evidence, task, field) is not None for task, _ in _rows(evidence) for field in _OWN)


def ladder_chart(evidence: Evidence, *, size: Size, legend_columns: int | None = None) -> Chart:
    """Draw every task, then the mean, as one row each on the axis of final_score.

    Args:
        evidence: The scores and their ladder.
        size: Inner width; the height goes by the rows.
        legend_columns: Entries of the legend side by side; all of them when absent.
    """
    rows = _rows(evidence)
    points = [point for place, (task, label) in enumerate(rows) for point in _points(evidence, place, task, label)]
    y = rank("place", title=None, axis=None)
    axis = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "format": ".1f"}
    title = "final_score, strict" if evidence.old is None else "final_score, as the run lists it"
    x = amount("value", title=title, scale={"domain": [0, 1]}, axis=axis)
    spans = [({"place": place}, partial(_value, evidence, task)) for place, (task, _) in enumerate(rows)]
    layers = [
        *span_layers(spans, x, y),
        *point_layers(points, MARKS, size=56, legend_columns=legend_columns, x=x, y=y, tooltip=name("tip")),
        *_texts(evidence, rows, y, size),
    ]
    # The reader of a page chooses the rows.
    layers = [kept(drawn, "indexof(shown, datum.place) >= 0") for drawn in layers]
    shown = {"name": "shown", "value": list(range(len(rows)))}
    return layered(layers, width=size.width, height={"step": ROW_HEIGHT}, params=[shown])


def _rows(evidence: Evidence) -> list[tuple[str, str]]:
    """Name the tasks by key and label, the mean last; a run of format version 0 lists its own."""
    tasks = [(task.task, task.label) for task in (evidence.tasks if evidence.old is None else evidence.old.tasks)]
    return [*tasks, (MEAN, MEAN)] if tasks else []


def _number_id(evidence: Evidence, task: str, field: str) -> str:
    is_own = evidence.old is not None and field in {"before", "after"}
    return f"{'unpaired' if is_own else 'score'}.{task}.{field}"


def _value(evidence: Evidence, task: str, field: str) -> float | None:
    """Look a score up; a field that this kind of run does not have is unknown."""
    number = evidence.by_id.get(_number_id(evidence, task, field))
    return None if number is None else number.value


def _points(evidence: Evidence, place: int, task: str, label: str) -> Iterator[dict[str, Any]]:
    for kind in MARKS:
        value = _value(evidence, task, kind.field)
        # A stranger's number that is no score has no place on the axis; the text beside the row tells it.
        if value is not None and 0.0 <= value <= 1.0:
            tip = _tip(evidence, task, label, kind)
            yield {"place": place, "mark": kind.label, "value": value, "lane": _lane(kind), "tip": tip}


def _lane(kind: Mark) -> int:
    return _LANES.get(kind.field, _LADDER_LANE)


def _tip(evidence: Evidence, task: str, label: str, kind: Mark) -> str:
    """Say a value in the words of the evidence, its id last."""
    number_id = _number_id(evidence, task, kind.field)
    value = f"{kind.says}: {evidence.number(number_id).text}"
    ends = [evidence.by_id.get(f"score.{task}.{kind.field}_{end}") for end in ("low", "high")]
    known = [end.text for end in ends if end is not None and end.value is not None]
    interval = [f"{evidence.number('rule.confidence').text} interval {' to '.join(known)}"] if len(known) == 2 else []
    return "\n".join([label, value, *interval, number_id])


def _texts(evidence: Evidence, rows: Sequence[tuple[str, str]], y: Channel, size: Size) -> Iterator[Chart]:
    """The name of a row at its left, its two scores at its right."""
    values = []
    for place, (task, label) in enumerate(rows):
        before, after = (_value(evidence, task, arm) for arm in ("before", "after"))
        if before is None and after is None:
            before, after = (_value(evidence, task, f"greedy_{arm}") for arm in ("before", "after"))
        values.append({"place": place, "row": label, "text": f"{decimal(before)} → {decimal(after)}"})
    label_look = mark("text", align="right", fontWeight=500, color=colour("muted"))
    yield layer(label_look, values, x=fixed(-_NAME_GAP), y=y, text=name("row"))
    score_look = mark("text", align="left", fontWeight=600, color=colour("ink"))
    yield layer(score_look, values, x=fixed(size.width + 14), y=y, text=name("text"))
