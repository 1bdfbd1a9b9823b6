"""Turn a chart into SVG or PNG with the shipped typefaces; no process but this one and no network.

An unknown typeface would fall back without a word, so the fonts are registered before the first chart.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from molforge_eval.report.joined_shapes import join_cells, join_lines
from molforge_eval.report.theme import FONT, TEXT_SIZE, chart_settings, palettes
from molforge_eval.report.vega_lite import Chart, specification_of
from molforge_eval.shipped import font_folder

VEGA_LITE = "6.4"
_PIXELS_PER_INCH = 150.0
_ID = re.compile(r'\bid="([^"]+)"')
_TAG = re.compile(r"<[^<>]+>")
_GROUND = re.compile(r'<path class="(?:background|foreground)"(?:(?! fill=| stroke=)[^<>])*/>')
_UNSEEN = re.compile(
    r' (?:class="(?!mark-text role-(?:axis|legend)-label")|(?:role|aria-[a-z]+|pointer-events)=")[^"]*"| opacity="1"'
)
"""What a picture does not show; a page gives the whole of it one text instead of one for each mark. That a text is the
label of a scale stays: such a numeral is no number of the run."""
_FRACTION = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_STAMP = re.compile(r'<path transform="translate\(([^()"]+)\)"([^<>]*)/>')
_FEW = 3
_FACE = f' font-family="{FONT}" font-size="{TEXT_SIZE}px"'
_EMPTY = re.compile(r"<g(?: [^<>]*)?></g>")
_OPENING = re.compile(r"^<svg ([^>]*)>(.*)</svg>\s*$", re.DOTALL)


class Svg(NamedTuple):
    """A finished picture, ready to stand in a page: its size and what is between the tags."""

    width: float
    height: float
    body: str
    """Trusted markup: made here from numbers and our own words, every text in it escaped."""
    specification: dict[str, Any] | None = None
    """What a chart was drawn from, for a page that draws it again; `None` for a drawing."""


def svg_of(chart: Chart, *, prefix: str) -> Svg:
    """Draw a chart as SVG.

    Args:
        chart: A chart with its rows.
        prefix: Put before every id, so that charts of one page cannot collide and bytes do not depend on their order.
    """
    import vl_convert

    _register_fonts()
    specification = _specification(chart)
    text = vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE, allowed_base_urls=[])
    return renumbered(text, prefix)._replace(specification=specification)


def png_of(chart: Chart) -> bytes:
    """Draw a chart as PNG on white, 150 pixels an inch."""
    import vl_convert

    _register_fonts()
    specification = _specification(chart)
    specification["config"]["background"] = palettes()["light"]["paper"]
    specification["config"]["padding"] = 16
    return vl_convert.vegalite_to_png(specification, vl_version=VEGA_LITE, ppi=_PIXELS_PER_INCH, allowed_base_urls=[])


def renumbered(text: str, prefix: str) -> Svg:
    """Take an SVG document apart, leave out what shows nothing, and give its ids a prefix and their order.

    Raises:
        ValueError: The text is not one SVG element.
    """
    text = _shared(_lightened(text))
    names = {name: f"{prefix}-{number}" for number, name in enumerate(dict.fromkeys(_ID.findall(text)))}
    for name, new in names.items():
        text = text.replace(f'id="{name}"', f'id="{new}"').replace(f"url(#{name})", f"url(#{new})")
        text = text.replace(f'href="#{name}"', f'href="#{new}"')
    opening = _OPENING.match(text)
    if opening is None:
        raise ValueError("not one SVG element")
    width, height = (float(_attribute(opening[1], name)) for name in ("width", "height"))
    return Svg(width, height, opening[2])


def _lightened(text: str) -> str:
    """Leave out what is not seen: colourless grounds, roles, digits below a hundredth of a pixel. Join neighbours."""
    text = _TAG.sub(lambda tag: _FRACTION.sub(_hundredths, _UNSEEN.sub("", tag[0])), _GROUND.sub("", text))
    while _EMPTY.search(text):
        text = _EMPTY.sub("", text)
    return join_cells(join_lines(text))


def _shared(text: str) -> str:
    """Write a form that stands at several places once, and the one face of nearly all texts once."""
    forms = Counter(form for _, form in _STAMP.findall(text))
    often = {form: f"form{number}" for number, form in enumerate(forms) if forms[form] > _FEW}
    text = _STAMP.sub(
        lambda stamp: f'<use href="#{often[stamp[2]]}"{_place(stamp[1])}/>' if stamp[2] in often else stamp[0], text
    )
    text = re.sub(rf"(<text [^<>]*){_FACE}", r"\1", text)
    defined = "".join(f'<path id="{name}"{form}/>' for form, name in often.items())
    drawing = f"<g{_FACE}><defs>{defined}</defs>" if often else f"<g{_FACE}>"
    opening, rest = text.split(">", 1)
    return f"{opening}>{drawing}{rest.rstrip().removesuffix('</svg>')}</g></svg>"


def _place(offset: str) -> str:
    x, _, y = offset.partition(",")
    return f' x="{x}" y="{y}"'


def _hundredths(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([0-9.]+)(?:px)?"', tag)
    if found is None:
        raise ValueError(f"the SVG has no {name}")
    return found[1]


def _specification(chart: Chart) -> dict[str, Any]:
    """Write a chart down as Vega-Lite, in our look."""
    return {**specification_of(chart), "config": chart_settings()}


@cache
def _register_fonts() -> None:
    import vl_convert

    vl_convert.register_font_directory(str(font_folder()))
