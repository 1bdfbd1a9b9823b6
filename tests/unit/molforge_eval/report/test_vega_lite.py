from __future__ import annotations

from importlib.resources import files
from urllib.parse import quote

import jsonschema
import jsonschema_rs
import orjson
import pytest

from molforge_eval.report.figures import charts_of
from molforge_eval.report.plots import plots_of
from molforge_eval.report.vega_lite import (
    amount,
    below,
    beside,
    fixed,
    kept,
    layer,
    layered,
    mark,
    name,
    rank,
    specification_of,
    unchecked,
)
from molforge_eval.run_directory import load

FEW = [{"a": 1, "b": "x"}]
MANY = [{"a": number, "b": "y"} for number in range(9)]


def spelled(value):
    """The same with every reference spelled as an address may be."""
    if isinstance(value, list):
        return [spelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: quote(item, safe="#/") if key == "$ref" else spelled(item) for key, item in value.items()}


@pytest.fixture(scope="module")
def schema():
    """Vega-Lite's own rules."""
    text = files("altair.vegalite.v6.schema").joinpath("vega-lite-schema.json").read_bytes()
    return jsonschema_rs.validator_for(spelled(orjson.loads(text)))


@pytest.mark.parametrize("case", ["improved", "regressed", "incomplete", "withheld", "no plan"])
def test_every_chart_of_the_packet_is_sound_vega_lite(evidence_of, schema, case) -> None:
    for drawn, chart in charts_of(evidence_of(case)).items():
        assert schema.is_valid(specification_of(chart)), drawn


def test_every_picture_of_a_run_is_sound_vega_lite(built_run, schema) -> None:
    plots = plots_of(load(built_run))

    assert len(plots) == 6
    assert [plot.record.path for plot in plots if not schema.is_valid(specification_of(plot.make_chart()))] == []


@pytest.mark.parametrize(
    "flawed",
    [
        lambda: mark("ruler"),
        lambda: layer(mark("point"), x={"field": "value", "type": "amount"}),
        lambda: layer(mark("point"), MANY, over=amount("a")),
        lambda: layered([layer(mark("point"), x=amount("a"))], width="broad"),
    ],
)
def test_a_part_that_is_no_vega_lite_is_refused_as_it_is_made(flawed) -> None:
    with pytest.raises((jsonschema.ValidationError, TypeError)):
        flawed()


def test_a_build_does_not_hold_parts_to_the_schema_once_more() -> None:
    with unchecked():
        chart = mark("ruler")

    assert chart.to_dict(validate=False) == {"type": "ruler"}
    with pytest.raises(jsonschema.ValidationError):
        mark("ruler")


def test_rows_that_layers_share_stand_once() -> None:
    dots = [layer(mark("point", size=size), MANY, x=amount("a")) for size in (9, 3)]
    specification = specification_of(layered([*dots, layer(mark("rule"), FEW, x=amount("a"))], width=90))
    first, second, third = (drawn["data"]["name"] for drawn in specification["layer"])

    assert first == second != third
    assert specification["datasets"] == {first: MANY, third: FEW}


def test_a_finished_chart_leaves_the_one_that_it_was_made_from_alone() -> None:
    plain = layer(mark("point"), x=amount("a"))
    before = specification_of(plain)
    chart = beside([layered([plain, kept(plain, "datum.a > 1")], rows=MANY)], spacing=4)

    assert specification_of(chart) == specification_of(chart)
    assert specification_of(plain) == before


def test_charts_of_charts_are_sound(schema) -> None:
    panel = layered(
        [
            kept(layer(mark("point"), x=amount("a"), y=name("b"), opacity=rank("a")), "datum.a > 1"),
            layer(mark("text"), FEW, x=fixed(3), y=name("b"), text=name("b")),
        ],
        rows=MANY,
        width=90,
        height=20,
    )
    specification = specification_of(below([beside([panel, panel], spacing=4), panel], spacing=4))

    assert schema.is_valid(specification)
    assert len(specification["datasets"]) == 2
