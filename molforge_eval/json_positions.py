"""On which line of a JSON file a pointer stands, so that a finding in a large record can be opened at its place.

The file is scanned once for all wanted pointers, and only when there is something to find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from molforge_eval.strict_json import BYTE_ORDER_MARK, STRING

_TOKENS = re.compile(STRING + rb'|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

_MARKS = (b",", b":", b"}", b"]")


@dataclass
class _Wanted:
    """A node of the tree of wanted pointers."""

    steps: dict[str, _Wanted] = field(default_factory=dict)
    pointer: str | None = None


@dataclass
class _Open:
    """A list or object that the scan is inside of."""

    is_list: bool
    wanted: _Wanted | None
    index: int = 0
    key: str | None = None


def lines_of_pointers(data: bytes, pointers: Iterable[str]) -> Mapping[str, int]:
    """Find the line on which the value of each pointer begins.

    Args:
        data: A file of one JSON text; it may be broken, then what stands before the fault is found.
        pointers: JSON pointers; the empty one is the whole text.

    Returns:
        Line, from 1, of each pointer; of the nearest value around it when the pointer leads nowhere.
    """
    wanted = sorted(set(pointers))
    tree = _Wanted()
    for pointer in wanted:
        node = tree
        for step in pointer.split("/")[1:]:
            node = node.steps.setdefault(step, _Wanted())
        node.pointer = pointer
    found = _scan(data.removeprefix(BYTE_ORDER_MARK), tree, {pointer for pointer in wanted if pointer})
    return {pointer: _nearest(pointer, found) for pointer in wanted}


def _scan(data: bytes, tree: _Wanted, unseen: set[str]) -> dict[str, int]:
    found: dict[str, int] = {"": 1}
    stack: list[_Open] = []
    prefix: list[str] = []
    line, counted = 1, 0
    for token in _TOKENS.finditer(data):
        mark = token.group()
        top = stack[-1] if stack else None
        if mark in _MARKS:
            if top is not None:
                _pass_mark(mark, stack, prefix)
            continue
        if top is not None and not top.is_list and top.key is None:
            top.key = _step_of(mark)
            continue
        step, wanted = "", tree if top is None else None
        if top is not None:
            step = str(top.index) if top.is_list else str(top.key)
            wanted = None if top.wanted is None else top.wanted.steps.get(step)
            if wanted is not None:
                line += data.count(b"\n", counted, token.start())
                counted = token.start()
                pointer = "".join(f"/{part}" for part in (*prefix, step))
                found[pointer] = line
                unseen.discard(pointer)
                if not unseen:
                    break
        if mark in (b"{", b"["):
            if top is not None:
                prefix.append(step)
            stack.append(_Open(is_list=mark == b"[", wanted=wanted))
    return found


def _pass_mark(mark: bytes, stack: list[_Open], prefix: list[str]) -> None:
    if mark == b",":
        stack[-1].index += 1
        stack[-1].key = None
    elif mark != b":":
        stack.pop()
        del prefix[-1:]


def _step_of(mark: bytes) -> str:
    try:
        name = orjson.loads(mark)
    except orjson.JSONDecodeError:
        name = mark.decode("utf-8", "replace")
    return str(name).replace("~", "~0").replace("/", "~1")


def _nearest(pointer: str, found: Mapping[str, int]) -> int:
    while pointer and pointer not in found:
        pointer = pointer.rpartition("/")[0]
    return found[pointer]
