"""A run inside a packet PDF that was put together by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pikepdf
from packet_builder import attachments_of, first_page_of, packet_of

from evidence_cases.registry import make_edit
from evidence_cases.values import bytes_of


def put_on_paper(root: Path, spec: Mapping[str, Any]) -> Path:
    """Write a packet PDF beside a run.

    Args:
        root: The folder of the run.
        spec: `without` names attachments that are left out, `more` has further ones, `catalogue` and `streams` set keys
            of the document and of the streams of attachments, `says` has two texts, of which the first page says the
            second in place of the first, `words` is all that it says, `creator` names another maker, `password` locks
            it, `edits` change its bytes.

    Returns:
        The PDF.
    """
    more = tuple((entry["name"], bytes_of(entry["content"], root)) for entry in spec.get("more", ()))
    saving: dict[str, Any] = {}
    if "password" in spec:
        saving["encryption"] = pikepdf.Encryption(owner=spec["password"], user=spec["password"])

    def set_keys(pdf: pikepdf.Pdf) -> None:
        for key, value in spec.get("catalogue", {}).items():
            pdf.Root[f"/{key}"] = _object(value)

    streams = {
        name: {f"/{key}": _object(value) for key, value in keys.items()}
        for name, keys in spec.get("streams", {}).items()
    }
    without = tuple(spec.get("without", ()))
    if "says" in spec:
        saving["words"] = first_page_of(attachments_of(root, without=without)).replace(*spec["says"])
    saving |= {key: spec[key] for key in ("words", "creator") if key in spec}
    target = packet_of(root, without=without, more=more, change=set_keys, streams=streams, **saving)
    for change in spec.get("edits", ()):
        make_edit(target.parent, {"file": target.name, **change})
    return target


def _object(value: Any) -> Any:
    """Turn a value of TOML into one of PDF: a text that begins with a slash is a name."""
    if isinstance(value, Mapping):
        return pikepdf.Dictionary({f"/{key}": _object(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return pikepdf.Array([_object(inner) for inner in value])
    return pikepdf.Name(value) if isinstance(value, str) and value.startswith("/") else value
