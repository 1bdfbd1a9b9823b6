"""A log of one JSON object a line, read so that one bad line costs one line.

Each line comes with its number and its faults; nothing is skipped without a word, and no line is held longer than it
takes to use it. Lines that our own writers spelled are read many at a time; as soon as one among them is odd, each of
them is read alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple

from molforge_eval.catalogue import seen
from molforge_eval.limits import Limits
from molforge_eval.strict_json import BYTE_ORDER_MARK, Fault, read_plain_lines, read_value

_CHUNK = 2**18
_EDGE = 2**16
"""Bytes at either end of a file that are looked at to tell a log from one text."""
_LINES = 256
"""Lines of a batch: few enough that what is made of them stays in the processor's cache."""


class Line(NamedTuple):
    """One line of a log: its object, or `None` when it holds none that can be used."""

    number: int
    value: dict[str, Any] | None
    faults: tuple[Fault, ...]


class Batch(NamedTuple):
    """Some neighbouring lines: those that hold an object, as columns of one length, and the faults of all."""

    numbers: Sequence[int]
    starts: Sequence[int]
    """Byte of the file at which each line begins."""
    values: list[dict[str, Any]]
    faults: tuple[tuple[int, Fault], ...]
    """Line and fault, in file order."""

    def part(self, first: int, end: int | None) -> Batch:
        """Take the objects from one place to before another, without the faults."""
        return Batch(self.numbers[first:end], self.starts[first:end], self.values[first:end], ())


def read_lines(handle: BinaryIO, limits: Limits) -> Iterator[Line]:
    """Read a log line by line.

    A blank line, a carriage return and a byte order mark are tolerated and named where they first stand.

    Args:
        handle: An open binary file, at its beginning.
        limits: Bounds on one line.

    Yields:
        A `Line` for every line of the file that is not blank, and for the first blank one.
    """
    for batch in read_batches(handle, limits):
        faults: dict[int, tuple[Fault, ...]] = {}
        for number, fault in batch.faults:
            faults[number] = (*faults.get(number, ()), fault)
        values = dict(zip(batch.numbers, batch.values, strict=True))
        for number in sorted({**values, **faults}):
            yield Line(number, values.get(number), faults.get(number, ()))


def read_batches(handle: BinaryIO, limits: Limits) -> Iterator[Batch]:
    """Read a log many lines at a time; what is read and what is named is the same as line by line.

    Args:
        handle: An open binary file, at the beginning of a line; lines are counted from there.
        limits: Bounds on one line.
    """
    start = handle.tell()
    if _is_one_text(handle, start, limits):
        what = "the log is one JSON text over many lines and not an object a line; nothing of it was read"
        yield Batch((), (), [], ((1, Fault("LINE_NOT_OBJECT", what)),))
        return
    reader = _Reader(limits, start)
    while block := handle.read(_CHUNK):
        # A block ends with a line, unless the file or a line beyond the limit ends it.
        block += handle.readline(limits.line_bytes + 1)
        lines = io.BytesIO(block).readlines()
        tail = b"" if lines[-1].endswith(b"\n") else lines.pop()
        for place in range(0, len(lines), _LINES):
            yield reader.read(lines[place : place + _LINES])
        if tail:
            yield reader.read_tail(tail, handle)


class _Reader:
    """Where in a log the reading stands, and what was named already."""

    def __init__(self, limits: Limits, start: int) -> None:
        self._limits = limits
        self._number = self._good = 0
        self._start = start
        self._blank_named = self._return_named = False

    def read(self, lines: list[bytes]) -> Batch:
        """Read whole lines, each with its newline."""
        if lines.count(b"\n") == len(lines):
            return self._read_blank(len(lines))
        values = read_plain_lines(lines, self._limits)
        if values is None:
            return _joined([self._read_alone(line) for line in lines])
        numbers = range(self._number + 1, self._number + 1 + len(lines))
        *starts, self._start = accumulate(map(len, lines), initial=self._start)
        self._number += len(lines)
        self._good += len(lines)
        return Batch(numbers, starts, values, ())

    def _read_blank(self, count: int) -> Batch:
        """Pass over lines without a character, which a file may have by the million."""
        faults: tuple[tuple[int, Fault], ...] = ()
        if not self._blank_named:
            self._blank_named = True
            faults = ((self._number + 1, Fault("LINE_BLANK", "the line is blank")),)
        self._number += count
        self._start += count
        return Batch((), (), [], faults)

    def read_tail(self, text: bytes, handle: BinaryIO) -> Batch:
        """Read what stands after the last newline of a block: the end of the file, or of what a line may have."""
        if len(text) > self._limits.line_bytes:
            size, _ = _skip_line(handle, len(text))
            return self._too_long(size)
        return self._read_alone(text)

    def _too_long(self, size: int) -> Batch:
        self._number += 1
        self._start += size
        what = f"the line has {size} bytes, the limit is {self._limits.line_bytes}"
        return Batch((), (), [], ((self._number, Fault("LINE_TOO_LONG", what)),))

    def _read_alone(self, raw: bytes) -> Batch:
        is_cut = not raw.endswith(b"\n")
        text = raw if is_cut else raw[:-1]
        if len(text) > self._limits.line_bytes:
            return self._too_long(len(raw))
        self._number += 1
        number, start = self._number, self._start
        self._start += len(raw)
        notes: tuple[Fault, ...] = ()
        if text.endswith(b"\r"):
            text = text.rstrip(b"\r")
            if not self._return_named:
                self._return_named = True
                notes = (Fault("LINE_RETURNED", "the line ends in carriage return and newline"),)
        if not text.strip() or text == BYTE_ORDER_MARK:
            if not self._blank_named:
                self._blank_named = True
                notes = (*notes, Fault("LINE_BLANK", "the line is blank"))
            return _batch_of(start, Line(number, None, notes))
        line = _read_line(number, text, notes, self._limits)
        if line.value is None and is_cut and all(fault.code != "LINE_NOT_OBJECT" for fault in line.faults):
            cut = Fault("LINE_CUT", f"the log was cut at line {number}, {self._good} good rows stand before it")
            line = Line(number, None, (*notes, cut))
        self._good += line.value is not None
        return _batch_of(start, line)


def _is_one_text(handle: BinaryIO, start: int, limits: Limits) -> bool:
    """Tell whether what is left is one text over many lines: neither its first line nor its last is whole by itself."""
    head = handle.read(_EDGE).removeprefix(BYTE_ORDER_MARK).lstrip()
    first, newline, _ = head.partition(b"\n")
    is_opened = first[:1] == b"[" or (first.strip() == b"{" and newline)
    if not is_opened:
        handle.seek(start)
        return False
    handle.seek(max(start, handle.seek(0, io.SEEK_END) - _EDGE))
    last = handle.read(_EDGE).rstrip().rpartition(b"\n")[2].strip()
    handle.seek(start)
    is_closed = last[-1:] == b"]" if first[:1] == b"[" else last == b"}"
    return is_closed and not any(read_value(line, limits).usable for line in (first, last))


def _batch_of(start: int, line: Line) -> Batch:
    faults = tuple((line.number, fault) for fault in line.faults)
    if line.value is None:
        return Batch((), (), [], faults)
    return Batch((line.number,), (start,), [line.value], faults)


def _joined(batches: Sequence[Batch]) -> Batch:
    return Batch(
        [number for batch in batches for number in batch.numbers],
        [start for batch in batches for start in batch.starts],
        [value for batch in batches for value in batch.values],
        tuple(fault for batch in batches for fault in batch.faults),
    )


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
