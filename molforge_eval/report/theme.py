"""The look that charts and page share: colours by role, and the settings of every chart.

Colours come from `palette.json`. Roles of one light colour share their dark colour too, so that the page can turn each
literal of a finished chart back into its role, and a dark page can show the same chart in other colours.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from molforge_eval.shipped import template_folder

FONT = "Inter"
TEXT_SIZE = 11
Palette = dict[str, str]


@cache
def palettes() -> dict[str, Palette]:
    """Read the colours: `light` and `dark`, each from role to `#rrggbb`."""
    loaded: dict[str, Palette] = orjson.loads((template_folder() / "palette.json").read_bytes())
    return loaded


def colour(role: str) -> str:
    """Return the light colour of a role.

    Raises:
        KeyError: The palette has no such role.
    """
    return palettes()["light"][role]


def variable(role: str) -> str:
    """Name the colour of a role as the page's style sheet does, which knows it for light and for dark."""
    return f"var(--{role})"


def chart_settings() -> dict[str, Any]:
    """Return the Vega-Lite `config` of every chart: quiet axes, our typeface, no frame."""
    ink, muted, grid, rule = (colour(role) for role in ("ink", "muted", "grid", "rule"))
    return {
        # A picture has one text in words; a second one for each of its marks would only lengthen it.
        "aria": False,
        "background": None,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": {
            "labelColor": muted,
            "labelFontSize": TEXT_SIZE,
            "titleColor": ink,
            "titleFontSize": TEXT_SIZE,
            "titleFontWeight": 500,
            "titlePadding": 8,
            "gridColor": grid,
            "domainColor": muted,
            "tickColor": muted,
            "tickSize": 4,
            "labelPadding": 4,
        },
        "axisY": {"domainColor": rule, "tickColor": rule},
        "header": {
            "labelColor": ink,
            "labelFontSize": TEXT_SIZE,
            "labelFontWeight": 600,
            "titleColor": muted,
            "titleFontSize": TEXT_SIZE,
        },
        "legend": {
            "labelColor": ink,
            "labelFontSize": TEXT_SIZE,
            "titleColor": muted,
            "titleFontSize": TEXT_SIZE,
            "orient": "top",
            "title": None,
            "symbolSize": 70,
            "offset": 8,
        },
        "line": {"strokeCap": "round", "strokeJoin": "round"},
        "text": {"font": FONT, "fontSize": TEXT_SIZE, "color": ink},
    }
