"""The safetensors file of an adapter, read without torch: its header, where tensors stand, what their values are.

A value is looked at a piece at a time, so that memory does not grow with the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
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
_CHUNK = 2**22


class Values(NamedTuple):
    """What was found in the values of one tensor."""

    broken: int
    """Values that are not finite."""
    has_weight: bool
    """Whether any value is not zero."""


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
    """Count values that are not finite, and tell whether any is not zero.

    Args:
        handle: The file.
        start: Where the values of the first tensor begin.
        entry: The header's entry of the tensor.
    """
    left = entry["data_offsets"][1] - entry["data_offsets"][0]
    handle.seek(start + entry["data_offsets"][0])
    broken, has_weight = 0, False
    while left > 0:
        data = handle.read(min(left, _CHUNK))
        if not data:
            break
        left -= len(data)
        found = _judge(data, entry["dtype"])
        broken += found.broken
        has_weight = has_weight or found.has_weight
    return Values(broken, has_weight)


def _judge(data: bytes, kind: str) -> Values:
    if kind in ("F8_E4M3", "F8_E5M2"):
        # The sign apart: one pattern is no number in the first form, an exponent of ones in the second.
        bare = np.frombuffer(data, "u1") & 0x7F
        broken = bare == 0x7F if kind == "F8_E4M3" else (bare & 0x7C) == 0x7C
        return Values(int(np.count_nonzero(broken)), bool(bare.any()))
    if kind not in ("F64", "F32", "F16", "BF16"):
        return Values(0, any(data))
    values = _floats(data, kind)
    return Values(int(values.size - np.count_nonzero(np.isfinite(values))), bool(np.any(values != 0)))


def _floats(data: bytes, kind: str) -> NDArray[Any]:
    if kind == "BF16":
        # The upper half of a 32-bit float.
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[kind])
