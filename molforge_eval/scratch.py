"""Folders for what is needed once: they go with their process, and after one that was killed, with the next.

A signal can come at any line, also while a folder is made or removed; so a process looks once more for its own when it
ends. A folder is named after its process and held by a lock that the system takes back however the process ends. Only a
folder of the same user, of such a name, whose process is gone and whose lock is free, is anybody's to remove.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = re.compile(r"molforge-[a-z]+-([1-9][0-9]{0,9})-[a-z0-9_]{8}")
_held: dict[Path, int] = {}
"""Handles of the folders that this process holds."""
_looks: set[tuple[Path, int]] = set()
"""Where a process looks for its own when it ends, with its number: a child that was forked has another."""


def make_scratch(kind: str) -> Path:
    """Make a folder among the temporary ones, after removing those that killed processes have left.

    Args:
        kind: What it is for, in small letters: `run`.

    Raises:
        OSError: There is no folder for temporary files that can be written.
    """
    place = Path(tempfile.gettempdir())
    look = (place, os.getpid())
    if look not in _looks:
        _looks.add(look)
        atexit.register(_remove_own, *look)
    _sweep(place)
    folder = Path(tempfile.mkdtemp(prefix=f"molforge-{kind}-{os.getpid()}-"))
    # One that cannot be held is used all the same; after a kill it stays.
    with suppress(OSError):
        handle = _lock(folder)
        if handle is not None:
            _held[folder] = handle
    return folder


def remove_scratch(folder: Path) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    handle = _held.pop(folder, None)
    if handle is not None:
        os.close(handle)


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """Make a folder that lasts as long as the block.

    Raises:
        OSError: There is no folder for temporary files that can be written.
    """
    folder = make_scratch(kind)
    try:
        yield folder
    finally:
        remove_scratch(folder)


def _remove_own(place: Path, process: int) -> None:
    if process != os.getpid():
        return
    for folder in place.glob(f"molforge-*-{process}-????????"):
        if _NAME.fullmatch(folder.name) is not None and not folder.is_symlink():
            remove_scratch(folder)


def _sweep(place: Path) -> None:
    if sys.platform == "win32":
        return
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            if named is not None and not _is_running(int(named[1])) and _is_own(entry):
                with suppress(OSError):
                    _remove_free(place / entry.name)


def _is_own(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _remove_free(folder: Path) -> None:
    handle = _lock(folder)
    if handle is None:
        return
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _lock(folder: Path) -> int | None:
    """Take the lock of a folder; `None` where the platform has none.

    Raises:
        OSError: Another process has it, or the file system knows no locks.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle
