"""Appending to a log so that a crash costs nothing that was written before it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Append lines and wait until the disk has them; the file is made when it is not there."""
    with path.open("ab") as stream:
        stream.writelines(lines)
        stream.flush()
        os.fsync(stream.fileno())
