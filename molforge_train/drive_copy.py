"""A copy of a sealed run in another folder, such as a mounted drive: whole and equal by its hashes, or not there.

Only what every file system can do is used: files are written under a name of their own, and what is whole gets its name
by a rename onto a free place. An older copy of the run goes when the new one stands.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from molforge_env.errors import EXIT_FINDINGS, OUT_OF_SPACE, MolForgeError
from molforge_eval import layout
from molforge_eval.records.manifest import RunManifest
from molforge_eval.run_files import list_run
from molforge_eval.weights import hash_file
from molforge_train.provenance import scrubbed

_CHUNK = 2**20
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EISDIR, errno.EACCES)
"""How file systems say that a folder, or anything on them, cannot be flushed."""
_MOUNTS = {"/content/drive": 1, "/mnt": 1, "/media": 2, "/run/media": 2, "/Volumes": 1}
"""Where drives are mounted, and how many folders below that a mounted one begins."""


class DeliveryError(MolForgeError):
    """The run is whole where it is; what was to be brought elsewhere is not there."""

    exit_code = EXIT_FINDINGS


def copy_run(folder: Path, archive: Path, drive: Path) -> Path:
    """Copy a sealed run and its archive to another folder, and compare each file by its hash.

    Args:
        folder: The run directory.
        archive: Its archive.
        drive: Gets both, under the names that they have; made when only it is absent.

    Returns:
        The copy of the run directory. An older copy of the same run has given way.

    Raises:
        DeliveryError: The place is full, closed, absent or taken by something else, or a file arrived changed. What
            stood there stands.
    """
    target, packed = drive / folder.name, drive / archive.name
    draft, packed_draft, older = (
        drive / f".{name}" for name in (f"{target.name}.part", f"{packed.name}.part", f"{target.name}.old")
    )
    try:
        check_mounted(drive)
        drive.mkdir(parents=True, exist_ok=True)
        _put_back(older, target)
        _check_free(target, folder)
        _check_archive(packed, archive, target)
        for place in (draft, packed_draft):
            _remove(place)
        files = list_run(folder)
        for path in filter(layout.is_packed, files.sizes):
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            with files.open(path) as source:
                _copy_file(source, draft / path)
        with archive.open("rb") as source:
            _copy_file(source, packed_draft)
        _give_name(draft, target, older)
        packed_draft.replace(packed)
        _flush(drive)
    except OSError as error:
        raise _failed(folder, drive, error) from error
    finally:
        for place in (draft, packed_draft):
            _remove(place)
        _put_back(older, target)
    return target


def check_mounted(drive: Path) -> None:
    """Refuse a folder below a place for drives where none is mounted: what is written there is lost with the machine.

    Raises:
        FileNotFoundError: Nothing is mounted there.
    """
    for root, depth in _MOUNTS.items():
        if drive.is_absolute() and drive.is_relative_to(root):
            mounted = Path(root, *drive.relative_to(root).parts[:depth])
            if not mounted.is_dir():
                raise FileNotFoundError(errno.ENOENT, f"nothing is mounted at {mounted}", str(mounted))


def _copy_file(source: BinaryIO, target: Path) -> None:
    written = hashlib.sha256()
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            written.update(chunk)
            file.write(chunk)
        file.flush()
        _flush_descriptor(file.fileno())
    if hash_file(target) != written.hexdigest():
        raise OSError(f"{target.name} arrived changed")


def _check_free(target: Path, folder: Path) -> None:
    """Let only an older copy of the same run stand where the copy goes, and never the run itself."""
    if target.resolve().is_relative_to(folder.resolve()):
        raise FileExistsError(errno.EEXIST, "the copy would stand in the run itself")
    if os.path.lexists(target) and (_run_id(target) is None or _run_id(target) != _run_id(folder)):
        raise FileExistsError(errno.EEXIST, f"what stands at {target.name} there is no copy of this run")


def _check_archive(packed: Path, archive: Path, target: Path) -> None:
    """Let an archive give way only where it stands beside a copy of this run, or is the same to the byte."""
    if not os.path.lexists(packed) or (packed.is_file() and target.exists()):
        return
    if not packed.is_file() or hash_file(packed) != hash_file(archive):
        raise FileExistsError(errno.EEXIST, f"what stands at {packed.name} there is no archive of this run")


def _run_id(folder: Path) -> str | None:
    try:
        return RunManifest.model_validate_json((folder / layout.MANIFEST).read_bytes()).run_id
    except (OSError, ValidationError):
        return None


def _give_name(draft: Path, target: Path, older: Path) -> None:
    # A folder that is not empty is renamed over by no system; between the two renames the older copy is put back.
    if target.exists():
        target.rename(older)
    draft.rename(target)
    _remove(older)


def _put_back(older: Path, target: Path) -> None:
    """Settle what a copy that broke off, or was killed, has left of the older one."""
    with suppress(OSError):
        if target.exists():
            _remove(older)
        elif older.exists():
            older.rename(target)


def _remove(place: Path) -> None:
    if place.is_symlink() or place.is_file():
        with suppress(OSError):
            place.unlink()
    else:
        shutil.rmtree(place, ignore_errors=True)


def _flush(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            _flush_descriptor(descriptor)
        finally:
            os.close(descriptor)


def _flush_descriptor(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _failed(folder: Path, drive: Path, error: OSError) -> DeliveryError:
    advice = "Make room there" if error.errno in OUT_OF_SPACE else "Make that place ready"
    if drive.is_relative_to("/content/drive"):
        advice = "Mount the drive (from google.colab import drive; drive.mount('/content/drive'))"
    return DeliveryError(
        f"the run is whole in {scrubbed(str(folder))}, and its copy failed: {error.strerror or error}",
        where=f"drive_output_dir (DRIVE_OUTPUT_DIR) {scrubbed(str(drive))}",
        mend=f"{advice}, then copy it again: molforge-train deliver {as_word(folder)} --drive {as_word(drive)}",
    )


def as_word(path: Path) -> str:
    """Spell a path as one word of a shell, the home folder as a tilde."""
    text = scrubbed(str(path))
    return f"~/{shlex.quote(text[2:])}" if text.startswith("~/") else shlex.quote(text)
