"""Packet PDFs put together by hand: attachments and whatever else a stranger's file may hold, without words."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pikepdf

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.first_page import write_words
from molforge_eval.report.numerals import short_hash

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


def first_page_of(held: list[tuple[str, bytes]]) -> str:
    """Words that a forger would print on the first page: those of the evidence, as far as they can be written."""
    data = dict(held).get(layout.EVIDENCE)
    try:
        evidence = Evidence.model_validate_json(data or b"")
    except ValueError:
        return ""
    names = {path: name for name, path in layout.ENCLOSURES.items()}
    left_out = any(entry.path in layout.LOGS and names[entry.path] not in dict(held) for entry in evidence.artifacts)
    identity = evidence.identity
    foot = f"Run {identity.run_name if evidence.old else identity.run_id} · root {short_hash(identity.root_sha256)}"
    return f"{write_words(evidence, logs_left_out=left_out) or ''} 1. {foot} Page 1 of 1"


def _print(pdf: pikepdf.Pdf, words: str) -> None:
    """Put words on the page with a face that has a table of characters, which is all that a reader needs."""
    codes = {mark: number for number, mark in enumerate(sorted(set(words)), start=1)}
    lines = [f"<{code:04x}> <{mark.encode('utf-16-be').hex()}>" for mark, code in codes.items()]
    face = pikepdf.Dictionary(
        Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type0, ToUnicode=pdf.make_stream("\n".join(lines).encode())
    )
    page = pdf.pages[0].obj
    page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=face))
    shown = "".join(f"{codes[mark]:04x}" for mark in words)
    page.Contents = pdf.make_stream(f"BT /F1 1 Tf <{shown}> Tj ET".encode())


def write_packet(
    target: Path,
    held: list[tuple[str, bytes]],
    *,
    words: str | None = None,
    creator: str = layout.PACKET_CREATOR,
    change: Change | None = None,
    streams: Mapping[str, Mapping[str, Any]] | None = None,
    **saving: Any,
) -> Path:
    """Write a PDF with attachments.

    Args:
        target: The file.
        held: Name and bytes; a name may stand twice.
        words: What the first page says; those of the evidence where nothing is said.
        creator: The program that the document names as its maker.
        change: Does more to the document before it is saved.
        streams: Further keys of the stream of an attachment, by its name.
        saving: For `pikepdf.Pdf.save`.
    """
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.docinfo["/Creator"] = creator
        _print(pdf, first_page_of(held) if words is None else words)
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
