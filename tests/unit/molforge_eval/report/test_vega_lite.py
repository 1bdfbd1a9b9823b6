from __future__ import annotations

from copy import deepcopy
from importlib.resources import files
from urllib.parse import quote

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


def test_the_rules_of_vega_lite_refuse_a_chart_that_is_not_sound(evidence_of, schema) -> None:
    sound = specification_of(charts_of(evidence_of("improved"))["hero"])
    for key, value in (("mark", {"type": "ruler"}), ("encoding", {"x": {"field": "value", "type": "amount"}})):
        flawed = deepcopy(sound)
        flawed["layer"][0][key] = value

        assert not schema.is_valid(flawed)


def test_rows_that_layers_share_stand_once() -> None:
    dots = [layer(mark("point", size=size), MANY, x=amount("a")) for size in (9, 3)]
    specification = specification_of(layered([*dots, layer(mark("rule"), FEW, x=amount("a"))], width=90))

    assert specification["datasets"] == {"table_0": MANY, "table_1": FEW}
    assert [drawn["data"] for drawn in specification["layer"]] == [
        {"name": "table_0"},
        {"name": "table_0"},
        {"name": "table_1"},
    ]


def test_a_finished_chart_leaves_the_one_that_it_was_made_from_alone() -> None:
    chart = beside([layered([layer(mark("point"), x=amount("a"))], rows=MANY)], spacing=4)
    before = deepcopy(chart)

    assert specification_of(chart) == specification_of(chart)
    assert chart == before


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
