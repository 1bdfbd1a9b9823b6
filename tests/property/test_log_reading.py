"""Reading many lines at a time yields and names what reading each line alone does."""

from __future__ import annotations

import io
from collections.abc import Iterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_eval.json_lines import read_batches, read_lines
from molforge_eval.limits import Limits
from molforge_eval.strict_json import BYTE_ORDER_MARK, read_value

LIMITS = Limits(line_bytes=300, json_depth=6)
ODD = [
    b"",
    b"   ",
    b"\r",
    b'{"a":1}\r',
    b'{"a": 1}',
    b'{"a":1,"a":2}',
    b'{"a":NaN}',
    b'{"a":1e999}',
    b'{"a":123456789012345678901234567890}',
    b'{"a":1E5}',
    b'{"a":"\\u00e9"}',
    b'{"a":"\\ud800"}',
    BYTE_ORDER_MARK + b'{"a":1}',
    BYTE_ORDER_MARK,
    b"\xff",
    b'{"a":"\0"}',
    b'{"a":1',
    b"[1]",
    b"7",
    b'{"a":[{}',
    b"{}]}",
    b'{"a":1},{"b":2}',
    b'{"a":' + b"[" * 9 + b"]" * 9 + b"}",
    b'{"a":' + b"[" * 5 + b"]" * 5 + b"}",
    b'{"a":"' + b"[" * 40 + b'"}',
    b'{"a":' + b"[" * 300 + b"]" * 300 + b"}",
    *(b'{"a":"' + b"x" * size + b'"}' for size in (291, 292, 293, 600)),
]
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SOUND = st.dictionaries(st.text(max_size=4), st.none() | st.booleans() | NUMBERS | st.text(max_size=20), max_size=5)
ROWS = st.lists(SOUND.map(orjson.dumps) | st.sampled_from(ODD), max_size=30)

Read = tuple[int, object, tuple[str, ...]]


def together(data: bytes) -> list[Read]:
    return [
        (line.number, line.value, tuple(f"{fault.code} {fault.what} {fault.pointer}" for fault in line.faults))
        for line in read_lines(io.BytesIO(data), LIMITS)
    ]


def alone(data: bytes) -> Iterator[Read]:
    """Do the same for one line after the other, without any short cut."""
    good = 0
    named: set[str] = set()
    for number, raw in enumerate(_lines_of(data), 1):
        text = raw.removesuffix(b"\n")
        if len(text) > LIMITS.line_bytes:
            yield number, None, (f"LINE_TOO_LONG the line has {len(raw)} bytes, the limit is 300 None",)
            continue
        notes: list[str] = []
        if text.endswith(b"\r"):
            text = text.rstrip(b"\r")
            notes += _once("LINE_RETURNED the line ends in carriage return and newline None", named)
        if not text.strip() or text == BYTE_ORDER_MARK:
            notes += _once("LINE_BLANK the line is blank None", named)
            if notes:
                yield number, None, tuple(notes)
            continue
        parsed = read_value(text, LIMITS)
        found = [f"{fault.code} {fault.what} {fault.pointer}" for fault in parsed.faults]
        found = [words for words in found if number == 1 or not words.startswith("TEXT_MARKED")]
        value = parsed.value if parsed.usable and isinstance(parsed.value, dict) else None
        if value is None and raw == text:
            found = [f"LINE_CUT the log was cut at line {number}, {good} good rows stand before it None"]
        elif value is None and parsed.usable:
            found.append(f"LINE_NOT_OBJECT the line holds {parsed.value} None")
        good += value is not None
        yield number, value, (*notes, *found)


def _lines_of(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1].removesuffix(b"\n")
    return lines if lines[-1] else lines[:-1]


def _once(words: str, named: set[str]) -> list[str]:
    is_new = words not in named
    named.add(words)
    return [words] if is_new else []


@given(ROWS, st.sampled_from([b"", b"\n"]))
def test_lines_read_together_are_those_read_alone(rows: list[bytes], ending: bytes) -> None:
    data = b"\n".join(rows) + ending

    assert together(data) == list(alone(data))


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_line_among_thousands_is_read_as_if_it_stood_alone(odd: bytes) -> None:
    rows = [orjson.dumps({"number": number, "text": "x" * 200}) for number in range(2_000)]
    rows[1_234] = odd
    data = b"\n".join(rows) + b"\n"

    assert together(data) == list(alone(data))


@given(ROWS)
def test_a_line_begins_at_the_byte_that_is_said(rows: list[bytes]) -> None:
    data = b"\n".join(rows) + b"\n"
    for batch in read_batches(io.BytesIO(data), LIMITS):
        for number, start in zip(batch.numbers, batch.starts, strict=True):
            assert data[start:].split(b"\n")[0] == rows[number - 1]
