"""A log is read line by line: one bad line costs one line."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_eval.json_lines import Line, read_lines
from molforge_eval.limits import DEFAULT_LIMITS, Limits


def read(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Line]:
    return list(read_lines(io.BytesIO(data), limits))


def codes(lines: list[Line]) -> list[tuple[int, str]]:
    return [(line.number, fault.code) for line in lines for fault in line.faults]


def test_one_nan_token_costs_one_number_and_the_other_200_rows_are_read() -> None:
    rows = [b'{"step":%d,"grad_norm":0.5}' % number for number in range(201)]
    rows[100] = b'{"step":100,"grad_norm":NaN}'
    lines = read(b"\n".join(rows) + b"\n")

    assert codes(lines) == [(101, "NUMBER_NOT_FINITE")]
    assert lines[100].faults[0].pointer == "/grad_norm"
    assert sum(line.value is not None for line in lines) == 201


def test_a_cut_last_line_says_how_many_good_rows_stand_before_it() -> None:
    lines = read(b'{"a":1}\n{"a":2}\n{"a":')

    assert codes(lines) == [(3, "LINE_CUT")]
    assert lines[2].faults[0].what == "the log was cut at line 3, 2 good rows stand before it"


def test_a_whole_last_line_without_its_end_is_a_row() -> None:
    assert [line.value for line in read(b'{"a":1}\n{"a":2}')] == [{"a": 1}, {"a": 2}]


def test_blank_lines_returns_and_a_mark_are_tolerated_and_named_once() -> None:
    lines = read(b'\xef\xbb\xbf{"a":1}\r\n\r\n\r\n{"a":2}\r\n\n{"a":3}\r\n')

    assert [line.value for line in lines if line.value is not None] == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert sorted(code for _, code in codes(lines)) == ["LINE_BLANK", "LINE_RETURNED", "TEXT_MARKED"]
    assert [line.number for line in lines if line.value is not None] == [1, 4, 6]


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_beyond_the_limit_is_skipped_without_being_held(ending: bytes) -> None:
    limits = Limits(line_bytes=100)
    lines = read(b'{"a":1}\n{"b":"' + b"x" * 3_000_000 + b'"}\n{"a":2}' + ending, limits)

    assert codes(lines) == [(2, "LINE_TOO_LONG")]
    assert lines[1].faults[0].what == "the line has 3000009 bytes, the limit is 100"
    assert lines[-1].value == {"a": 2}


def test_a_line_that_is_no_object_is_named() -> None:
    assert codes(read(b"[1]\n7\nnull\n")) == [(1, "LINE_NOT_OBJECT"), (2, "LINE_NOT_OBJECT"), (3, "LINE_NOT_OBJECT")]


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_raise_or_lose_count(data: bytes) -> None:
    lines = read(data)
    numbers = [line.number for line in lines]

    assert numbers == sorted(set(numbers))
    assert all(line.value is not None or line.faults for line in lines)


@given(st.lists(st.sampled_from([b'{"a":1}', b"", b"{", b"[]", b'{"a":NaN}', b"\r", b"\0", b"\xff"]), max_size=12))
def test_every_good_line_is_read_whatever_stands_beside_it(rows: list[bytes]) -> None:
    lines = read(b"".join(row + b"\n" for row in rows))
    good = [number for number, row in enumerate(rows, 1) if row in (b'{"a":1}', b'{"a":NaN}')]

    assert [line.number for line in lines if line.value is not None] == good
