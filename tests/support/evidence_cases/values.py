"""What an edit writes: a value of JSON, or the bytes of a file, as a case spells it in TOML.

TOML has no null and no bytes, so a table with one of a few keys stands for what it cannot spell.
"""

from __future__ import annotations

import base64
import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from evidence_builder import read_json, read_lines

from molforge_eval.canonical import digest, file_bytes, sha256_hex

Node = Any
Slot = tuple[Any, str | int]
"""A container of JSON and the key or index of one place in it."""


def value_of(spec: Any, root: Path, old: Any = None) -> Any:
    """Read a value as a case spells it; `old` is what stands there before."""
    if isinstance(spec, float) and not math.isfinite(spec):
        raise ValueError(f"{spec} has no JSON spelling; `replace` writes it")
    if not isinstance(spec, Mapping) or len(spec) != 1:
        return spec
    ((kind, given),) = spec.items()
    makers: Mapping[str, Callable[[], Any]] = {
        "json": lambda: orjson.loads(given),
        "add": lambda: old + given,
        "multiply": lambda: old * given,
        "round": lambda: round(old, given),
        "append": lambda: old + given,
        "text": lambda: _replaced(old, *given),
        "copy": lambda: read_place(root, **given),
        "mean": lambda: mean_of_places(root, **given),
        "digest": lambda: digest(read_place(root, **given)),
        "sha256": lambda: sha256_hex((root / given).read_bytes()),
    }
    return makers[kind]() if kind in makers else spec


def read_place(root: Path, file: str, at: str = "", line: int | None = None) -> Any:
    """Read the value at a pointer of a JSON file, or of one line of a log."""
    value = read_json(root, file) if line is None else read_lines(root, file)[line - 1 if line > 0 else line]
    for step in steps_of(at):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def mean_of_places(root: Path, file: str, at: str, start: int = 1) -> float:
    """Compute the mean of the numbers at a pointer of a JSON file, from the first of them or a later one."""
    numbers = [node[key] for node, key in slots(read_json(root, file), at)]
    return statistics.fmean(numbers[start - 1 :])


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise LookupError(f"{old!r} does not stand there")
    return text.replace(old, new)


def bytes_of(spec: Any, root: Path) -> bytes:
    """Read bytes as a case spells them: a text, or a table that says how they are made."""
    if isinstance(spec, str):
        return spec.encode()
    if isinstance(spec, list):
        return b"".join(bytes_of(part, root) for part in spec)
    given = dict(spec)
    times: int = given.pop("times", 1)
    ((kind, value),) = given.items()
    makers: Mapping[str, Callable[[], bytes]] = {
        "text": lambda: str(value).encode(),
        "hex": lambda: bytes.fromhex(value),
        "base64": lambda: base64.b64decode(str(value)),
        "json": lambda: file_bytes(value),
        "value": lambda: file_bytes(value_of(value, root)),
        "file": lambda: Path(root, value).read_bytes(),
        "random": lambda: np.random.default_rng(0).bytes(value),
        "parts": lambda: bytes_of(value, root),
    }
    return makers[kind]() * times


def steps_of(pointer: str) -> list[str]:
    """Split a JSON pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def slots(value: Node, pointer: str) -> Iterator[Slot]:
    """Find the places that a pointer names; `*` stands for every element or key, `-` for the end of a list."""
    *way, last = steps_of(pointer)
    nodes = [value]
    for step in way:
        nodes = [node[key] for node in nodes for key in _keys(node, step)]
    for node in nodes:
        for key in _keys(node, last):
            yield node, key


def _keys(node: Node, step: str) -> list[str | int]:
    if step == "*":
        return list(range(len(node))) if isinstance(node, list) else list(node)
    if isinstance(node, list):
        return [len(node) if step == "-" else int(step)]
    return [step]


def matches(entry: Mapping[str, Any], where: Mapping[str, Any], unless: Mapping[str, Any]) -> bool:
    """Tell whether an object has all values of `where` and not all of `unless`; a list gives a choice of values."""
    is_wanted = all(_is_one_of(entry, key, wanted) for key, wanted in where.items())
    return is_wanted and not (unless and all(_is_one_of(entry, key, wanted) for key, wanted in unless.items()))


def _is_one_of(entry: Mapping[str, Any], key: str, wanted: Any) -> bool:
    choice = wanted if isinstance(wanted, list) else [wanted]
    found = key in entry and entry[key] is not None
    return (not found and "null" in choice) or (found and (entry[key] in choice or "any" in choice))
