"""Write a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the goal and rename over it, so that a reader sees the old file or the new one.

    A link in the place of the file is replaced, never followed.
    """
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        with draft.open("xb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
