"""Charts out of Altair's own classes, each made once: its chaining calls copy all that a chart holds at every step.

Altair holds each part to the schema of Vega-Lite as it is made. The tests leave that on, a build turns it off
([`unchecked`][molforge_eval.report.vega_lite.unchecked]). A chart carries its tables of rows beside it; a table that
layers share stands once, under a name that is taken from its content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson

if TYPE_CHECKING:
    import altair as alt

Channel: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]]


class Chart(NamedTuple):
    """A layer or a chart of layers, and its rows."""

    drawn: alt.SchemaBase
    tables: Mapping[str, Rows]
    """Rows by the name under which a layer asks for them."""


def amount(field: str, **more: Any) -> Channel:
    """Show a column of numbers.

    >>> amount("step", title="optimizer step")
    {'field': 'step', 'type': 'quantitative', 'title': 'optimizer step'}
    """
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: Any) -> Channel:
    """Show a column of names."""
    return {"field": field, "type": "nominal", **more}


def rank(field: str, **more: Any) -> Channel:
    """Show a column of ordered places."""
    return {"field": field, "type": "ordinal", **more}


def fixed(value: Any) -> Channel:
    """Show the same for every row: a number or a word of Vega-Lite, or `{"expr": …}`."""
    return {"value": value}


def mark(kind: Any, **style: Any) -> alt.MarkDef:
    """Say what a row is drawn as: `kind` is a mark of Vega-Lite, which Altair types as its own list of words."""
    import altair as alt

    return alt.MarkDef(type=kind, **style)


def layer(drawn_as: alt.MarkDef, rows: Rows | None = None, /, **channels: Channel) -> Chart:
    """Draw rows as marks.

    Args:
        drawn_as: From [`mark`][molforge_eval.report.vega_lite.mark].
        rows: Its own rows; those of the chart when absent.
        channels: What shows which column, by the names of Vega-Lite.
    """
    import altair as alt

    data, tables = _named(rows)
    return Chart(alt.UnitSpec(mark=drawn_as, encoding=alt.FacetedEncoding(**channels), **data), tables)


def kept(chart: Chart, expression: str) -> Chart:
    """Draw only the rows that meet an expression."""
    import altair as alt

    return _with(chart, transform=[alt.FilterTransform(filter=expression)])


def titled(chart: Chart, title: Mapping[str, Any]) -> Chart:
    """Put a title over a chart."""
    return _with(chart, title=title)


def layered(layers: Sequence[Chart], *, rows: Rows | None = None, **properties: Any) -> Chart:
    """Lay layers over each other, the last one on top.

    Args:
        layers: From [`layer`][molforge_eval.report.vega_lite.layer].
        rows: Rows of every layer that has none of its own.
        properties: Width, height and what else Vega-Lite knows of a chart.
    """
    import altair as alt

    data, tables = _named(rows)
    drawn = alt.TopLevelLayerSpec(layer=[chart.drawn for chart in layers], **properties, **data)
    return Chart(drawn, tables | _together(layers))


def beside(charts: Sequence[Chart], *, spacing: int, **properties: Any) -> Chart:
    """Put charts side by side."""
    import altair as alt

    parts = [chart.drawn for chart in charts]
    return Chart(alt.HConcatSpecGenericSpec(hconcat=parts, spacing=spacing, **properties), _together(charts))


def below(charts: Sequence[Chart], *, spacing: int, **properties: Any) -> Chart:
    """Put charts one below the other."""
    import altair as alt

    parts = [chart.drawn for chart in charts]
    return Chart(alt.VConcatSpecGenericSpec(vconcat=parts, spacing=spacing, **properties), _together(charts))


def specification_of(chart: Chart) -> dict[str, Any]:
    """Write a chart down as Vega-Lite with its rows: every table of rows stands once, and the layers name it."""
    import altair as alt

    return {**chart.drawn.to_dict(validate=False), "$schema": alt.SCHEMA_URL, "datasets": dict(chart.tables)}


@contextmanager
def unchecked() -> Iterator[None]:
    """Make charts that are not held to the schema: ours are by the tests, and once more takes a fifth of the time."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


def _with(chart: Chart, **properties: Any) -> Chart:
    drawn = chart.drawn.copy(deep=False)
    for key, value in properties.items():
        drawn[key] = value
    return chart._replace(drawn=drawn)


def _named(rows: Rows | None) -> tuple[dict[str, Any], dict[str, Rows]]:
    import altair as alt

    if rows is None:
        return {}, {}
    label = f"rows_{sha256(orjson.dumps(rows, option=orjson.OPT_NON_STR_KEYS)).hexdigest()[:12]}"
    return {"data": alt.NamedData(name=label)}, {label: rows}


def _together(charts: Sequence[Chart]) -> dict[str, Rows]:
    return {label: rows for chart in charts for label, rows in chart.tables.items()}
