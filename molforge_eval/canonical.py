"""Bytes of a record: one spelling for hashing, one for a line, one for a file.

Equal records give equal bytes. Hashes are taken over the canonical spelling (sorted keys, no blanks, UTF-8), never
over what happens to stand in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel

JsonValue = Any


def plain(value: BaseModel | JsonValue) -> JsonValue:
    """Turn a record into JSON values; anything else passes as it is."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def canonical_bytes(value: BaseModel | JsonValue) -> bytes:
    """Spell a value with sorted keys and no blanks.

    Raises:
        TypeError: The value holds something that JSON does not know.
    """
    return orjson.dumps(plain(value), option=orjson.OPT_SORT_KEYS)


def line_bytes(value: BaseModel | JsonValue) -> bytes:
    """Spell a value as one line of a log, keys in declared order, newline at the end."""
    return orjson.dumps(plain(value)) + b"\n"


def file_bytes(value: BaseModel | JsonValue) -> bytes:
    """Spell a value as a file that a person may open: indented, keys in declared order, newline at the end."""
    return orjson.dumps(plain(value), option=orjson.OPT_INDENT_2) + b"\n"


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of some bytes as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest(value: BaseModel | JsonValue) -> str:
    """Return the SHA-256 of a value's canonical spelling."""
    return sha256_hex(canonical_bytes(value))


def seal_of(record: BaseModel | Mapping[str, JsonValue], *, without: str = "seal") -> str:
    """Return the digest of a record with one field, the seal itself, left out."""
    body = dict(plain(record))
    body.pop(without, None)
    return digest(body)


def chain_of(previous: str, line: Mapping[str, JsonValue]) -> str:
    """Return the chain value of a log line: the digest of the value before it and the line without its own.

    Args:
        previous: Chain value of the episode's previous line; for a first line, `chain_start`.
        line: The line as JSON values; a `chain` key in it is left out.
    """
    # A copy of each line of a long log would take a tenth of the time of its digest.
    body = {key: value for key, value in line.items() if key != "chain"} if "chain" in line else line
    return sha256_hex(orjson.dumps([previous, body], option=orjson.OPT_SORT_KEYS))


def chain_start(run_id: str, episode_id: str) -> str:
    """Return the value that an episode's first line is chained to."""
    return digest([run_id, episode_id])
