"""Edits of pictures and of weights: the chunks of a PNG, the tensors and the header of a safetensors file."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from safetensors.numpy import load_file, save_file

from evidence_cases.forgeries import adapter_everywhere
from evidence_cases.registry import edit
from evidence_cases.values import slots, value_of
from molforge_eval import layout


@edit
def png_text(root: Path, *, file: str, key: str, to: str | None = None) -> None:
    """Give a text chunk of a picture another value; without one the chunk is taken out."""
    data = (root / file).read_bytes()
    start = data.index(b"tEXt" + key.encode() + b"\0") - 4
    end = start + 12 + int.from_bytes(data[start : start + 4], "big")
    new = b"" if to is None else _chunk(b"tEXt", key.encode() + b"\0" + to.encode())
    (root / file).write_bytes(data[:start] + new + data[end:])


@edit
def png_size(root: Path, *, file: str, width: int, height: int) -> None:
    """Let the head of a picture speak of another size."""
    data = (root / file).read_bytes()
    head = _chunk(b"IHDR", width.to_bytes(4, "big") + height.to_bytes(4, "big") + data[24:29])
    (root / file).write_bytes(data[:8] + head + data[33:])


@edit
def tensors(
    root: Path,
    *,
    tensor: str = "*",
    fill: float | None = None,
    multiply: float | None = None,
    first: float | None = None,
    rename: str | None = None,
    dtype: str | None = None,
    drop: bool = False,
    file: str = layout.ADAPTER_WEIGHTS,
) -> None:
    """Change the tensors whose names fit a pattern: fill, multiply, set the first value, rename, retype or drop."""
    found = load_file(root / file)
    if not any(fnmatchcase(name, tensor) for name in found):
        raise LookupError(f"no tensor is named {tensor}")
    changed: dict[str, np.ndarray] = {}
    for name, value in found.items():
        if not fnmatchcase(name, tensor):
            changed[name] = value
        elif not drop:
            new = value if fill is None else np.full_like(value, fill)
            new = new if multiply is None else new * np.float32(multiply)
            new = new if dtype is None else new.astype(dtype)
            if first is not None:
                new.flat[0] = first
            old, _, other = (rename or "").partition("=>")
            changed[name if rename is None else name.replace(old, other)] = new
    save_file(changed, root / file, metadata={"format": "pt"})


def change_tensors(root: Path, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> None:
    """Change the tensors of the adapter as no edit says it, and let manifest and evaluation name the new file."""
    save_file(change(load_file(root / layout.ADAPTER_WEIGHTS)), root / layout.ADAPTER_WEIGHTS)
    adapter_everywhere(root)


@edit
def tensor_header(root: Path, *, at: str, to: Any, file: str = layout.ADAPTER_WEIGHTS) -> None:
    """Set a value in the header of the weights; the bytes of the tensors stay."""
    data = (root / file).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header: Mapping[str, Any] = orjson.loads(data[8 : 8 + length])
    for node, key in slots(header, at):
        node[key] = value_of(to, root, node.get(key) if isinstance(node, dict) else node[key])
    text = orjson.dumps(header)
    (root / file).write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
