"""The trace of numbers as text for a terminal: what it is, how it is made, from which rows, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from molforge_eval.catalogue import printable, short
from molforge_eval.report.trace import Asked, NeededNumber, Trace, TracedNumber, TracedRow
from molforge_eval.report.trace_files import TracedFile

_INDENT = "  "
_WIDEST_VALUE = 24


def list_text(numbers: Sequence[Asked]) -> str:
    """List numbers, one a line: id, value, name."""
    widest = max((len(number.id) for number in numbers), default=0)
    shown = max((min(len(number.text), _WIDEST_VALUE) for number in numbers), default=0)
    lines = [f"{number.id:<{widest}}  {number.text:>{shown}}  {printable(number.name)}" for number in numbers]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def trace_text(trace: Trace) -> str:
    """Spell a trace, one block a number."""
    return "\n".join("".join(f"{line}\n" for line in _number(number)) for number in trace.numbers)


def _number(number: TracedNumber) -> Iterator[str]:
    yield f"{number.id}  {printable(number.name)}"
    value = "not known" if number.value is None else repr(number.value)
    yield f"{_INDENT}value    {number.text}  ({value})"
    if number.reason is not None:
        yield f"{_INDENT}unknown  {printable(number.reason)}"
    yield f"{_INDENT}formula  {printable(number.formula)}"
    yield f"{_INDENT}stated   {number.formula_file}"
    if number.computed_by is not None:
        yield f"{_INDENT}computed {number.computed_by}"
    again = "" if number.again is None or number.standing == "not recomputed" else f", {number.again!r}"
    yield f"{_INDENT}again    {number.standing}{again}: {printable(number.standing_reason)}"
    if number.needs:
        yield f"{_INDENT}made from"
        yield from _needed(number.needs, 2)
    if number.rows:
        yield f"{_INDENT}rows     {number.row_count}"
        yield from (f"{_INDENT * 2}{_row(row)}" for row in number.rows)
        left = number.row_count - len(number.rows)
        if left:
            yield f"{_INDENT * 2}… {left} more (--rows all)"
    else:
        yield f"{_INDENT}rows     none of the run"
    if number.files:
        yield f"{_INDENT}files"
        yield from (f"{_INDENT * 2}{_file(file)}" for file in number.files)


def _needed(numbers: Sequence[NeededNumber], depth: int) -> Iterator[str]:
    for number in numbers:
        yield f"{_INDENT * depth}{number.id}  {number.text}"
        yield from _needed(number.needs, depth + 1)


def _row(row: TracedRow) -> str:
    place = printable(row.file) if row.line is None else f"{printable(row.file)}:{row.line}"
    return " ".join(filter(None, (place, printable(row.pointer), f"= {row.value}" if row.pointer else "")))


def _file(file: TracedFile) -> str:
    if file.sha256 is None:
        return f"{printable(file.path)}  {file.standing}"
    words = f"{printable(file.path)}  {file.rows} rows  sha256 {file.sha256}  {file.standing}"
    if file.standing == "differs from the seal":
        others = (("sealed", file.sealed_sha256), ("packet", file.packet_sha256))
        words += "".join(f", {name} {short(value)}" for name, value in others if value and value != file.sha256)
    return words
