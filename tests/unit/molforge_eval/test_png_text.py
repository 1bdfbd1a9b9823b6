"""Size and text chunks of a picture, without its pixels."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from molforge_eval.png_text import PngFaultError, read_png_text


def picture(**texts: str) -> bytes:
    chunks = PngImagePlugin.PngInfo()
    for key, value in texts.items():
        chunks.add_text(key, value)
    written = io.BytesIO()
    Image.new("RGB", (3, 2)).save(written, format="PNG", pnginfo=chunks)
    return written.getvalue()


def test_size_and_texts_are_read() -> None:
    text = read_png_text(picture(Title="Loss", Software="x"))

    assert (text.width, text.height) == (3, 2)
    assert text.texts == {"Title": "Loss", "Software": "x"}


def test_the_first_of_two_equal_keys_counts() -> None:
    data = picture(Title="first")
    end = data.index(b"IDAT") - 4
    body = b"tEXtTitle\0second"
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))

    assert read_png_text(data[:end] + chunk + data[end:]).texts == {"Title": "first"}


def test_a_picture_of_a_billion_pixels_is_measured_and_not_unpacked() -> None:
    body = b"IHDR" + struct.pack(">IIBBBBB", 2**20, 2**20, 8, 2, 0, 0, 0)
    head = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    end = struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    text = read_png_text(b"\x89PNG\r\n\x1a\n" + head + end)

    assert text.width * text.height == 2**40


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-6], lambda data: data[1:], lambda data: data.replace(b"Loss", b"Gain")]
)
def test_a_damaged_file_is_no_picture(spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(PngFaultError):
        read_png_text(spoil(picture(Title="Loss")))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for head in (b"", b"\x89PNG\r\n\x1a\n"):
        with pytest.raises(PngFaultError):
            read_png_text(head + data)
