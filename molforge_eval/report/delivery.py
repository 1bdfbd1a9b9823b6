"""Files that belong together, put in place so that a reader never meets two states of them at once.

All of them are written beside their places first. Only then do the old ones go and the new ones come, so that a process
that is killed, or a disk that is full, leaves the old files, or a part of one state, and never a mixture.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from molforge_env.errors import MolForgeError, UnreadableError, UsageError

_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
            draft.unlink(missing_ok=True)


def make_folder(folder: Path) -> Path:
    """Make the folder that `--out` names.

    Raises:
        UsageError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be made: {error.strerror}",
            where="--out",
            mend="Name a folder that you may write.",
        ) from error
    return folder


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
    if error.errno in _OUT_OF_SPACE:
        mend = "Make room there, or say where to write it: --out FOLDER. What stood there stands."
        return UnreadableError(f"there is no room for the {what}: {reason}", where=str(place), mend=mend)
    return UsageError(
        f"the {what} cannot be written: {reason}", where=str(place), mend="Say where to write it: --out FOLDER."
    )
