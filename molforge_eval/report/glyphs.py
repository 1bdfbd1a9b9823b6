"""Characters that the shipped typefaces do not draw: on paper each is named, never left as an empty box.

A machine may have other typefaces, and a PDF that borrowed from them would read otherwise on the next machine. Paper
uses the shipped ones alone, so what they lack is spelled in words that they have.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter

from molforge_eval.shipped import font_folder

TEXT_FACE = "Inter-Regular"
"""File of the face that every text may fall back on, code and charts among it."""
MOST_NAMED = 4
"""Characters of one run that are named; the rest are counted."""
_HIGHEST_STACK = 2
_MARKS = frozenset(map(chr, range(0x300, 0x370)))
"""Marks that a face draws upon the letter before; a hundred of them would run over the lines above."""
_BLANKS = frozenset("\t\n\r ")
_SYMBOL = "So"


def name_undrawn(text: str) -> str:
    r"""Put names in place of characters that the text face does not draw.

    Markup comes out as it is: its own characters are drawn by every face, and no name holds one of them.

    Args:
        text: A text, or a whole document.

    >>> name_undrawn("a → b"), name_undrawn("up \N{ROCKET}!")
    ('a → b', 'up [U+1F680 rocket]!')
    >>> name_undrawn("\u4f60\u597d " + 6 * "\u05d0")
    '[U+4F60 U+597D] [U+05D0 U+05D0 U+05D0 U+05D0 and 2 more]'
    """
    drawn = _drawn()
    if (drawn - _MARKS).issuperset(text):
        return text
    pieces = []
    for is_drawn, pairs in groupby(zip(_sort_out(text, drawn), text, strict=True), key=itemgetter(0)):
        run = [mark for _, mark in pairs]
        pieces.append("".join(run) if is_drawn else f"[{' '.join(_names(run))}]")
    return "".join(pieces)


def _sort_out(text: str, drawn: frozenset[str]) -> Iterator[bool]:
    """Tell of each character whether it is drawn: of marks that stack upon one letter, the first few."""
    height = 0
    for mark in text:
        height = height + 1 if mark in _MARKS else 0
        yield mark in drawn and height <= _HIGHEST_STACK


@cache
def _drawn() -> frozenset[str]:
    from fontTools.ttLib import TTFont

    with TTFont(font_folder() / f"{TEXT_FACE}.ttf", lazy=True) as font:
        return _BLANKS | {chr(point) for point in font.getBestCmap()}


def _names(run: list[str]) -> Iterator[str]:
    for mark in run[:MOST_NAMED]:
        word = unicodedata.name(mark, "") if unicodedata.category(mark) == _SYMBOL else ""
        yield f"U+{ord(mark):04X} {word.lower()}".strip()
    if len(run) > MOST_NAMED:
        yield f"and {len(run) - MOST_NAMED} more"
