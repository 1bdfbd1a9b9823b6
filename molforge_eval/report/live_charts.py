"""The charts that answer a reader: Vega-Lite which the page's script draws over the still pictures.

Every specification is made here from our own words. What a run wrote stands in the data alone, as text, and reaches no
expression; the data stand in the page, once for all charts that show them. Colours are the page's, by role, so that a
dark page needs no second drawing.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from markupsafe import Markup

from molforge_eval.report.figures import NARROW
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import chart_settings, palettes, variable
from molforge_eval.shipped import template_folder

_DIGITS = 6
_HUE_KEY = "shade"
"""Key of the one data column that holds a colour."""
_UNSAFE_IN_SCRIPT = str.maketrans({"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def live_charts(figures: Mapping[str, Svg]) -> dict[str, Any]:
    """Write the charts down for the page's script.

    Args:
        figures: The pictures that stand in the page, each with what it was drawn from.

    Returns:
        `config`, the look of all; `datasets`, each by its columns; and `charts`, each with its `wide` and perhaps its
        `narrow` form: a specification and the names of its data sets.
    """
    shelf: dict[bytes, str] = {}
    charts: dict[str, dict[str, Any]] = {}
    for name, figure in figures.items():
        if figure.specification is not None:
            form = "narrow" if name.endswith(NARROW) else "wide"
            charts.setdefault(name.removesuffix(NARROW), {})[form] = _written(figure.specification, shelf)
    return {
        "config": _painted(chart_settings()),
        "datasets": {name: orjson.loads(columns) for columns, name in shelf.items()},
        "charts": charts,
    }


def script_json(value: Any) -> Markup:
    r"""Write a value as JSON that may stand inside a script element: nothing in it can end the element.

    >>> str(script_json({"run": "</script>"}))
    '{"run":"\\u003c/script>"}'
    """
    text = orjson.dumps(value).decode().translate(_UNSAFE_IN_SCRIPT)
    return Markup(text)  # noqa: S704 # no tag can begin in it


def vega_bundle() -> str:
    """Read Vega, Vega-Lite and Vega-Embed in one script, as `tools/vega_bundle.py` has taken it from vl-convert."""
    return gzip.decompress((template_folder() / "vega" / "bundle.js.gz").read_bytes()).decode("utf-8")


def _written(drawn_from: Mapping[str, Any], shelf: dict[bytes, str]) -> dict[str, Any]:
    specification = {key: value for key, value in drawn_from.items() if key not in {"$schema", "config", "datasets"}}
    names = {}
    for name, rows in drawn_from["datasets"].items():
        columns = orjson.dumps(_columns(rows))
        names[name] = shelf.setdefault(columns, f"d{len(shelf)}")
    used = list[str]()
    placed = _renamed(_painted(specification), names, used)
    return {"spec": placed, "data": list(dict.fromkeys(used))}


def _renamed(value: Any, names: Mapping[str, str], used: list[str]) -> Any:
    """Give data sets their names in the page, and note them in their order."""
    if isinstance(value, list):
        return [_renamed(entry, names, used) for entry in value]
    if not isinstance(value, Mapping):
        return value
    if "data" in value:
        used.append(names[value["data"]["name"]])
        value = {**value, "data": {"name": used[-1]}}
    return {key: _renamed(entry, names, used) if key != "data" else entry for key, entry in value.items()}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    keys = dict.fromkeys(key for row in rows for key in row)
    columns: dict[str, list[Any]] = {}
    for key in keys:
        cells = [_rounded(row.get(key)) for row in rows]
        columns[key] = _painted(cells) if key == _HUE_KEY else cells
    return columns


def _rounded(cell: Any) -> Any:
    """Keep the digits that a picture can show."""
    return float(f"{cell:.{_DIGITS}g}") if isinstance(cell, float) else cell


def _painted(value: Any) -> Any:
    """Name colours by their roles."""
    if isinstance(value, Mapping):
        return {key: _painted(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_painted(entry) for entry in value]
    return _ROLES.get(value, value) if isinstance(value, str) else value


def _variables() -> dict[str, str]:
    found: dict[str, str] = {}
    for role, hue in palettes()["light"].items():
        found.setdefault(hue, variable(role))
    return found


_ROLES = _variables()
