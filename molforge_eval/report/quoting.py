"""Quote a stranger's text for a reader: on one line, of bounded length, with nothing that hides or turns it."""

from __future__ import annotations

from molforge_eval.catalogue import printable

_READ_AHEAD = 4


def quote(text: str, most: int) -> str:
    """Quote a text: blanks joined, marks that hide or turn text spelled out, cut with its whole length told.

    Args:
        text: Whatever somebody wrote.
        most: Characters that are shown.

    >>> quote("a b" + chr(10) + " c", 20), quote("abcdef", 4)
    ('a b c', 'abcd… (6 characters)')
    >>> quote("a" + chr(0x202E) + "b", 20) == "a" + chr(92) + "u202eb"
    True
    """
    # Joining blanks shortens: four times the goal is read, so that a page-long text costs no more than a long line.
    shown = printable(" ".join(text[: _READ_AHEAD * most].split()))
    if len(shown) <= most and len(text) <= _READ_AHEAD * most:
        return shown
    return f"{shown[:most]}… ({len(text)} characters)"
