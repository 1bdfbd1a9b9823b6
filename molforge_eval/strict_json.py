"""One JSON text into one value, loudly: whatever a lenient parser would hide becomes a fault with its pointer.

A text that our own writers spelled is recognised by writing it again: equal bytes cannot hold a repeated key, an
integer beyond 64 bits or an odd spelling. Everything else goes through the slow, strict reading.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import orjson

from molforge_eval.catalogue import seen
from molforge_eval.limits import Limits

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_FAULTS = 200
"""Faults of one text that are named one by one."""
_WIDEST = 2**64
STRING = rb'"(?:[^"\\]++|\\.)*+"?'
"""A string, closed or not. Possessive, and to the end of the text when it is never closed: no other form of it is
tried, so that the time is linear for every text."""
_TOKENS = re.compile(STRING + rb"|[\[\]{}]", re.DOTALL)
_STRINGS = re.compile(STRING, re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Fault(NamedTuple):
    """What is wrong with a text; the caller knows the file and the line."""

    code: str
    what: str
    pointer: str | None = None


class Parsed(NamedTuple):
    """A value and its faults; `usable` is false when there is no value."""

    value: Any
    faults: tuple[Fault, ...]
    usable: bool


UNUSABLE = Parsed(None, (), usable=False)
"""What is read of a text that could not be had."""


def read_value(data: bytes, limits: Limits) -> Parsed:
    """Read one JSON text.

    Args:
        data: The text without a line end.
        limits: Bounds on depth and on the length of numbers.

    Returns:
        The value with what is absurd in it replaced by `None` (a number that is not finite or too wide) and the faults;
        an unusable result when the text is no JSON.
    """
    if data.count(b"[") + data.count(b"{") <= limits.json_depth:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            return _read_strictly(data, limits)
        # The public script spells with Python's own writer; what either spells alike holds nothing twice.
        if orjson.dumps(value) == data or json.dumps(value).encode() == data:
            return Parsed(value, (), usable=True)
    return _read_strictly(data, limits)


def read_plain_lines(lines: Sequence[bytes], limits: Limits) -> list[dict[str, Any]] | None:
    """Read lines of one JSON object each, all of them spelled as our own writers or Python's spell.

    Args:
        lines: The lines, each with its newline.
        limits: Bounds on length and depth.

    Returns:
        The objects; `None` when any line is odd in any way, and then `read_value` tells which and why.
    """
    try:
        values = list(map(orjson.loads, lines))
        again = list(map(orjson.dumps, values, repeat(None), repeat(orjson.OPT_APPEND_NEWLINE)))
        if again != lines and not all(map(_is_spelled_by_python, values, again, lines)):
            return None
    except (orjson.JSONDecodeError, TypeError):
        return None
    if any(type(value) is not dict for value in values) or max(map(len, lines)) > limits.line_bytes + 1:
        return None
    for place in _rich_in_brackets(lines, limits.json_depth):
        if _depth_of_value(values[place]) > limits.json_depth:
            return None
    return values


def _is_spelled_by_python(value: Any, again: bytes, line: bytes) -> bool:
    return again == line or json.dumps(value).encode() + b"\n" == line


def _rich_in_brackets(lines: Sequence[bytes], more_than: int) -> list[int]:
    """List the places of lines that hold more opening brackets than a number: only these can be deeper than it."""
    text = np.frombuffer(b"".join(lines), dtype=np.uint8)
    # The two opening brackets differ in one bit, which no other character of JSON's shares with them.
    brackets = np.flatnonzero((text | 0x20) == ord("{"))
    ends = np.cumsum([len(line) for line in lines])
    counts = np.diff(np.searchsorted(brackets, ends), prepend=0)
    return np.flatnonzero(counts > more_than).tolist()


def read_file_value(data: bytes, limits: Limits) -> Parsed:
    """Read a whole file that holds one JSON text, as `read_value` does."""
    try:
        value = orjson.loads(data)
        written_by_us = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE) == data
    except (orjson.JSONDecodeError, TypeError):
        return _read_strictly(data, limits)
    if written_by_us and _depth_of_value(value) <= limits.json_depth:
        return Parsed(value, (), usable=True)
    return _read_strictly(data, limits)


def count_values(data: bytes, *, more_than: int) -> int:
    """Count the values of a text by its commas, without reading it.

    Args:
        data: The text; it may be broken.
        more_than: An answer up to this may be too high: only when there are more commas are those in strings left out.
    """
    commas = data.count(b",")
    return (_STRINGS.sub(b"", data).count(b",") if commas >= more_than else commas) + 1


class _Absurd(NamedTuple):
    code: str
    spelling: str


class _Repeated(dict[str, Any]):
    """An object that has a key twice; the last value stands, as in most parsers."""

    keys_twice: tuple[str, ...] = ()


def _read_strictly(data: bytes, limits: Limits) -> Parsed:
    faults: list[Fault] = []
    if data.startswith(BYTE_ORDER_MARK):
        faults.append(Fault("TEXT_MARKED", "the text begins with a byte order mark"))
        data = data[len(BYTE_ORDER_MARK) :]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.append(Fault("TEXT_UNDECODABLE", f"byte {error.start + 1} is not UTF-8"))
        return Parsed(None, tuple(faults), usable=False)
    if "\0" in text:
        faults.append(Fault("TEXT_NUL", f"byte {data.index(0) + 1} is NUL"))
        return Parsed(None, tuple(faults), usable=False)
    depth = _depth_of_text(data)
    if depth > limits.json_depth:
        faults.append(Fault("JSON_TOO_DEEP", f"lists and objects nest {depth} deep, the limit is {limits.json_depth}"))
        return Parsed(None, tuple(faults), usable=False)
    try:
        value = _decoder(limits).decode(text)
    except json.JSONDecodeError as error:
        faults.append(Fault("JSON_UNREADABLE", f"not JSON at column {error.colno}: {error.msg}"))
        return Parsed(None, tuple(faults), usable=False)
    cleaned = _clean(value, "", faults)
    if len(faults) > MOST_FAULTS:
        more = f"{len(faults) - MOST_FAULTS} more faults stand in this text"
        faults[MOST_FAULTS:] = [Fault(faults[MOST_FAULTS].code, more, faults[MOST_FAULTS].pointer)]
    return Parsed(cleaned, tuple(faults), usable=True)


def _decoder(limits: Limits) -> json.JSONDecoder:
    def whole(spelling: str) -> Any:
        if len(spelling) > limits.number_digits:
            return _Absurd("NUMBER_TOO_LONG", spelling)
        number = int(spelling)
        return number if -_WIDEST // 2 <= number < _WIDEST else _Absurd("NUMBER_TOO_WIDE", spelling)

    def broken(spelling: str) -> Any:
        if len(spelling) > limits.number_digits:
            return _Absurd("NUMBER_TOO_LONG", spelling)
        number = float(spelling)
        return number if abs(number) != float("inf") else _Absurd("NUMBER_NOT_FINITE", spelling)

    def constant(spelling: str) -> Any:
        return _Absurd("NUMBER_NOT_FINITE", spelling)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(items)
        if len(plain) == len(items):
            return plain
        repeated = _Repeated(plain)
        times = Counter(name for name, _ in items)
        repeated.keys_twice = tuple(name for name, count in times.items() if count > 1)
        return repeated

    return json.JSONDecoder(object_pairs_hook=pairs, parse_int=whole, parse_float=broken, parse_constant=constant)


def _clean(value: Any, pointer: str, faults: list[Fault]) -> Any:
    match value:
        case _Absurd():
            faults.append(Fault(value.code, f"number {seen(value.spelling)[1:-1]} {_ABSURD[value.code]}", pointer))
            return None
        case str():
            return _clean_text(value, pointer, faults)
        case dict():
            if isinstance(value, _Repeated):
                for name in value.keys_twice:
                    place = f"{pointer}/{escape_step(name)}"
                    faults.append(Fault("KEY_REPEATED", f"key {seen(name)} stands more than once", place))
            return {
                _clean_text(name, pointer, faults): _clean(item, f"{pointer}/{escape_step(name)}", faults)
                for name, item in value.items()
            }
        case list():
            return [_clean(item, f"{pointer}/{index}", faults) for index, item in enumerate(value)]
        case _:
            return value


_ABSURD = {
    "NUMBER_NOT_FINITE": "is not finite",
    "NUMBER_TOO_WIDE": "needs more than 64 bits",
    "NUMBER_TOO_LONG": "is longer than the limit",
}


def _clean_text(text: str, pointer: str, faults: list[Fault]) -> str:
    if not _SURROGATE.search(text):
        return text
    faults.append(Fault("TEXT_SURROGATE", "the text holds half of a surrogate pair", pointer))
    return _SURROGATE.sub("\ufffd", text)


def escape_step(name: str) -> str:
    """Escape one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape_step(step: str) -> str:
    """Read one step of a JSON pointer as the name that it stands for."""
    return step.replace("~1", "/").replace("~0", "~")


def pointer_of(steps: Iterable[str | int]) -> str:
    """Join steps to a JSON pointer."""
    return "".join(f"/{escape_step(str(step))}" for step in steps)


def _depth_of_text(data: bytes) -> int:
    depth = deepest = 0
    for token in _TOKENS.finditer(data):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in (b"]", b"}"):
            depth -= 1
    return deepest


def _depth_of_value(value: Any) -> int:
    depth = 0
    layer = [value]
    while layer:
        layer = [
            child
            for item in layer
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        depth += 1
    return depth
