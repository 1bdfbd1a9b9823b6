"""Files that belong together, put in place so that a reader never meets two states of them at once.

All of them are written beside their places first. Only then do the old ones go and the new ones come, so that a process
that is killed, or a disk that is full, leaves the old files, or a part of one state, and never a mixture. Two that
deliver into one folder take turns.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from molforge_env.errors import OUT_OF_SPACE, MolForgeError, UnreadableError, UsageError
from molforge_eval.catalogue import printable

_PAUSE = 0.05
_SECONDS = 60.0


def deliver(folder: Path, files: Mapping[str, bytes | None], *, what: str) -> None:
    """Replace files of a folder, all of them or none; a link is replaced, never followed.

    Args:
        folder: Where they go; must exist.
        files: Bytes by name, in the order in which they come; `None` for one that is not to stand there any more.
        what: The name of the whole, for the message: `packet`.

    Raises:
        UsageError: The folder cannot be written.
        UnreadableError: There is no room.
    """
    drafts = {name: folder / f".{name}.part" for name, data in files.items() if data is not None}
    place = folder
    try:
        for name, data in files.items():
            if data is not None:
                place = folder / name
                _write_draft(drafts[name], data)
                _refuse_folder(place)
        for name in reversed(list(files)):
            place = folder / name
            place.unlink(missing_ok=True)
        for name, draft in drafts.items():
            place = folder / name
            draft.replace(place)
    except OSError as error:
        raise _refused(what, place, error) from error
    finally:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink(missing_ok=True)


@contextmanager
def made_folder(folder: Path) -> Iterator[Path]:
    """Make the folder that `--out` names; it goes again when nothing comes into it.

    Raises:
        UsageError: It cannot be made.
    """
    absent = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is there and is no folder" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(
            f"the folder {printable(str(folder))} cannot be made: {reason}",
            where="--out",
            mend="Name a folder that you may write.",
        ) from error
    try:
        yield folder
    except BaseException:
        with suppress(OSError):
            for place in absent:
                place.rmdir()
        raise


def refuse_inside(folder: Path, run: Path, *, what: str) -> None:
    """Refuse a folder that lies in a run, where whatever is written would be taken for a part of it.

    Raises:
        UsageError: It does.
    """
    # Unlike Path.resolve, it takes links that lead round in a circle.
    if run.is_dir() and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(run)):
        words = f"the {what} would stand in the run {printable(run.name or str(run))}, which is sealed"
        raise UsageError(words, where="--out", mend="Name a folder outside the runs: --out FOLDER.")


@contextmanager
def own_turn(folder: Path, *, seconds: float = _SECONDS) -> Iterator[None]:
    """Hold a folder while files are put in place; whoever else delivers there waits.

    Where the system or the file system has no such locks, nobody waits.

    Args:
        folder: Where files go; must exist.
        seconds: How long a turn is waited for.

    Raises:
        UsageError: Another process holds the folder all that time.
    """
    handle = _lock(folder, round(seconds / _PAUSE))
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(folder: Path, attempts: int) -> int | None:
    if sys.platform == "win32":
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        _wait_for(handle, attempts)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            what, mend = "another process is writing there", "Run it again when that one has ended."
            raise UsageError(what, where=printable(str(folder)), mend=mend) from error
        if isinstance(error, OSError):
            return None
        raise
    return handle


def _wait_for(handle: int, attempts: int) -> None:
    import fcntl

    for _ in range(attempts):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_PAUSE)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_draft(draft: Path, data: bytes) -> None:
    draft.unlink(missing_ok=True)
    with draft.open("xb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())


def _refuse_folder(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))


def _refused(what: str, place: Path, error: OSError) -> MolForgeError:
    reason = error.strerror or str(error)
    place = place if error.filename is None else Path(os.fsdecode(error.filename))
    if error.errno in OUT_OF_SPACE:
        mend = "Make room there, or say where to write it: --out FOLDER. What stood there stands."
        return UnreadableError(f"there is no room for the {what}: {reason}", where=printable(str(place)), mend=mend)
    return UsageError(
        f"the {what} cannot be written: {reason}",
        where=printable(str(place)),
        mend="Name another folder that you may write: --out FOLDER.",
    )
