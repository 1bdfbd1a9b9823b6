"""Archives of a run: packed byte for byte the same each time, unpacked without trust.

A member is written only when its name stays inside the folder, is on the allow-list's side of plain files, and stays
within the limits, which are counted while reading: a header that lies about a size is found by its bytes.
"""

from __future__ import annotations

import re
import shutil
import stat
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, NamedTuple

from molforge_env.errors import OUT_OF_SPACE, UnreadableError
from molforge_eval import layout
from molforge_eval.canonical import JsonValue
from molforge_eval.catalogue import finding, printable
from molforge_eval.findings import Finding
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.run_files import list_run
from molforge_eval.scratch import make_scratch, remove_scratch
from molforge_eval.sealing import write_whole
from molforge_eval.shape import shape_of
from molforge_eval.zip_directory import faults_of_places, read_end

_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The date that every member carries: the earliest that a zip can hold."""
_MODE = (stat.S_IFREG | 0o644) << 16
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LISTED_BYTES = 1024
"""Bytes that one member may take in the listing: 46, its name, and what few writers add."""
_CHUNK = 2**18
_RATIO_FROM = 2**20
_LONGEST_NAME = 255
_ODD_MARK = re.compile(r"[^\w .,;+=@#%&()\[\]{}~^'-]")
"""Bytes of a file name that common file systems hold."""
_DEEPEST_NAME = 16
"""Folders and file in one name: a run has three, and every folder more of a hostile one has to be made and removed."""
_DEEPEST_RUN = 3
"""Folders above a run in an archive: people pack the folder that they keep it in."""


class NoRoomError(UnreadableError):
    """There is no place to unpack to: a trouble of this machine, which says nothing of what was to be read."""


class PackedRun(NamedTuple):
    """What went into an archive and what was left out."""

    packed: tuple[str, ...]
    left_out: tuple[str, ...]


class UnpackedRun(NamedTuple):
    """A folder made from an archive."""

    holder: Path
    """What the caller removes when it has read the run."""
    root: Path
    """The run: the holder, or the only folder in it that holds one."""
    findings: tuple[Finding, ...]


def pack_run(run_dir: Path, target: Path) -> PackedRun:
    """Write the archive of a run: records, seal and packet under the run's name, nothing else.

    Equal runs give equal bytes, whatever the dates of their files.

    Args:
        run_dir: The run directory.
        target: The archive; an older one is replaced whole.

    Raises:
        UnreadableError: The directory cannot be read.
    """
    files = list_run(run_dir)
    packed = tuple(path for path in files.sizes if layout.is_packed(path))
    # A folder may be called by any bytes; in an archive a name has to be one that every system unpacks.
    holder = _ODD_MARK.sub("_", run_dir.resolve().name)
    with tempfile.TemporaryFile() as draft:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path in packed:
                member = zipfile.ZipInfo(f"{holder}/{path}", _MOMENT)
                member.external_attr = _MODE
                member.create_system = 3
                member.compress_type = zipfile.ZIP_DEFLATED
                with files.open(path) as source, archive.open(member, "w", force_zip64=True) as written:
                    shutil.copyfileobj(source, written, _CHUNK)
        draft.seek(0)
        write_whole(target, draft.read())
    return PackedRun(packed, tuple(path for path in files.sizes if path not in packed))


def make_holder(kind: str) -> Path:
    """Make a folder to unpack into.

    Args:
        kind: What is unpacked, in small letters.

    Raises:
        NoRoomError: There is no folder for temporary files that can be written.
    """
    try:
        return make_scratch(kind)
    except OSError as error:
        what = f"nothing can be unpacked: {error.strerror or error}"
        raise NoRoomError(
            what, where="TMPDIR", mend="Name a folder that you may write, with room, in TMPDIR."
        ) from error


def without_room(path: Path, error: OSError) -> NoRoomError:
    """Say that the disk that a file is unpacked to is full."""
    what = f"there is no room to unpack {printable(path.name)}: {error.strerror}"
    return NoRoomError(what, where=tempfile.gettempdir(), mend="Make room there, or name another folder in TMPDIR.")


def unpack_archive(path: Path, limits: Limits = DEFAULT_LIMITS) -> UnpackedRun:
    """Unpack an archive into a folder of its own.

    Members that are refused are named and left out; the others are still read.

    Raises:
        UnreadableError: The file is no zip archive that can be listed.
    """
    holder = make_holder("run")
    findings: list[Finding] = []
    try:
        with path.open("rb") as file, _opened(file, limits) as archive:
            members = archive.infolist()
            findings += _look_around(file, path.name, members)
            if len(members) > limits.archive_entries:
                what = f"the archive has {len(members)} members, the limit is {limits.archive_entries}"
                findings.append(finding("ARCHIVE_TOO_LARGE", what, file=path.name))
                members = members[: limits.archive_entries]
            members = _without_misplaced(file, members, findings)
            _unpack_members(archive, members, holder, limits, findings)
    except BaseException as error:
        remove_scratch(holder)
        if not isinstance(error, zipfile.BadZipFile | OSError | NotImplementedError | ValueError):
            raise
        if isinstance(error, OSError) and error.errno in OUT_OF_SPACE:
            raise without_room(path, error) from error
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise UnreadableError(
            f"{printable(path.name)} is no zip archive that can be read: {printable(str(reason))}",
            where=str(path),
            mend="Name the folder of a run, a zip archive of one, or its packet PDF; no other file is judged.",
        ) from error
    root, beside = _root_of(holder)
    return UnpackedRun(holder, root, (*findings, *beside))


def _opened(file: BinaryIO, limits: Limits) -> zipfile.ZipFile:
    """Open an archive whose listing is not longer than the limit on its members allows.

    Raises:
        ValueError: The listing is too long, and would become objects before one of them could be refused.
    """
    end = read_end(file)
    most = limits.archive_entries * _LISTED_BYTES
    if end is not None and end.listing_bytes > most:
        raise ValueError(f"its listing has {end.listing_bytes} bytes, the limit archive_entries allows {most}")
    return zipfile.ZipFile(file)


def _look_around(file: BinaryIO, name: str, members: list[zipfile.ZipInfo]) -> Iterator[Finding]:
    """Name bytes before the first member and after the end: another reader may take the file for another kind."""
    before = min((member.header_offset for member in members), default=0)
    end = read_end(file)
    after = 0 if end is None else end.trailing
    for count, place in ((before, "before"), (after, "after")):
        if count > 0:
            yield finding("ARCHIVE_PADDED", f"{count} bytes stand {place} the archive", file=name)


def _without_misplaced(
    file: BinaryIO, members: list[zipfile.ZipInfo], findings: list[Finding]
) -> list[zipfile.ZipInfo]:
    misplaced = {id(member): what for member, what in faults_of_places(file, members)}
    findings += [
        finding("ARCHIVE_MEMBER_MISPLACED", misplaced[id(member)], file=member.filename)
        for member in members
        if id(member) in misplaced
    ]
    return [member for member in members if id(member) not in misplaced]


def _unpack_members(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], holder: Path, limits: Limits, findings: list[Finding]
) -> None:
    room = limits.archive_bytes
    taken: set[str] = set()
    folders: set[PurePosixPath] = set()
    for member in members:
        fault = _name_fault(member) or _kind_fault(member)
        folded = unicodedata.normalize("NFC", member.filename).casefold().rstrip("/")
        if fault is None and folded in taken:
            fault = "ARCHIVE_MEMBER_REPEATED", "the archive has this name twice, or once more in other letters"
        if fault is not None:
            findings.append(finding(fault[0], fault[1], file=member.filename))
            continue
        taken.add(folded)
        if member.is_dir():
            continue
        folders.update(PurePosixPath(member.filename).parents)
        if len(folders) > limits.directory_entries:
            what = f"the members lie in more than {limits.directory_entries} folders"
            findings.append(finding("ARCHIVE_TOO_LARGE", what, file=member.filename))
            return
        target = holder / PurePosixPath(member.filename)
        written, fault = _write_member(archive, member, target, room, limits)
        room -= written
        if fault is not None:
            # It may stand for a folder, or under a file: then there is nothing of it to remove.
            with suppress(OSError):
                target.unlink()
            findings.append(finding(fault[0], fault[1], file=member.filename))
            if room <= 0:
                return


def listing_of(members: Iterable[zipfile.ZipInfo]) -> dict[str, list[dict[str, JsonValue]]]:
    """Read the listing of an archive into an object, in the shape of `schemas/archive_listing.schema.json`."""
    entries = [
        {"path": member.orig_filename, "size": member.file_size, "compressed": member.compress_size}
        for member in members
    ]
    return {"entries": entries}


def _name_fault(member: zipfile.ZipInfo) -> tuple[str, str] | None:
    # The name as it stands in the archive: the library's own spelling ends at a NUL byte.
    parts = PurePosixPath(member.orig_filename).parts
    is_shaped = shape_of("archive_listing").fits(listing_of([member]))
    is_sized = len(parts) <= _DEEPEST_NAME and all(len(part.encode()) <= _LONGEST_NAME for part in parts)
    if not is_shaped or ".." in parts or not is_sized:
        return (
            "ARCHIVE_MEMBER_ESCAPES",
            "the name leads out of the folder, or is none of a plain file; it was not unpacked",
        )
    return None


def _kind_fault(member: zipfile.ZipInfo) -> tuple[str, str] | None:
    mode = member.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if kind and kind not in (stat.S_IFREG, stat.S_IFDIR):
        return "ARCHIVE_MEMBER_LINKED", "the member is a link or a special file; it was not unpacked"
    if member.flag_bits & 0x1:
        return "ARCHIVE_MEMBER_UNREADABLE", "the member is encrypted"
    if member.compress_type not in _METHODS:
        # The others may ask for gigabytes of memory before they give a byte.
        what = f"the member is packed by method {member.compress_type}; stored and deflated ones are read"
        return "ARCHIVE_MEMBER_UNREADABLE", what
    return None


def _write_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, room: int, limits: Limits
) -> tuple[int, tuple[str, str] | None]:
    """Unpack one member; return the bytes that were read and what stopped the reading."""
    written = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, target.open("xb") as written_file:
            for chunk in _chunks(source):
                written += len(chunk)
                if written > room:
                    return written, ("ARCHIVE_TOO_LARGE", f"the archive unpacks to over {limits.archive_bytes} bytes")
                if written > max(_RATIO_FROM, limits.archive_ratio * max(member.compress_size, 1)):
                    what = f"the member unpacks to over {limits.archive_ratio} times its packed size"
                    return written, ("ARCHIVE_MEMBER_INFLATES", what)
                written_file.write(chunk)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno in OUT_OF_SPACE:
            # The judge's own disk is full: no fault of the archive.
            raise
        reason = (isinstance(error, OSError) and error.strerror) or error
        return written, ("ARCHIVE_MEMBER_UNREADABLE", f"the member cannot be unpacked: {reason}")
    return written, None


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _root_of(holder: Path) -> tuple[Path, list[Finding]]:
    """Find the run, the folder itself or the only folder in it that holds one, and name what stands beside that."""
    root = holder
    for _ in range(_DEEPEST_RUN):
        inside = sorted(root.iterdir())
        if any(layout.is_record(entry.name) for entry in inside):
            break
        folders = [entry for entry in inside if entry.is_dir() and _holds_records(entry)]
        if len(folders) != 1:
            break
        root = folders[0]
    beside = []
    place = root
    while place != holder:
        beside += [entry for entry in sorted(place.parent.iterdir()) if entry != place]
        place = place.parent
    what = "it stands beside the run in the archive; it was not read"
    return root, [finding("FILE_STRAY", what, file=str(entry.relative_to(holder))) for entry in beside]


def _holds_records(folder: Path) -> bool:
    """Tell whether a folder, or one folder beneath it, has the name of a record."""
    inside = list(folder.iterdir())
    near = [*inside, *(entry for child in inside if child.is_dir() for entry in child.iterdir())]
    return any(layout.is_record(entry.name) for entry in near)
