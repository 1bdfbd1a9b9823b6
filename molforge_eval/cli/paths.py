"""Paths as they are printed: whatever bytes a name holds, and never able to move a terminal's cursor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class FolderName(click.Path):
    """The name of a folder; an empty one, such as a variable that was never set, is not taken for the working one."""

    def __init__(self, *, exists: bool = False) -> None:
        """Say whether the folder has to be there."""
        super().__init__(exists=exists, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a name."""
        if value == "":
            self.fail("the name of the folder is empty", param, ctx)
        return super().convert(value, param, ctx)


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
