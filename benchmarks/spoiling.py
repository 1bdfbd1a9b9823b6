"""Sound inputs, spoiled at random: bytes put in, taken out, copied and exchanged, and values of JSON replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from random import Random

import orjson

_TOKENS = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"NaN",
    b"-Infinity", b"1e400", b"-0", b"9" * 25, b"9" * 500, b"1e-400", b"null", b"true", b'"\\ud800"', b"\\u0000",
    b"[" * 80,
    b'{"a":' * 80, b"=1+1", b"'", b";", b"\t", b"../", b"C:\\", b"PK\x03\x04", b"PK\x05\x06", b"%PDF-", b"endobj",
    b"<<", b">>", b"/JS", b"/F", b"/Kids", b"0 0 R", b"IDAT", b"tEXt", b"IEND", b"\x7f\xff\xff\xff",
    b"\xff" * 8, b"\0" * 8,
    b"version https://git-lfs.github.com/spec/v1", b"data_offsets", b"format_version", b"2027-13-45", b"[[", b"x" * 300,
)  # fmt: skip
_VALUES = (
    None, True, False, 0, -1, 1, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, -0.0, 1e308, 5e-324, "", "x", "\0", "\u202e",
    "../x",
    "run-0123456789ab", "0" * 64, "0000", "2026-01-01T12:00:30Z", "9999-12-31T23:59:59-23:59", "env_error", "submit",
    "hf",
    "level_0_easy", "randomized", [], {}, [None], [[]], {"a": {}}, ["x"] * 40, "x" * 10_000, "=1+1", "\U0001f9ea",
)  # fmt: skip


def spoil(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Change an input: a value of a JSON text now and then, else some bytes in up to four places."""
    if data[:1] in b"{[" and rng.random() < 0.5:
        with contextlib.suppress(orjson.JSONDecodeError, TypeError):
            return _spoil_value(data, rng)
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(changed) + 1)
        length = rng.choice((0, 1, 1, 2, 4, 16, 200, len(changed)))
        match rng.randrange(6):
            case 0:
                del changed[at : at + length]
            case 1:
                changed[at:at] = rng.choice(_TOKENS)
            case 2:
                changed[at : at + length] = rng.choice(_TOKENS)
            case 3:
                changed[at : at + length] = rng.randbytes(min(length, 16))
            case 4:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                changed[at : at + length] = other[start : start + rng.choice((1, 8, 64, 1000))]
            case 5:
                changed[at:at] = changed[at : at + min(length, 1000)] * rng.choice((1, 2, 30))
    return bytes(changed)


def _spoil_value(data: bytes, rng: Random) -> bytes:
    """Change values of one JSON text, or of one line of several, and spell them as our own writers do."""
    lines = data.split(b"\n") if data.count(b'\n{"') else [data]
    place = rng.randrange(len(lines))
    value = orjson.loads(lines[place] or b"{}")
    for _ in range(rng.choice((1, 1, 2, 5))):
        container, key = value, None
        while isinstance(container, dict | list) and container:
            parent, key = (
                container,
                rng.choice(list(container) if isinstance(container, dict) else range(len(container))),
            )
            container = parent[key]
            if rng.random() < 0.3:
                break
        if key is None:
            break
        if isinstance(parent, dict) and rng.random() < 0.3:
            parent[rng.choice((str(key) + "x", "", "\0", "~/"))] = parent.pop(key)
        elif rng.random() < 0.2:
            parent.pop(key)
        else:
            parent[key] = rng.choice(_VALUES)
    lines[place] = orjson.dumps(value, option=orjson.OPT_INDENT_2 if len(lines) == 1 else None)
    return b"\n".join(lines)
