"""Turn a chart into SVG or PNG with the shipped typefaces; no process but this one and no network.

An unknown typeface would fall back without a word, so the fonts are registered before the first chart.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from molforge_eval.report.theme import chart_settings, palettes
from molforge_eval.shipped import font_folder

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.LayerChart | alt.FacetChart | alt.HConcatChart

_VEGA_LITE = "6.4"
_PIXELS_PER_INCH = 150.0
_ID = re.compile(r'\bid="([^"]+)"')
_SPOKEN = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')
"""What the drawing says of each of its marks; a page gives the whole picture one text instead."""
_OPENING = re.compile(r"^<svg ([^>]*)>(.*)</svg>\s*$", re.DOTALL)


class Svg(NamedTuple):
    """A finished picture, ready to stand in a page: its size and what is between the tags."""

    width: float
    height: float
    body: str
    """Trusted markup: made here from numbers and our own words, every text in it escaped."""


def svg_of(chart: Chart, *, prefix: str) -> Svg:
    """Draw a chart as SVG.

    Args:
        chart: Any Altair chart with inline data.
        prefix: Put before every id, so that charts of one page cannot collide and bytes do not depend on their order.
    """
    import vl_convert

    _register_fonts()
    text = vl_convert.vegalite_to_svg(_specification(chart), vl_version=_VEGA_LITE, allowed_base_urls=[])
    return renumbered(text, prefix)


def png_of(chart: Chart) -> bytes:
    """Draw a chart as PNG on white, 150 pixels an inch."""
    import vl_convert

    _register_fonts()
    specification = _specification(chart)
    specification["config"]["background"] = palettes()["light"]["paper"]
    specification["config"]["padding"] = 16
    return vl_convert.vegalite_to_png(specification, vl_version=_VEGA_LITE, ppi=_PIXELS_PER_INCH, allowed_base_urls=[])


def renumbered(text: str, prefix: str) -> Svg:
    """Take an SVG document apart and give its ids a prefix and their order of appearance.

    Raises:
        ValueError: The text is not one SVG element.
    """
    text = _SPOKEN.sub("", text)
    names = {name: f"{prefix}-{number}" for number, name in enumerate(dict.fromkeys(_ID.findall(text)))}
    for name, new in names.items():
        text = text.replace(f'id="{name}"', f'id="{new}"').replace(f"url(#{name})", f"url(#{new})")
        text = text.replace(f'href="#{name}"', f'href="#{new}"')
    opening = _OPENING.match(text)
    if opening is None:
        raise ValueError("not one SVG element")
    width, height = (float(_attribute(opening[1], name)) for name in ("width", "height"))
    return Svg(width, height, opening[2])


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([0-9.]+)(?:px)?"', tag)
    if found is None:
        raise ValueError(f"the SVG has no {name}")
    return found[1]


def _specification(chart: Chart) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict(validate=False)
    specification["config"] = chart_settings()
    return specification


@cache
def _register_fonts() -> None:
    import vl_convert

    vl_convert.register_font_directory(str(font_folder()))
