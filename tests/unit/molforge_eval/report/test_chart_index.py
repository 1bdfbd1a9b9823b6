"""What a chart draws stands in `evidence.json`, and the evidence says where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from molforge_eval.canonical import plain
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import GROUPS, NARROW, SINGLES, charts_of
from molforge_eval.report.vega_lite import specification_of

CASES = ("improved", "incomplete", "no plan", "sound", "logs missing")


@pytest.fixture
def evidence(request, evidence_of, old_evidence_of) -> Evidence:
    return (old_evidence_of if request.param in {"sound", "logs missing"} else evidence_of)(request.param)


def at(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        value = value[int(step) if isinstance(value, list) else step]
    return value


def data_of(specification: Any) -> Iterator[dict[str, Any]]:
    """Every row of data in a chart."""
    if isinstance(specification, dict):
        for key, item in specification.items():
            if key == "datasets":
                yield from (row for rows in item.values() for row in rows)
            else:
                yield from data_of(item)
    elif isinstance(specification, list):
        for item in specification:
            yield from data_of(item)


@pytest.mark.parametrize("evidence", CASES, indirect=True)
def test_every_chart_that_is_drawn_is_listed_and_no_other(evidence) -> None:
    drawn = {name for name in charts_of(evidence) if not name.endswith(NARROW)}

    assert {chart.name for chart in evidence.charts} == drawn


@pytest.mark.parametrize("evidence", CASES, indirect=True)
def test_the_data_of_a_chart_stand_where_the_evidence_says(evidence) -> None:
    value = plain(evidence)
    for chart in evidence.charts:
        for series in chart.series:
            assert set(series.numbers) <= set(evidence.by_id)
            found = series.numbers if series.pointer is None else at(value, series.pointer)
            assert len(found) == series.points > 0


@pytest.mark.parametrize("evidence", ["improved", "sound"], indirect=True)
def test_every_point_of_a_curve_is_one_of_the_evidence(evidence) -> None:
    value, charts = plain(evidence), charts_of(evidence)
    checked = 0
    for chart in evidence.charts:
        if chart.name not in SINGLES and chart.name not in GROUPS:
            continue
        points = [point for series in chart.series for point in at(value, series.pointer)]
        known = {(point[1], number) for point in points for number in point[2:4] if number is not None}
        for row in data_of(specification_of(charts[chart.name])):
            for key in ("value", "average"):
                if row.get(key) is not None and "step" in row:
                    assert (row["step"], row[key]) in known, chart.name
                    checked += 1
    assert checked > 20


@pytest.mark.parametrize("evidence", ["improved", "sound"], indirect=True)
def test_every_score_of_the_first_chart_is_a_number_of_the_evidence(evidence) -> None:
    chart = next(chart for chart in evidence.charts if chart.name == "hero")
    values = {evidence.number(number_id).value for number_id in chart.series[0].numbers}
    drawn = [
        row[key]
        for row in data_of(specification_of(charts_of(evidence)["hero"]))
        for key in ("value", "end")
        if isinstance(row.get(key), float)
    ]

    assert len(drawn) > 5
    assert set(drawn) <= values
