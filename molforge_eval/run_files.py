"""The files of a run directory, listed and opened so that no link is followed and no path leaves the folder.

Only regular files are listed; what else stands there (a link, a pipe, a device, a name that is no text) is a fault.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.limits import DEFAULT_LIMITS, Limits


@dataclass(frozen=True)
class RunFiles:
    """A listed directory."""

    root: Path
    sizes: Mapping[str, int]
    """Bytes of each regular file by its path with forward slashes, sorted by path."""
    findings: tuple[Finding, ...]
    hashes: dict[str, tuple[str, int]] = field(default_factory=dict, compare=False, repr=False)
    """SHA-256 and bytes of the files that were hashed so far: a file is hashed once for all who ask."""

    def __contains__(self, path: str) -> bool:
        """Tell whether the run has a regular file at a path."""
        return path in self.sizes

    def open(self, path: str) -> BinaryIO:
        """Open a listed file for reading.

        Raises:
            OSError: The file has gone, changed its kind or may not be read.
        """
        # O_NOFOLLOW and O_NONBLOCK: between listing and opening the file may have become a link or a pipe.
        descriptor = os.open(self.root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        handle = os.fdopen(descriptor, "rb")
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return handle
        handle.close()
        raise OSError(f"{path} is no regular file")

    def read(self, path: str, *, at_most: int) -> bytes | None:
        """Read a listed file; `None` when it is larger than a limit.

        Raises:
            OSError: As for `open`.
        """
        with self.open(path) as handle:
            data = handle.read(at_most + 1)
        return None if len(data) > at_most else data


def list_run(root: Path, limits: Limits = DEFAULT_LIMITS) -> RunFiles:
    """List a run directory.

    Raises:
        UnreadableError: The directory is absent, is none, or may not be read.
    """
    if not root.is_dir():
        what = f"{root} is no directory" if root.exists() else f"{root} does not exist"
        mend = "Name the folder that holds run_manifest.json, a zip archive of it, or its packet PDF."
        raise UnreadableError(what, where=str(root), mend=mend)
    sizes: dict[str, int] = {}
    findings: list[Finding] = []
    folders = [""]
    seen_entries = 0
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as scan:
                entries = sorted(islice(scan, limits.directory_entries + 1), key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise UnreadableError(
                    f"{root} cannot be listed: {error.strerror}",
                    where=str(root),
                    mend="Give yourself the right to read the folder.",
                ) from error
            findings.append(finding("FILE_UNREADABLE", f"the folder cannot be listed: {error.strerror}", file=folder))
            continue
        seen_entries += len(entries)
        if seen_entries > limits.directory_entries:
            what = f"the run holds more than {limits.directory_entries} entries; the others were not read"
            findings.append(finding("DIRECTORY_TOO_LARGE", what, file=folder or None))
            break
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            fault = _list_entry(entry, path, sizes, folders)
            if fault is not None:
                findings.append(fault)
    kept = _within(dict(sorted(sizes.items())), findings, limits)
    return RunFiles(root=root, sizes=kept, findings=tuple(findings))


def _within(sizes: dict[str, int], findings: list[Finding], limits: Limits) -> dict[str, int]:
    """Leave out the largest files when all together are beyond the limit: a file of holes costs its maker nothing."""
    total = sum(sizes.values())
    for path in sorted(sizes, key=lambda entry: -sizes[entry]):
        if total <= limits.directory_bytes:
            break
        what = f"the file has {sizes[path]} bytes, all files of a run may have {limits.directory_bytes} together"
        findings.append(finding("FILE_TOO_LARGE", what, file=path))
        total -= sizes[path]
        del sizes[path]
    return sizes


def _list_entry(entry: os.DirEntry[str], path: str, sizes: dict[str, int], folders: list[str]) -> Finding | None:
    try:
        path.encode("utf-8")
        mode = entry.stat(follow_symlinks=False)
    except UnicodeEncodeError:
        return finding("FILE_NAME_UNREADABLE", "the name of the file is not UTF-8", file=os.fsencode(path).hex())
    except OSError as error:
        return finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror}", file=path)
    if stat.S_ISLNK(mode.st_mode):
        return finding("FILE_LINKED", "the file is a symbolic link; it was not followed", file=path)
    if stat.S_ISDIR(mode.st_mode):
        folders.append(path)
        if layout.is_packed(path):
            return finding("FILE_SPECIAL", "a folder stands where a file belongs", file=path)
    elif stat.S_ISREG(mode.st_mode):
        sizes[path] = mode.st_size
    else:
        return finding("FILE_SPECIAL", "the file is a pipe, a socket or a device; it was not opened", file=path)
    return None
