"""Edits of records: values in JSON files and in the lines of logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from evidence_cases.registry import edit
from evidence_cases.values import Slot, bytes_of, matches, slots, value_of
from molforge_eval import layout
from molforge_eval.canonical import file_bytes, line_bytes

Where = Mapping[str, Any]


@edit
def set(  # noqa: A001 - the word that a case uses
    root: Path, *, file: str, at: str, to: Any, where: Where | None = None, unless: Where | None = None, **chosen: Any
) -> None:
    """Set the values at a pointer."""
    _change(root, file, chosen, where, unless, lambda value: _put(root, value, at, to, where, unless, file))


@edit
def remove(
    root: Path, *, file: str, at: str, where: Where | None = None, unless: Where | None = None, **chosen: Any
) -> None:
    """Remove the keys or elements at a pointer."""

    def drop(value: Any) -> None:
        for node, key in reversed(_objects(value, at, file, where, unless)):
            del node[key]

    _change(root, file, chosen, where, unless, drop)


@edit
def insert(root: Path, *, file: str, at: str, to: Any, **chosen: Any) -> None:
    """Put an element into a list before the index of a pointer; `-` is the end."""

    def put(value: Any) -> None:
        for node, key in slots(value, at):
            node.insert(key, value_of(to, root))

    _change(root, file, chosen, None, None, put)


@edit
def repeat_elements(root: Path, *, file: str, at: str, times: int = 1) -> None:
    """Put elements of lists once more, or so many times more, behind themselves."""

    def repeat(value: Any) -> None:
        for node, key in reversed(list(slots(value, at))):
            node[int(key) + 1 : int(key) + 1] = [node[key]] * times

    _change(root, file, {}, None, None, repeat)


@edit
def exchange(
    root: Path,
    *,
    file: str,
    at: str,
    other: str | None = None,
    line: int | None = None,
    other_line: int | None = None,
) -> None:
    """Exchange the values at two pointers of a file, or of two lines of a log."""
    if line is None or other_line is None:
        value = orjson.loads((root / file).read_bytes())
        _exchange(value, at, value, other or at)
        (root / file).write_bytes(file_bytes(value))
        return
    lines = read_raw(root, file)
    places = index_of(lines, line), index_of(lines, other_line)
    first, second = (orjson.loads(lines[place]) for place in places)
    _exchange(first, at, second, other or at)
    for place, entry in zip(places, (first, second), strict=True):
        lines[place] = line_bytes(entry)
    write_raw(root, file, lines)


@edit
def cut(root: Path, *, file: str, at: str, to: int, **chosen: Any) -> None:
    """Cut lists to a number of elements."""

    def shorten(value: Any) -> None:
        for node, key in slots(value, at):
            del node[key][to:]

    _change(root, file, chosen, None, None, shorten)


@edit
def keys(
    root: Path,
    *,
    file: str,
    at: str = "",
    where: Where | None = None,
    unless: Where | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the word that a case uses
    null: Sequence[str] = (),
    remove: Sequence[str] = (),
    **chosen: Any,
) -> None:
    """Set, empty and remove keys of objects: of the lines chosen, or of what a pointer into a file names."""

    def change_object(entry: Any) -> None:
        for key, to in (set or {}).items():
            entry[key] = value_of(to, root, entry.get(key))
        entry.update(dict.fromkeys(null))
        for key in remove:
            entry.pop(key, None)

    def change(value: Any) -> None:
        if not at:
            change_object(value)
            return
        for node, key in _objects(value, at, file, where, unless):
            change_object(node[key])

    _change(root, file, chosen, where, unless, change)


@edit
def drop_lines(root: Path, *, file: str = layout.ROLLOUTS, **chosen: Any) -> None:
    """Delete lines."""
    lines = read_raw(root, file)
    gone = chosen_lines(lines, **chosen)
    write_raw(root, file, [line for number, line in enumerate(lines) if number not in gone])


@edit
def repeat_lines(
    root: Path,
    *,
    file: str = layout.ROLLOUTS,
    before: int | None = None,
    times: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the word that a case uses
    **chosen: Any,
) -> None:
    """Write lines once more: before a line, or at the end; with keys set anew if wanted."""
    lines = read_raw(root, file)
    again = [lines[number] for number in chosen_lines(lines, **chosen)]
    if set is not None:
        again = [_with_keys(line, set, root) for line in again]
    place = len(lines) if before is None else index_of(lines, before)
    write_raw(root, file, [*lines[:place], *again * times, *lines[place:]])


@edit
def move_line(root: Path, *, line: int, before: int, file: str = layout.ROLLOUTS) -> None:
    """Move a line before another, both counted as they stand now."""
    lines = read_raw(root, file)
    start, end = index_of(lines, line), index_of(lines, before)
    moved = lines.pop(start)
    lines.insert(end - (start < end), moved)
    write_raw(root, file, lines)


@edit
def swap_lines(root: Path, *, line: int, other: int, file: str = layout.ROLLOUTS) -> None:
    """Exchange two lines."""
    lines = read_raw(root, file)
    one, two = index_of(lines, line), index_of(lines, other)
    lines[one], lines[two] = lines[two], lines[one]
    write_raw(root, file, lines)


@edit
def insert_line(root: Path, *, file: str, content: Any, before: int | None = None) -> None:
    """Write a line, its end included in the content, before another or at the end."""
    lines = read_raw(root, file)
    place = len(lines) if before is None else index_of(lines, before)
    write_raw(root, file, [*lines[:place], bytes_of(content, root), *lines[place:]])


@edit
def replace_line(root: Path, *, file: str, line: int, content: Any) -> None:
    """Write other bytes in place of a line, its end included."""
    lines = read_raw(root, file)
    lines[index_of(lines, line)] = bytes_of(content, root)
    write_raw(root, file, lines)


def read_raw(root: Path, file: str) -> list[bytes]:
    """Read the lines of a file, ends kept; only a newline ends one."""
    return [line + b"\n" for line in (root / file).read_bytes().removesuffix(b"\n").split(b"\n")]


def write_raw(root: Path, file: str, lines: Sequence[bytes]) -> None:
    """Write lines."""
    (root / file).write_bytes(b"".join(lines))


def index_of(lines: Sequence[bytes], number: int) -> int:
    """Turn a line number, from 1, or from the end if negative, into an index."""
    index = number - 1 if number > 0 else len(lines) + number
    if not 0 <= index < len(lines):
        raise IndexError(f"line {number} of {len(lines)}")
    return index


def chosen_lines(
    raw_lines: Sequence[bytes],
    *,
    line: int | None = None,
    lines: Sequence[int] = (),
    where: Where | None = None,
    unless: Where | None = None,
    start: int = 1,
    every: int = 1,
    first: int | None = None,
) -> list[int]:
    """Find the indices of the lines that an edit chooses; at least one."""
    if line is not None:
        return [index_of(raw_lines, line)]
    if lines:
        return [index_of(raw_lines, number) for number in lines]
    found = [
        number
        for number, raw in enumerate(raw_lines)
        if number >= start - 1 and (not (where or unless) or matches(orjson.loads(raw), where or {}, unless or {}))
    ][::every][:first]
    if not found:
        raise LookupError("no line is chosen")
    return found


def _exchange(one: Any, at: str, two: Any, other: str) -> None:
    ((first, key),), ((second, last),) = slots(one, at), slots(two, other)
    first[key], second[last] = second[last], first[key]


def _with_keys(line: bytes, keys_: Mapping[str, Any], root: Path) -> bytes:
    entry = orjson.loads(line)
    return line_bytes(entry | {key: value_of(to, root, entry.get(key)) for key, to in keys_.items()})


def _change(
    root: Path,
    file: str,
    chosen: Mapping[str, Any],
    where: Where | None,
    unless: Where | None,
    change: Callable[[Any], None],
) -> None:
    """Change the value of a file, or the chosen lines of a log; bytes of other lines stay."""
    if not file.endswith(".jsonl"):
        value = orjson.loads((root / file).read_bytes())
        change(value)
        (root / file).write_bytes(file_bytes(value))
        return
    lines = read_raw(root, file)
    for number in chosen_lines(lines, where=where, unless=unless, **chosen):
        entry = orjson.loads(lines[number])
        change(entry)
        lines[number] = line_bytes(entry)
    write_raw(root, file, lines)


def _put(root: Path, value: Any, at: str, to: Any, where: Where | None, unless: Where | None, file: str) -> None:
    places = list(slots(value, at))
    if not file.endswith(".jsonl") and (where or unless):
        places = [(node, key) for node, key in places if matches(node, where or {}, unless or {})]
    if not places:
        raise LookupError(f"no place is {at}")
    for node, key in places:
        is_there = key in (node if isinstance(node, dict) else range(len(node)))
        put = value_of(to, root, node[key] if is_there else None)
        if isinstance(node, list) and not is_there:
            node.append(put)
        else:
            node[key] = put


def _objects(value: Any, at: str, file: str, where: Where | None, unless: Where | None) -> list[Slot]:
    """Find what a pointer names; in a file `where` chooses among it, in a log it has chosen lines already."""
    places = list(slots(value, at))
    if not file.endswith(".jsonl") and (where or unless):
        places = [(node, key) for node, key in places if matches(node[key], where or {}, unless or {})]
    if not places:
        raise LookupError(f"no object is {at}")
    return places
