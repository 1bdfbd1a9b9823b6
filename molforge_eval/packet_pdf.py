"""A packet PDF taken apart: what is attached to it becomes a run directory in a folder of its own.

A child process with limits reads the PDF; what it found is checked against its schema before anything is moved. The
path of a file comes from the layout by the name of the attachment, never from the PDF.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env.errors import OUT_OF_SPACE, UnreadableError
from molforge_eval import layout, pdf_reader
from molforge_eval.archive import UnpackedRun, make_holder, without_room
from molforge_eval.catalogue import finding, printable, seen
from molforge_eval.findings import Finding
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.records.artifacts import PrintedPage
from molforge_eval.scratch import remove_scratch
from molforge_eval.shape import shape_of

_HEAD = b"%PDF-"
_HEAD_WITHIN = 1024
"""Readers of PDF look for its head in so many bytes."""
_LISTING_BYTES = 16 * 2**20
_LONGEST_WAIT = 10**6
"""Seconds; a wait of the platform counts no further than twice that."""
_FAULTS = {
    "repeated": "PACKET_ATTACHMENT_REPEATED",
    "unknown": "PACKET_ATTACHMENT_UNKNOWN",
    "unreadable": "PACKET_ATTACHMENT_UNREADABLE",
    "too_large": "PACKET_ATTACHMENT_TOO_LARGE",
}
_WORDS = {
    "repeated": "the name is attached once more; the first one was read",
    "unknown": "no packet carries an attachment of this name; it was not unpacked",
}
_MEND = "Name the packet as `molforge-report build` wrote it, the run's folder, or a zip archive of it."


class UnpackedPacket(NamedTuple):
    """A folder made from a packet."""

    run: UnpackedRun
    first_page: PrintedPage


def is_pdf(path: Path) -> bool:
    """Tell whether a file begins as a PDF."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_WITHIN)
    except OSError:
        return False
    # An archive may begin with a packet that is stored in it as it is.
    return _HEAD in head and not head.startswith(b"PK")


def unpack_packet(path: Path, limits: Limits = DEFAULT_LIMITS) -> UnpackedPacket:
    """Unpack what is attached to a packet PDF into a folder of its own.

    Args:
        path: The PDF.
        limits: Bounds on the file, its attachments, and the child process.

    Raises:
        UnreadableError: The file is no PDF that can be read, is encrypted, is too large, or carries nothing of a run.
    """
    size = path.stat().st_size
    if size > limits.pdf_bytes:
        raise _unreadable(path, f"the PDF has {size} bytes, the limit pdf_bytes is {limits.pdf_bytes}")
    holder = make_holder("packet")
    try:
        listing = _read_in_child(path, holder, limits)
        findings = tuple(_settle(listing, path, holder, limits))
        _want_a_run(listing, path, holder)
    except BaseException as error:
        remove_scratch(holder)
        if isinstance(error, OSError) and error.errno in OUT_OF_SPACE:
            raise without_room(path, error) from error
        raise
    return UnpackedPacket(
        UnpackedRun(holder, holder / "run", findings), PrintedPage.model_validate(listing["first_page"])
    )


def order_for(path: Path, limits: Limits) -> dict[str, Any]:
    """Write down what the child process is to read, and within which limits."""
    return {
        "path": str(path.resolve()),
        "names": {name: name.endswith(layout.PACKED_ENDING) for name in layout.ENCLOSURES},
        "attachments": limits.pdf_attachments,
        "objects": limits.pdf_objects,
        "ratio": limits.archive_ratio,
        "room": limits.archive_bytes,
        "memory_bytes": limits.pdf_memory_bytes,
        "seconds": limits.pdf_seconds,
    }


def _read_in_child(path: Path, holder: Path, limits: Limits) -> dict[str, Any]:
    (holder / "order.json").write_bytes(orjson.dumps(order_for(path, limits)))
    # -P: the working folder may be a stranger's, and a module that lies in it must not be imported.
    command = [sys.executable, "-P", "-m", pdf_reader.__name__, str(holder)]
    try:
        done = subprocess.run(  # noqa: S603 # our own module, no shell
            command,
            check=False,
            capture_output=True,
            timeout=min(limits.pdf_seconds, _LONGEST_WAIT),
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise _unreadable(path, f"reading it took longer than {limits.pdf_seconds} seconds") from error
    match done.returncode:
        case 0:
            return _listing_of(path, holder)
        case pdf_reader.ENCRYPTED:
            raise _unreadable(path, "it is encrypted")
        case pdf_reader.CROWDED:
            raise _unreadable(path, f"it has more objects than the limit pdf_objects, {limits.pdf_objects}")
        case pdf_reader.FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case pdf_reader.UNREADABLE:
            raise _unreadable(path, (done.stderr.strip().splitlines() or ["it is broken"])[-1][:200])
        case code:
            raise _unreadable(path, f"reading it went over a limit on time or memory (the reader ended with {code})")


def _listing_of(path: Path, holder: Path) -> dict[str, Any]:
    with (holder / "listing.json").open("rb") as file:
        data = file.read(_LISTING_BYTES)
    listing: dict[str, Any] = orjson.loads(data)
    if not shape_of("pdf_listing").fits(listing):
        raise _unreadable(path, "its attachments cannot be listed")
    return listing


def _settle(listing: dict[str, Any], path: Path, holder: Path, limits: Limits) -> Iterator[Finding]:
    """Move each unpacked file to its place in the run, and name what was wrong."""
    for entry in listing["attachments"]:
        if entry["fault"] is None:
            target = holder / "run" / layout.ENCLOSURES[entry["name"]]
            target.parent.mkdir(parents=True, exist_ok=True)
            (holder / entry["piece"]).rename(target)
        else:
            what = entry["reason"] or _WORDS[entry["fault"]]
            yield finding(_FAULTS[entry["fault"]], what, file=entry["name"])
    if listing["attachments_in_all"] > len(listing["attachments"]):
        what = f"the PDF has more than {limits.pdf_attachments} attachments; the others were not read"
        yield finding("PACKET_ATTACHMENT_TOO_LARGE", what, file=path.name)
    for entry in listing["active"]:
        what = f"object {entry['object_number']} of the PDF is {seen(entry['kind'])[1:-1]}"
        yield finding("PACKET_ACTIVE", what, file=path.name)


def _want_a_run(listing: dict[str, Any], path: Path, holder: Path) -> None:
    if (holder / "run").is_dir():
        return
    names = [entry["name"] for entry in listing["attachments"]]
    if not names:
        raise _unreadable(path, "nothing is attached to it")
    shown = ", ".join(seen(name) for name in names[:3])
    raise _unreadable(path, f"none of its {len(names)} attachments is a readable file of a run ({shown})")


def _unreadable(path: Path, why: str) -> UnreadableError:
    return UnreadableError(
        f"{printable(path.name)} is no packet that can be read: {printable(why)}", where=str(path), mend=_MEND
    )
