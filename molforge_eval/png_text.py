"""The head and the text chunks of a PNG file, read without decoding a single pixel."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_TEXTS = 64
_MOST_CHUNKS = 10_000


class PngText(NamedTuple):
    """What a picture says about itself."""

    width: int
    height: int
    texts: dict[str, str]
    """Value of each text chunk by its key; of a key that stands twice the first."""


class PngFaultError(Exception):
    """Bytes that are no PNG file; never leaves the check that reads pictures."""


def read_png_text(data: bytes) -> PngText:
    """Read size and text chunks.

    Raises:
        PngFaultError: The bytes are no whole PNG file.
    """
    if not data.startswith(_SIGNATURE):
        raise PngFaultError("the file does not begin as a PNG")
    width = height = 0
    texts: dict[str, str] = {}
    place = len(_SIGNATURE)
    kind = b""
    chunks = 0
    while kind != b"IEND":
        chunks += 1
        if chunks > _MOST_CHUNKS:
            raise PngFaultError(f"the file has more than {_MOST_CHUNKS} chunks")
        if place + 12 > len(data):
            raise PngFaultError("the file breaks off")
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        end = place + 12 + length
        if end > len(data):
            raise PngFaultError("the file breaks off")
        if zlib.crc32(kind + body) != int.from_bytes(data[end - 4 : end], "big"):
            raise PngFaultError(f"chunk {kind!r} is damaged")
        if (kind == b"IHDR") != (chunks == 1):
            raise PngFaultError("its head does not stand first, or stands twice")
        if kind == b"acTL":
            raise PngFaultError("the picture is animated: it shows more than one")
        if kind == b"IHDR" and length == 13:
            width, height = struct.unpack_from(">II", body)
        elif kind == b"tEXt" and len(texts) < _MOST_TEXTS:
            key, _, value = body.partition(b"\0")
            texts.setdefault(key.decode("latin-1"), value.decode("latin-1"))
        place = end
    if place != len(data):
        raise PngFaultError(f"{len(data) - place} bytes follow its end")
    return PngText(width, height, texts)
