"""The files that rows of a number stand in: each hashed once, and held to the seal and to the packet."""

from __future__ import annotations

import hashlib
from typing import Literal

from molforge_env.frozen import FrozenModel
from molforge_eval import layout
from molforge_eval.records.fields import Count, Sha256
from molforge_eval.report.number_rows import SHIPPED, shipped_bytes
from molforge_eval.report.trace_subject import Subject
from molforge_eval.sealing import checksum_of

FileStanding = Literal[
    "as sealed",
    "differs from the seal",
    "not sealed",
    "absent",
    "unreadable",
    "sealed and absent",
    "no file of the run",
    "ships with the product",
]
UNSOUND: frozenset[FileStanding] = frozenset({"differs from the seal", "unreadable", "sealed and absent"})
"""What bars that a number is taken for what its records give."""


class TracedFile(FrozenModel):
    """A file that rows of a number stand in."""

    path: str
    rows: Count
    """Rows of the number, and of the numbers that it needs, in this file."""
    sha256: Sha256 | None
    """As the file stands now; `None` when it is absent."""
    sealed_sha256: Sha256 | None
    """As `checksums.json` has it; `None` when it does not list the file."""
    packet_sha256: Sha256 | None
    """As the packet has it; `None` without a packet, or when it does not name the file."""
    standing: FileStanding


class FileHashes:
    """The hash of each file once, beside those of the seal and of the packet."""

    def __init__(self, subject: Subject) -> None:
        """Hash nothing yet."""
        self._run = subject.run
        sums = self._run.checksums
        self._sealed = {} if sums is None else {entry.path: entry.sha256 for entry in sums.files}
        self._packet: dict[str, str] = {}
        if subject.has_packet:
            self._packet = {artifact.path: artifact.sha256 for artifact in subject.evidence.artifacts}
        self._now: dict[str, str | None] = {}

    def file(self, path: str, rows: int) -> TracedFile:
        """Hash a file and compare."""
        if path not in self._now:
            self._now[path] = self._hash(path)
        now, sealed = self._now[path], self._sealed.get(path)
        packet = self._packet.get(path)
        return TracedFile(
            path=path,
            rows=rows,
            sha256=now,
            sealed_sha256=sealed,
            packet_sha256=packet,
            standing=self._standing(path, now, sealed, packet),
        )

    def _standing(self, path: str, now: str | None, sealed: str | None, packet: str | None) -> FileStanding:
        if path in SHIPPED:
            return "ships with the product"
        if now is None and not self._run.may_lack(path):
            if path in self._run.files or any(found.where.file == path for found in self._run.findings):
                return "unreadable"
            if sealed or packet:
                return "sealed and absent"
        return _standing(path, now, sealed, packet)

    def _hash(self, path: str) -> str | None:
        if path in SHIPPED:
            return hashlib.sha256(shipped_bytes(path)).hexdigest()
        try:
            return checksum_of(self._run.files, path).sha256 if path in self._run.files else None
        except OSError:
            return None


def _standing(path: str, now: str | None, sealed: str | None, packet: str | None) -> FileStanding:
    if now is None:
        return "absent" if layout.is_record(path) else "no file of the run"
    if (sealed or packet) is None:
        return "not sealed"
    is_equal = now == (now if sealed is None else sealed) and now == (now if packet is None else packet)
    if not is_equal:
        return "differs from the seal"
    return "not sealed" if sealed is None else "as sealed"
