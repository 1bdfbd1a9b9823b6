"""A log of one JSON object a line, read so that one bad line costs one line.

Each line comes with its number and its faults; nothing is skipped without a word, and no line is held longer than it
takes to use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from molforge_eval.catalogue import seen
from molforge_eval.limits import Limits
from molforge_eval.strict_json import BYTE_ORDER_MARK, Fault, read_value

_CHUNK = 2**20


class Line(NamedTuple):
    """One line of a log: its object, or `None` when it holds none that can be used."""

    number: int
    value: dict[str, Any] | None
    faults: tuple[Fault, ...]


def read_lines(handle: BinaryIO, limits: Limits) -> Iterator[Line]:
    """Read a log line by line.

    A blank line, a carriage return and a byte order mark are tolerated and named where they first stand.

    Args:
        handle: An open binary file, at its beginning.
        limits: Bounds on one line.

    Yields:
        A `Line` for every line of the file that is not blank, and for the first blank one.
    """
    number = good = 0
    blank_named = return_named = False
    while raw := handle.readline(limits.line_bytes + 1):
        number += 1
        complete = raw.endswith(b"\n")
        if not complete and len(raw) > limits.line_bytes:
            size, complete = _skip_line(handle, len(raw))
            what = f"the line has {size} bytes, the limit is {limits.line_bytes}"
            yield Line(number, None, (Fault("LINE_TOO_LONG", what),))
            continue
        text = raw.rstrip(b"\n")
        notes: tuple[Fault, ...] = ()
        if text.endswith(b"\r"):
            text = text.rstrip(b"\r")
            if not return_named:
                return_named = True
                notes = (Fault("LINE_RETURNED", "the line ends in carriage return and newline"),)
        if not text.strip() or text == BYTE_ORDER_MARK:
            if not blank_named:
                blank_named = True
                notes = (*notes, Fault("LINE_BLANK", "the line is blank"))
            if notes:
                yield Line(number, None, notes)
            continue
        line = _read_line(number, text, notes, limits)
        if line.value is None and not complete:
            cut = Fault("LINE_CUT", f"the log was cut at line {number}, {good} good rows stand before it")
            line = Line(number, None, (*notes, cut))
        good += line.value is not None
        yield line


def _read_line(number: int, text: bytes, notes: tuple[Fault, ...], limits: Limits) -> Line:
    parsed = read_value(text, limits)
    faults = (*notes, *(fault for fault in parsed.faults if number == 1 or fault.code != "TEXT_MARKED"))
    if not parsed.usable:
        return Line(number, None, faults)
    if not isinstance(parsed.value, dict):
        return Line(number, None, (*faults, Fault("LINE_NOT_OBJECT", f"the line holds {seen(parsed.value)}")))
    return Line(number, parsed.value, faults)


def _skip_line(handle: BinaryIO, size: int) -> tuple[int, bool]:
    """Read on to the end of a line without keeping it; return its size and whether it has an end."""
    while chunk := handle.readline(_CHUNK):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            return size, True
    return size, False
