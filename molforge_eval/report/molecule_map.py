"""The map of the 256 molecules: one cell a molecule, shaded by its visits, marked where it was submitted.

Rows are warhead and hinge, columns solvent tail and back pocket, so that an edit moves within a row or a column. Shape
tells what colour tells: a ring is before, a dot after, a star the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from molforge_env.models import Slot
from molforge_env.molecules import FRAGMENT_NAMES, MOLECULES
from molforge_eval.report.section_evidence import Exploration, MoleculeCell
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    import altair as alt

    from molforge_eval.report.render import Chart

CELL = 21
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


def molecule_map(exploration: Exploration) -> Chart:
    """Draw every molecule in its place."""
    import altair as alt

    span = alt.Scale(domain=[0, SIDE], nice=False)
    down = alt.Scale(domain=[0, SIDE], nice=False, reverse=True)
    x = alt.X("x:Q", scale=span, title="solvent tail, and within each the back pocket", axis=_axis(titlePadding=106))
    y = alt.Y("y:Q", scale=down, title="warhead, and within each the hinge", axis=_axis(titlePadding=186))
    cells = {cell.code: cell for cell in exploration.cells}
    layers = [
        *_squares(list(_ground(cells)), x, y),
        *_marks(exploration.cells, x, y),
        *_names(),
    ]
    return alt.layer(*layers).properties(width=CELL * SIDE, height=CELL * SIDE)


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
            "molecule": ", ".join(MOLECULES[code].fragments),
            "visits": visits,
            "shade": words,
            "opacity": opacity,
            "x": column + gap,
            "x2": column + 1 - gap,
            "y": row + gap,
            "y2": row + 1 - gap,
        }


def _squares(rows: list[dict[str, Any]], x: alt.X, y: alt.Y) -> tuple[alt.Chart, alt.Chart]:
    import altair as alt

    order = ["not visited", *(words for _, _, words in _SHADES)]
    opacities = [0.0, *(opacity for _, opacity, _ in _SHADES)]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"))
    ground = base.mark_rect(color=colour("grid"), opacity=1, aria=False)
    visited = base.mark_rect(color=colour("after"), aria=False).encode(
        opacity=alt.Opacity(
            "shade:N",
            scale=alt.Scale(type="ordinal", domain=order, range=opacities),
            legend=alt.Legend(
                title="visits in training", values=order[1:], symbolType="square", orient="right", titleLimit=200,
                symbolOpacity=1, symbolFillColor=colour("after"), symbolStrokeWidth=0,
            ),
        )
    )  # fmt: skip
    return ground, visited


def _marks(cells: tuple[MoleculeCell, ...], x: alt.X, y: alt.Y) -> Iterator[alt.Chart]:
    import altair as alt

    labels = [sign.label for sign in SIGNS]
    strokes = [colour(sign.role) for sign in SIGNS]
    fills = [colour(sign.role if sign.is_filled else "paper") for sign in SIGNS]
    shapes = alt.Scale(domain=labels, range=[sign.shape for sign in SIGNS])
    legend = alt.Legend(title="in the evaluations", orient="right", symbolSize=90, titleLimit=200)
    for sign in SIGNS:
        rows = []
        for cell in cells:
            value = getattr(cell, sign.field)
            if value:
                column, row = place_of(cell.code)
                times = ", ".join(value) if isinstance(value, tuple) else value
                rows.append({"x": column + 0.5, "y": row + 0.5, "sign": sign.label, "times": times})
        yield (
            alt.Chart(alt.InlineData(values=rows))
            .mark_point(size=sign.size, strokeWidth=1.8, opacity=1)
            .encode(
                x=x,
                y=y,
                shape=alt.Shape("sign:N", scale=shapes, legend=legend),
                stroke=alt.Stroke("sign:N", scale=alt.Scale(domain=labels, range=strokes), legend=legend),
                fill=alt.Fill("sign:N", scale=alt.Scale(domain=labels, range=fills), legend=legend),
                fillOpacity=alt.value(1.0 if sign.is_filled else 0.0),
            )
        )


def _names() -> Iterator[alt.Chart]:
    """Name the fragments at the edges: the outer slot once for four rows, the inner one at each."""
    outer: tuple[tuple[Slot, Slot, bool], ...] = (
        ("solvent_tail", "back_pocket", True),
        ("warhead", "hinge", False),
    )
    for group, inner, is_below in outer:
        names = [FRAGMENT_NAMES[inner][place % 4] for place in range(SIDE)]
        yield _texts(
            [(place + 0.5, name) for place, name in enumerate(names)], is_below=is_below, away=6, is_group=False
        )
        groups = [(4 * place + 2, _spoken(name)) for place, name in enumerate(FRAGMENT_NAMES[group])]
        yield _texts(groups, is_below=is_below, away=96 if is_below else 78, is_group=True)


def _spoken(fragment: str) -> str:
    return fragment.removeprefix("reversible_").replace("_", " ")


def _texts(names: Sequence[tuple[float, str]], *, is_below: bool, away: int, is_group: bool) -> alt.Chart:
    import altair as alt

    edge = alt.value(CELL * SIDE + away) if is_below else alt.value(-away)
    rows = [{"at": at, "name": name} for at, name in names]
    angle = 270 if is_below and not is_group else 0
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_text(
            align="center" if is_below and is_group else "right",
            baseline="middle",
            angle=angle,
            fontSize=_SMALL + is_group,
            fontWeight=600 if is_group else 400,
            color=colour("ink" if is_group else "muted"),
        )
        .encode(
            x=alt.X("at:Q") if is_below else edge,
            y=edge if is_below else alt.Y("at:Q"),
            text="name:N",
        )
    )
    return chart


def _axis(**more: Any) -> alt.Axis:
    import altair as alt

    lines = [4, 8, 12]
    return alt.Axis(
        labels=False, ticks=False, domain=False, values=lines, gridWidth=1.4, gridColor=colour("muted"), **more
    )
