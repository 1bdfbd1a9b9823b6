"""The map of the 256 molecules: one cell a molecule, shaded by its visits, marked where it was submitted.

Rows are warhead and hinge, columns solvent tail and back pocket, so that an edit moves within a row or a column. Shape
tells what colour tells: a ring is before, a dot after, a star the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from molforge_env.models import Slot
from molforge_env.molecules import FRAGMENT_NAMES, MOLECULES
from molforge_eval.report.numerals import whole
from molforge_eval.report.section_evidence import Exploration, MoleculeCell
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import Channel, Chart, amount, fixed, layer, layered, mark, name, rank

CELL = 21
NARROW_CELL = 14
SIDE = 16
_SHADES = ((1, 0.14, "1 to 9"), (10, 0.3, "10 to 99"), (100, 0.48, "100 to 999"), (1_000, 0.7, "1000 and more"))
"""Least visits, opacity, and words of each shade."""
_SMALL = 9
_STAR = "M0,-1L0.24,-0.32L0.95,-0.31L0.38,0.12L0.59,0.81L0,0.4L-0.59,0.81L-0.38,0.12L-0.95,-0.31L-0.24,-0.32Z"


class Sign(NamedTuple):
    """How one kind of mark is drawn."""

    field: str
    label: str
    role: str
    shape: str
    size: int
    is_filled: bool


SIGNS = (
    Sign("before", "submitted before", "caution", "circle", 150, is_filled=False),
    Sign("after", "submitted after", "ink", "circle", 52, is_filled=True),
    Sign("ceiling_of", "ceiling", "caution", _STAR, 95, is_filled=True),
)


def place_of(code: str) -> tuple[int, int]:
    """Return column and row of a molecule.

    >>> place_of("0103"), place_of("3333")
    ((3, 1), (15, 15))
    """
    warhead, hinge, tail, pocket = (int(digit) for digit in code)
    return 4 * tail + pocket, 4 * warhead + hinge


def molecule_map(exploration: Exploration, *, narrow: bool = False) -> Chart:
    """Draw every molecule in its place.

    Args:
        exploration: What happened to each.
        narrow: Name the outer slots alone and put the legends on top, so that a phone shows it whole.
    """
    cell = NARROW_CELL if narrow else CELL

    span = {"domain": [0, SIDE], "nice": False}
    down = {**span, "reverse": True}
    x_title, y_title = "solvent tail, and within each the back pocket", "warhead, and within each the hinge"
    x = amount("x", scale=span, title=x_title, axis=_axis(titlePadding=34 if narrow else 106))
    y = amount("y", scale=down, title=y_title, axis=_axis(titlePadding=96 if narrow else 186))
    cells = {cell.code: cell for cell in exploration.cells}
    layers = [
        *_squares(list(_ground(cells)), x, y, narrow=narrow),
        *_marks(exploration.cells, x, y, narrow=narrow),
        *_names(cell * SIDE, narrow=narrow),
    ]
    return layered(layers, width=cell * SIDE, height=cell * SIDE)


def shade_of(visits: int) -> tuple[float, str]:
    """Return opacity and words of a number of visits.

    >>> shade_of(0), shade_of(12)
    ((0.0, 'not visited'), (0.3, '10 to 99'))
    """
    found = [(opacity, words) for least, opacity, words in _SHADES if visits >= least]
    return found[-1] if found else (0.0, "not visited")


def _ground(cells: dict[str, MoleculeCell]) -> Iterator[dict[str, Any]]:
    for code in MOLECULES:
        column, row = place_of(code)
        visits = cells[code].visits if code in cells else 0
        opacity, words = shade_of(visits)
        gap = 0.05
        yield {
            "shade": words,
            "opacity": opacity,
            "x": column + gap,
            "x2": column + 1 - gap,
            "y": row + gap,
            "y2": row + 1 - gap,
            "tip": "\n".join(_told(code, cells.get(code))),
        }


def _told(code: str, cell: MoleculeCell | None) -> Iterator[str]:
    """Say what happened to a molecule."""
    yield ", ".join(MOLECULES[code].fragments)
    yield f"visits in training: {whole(0 if cell is None else cell.visits)}"
    if cell is not None:
        yield f"submitted before: {whole(cell.before)}, after: {whole(cell.after)}"
        if cell.ceiling_of:
            yield f"ceiling: {', '.join(cell.ceiling_of)}"


def _squares(rows: list[dict[str, Any]], x: Channel, y: Channel, *, narrow: bool) -> tuple[Chart, Chart]:
    order = ["not visited", *(words for _, _, words in _SHADES)]
    opacities = [0.0, *(opacity for _, opacity, _ in _SHADES)]
    place = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}
    legend = {
        "title": "visits in training",
        "values": order[1:],
        "symbolType": "square",
        "titleLimit": 200,
        "symbolOpacity": 1,
        "symbolFillColor": colour("after"),
        "symbolStrokeWidth": 0,
        **_legend(narrow),
    }
    shade = rank("shade", scale={"type": "ordinal", "domain": order, "range": opacities}, legend=legend)
    ground = layer(mark("rect", color=colour("grid"), opacity=1, aria=False), rows, **place)
    visited = mark("rect", color=colour("after"), aria=False)
    return ground, layer(visited, rows, **place, opacity=shade, tooltip=name("tip"))


def _legend(narrow: bool) -> dict[str, Any]:  # noqa: FBT001 # one flag, named by the caller's own
    return {"orient": "top", "columns": 1} if narrow else {"orient": "right"}


def _marks(cells: tuple[MoleculeCell, ...], x: Channel, y: Channel, *, narrow: bool) -> Iterator[Chart]:
    labels = [sign.label for sign in SIGNS]
    strokes = [colour(sign.role) for sign in SIGNS]
    fills = [colour(sign.role if sign.is_filled else "paper") for sign in SIGNS]
    legend = {"title": "in the evaluations", "symbolSize": 90, "titleLimit": 200, **_legend(narrow)}
    scale = (NARROW_CELL / CELL) ** 2 if narrow else 1
    for sign in SIGNS:
        rows = []
        for cell in cells:
            value = getattr(cell, sign.field)
            if value:
                column, row = place_of(cell.code)
                times = ", ".join(value) if isinstance(value, tuple) else value
                rows.append({"x": column + 0.5, "y": row + 0.5, "sign": sign.label, "times": times})
                rows[-1]["tip"] = "\n".join(_told(cell.code, cell))
        yield layer(
            mark("point", size=sign.size * scale, strokeWidth=1.8, opacity=1),
            rows,
            x=x,
            y=y,
            shape=name("sign", scale={"domain": labels, "range": [sign.shape for sign in SIGNS]}, legend=legend),
            stroke=name("sign", scale={"domain": labels, "range": strokes}, legend=legend),
            fill=name("sign", scale={"domain": labels, "range": fills}, legend=legend),
            fillOpacity=fixed(1.0 if sign.is_filled else 0.0),
            tooltip=name("tip"),
        )


def _names(side: int, *, narrow: bool) -> Iterator[Chart]:
    """Name the fragments at the edges: the outer slot once for four rows, the inner one at each."""
    outer: tuple[tuple[Slot, Slot, bool], ...] = (
        ("solvent_tail", "back_pocket", True),
        ("warhead", "hinge", False),
    )
    for group, inner, is_below in outer:
        if not narrow:
            inners = [(place + 0.5, FRAGMENT_NAMES[inner][place % 4]) for place in range(SIDE)]
            angle = 270 if is_below else 0
            yield _texts(inners, side, _Style(is_below, 6, angle, "right", is_group=False))
        groups = [(4 * place + 2, _spoken(label)) for place, label in enumerate(FRAGMENT_NAMES[group])]
        align: Literal["center", "right"] = "center" if is_below else "right"
        if narrow and is_below:
            # Side by side they would touch: every other name stands one line lower.
            for first, away in ((0, 12), (1, 24)):
                yield _texts(groups[first::2], side, _Style(is_below, away, 0, align, is_group=True))
        else:
            away = 8 if narrow else 96 if is_below else 78
            yield _texts(groups, side, _Style(is_below, away, 0, align, is_group=True))


def _spoken(fragment: str) -> str:
    return fragment.removeprefix("reversible_").replace("_", " ")


class _Style(NamedTuple):
    """Where names stand, and how."""

    is_below: bool
    away: int
    angle: int
    align: Literal["center", "right"]
    is_group: bool


def _texts(names: Sequence[tuple[float, str]], side: int, style: _Style) -> Chart:
    edge = fixed(side + style.away if style.is_below else -style.away)
    along = amount("at")
    look = mark(
        "text",
        align=style.align,
        baseline="middle",
        angle=style.angle,
        fontSize=_SMALL + style.is_group,
        fontWeight=600 if style.is_group else 400,
        color=colour("ink" if style.is_group else "muted"),
    )
    x, y = (along, edge) if style.is_below else (edge, along)
    return layer(look, [{"at": at, "name": label} for at, label in names], x=x, y=y, text=name("name"))


def _axis(**more: Any) -> dict[str, Any]:
    look = {"labels": False, "ticks": False, "domain": False, "gridWidth": 1.4, "gridColor": colour("muted")}
    return {**look, "values": [4, 8, 12], **more}
