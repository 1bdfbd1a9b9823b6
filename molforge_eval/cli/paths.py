"""Paths as they are printed: whatever bytes a name holds, and never able to move a terminal's cursor."""

from __future__ import annotations

from pathlib import Path


def line_of(path: Path) -> str:
    """Spell a path for a line of text."""
    from molforge_eval.catalogue import printable

    return printable(str(path))


def text_of(path: Path) -> str:
    r"""Spell a path for JSON: as it is, a byte that is no UTF-8 as `\udcNN`.

    >>> text_of(Path("run"))
    'run'
    """
    return str(path).encode("utf-8", "backslashreplace").decode()
