"""Charts as Vega-Lite, written down as it is read: plain mappings, each made once and never copied.

A layer holds its rows until the chart is finished; then each table of rows gets a name and stands in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Chart: TypeAlias = dict[str, Any]
"""A layer or a chart of layers."""
Channel: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"


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


def mark(kind: str, **style: Any) -> dict[str, Any]:
    """Say what a row is drawn as."""
    return {"type": kind, **style}


def layer(drawn_as: Mapping[str, Any], rows: Rows | None = None, /, **channels: Channel) -> Chart:
    """Draw rows as marks.

    Args:
        drawn_as: From [`mark`][molforge_eval.report.vega_lite.mark].
        rows: Its own rows; those of the chart when absent.
        channels: What shows which column, by the names of Vega-Lite.
    """
    chart: Chart = {"mark": drawn_as, "encoding": channels}
    return chart if rows is None else _with_rows(chart, rows)


def kept(chart: Chart, expression: str) -> Chart:
    """Draw only the rows that meet an expression."""
    return {**chart, "transform": [{"filter": expression}]}


def layered(layers: Sequence[Chart], *, rows: Rows | None = None, **properties: Any) -> Chart:
    """Lay layers over each other, the last one on top.

    Args:
        layers: From [`layer`][molforge_eval.report.vega_lite.layer].
        rows: Rows of every layer that has none of its own.
        properties: Width, height and what else Vega-Lite knows of a chart.
    """
    chart: Chart = {"layer": list(layers), **properties}
    return chart if rows is None else _with_rows(chart, rows)


def beside(charts: Sequence[Chart], *, spacing: int, **properties: Any) -> Chart:
    """Put charts side by side."""
    return {"hconcat": list(charts), "spacing": spacing, **properties}


def below(charts: Sequence[Chart], *, spacing: int, **properties: Any) -> Chart:
    """Put charts one below the other."""
    return {"vconcat": list(charts), "spacing": spacing, **properties}


def specification_of(chart: Chart) -> dict[str, Any]:
    """Finish a chart: every table of rows stands once, under a name, and the layers name it."""
    tables: dict[int, tuple[str, Rows]] = {}
    placed = _placed(chart, tables)
    return {**placed, "$schema": SCHEMA, "datasets": dict(tables.values())}


def _with_rows(chart: Chart, rows: Rows) -> Chart:
    return {"data": {"values": rows}, **chart}


def _placed(chart: Chart, tables: dict[int, tuple[str, Rows]]) -> Chart:
    placed = dict(chart)
    if "data" in chart:
        rows = chart["data"]["values"]
        # The table is held by the chart, so no other object can have its identity meanwhile.
        label, _ = tables.setdefault(id(rows), (f"table_{len(tables)}", rows))
        placed["data"] = {"name": label}
    for inner in ("layer", "hconcat", "vconcat"):
        if inner in chart:
            placed[inner] = [_placed(part, tables) for part in chart[inner]]
    return placed
