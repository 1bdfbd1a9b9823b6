"""Write shapes of one look that stand side by side as one path.

A picture is drawn node by node, on a page and far more so on paper: a molecule has seventy strokes in four colours, a
map of molecules hundreds of cells in six shades.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby

_STROKE = re.compile(r'<path d="(M [-\d., L]+)" (fill="none"[^<>]*)/>')
_LINE = re.compile(r'<line transform="translate\(([-\d.]+),([-\d.]+)\)" x2="([-\d.]+)" y2="([-\d.]+)"([^<>]*)/>')
_CELL = re.compile(r'<path d="(M[-\d.]+,[-\d.]+(h[\d.]+v[\d.]+h-[\d.]+Z))"([^<>]*)/>')
_UNSEEN_CELL = re.compile(r'<path d="M[-\d.,hvZ]+"[^<>]* opacity="0"/>')


def join_strokes(markup: str) -> str:
    """Join the neighbouring strokes of a drawing by colour and width; strokes do not fill, and are all opaque."""
    return _joined(markup, _STROKE, lambda stroke: ("", stroke[2], stroke[1] + " "))


def join_lines(markup: str) -> str:
    """Join the neighbouring lines of a scale or a grid."""
    return _joined(markup, _LINE, lambda line: ("", line[5].strip(), f"M{line[1]},{line[2]}l{line[3]},{line[4]}"))


def join_cells(markup: str) -> str:
    """Join the neighbouring cells of a map by colour, and leave out those that show nothing.

    Only cells of one size are joined: those of a map lie side by side, so that their order does not show.
    """
    return _joined(_UNSEEN_CELL.sub("", markup), _CELL, lambda cell: (cell[2], cell[3].strip(), cell[1]))


def _joined(markup: str, shape: re.Pattern[str], parts: Callable[[re.Match[str]], tuple[str, str, str]]) -> str:
    """Put one path for each look in place of a run of shapes, looks in the order in which each first stands.

    Args:
        markup: A picture.
        shape: Matches one shape, whole.
        parts: Gives the size by which a run is parted, the attributes that are its look, and its outline.
    """
    run = re.compile(f"(?:{shape.pattern}){{2,}}")
    return run.sub(lambda found: "".join(_paths(map(parts, shape.finditer(found[0])))), markup)


def _paths(shapes: Iterator[tuple[str, str, str]]) -> Iterator[str]:
    for _, alike in groupby(shapes, key=lambda shape: shape[0]):
        outlines: dict[str, list[str]] = {}
        for _, look, outline in alike:
            outlines.setdefault(look, []).append(outline)
        for look, pieces in outlines.items():
            filled = "" if "fill=" in look else ' fill="none"'
            yield f'<path d="{"".join(pieces).strip()}"{filled}{" " if look else ""}{look}/>'
