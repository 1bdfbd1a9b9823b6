"""One JSON text is read into one value, and whatever a lenient parser hides is a fault."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.strict_json import MOST_FAULTS, Fault, Parsed, read_file_value, read_plain_lines, read_value

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FINITE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def read(text: bytes) -> Parsed:
    return read_value(text, DEFAULT_LIMITS)


@given(VALUES)
def test_whatever_json_knows_is_read_as_it_was_written(value: object) -> None:
    compact, spaced = orjson.dumps(value), json.dumps(value, indent=3).encode()

    assert read(compact) == Parsed(value, (), usable=True)
    assert read(spaced) == Parsed(value, (), usable=True)
    assert read_file_value(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n", DEFAULT_LIMITS).value == value


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        (b'{"a":[1,NaN]}', "NUMBER_NOT_FINITE", "/a/1"),
        (b'{"a":-Infinity}', "NUMBER_NOT_FINITE", "/a"),
        (b'{"a":1e999}', "NUMBER_NOT_FINITE", "/a"),
        (b'{"a":{"b/c":36893488147419103232}}', "NUMBER_TOO_WIDE", "/a/b~1c"),
        (b'{"a":' + b"7" * 401 + b"}", "NUMBER_TOO_LONG", "/a"),
        (b'{"a":{"b":1,"b":2}}', "KEY_REPEATED", "/a/b"),
        (b'{"a":"x\\ud800"}', "TEXT_SURROGATE", "/a"),
        (b'\xef\xbb\xbf{"a":1}', "TEXT_MARKED", None),
    ],
)
def test_a_fault_is_named_with_its_pointer_and_the_rest_is_still_read(
    text: bytes, code: str, pointer: str | None
) -> None:
    parsed = read(text)

    assert parsed.usable
    assert [(fault.code, fault.pointer) for fault in parsed.faults] == [(code, pointer)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"a":\xff}', "TEXT_UNDECODABLE"),
        (b'{"a":1}\0', "TEXT_NUL"),
        (b"[" * 65 + b"]" * 65, "JSON_TOO_DEEP"),
        (b"[" * 100_000, "JSON_TOO_DEEP"),
        (b'{"a":1', "JSON_UNREADABLE"),
        (b"", "JSON_UNREADABLE"),
        (b'{"a":01}', "JSON_UNREADABLE"),
        (b"{'a':1}", "JSON_UNREADABLE"),
    ],
)
def test_a_text_that_holds_no_value_is_said_to_be_unusable(text: bytes, code: str) -> None:
    parsed = read(text)

    assert not parsed.usable
    assert [fault.code for fault in parsed.faults] == [code]


def test_an_absurd_number_becomes_none_and_never_a_guess() -> None:
    value = read(b'{"a":NaN,"b":1e999,"c":99999999999999999999,"d":1}').value

    assert value == {"a": None, "b": None, "c": None, "d": 1}


def test_the_last_of_two_equal_keys_stands_as_in_most_parsers() -> None:
    assert read(b'{"a":1,"a":2}').value == {"a": 2}


def test_brackets_in_a_text_are_no_nesting() -> None:
    assert read(b'{"a":"' + b"[{" * 200 + b'"}').faults == ()


def test_the_depth_of_a_file_is_limited_as_that_of_a_line() -> None:
    deep = orjson.dumps(json.loads("[" * 5 + "]" * 5), option=orjson.OPT_INDENT_2) + b"\n"

    assert read_file_value(deep, Limits(json_depth=5)).usable
    assert [fault.code for fault in read_file_value(deep, Limits(json_depth=4)).faults] == ["JSON_TOO_DEEP"]


def test_a_flood_of_faults_in_one_text_is_counted() -> None:
    parsed = read(b"[" + b"NaN," * 1000 + b"1]")

    assert len(parsed.faults) == MOST_FAULTS + 1
    assert parsed.faults[-1] == Fault("NUMBER_NOT_FINITE", "800 more faults stand in this text", f"/{MOST_FAULTS}")


@pytest.mark.parametrize("tail", [b"", b"\\"], ids=["open", "in an escape"])
def test_a_string_that_is_never_closed_is_refused_in_linear_time(tail: bytes) -> None:
    parsed = read_value(b'{"a":"' + b'\\"' * 500_000 + tail, DEFAULT_LIMITS)

    assert [fault.code for fault in parsed.faults] == ["JSON_UNREADABLE"]


@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), min_size=1, max_size=4), st.booleans())
def test_lines_of_either_writer_are_read_in_one_pass(values: list[dict[str, object]], by_python: bool) -> None:
    ours = [orjson.dumps(value) + b"\n" for value in values]
    lines = [json.dumps(value).encode() + b"\n" for value in values] if by_python else ours

    assert read_plain_lines(lines, DEFAULT_LIMITS) == [read(line[:-1]).value for line in lines]


@pytest.mark.parametrize(
    "odd", [b'{"a":1, "b":2}', b'{"a":1,"a":1}', b'{"a": NaN}', b"[1]", b'{"a": 1.50}', b'{"a": 1']
)
def test_a_line_that_is_odd_in_any_way_is_left_to_the_strict_reading(odd: bytes) -> None:
    plain = b'{"a": 1, "b": 2}\n'

    assert read_plain_lines([plain, plain], DEFAULT_LIMITS) == [{"a": 1, "b": 2}] * 2
    assert read_plain_lines([plain, odd + b"\n"], DEFAULT_LIMITS) is None
