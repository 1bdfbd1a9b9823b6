"""Packet PDFs put together by hand: attachments and whatever else a stranger's file may hold, without words."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pikepdf

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet

Change = Callable[[pikepdf.Pdf], Any]


def attachments_of(root: Path, *, without: tuple[str, ...] = ()) -> list[tuple[str, bytes]]:
    """Name and bytes of what a packet of a run carries; the evidence is computed where the run has none."""
    if not (root / layout.EVIDENCE).exists() and layout.EVIDENCE not in without:
        (root / layout.EVIDENCE).write_bytes(_evidence_of(root))
    held = []
    for name, path in layout.ENCLOSURES.items():
        if name in without or not (root / path).exists():
            continue
        data = (root / path).read_bytes()
        held.append((name, gzip.compress(data, mtime=0) if name.endswith(layout.PACKED_ENDING) else data))
    return held


_COMPUTED: dict[bytes, bytes] = {}
"""Evidence by the seal of its run: many tests make a packet of the same one."""


def _evidence_of(root: Path) -> bytes:
    seal = (root / layout.CHECKSUMS).read_bytes()
    if seal not in _COMPUTED:
        build_packet(root, options=PacketOptions(html=False, pdf=False, replay=False, pack=False))
        _COMPUTED[seal] = (root / layout.EVIDENCE).read_bytes()
    return _COMPUTED[seal]


def write_packet(
    target: Path,
    held: list[tuple[str, bytes]],
    *,
    change: Change | None = None,
    streams: Mapping[str, Mapping[str, Any]] | None = None,
    **saving: Any,
) -> Path:
    """Write a PDF with attachments.

    Args:
        target: The file.
        held: Name and bytes; a name may stand twice.
        change: Does more to the document before it is saved.
        streams: Further keys of the stream of an attachment, by its name.
        saving: For `pikepdf.Pdf.save`.
    """
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        names = pikepdf.Array()
        for name, data in held:
            stream = pdf.make_stream(data, pikepdf.Dictionary(Type=pikepdf.Name.EmbeddedFile))
            for key, value in (streams or {}).get(name, {}).items():
                stream[key] = value
            spec = pikepdf.Dictionary(
                Type=pikepdf.Name.Filespec, F=name, UF=name, EF=pikepdf.Dictionary(F=stream, UF=stream)
            )
            names.extend([pikepdf.String(name), pdf.make_indirect(spec)])
        pdf.Root.Names = pikepdf.Dictionary(EmbeddedFiles=pikepdf.Dictionary(Names=names))
        if change is not None:
            change(pdf)
        pdf.save(target, **{"deterministic_id": "encryption" not in saving, **saving})
    return target


def packet_of(
    root: Path, *, without: tuple[str, ...] = (), more: tuple[tuple[str, bytes], ...] = (), **how: Any
) -> Path:
    """Write the packet of a run beside it."""
    held = [*attachments_of(root, without=without), *more]
    return write_packet(root.parent / "judge_packet.pdf", held, **how)
