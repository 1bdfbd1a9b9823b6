"""A run packed by hand, with members that no honest program writes."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence_cases.registry import make_edit
from evidence_cases.values import bytes_of

_ENCRYPTED = 0x1
_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def pack(root: Path, spec: Mapping[str, Any]) -> Path:
    """Pack a run beside itself.

    Args:
        root: The folder of the run.
        spec: `file` and `folder` name the archive and the folder in it, `without` leaves paths out, `members` come
            after the records, `edits` change the bytes of the archive.

    Returns:
        The archive.
    """
    target = Path(root.parent, spec.get("file", "run.zip"))
    folder = spec.get("folder", "run/")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        # The library warns of a name that it has: that is what the case is about.
        warnings.simplefilter("ignore")
        for path in sorted(entry for entry in root.rglob("*") if entry.is_file()):
            name = path.relative_to(root).as_posix()
            if name not in spec.get("without", ()):
                archive.writestr(_plain(f"{folder}{name}"), path.read_bytes(), zipfile.ZIP_DEFLATED)
        for member in spec.get("members", ()):
            archive.writestr(_member(member), bytes_of(member.get("content", ""), root), _method(member))
    data = packed.getvalue()
    for member in spec.get("members", ()):
        data = _with_lies(data, member)
    target.write_bytes(data)
    edits: Sequence[Mapping[str, Any]] = spec.get("edits", ())
    for change in edits:
        make_edit(target.parent, {"file": target.name, **change})
    return target


def _plain(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def _member(spec: Mapping[str, Any]) -> zipfile.ZipInfo:
    member = _plain("placeholder")
    # The constructor rewrites names; what stands in the archive is to be what the case says.
    member.filename = member.orig_filename = spec["name"]
    member.create_system = 3
    member.external_attr = int(spec.get("mode", "100644"), 8) << 16
    return member


def _method(spec: Mapping[str, Any]) -> int:
    return {"deflated": zipfile.ZIP_DEFLATED, "stored": zipfile.ZIP_STORED}[spec.get("method", "deflated")]


def _with_lies(data: bytes, spec: Mapping[str, Any]) -> bytes:
    """Change what the headers say of a member: `encrypted`, `size_said`, `packed_said`, `method_said`."""
    changed = bytearray(data)
    name = spec["name"].encode()
    for mark, flags_at, method_at, packed_at, size_at, name_at in (
        (_LOCAL, 6, 8, 18, 22, 30),
        (_CENTRAL, 8, 10, 20, 24, 46),
    ):
        start = _header(changed, mark, name, name_at)
        if spec.get("encrypted", False):
            changed[start + flags_at] |= _ENCRYPTED
        if "method_said" in spec:
            changed[start + method_at : start + method_at + 2] = spec["method_said"].to_bytes(2, "little")
        for key, place in (("packed_said", packed_at), ("size_said", size_at)):
            if key in spec:
                changed[start + place : start + place + 4] = spec[key].to_bytes(4, "little")
    return bytes(changed)


def _header(data: bytearray, mark: bytes, name: bytes, name_at: int) -> int:
    start = data.rindex(mark)
    while data[start + name_at : start + name_at + len(name)] != name:
        start = data.rindex(mark, 0, start)
    return start
