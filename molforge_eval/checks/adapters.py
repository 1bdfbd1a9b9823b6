"""The delivered adapter, looked at without torch and without a pickle: settings, header, tensors, identity."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen, short
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.record_files import read_json
from molforge_eval.run_directory import RunDirectory
from molforge_eval.sealing import checksum_of
from molforge_eval.shape import shape_of
from molforge_eval.strict_json import read_value

_POINTER = b"version https://git-lfs.github.com/spec/"
_PICKLE_MARKS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How a pickle begins, by itself or in the zip that torch puts it in."""
_WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
_CHUNK = 2**22


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the settings and the weights of the adapter, and at what the manifest says of them."""
    rank = yield from _check_config(run)
    yield from _check_weights(run, rank)
    yield from _check_manifest(run)


def _check_config(run: RunDirectory) -> Generator[Finding, None, int | None]:
    """Check the settings; give the rank, or `None` when it is not known."""
    path = layout.ADAPTER_CONFIG
    if path not in run.files:
        return None
    ledger = Ledger(run.limits.findings_a_code)
    parsed = read_json(run.files, path, ledger, run.limits)
    yield from ledger.findings()
    if not parsed.usable:
        return None
    value = parsed.value
    shape = shape_of("adapter_config")
    if not shape.fits(value):
        for misfit in shape.explain(value):
            yield finding("SCHEMA_UNMET", misfit.what, file=path, pointer=misfit.pointer)
        return None
    # Ranks may be set apart for some modules; then there is no one rank to hold the tensors to.
    return None if value.get("rank_pattern") else int(value["r"])


def _check_weights(run: RunDirectory, rank: int | None) -> Iterator[Finding]:
    path = layout.ADAPTER_WEIGHTS
    if path not in run.files:
        is_named = run.manifest is not None and run.manifest.output_adapter is not None
        if is_named or layout.ADAPTER_CONFIG in run.files:
            what = "the manifest names an adapter and there are no weights" if is_named else "there are no weights"
            yield finding("WEIGHTS_MISSING", what, file=path)
        return
    try:
        with run.files.open(path) as handle:
            yield from _check_tensors(handle, run, rank)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)


def _check_tensors(handle: BinaryIO, run: RunDirectory, rank: int | None) -> Iterator[Finding]:
    path = layout.ADAPTER_WEIGHTS
    size = run.files.sizes[path]
    start = handle.read(8)
    if (start + handle.read(len(_POINTER))).startswith(_POINTER):
        what = "the file is a Git LFS pointer in place of the weights"
        yield finding("WEIGHTS_POINTER", what, file=path)
        return
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(run.limits.tensor_header_bytes, size - 8):
        # Only where no header can be: a header of 1,152 bytes begins like a pickle.
        if start.startswith(_PICKLE_MARKS):
            what = "the weights are a pickle under another name; it was not opened"
            yield finding("WEIGHTS_PICKLED", what, file=path)
            return
        what = f"no safetensors file: its header would have {length} bytes, the file has {size}"
        yield finding("WEIGHTS_UNREADABLE", what, file=path)
        return
    handle.seek(8)
    header = read_value(handle.read(length).rstrip(b" "), run.limits)
    for fault in header.faults:
        yield finding(fault.code, fault.what, file=path, pointer=fault.pointer)
    if not isinstance(header.value, dict):
        yield finding("WEIGHTS_UNREADABLE", "no safetensors file: its header is no object", file=path)
        return
    tensors = {name: entry for name, entry in header.value.items() if name != "__metadata__"}
    faults = list(_check_header(tensors, size - 8 - length))
    yield from faults
    if not faults:
        yield from _check_values(handle, 8 + length, tensors, rank)
        yield from _check_count(run, tensors)


def _check_header(tensors: Mapping[str, Any], room: int) -> Iterator[Finding]:
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
    place = 0
    for name, entry in sorted(tensors.items(), key=lambda item: str(item[1].get("data_offsets"))):
        offsets = entry.get("data_offsets")
        if not (isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(item, int) for item in offsets)):
            yield finding("WEIGHTS_UNREADABLE", f"tensor {seen(name)} has no place in the file", file=path)
            return
        bytes_wanted = math.prod(entry["shape"]) * _WIDTHS[entry["dtype"]]
        if not 0 <= offsets[0] <= offsets[1] <= room or offsets[1] - offsets[0] != bytes_wanted:
            what = f"tensor {seen(name)} stands at {offsets}, its shape {entry['shape']} needs {bytes_wanted} bytes"
            yield finding("WEIGHTS_UNREADABLE", what, file=path)
            return
        place += bytes_wanted
    if place != room:
        what = f"the tensors take {place} bytes, the file holds {room}"
        yield finding("WEIGHTS_UNREADABLE", what, file=path)


def _check_values(handle: BinaryIO, start: int, tensors: Mapping[str, Any], rank: int | None) -> Iterator[Finding]:
    path = layout.ADAPTER_WEIGHTS
    second_factors = moved = 0
    for name, entry in sorted(tensors.items()):
        broken, has_weight = _scan_values(handle, start + entry["data_offsets"][0], entry)
        if broken:
            what = f"{broken} values of tensor {seen(name)} are not finite"
            yield finding("WEIGHTS_NOT_FINITE", what, file=path, pointer=name)
        if ".lora_B" in name or ".lora_embedding_B" in name:
            second_factors += 1
            moved += has_weight
        own = _rank_of(name, entry["shape"])
        if rank is not None and own is not None and own != rank:
            what = f"tensor {seen(name)} has rank {own}, adapter_config.json says r {rank}"
            yield finding("ADAPTER_RANK_DIFFERS", what, file=path, pointer=name)
    if not tensors:
        yield finding("ADAPTER_EMPTY", "the file holds no tensor", file=path)
    elif second_factors and not moved:
        yield finding(
            "ADAPTER_ZERO", f"all {second_factors} second factors are zero: the adapter changes nothing", file=path
        )


def _rank_of(name: str, shape: list[int]) -> int | None:
    if len(shape) != 2:
        return None
    if ".lora_A" in name:
        return shape[0]
    return shape[1] if ".lora_B" in name else None


def _scan_values(handle: BinaryIO, place: int, entry: Mapping[str, Any]) -> tuple[int, bool]:
    """Count values that are not finite, and tell whether any is not zero; a piece at a time."""
    left = entry["data_offsets"][1] - entry["data_offsets"][0]
    handle.seek(place)
    broken, has_weight = 0, False
    while left > 0:
        data = handle.read(min(left, _CHUNK))
        if not data:
            break
        left -= len(data)
        values = _values(data, entry["dtype"])
        broken += int(values.size - np.count_nonzero(np.isfinite(values)))
        has_weight = has_weight or bool(np.any(values != 0))
    return broken, has_weight


def _values(data: bytes, kind: str) -> NDArray[Any]:
    if kind == "BF16":
        # The upper half of a 32-bit float.
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[kind])


def _check_count(run: RunDirectory, tensors: Mapping[str, Any]) -> Iterator[Finding]:
    adapter = None if run.manifest is None else run.manifest.output_adapter
    count = sum(math.prod(entry["shape"]) for entry in tensors.values())
    if adapter is not None and adapter.parameters != count:
        what = f"the weights hold {count} parameters, the manifest says {adapter.parameters}"
        yield finding("ADAPTER_COUNT_DIFFERS", what, file=layout.ADAPTER_WEIGHTS)


def _check_manifest(run: RunDirectory) -> Iterator[Finding]:
    manifest = run.manifest
    if manifest is None:
        return
    place: dict[str, Any] = {"file": layout.MANIFEST}
    if manifest.trainable_parameters == 0:
        yield finding("TRAINABLE_NONE", "0 parameters were trainable", pointer="/trainable_parameters", **place)
    output = manifest.output_adapter
    if output is None:
        if manifest.status == "complete":
            what = "the run is complete and names no output adapter"
            yield finding("ADAPTER_UNNAMED", what, pointer="/output_adapter", **place)
        return
    if manifest.input_adapter is not None and manifest.input_adapter.sha256 == output.sha256:
        what = f"the adapter that came out, {short(output.sha256)}, is the one that went in"
        yield finding("ADAPTER_UNCHANGED", what, pointer="/output_adapter/sha256", **place)
    if layout.ADAPTER_WEIGHTS in run.files:
        actual = _hash_of(run, layout.ADAPTER_WEIGHTS)
        if actual is not None and actual != output.sha256:
            what = f"the weights have SHA-256 {short(actual)}, the manifest says {short(output.sha256)}"
            yield finding("ADAPTER_DIFFERS", what, file=layout.ADAPTER_WEIGHTS)


def _hash_of(run: RunDirectory, path: str) -> str | None:
    try:
        return checksum_of(run.files, path).sha256
    except OSError:
        return None
