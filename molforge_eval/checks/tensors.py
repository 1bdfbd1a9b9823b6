"""The safetensors file of an adapter, read without torch: its header, where tensors stand, what their values are.

A value is looked at a piece at a time, so that memory does not grow with the file. The digest of the tensors is over
what they are, never over how a file spells them: the order, the metadata, the names that a writer puts around a
factor, and the number format where it holds the same values, do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from molforge_eval import layout
from molforge_eval.canonical import digest
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.factors import plain_name
from molforge_eval.findings import Finding
from molforge_eval.limits import Limits
from molforge_eval.shape import shape_of
from molforge_eval.strict_json import read_value

POINTER_MARK = b"version https://git-lfs.github.com/spec/"
_PICKLE_MARKS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How a pickle begins, by itself or in the zip that torch puts it in."""
_WIDTHS = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
    "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of one value."""
_FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
_CHUNK = 2**22


class Values(NamedTuple):
    """What was found in the values of one tensor."""

    broken: int
    """Values that are not finite."""
    has_weight: bool
    """Whether any value is not zero."""
    sha256: str
    """Over the values; floats are hashed as 32-bit ones where these hold all of them, else as 64-bit ones."""


class TensorsDigest(NamedTuple):
    """The digest of the tensors of a file, or why there is none."""

    sha256: str | None
    reason: str | None


class Header(NamedTuple):
    """A header that was read, and what was wrong with it."""

    tensors: Mapping[str, Any] | None
    """Entries by name; `None` when the file holds no tensors that could be read."""
    start: int
    """Where the values begin, in bytes."""
    findings: tuple[Finding, ...]


def read_header(handle: BinaryIO, size: int, limits: Limits) -> Header:
    """Read the header of the weights file.

    Args:
        handle: The file, at its begin.
        size: Its bytes.
        limits: Bounds on what is read.
    """
    path = layout.ADAPTER_WEIGHTS
    start = handle.read(8)
    if (start + handle.read(len(POINTER_MARK))).startswith(POINTER_MARK):
        return _refused("WEIGHTS_POINTER", "the file is a Git LFS pointer in place of the weights")
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(limits.tensor_header_bytes, size - 8):
        # Only where no header can be: a header of 1,152 bytes begins like a pickle.
        if start.startswith(_PICKLE_MARKS):
            return _refused("WEIGHTS_PICKLED", "the weights are a pickle under another name; it was not opened")
        what = f"no safetensors file: its header would have {length} bytes, the file has {size}"
        return _refused("WEIGHTS_UNREADABLE", what)
    handle.seek(8)
    header = read_value(handle.read(length).rstrip(b" "), limits)
    found = [finding(fault.code, fault.what, file=path, pointer=fault.pointer) for fault in header.faults]
    if not isinstance(header.value, dict):
        found.append(finding("WEIGHTS_UNREADABLE", "no safetensors file: its header is no object", file=path))
        return Header(None, 0, tuple(found))
    tensors = {name: entry for name, entry in header.value.items() if name != "__metadata__"}
    faults = tuple(_check_places(tensors, size - 8 - length))
    return Header(None if faults else tensors, 8 + length, (*found, *faults))


def _refused(code: str, what: str) -> Header:
    return Header(None, 0, (finding(code, what, file=layout.ADAPTER_WEIGHTS),))


def _check_places(tensors: Mapping[str, Any], room: int) -> Iterator[Finding]:
    """Tensors fill the file without a gap and without one standing on another."""
    path = layout.ADAPTER_WEIGHTS
    shapes = {
        name: {key: value for key, value in entry.items() if key != "data_offsets"}
        if isinstance(entry, dict)
        else entry
        for name, entry in tensors.items()
    }
    shape = shape_of("adapter_header")
    if not shape.fits({"tensors": shapes}):
        for misfit in shape.explain({"tensors": shapes}):
            yield finding("SCHEMA_UNMET", misfit.what, file=path, pointer=misfit.pointer)
        return
    places: list[tuple[int, int, str]] = []
    for name, entry in tensors.items():
        offsets = entry.get("data_offsets")
        if not (isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(item, int) for item in offsets)):
            yield finding("WEIGHTS_UNREADABLE", f"tensor {seen(name)} has no place in the file", file=path)
            return
        bytes_wanted = math.prod(entry["shape"]) * _WIDTHS[entry["dtype"]]
        if not 0 <= offsets[0] <= offsets[1] <= room or offsets[1] - offsets[0] != bytes_wanted:
            what = f"tensor {seen(name)} stands at {offsets}, its shape {entry['shape']} needs {bytes_wanted} bytes"
            yield finding("WEIGHTS_UNREADABLE", what, file=path)
            return
        places.append((offsets[0], offsets[1], name))
    end = 0
    for begin, stop, name in sorted(places):
        if begin != end:
            what = f"tensor {seen(name)} begins at byte {begin}, the one before it ends at {end}"
            yield finding("WEIGHTS_UNREADABLE", what, file=path)
            return
        end = stop
    if end != room:
        yield finding("WEIGHTS_UNREADABLE", f"the tensors take {end} bytes, the file holds {room}", file=path)


def scan_values(handle: BinaryIO, start: int, entry: Mapping[str, Any]) -> Values:
    """Count values that are not finite, tell whether any is not zero, and hash them.

    Args:
        handle: The file.
        start: Where the values of the first tensor begin.
        entry: The header's entry of the tensor.
    """
    kind = entry["dtype"]
    left = entry["data_offsets"][1] - entry["data_offsets"][0]
    handle.seek(start + entry["data_offsets"][0])
    broken, has_weight, is_narrow = 0, False, True
    narrow, wide = sha256(), sha256()
    while left > 0:
        data = handle.read(min(left, _CHUNK))
        # A file that was cut since it was listed may end within a value.
        data = data[: len(data) - len(data) % _WIDTHS[kind]]
        if not data:
            break
        left -= len(data)
        if kind not in _FLOATS:
            has_weight = has_weight or any(data)
            narrow.update(data)
            continue
        values = _floats(data, kind)
        broken += int(values.size - np.count_nonzero(np.isfinite(values)))
        has_weight = has_weight or bool(np.any(values != 0))
        if kind == "F64":
            wide.update(values.data)
        with np.errstate(over="ignore"):
            single = values.astype("<f4")
        is_narrow = is_narrow and (kind != "F64" or bool(np.array_equal(single, values)))
        narrow.update(single.data)
    return Values(broken, has_weight, (narrow if is_narrow else wide).hexdigest())


def digest_of(tensors: Mapping[str, Any], found: Mapping[str, Values]) -> str:
    """Return the digest of the tensors of an adapter, whatever file they stand in.

    Args:
        tensors: The header's entries by name.
        found: What was found in the values of each.
    """
    rows = [
        [
            plain_name(name),
            "float" if entry["dtype"] in _FLOATS else entry["dtype"],
            list(entry["shape"]),
            found[name].sha256,
        ]
        for name, entry in tensors.items()
    ]
    return digest(sorted(rows))


def digest_weights(path: Path, limits: Limits) -> TensorsDigest:
    """Read a weights file of one's own and return the digest of its tensors.

    Args:
        path: The safetensors file.
        limits: Bounds on what is read; a file beyond them has no digest, and the reason says so.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as handle:
        header = read_header(handle, path.stat().st_size, limits)
        if header.tensors is None:
            return TensorsDigest(None, "; ".join(item.what for item in header.findings))
        found = {name: scan_values(handle, header.start, entry) for name, entry in header.tensors.items()}
        return TensorsDigest(digest_of(header.tensors, found), None)


def _floats(data: bytes, kind: str) -> NDArray[Any]:
    if kind == "BF16":
        # The upper half of a 32-bit float.
        bits: NDArray[Any] = np.frombuffer(data, "<u2").astype("<u4") << 16
        return bits.view("<f4")
    if kind == "F8_E5M2":
        # The upper half of a 16-bit float.
        bits = np.frombuffer(data, "u1").astype("<u2") << 8
        return bits.view("<f2")
    if kind == "F8_E4M3":
        found: NDArray[Any] = _values_of_e4m3()[np.frombuffer(data, "u1")]
        return found
    return np.frombuffer(data, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[kind])


@cache
def _values_of_e4m3() -> NDArray[Any]:
    """Return the number of each of the 256 patterns: no infinity, and one pattern a sign that is no number."""
    bits = np.arange(256)
    exponent, mantissa = (bits >> 3) & 0x0F, bits & 0x07
    sizes = np.where(exponent == 0, np.ldexp(mantissa, -9), np.ldexp(mantissa + 8, exponent - 10))
    sizes[(bits & 0x7F) == 0x7F] = np.nan
    signed: NDArray[Any] = np.where(bits & 0x80, -sizes, sizes)
    return signed.astype("<f4")
