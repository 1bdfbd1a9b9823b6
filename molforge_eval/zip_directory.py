"""The end of a zip archive and the head of each member, as they stand: what the library believes, looked at first.

The library reads the whole listing into objects before anything can be refused; how long the listing is stands in the
last bytes of the file.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

_END = b"PK\x05\x06"
_END_SIZE = 22
_FAR_END = b"PK\x06\x06"
_LOCATOR = b"PK\x06\x07"
_LOCATOR_SIZE = 20
_LONGEST_COMMENT = 2**16
_HEAD = struct.Struct("<4sHHHHHIIIHH")
_HAS_DESCRIPTOR = 0x8
_IS_UTF8 = 0x800
_IN_EXTRA = 0xFFFFFFFF


class ZipEnd(NamedTuple):
    """What the last bytes of an archive say."""

    listing_bytes: int
    trailing: int
    """Bytes after the end of the archive and its comment."""


def read_end(file: BinaryIO) -> ZipEnd | None:
    """Read the end of an archive where the library looks for it; `None` when there is none."""
    size = file.seek(0, os.SEEK_END)
    start = max(size - _LONGEST_COMMENT - _END_SIZE, 0)
    file.seek(start)
    tail = file.read()
    at = len(tail) - _END_SIZE
    if at < 0 or tail[at : at + 4] != _END or tail[-2:] != b"\0\0":
        at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        return None
    listing, _, comment = struct.unpack_from("<IIH", tail, at + 12)
    locator = at - _LOCATOR_SIZE
    if locator >= 0 and tail[locator : locator + 4] == _LOCATOR:
        far = _read_far(file, struct.unpack_from("<Q", tail, locator + 8)[0], start + locator)
        listing = listing if far is None else far
    return ZipEnd(listing, max(len(tail) - at - _END_SIZE - comment, 0))


def _read_far(file: BinaryIO, offset: int, before: int) -> int | None:
    """Read the size of the listing from the far end record, which stands next to its locator if not where that says."""
    for place in (offset, before - 56):
        if 0 <= place <= before:
            file.seek(place)
            record = file.read(56)
            if record.startswith(_FAR_END) and len(record) == 56:
                return int(struct.unpack_from("<Q", record, 40)[0])
    return None


def faults_of_places(file: BinaryIO, members: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """Name members whose own head says something else than the listing, or whose bytes another member has too."""
    end = 0
    for member in sorted(members, key=lambda entry: entry.header_offset):
        if member.header_offset < 0:
            yield member, "the member stands before the file"
            continue
        file.seek(member.header_offset)
        data = file.read(_HEAD.size)
        if len(data) < _HEAD.size or not data.startswith(b"PK\x03\x04"):
            yield member, "there is no member where the listing says"
            continue
        _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _HEAD.unpack(data)
        if member.header_offset < end:
            yield member, "the member stands within another member"
        end = max(end, member.header_offset + _HEAD.size + name_length + extra_length + member.compress_size)
        name = file.read(name_length).decode("utf-8" if flags & _IS_UTF8 else "cp437", "replace")
        told: list[tuple[int | str, int | str]] = [
            (method, member.compress_type),
            (flags & 1, member.flag_bits & 1),
            (name, member.orig_filename),
        ]
        if not flags & _HAS_DESCRIPTOR:
            told += [(crc, member.CRC), (packed, member.compress_size), (size, member.file_size)]
        if any(own != listed for own, listed in told if own != _IN_EXTRA):
            yield member, "its own head and the listing of the archive say different things"
