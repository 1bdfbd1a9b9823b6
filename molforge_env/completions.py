"""Tool calls in a model's raw text, in the Qwen3 instruct form.

The verdicts equal those of the trainer's own parser for this form: one bad block makes the whole text plain text, which
is then no call at all. Nothing is repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_OPEN = "<tool_call>"
_CLOSE = re.compile(r"</tool_call>\s*")
_END = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it; whether the tool exists and likes its arguments is not judged here."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedCompletion:
    """What a completion holds."""

    calls: tuple[ToolCall, ...]
    content: str
    """Text outside the call blocks."""
    blocks: int
    """How often a call block was opened, readable or not."""
    malformed: str | None
    """Why no call could be read, if a block was opened and could not."""


class _MalformedError(Exception):
    """A block that is not a call; never leaves this module."""


def parse_completion(raw: str) -> ParsedCompletion:
    """Read the tool calls of a completion.

    Args:
        raw: Decoded text of one assistant turn, the end marker included or not.

    Returns:
        Calls in order. After a malformed block there are no calls and the content is the whole text.

    >>> parse_completion('<tool_call>\\n{"name": "defer", "arguments": {}}\\n</tool_call>').calls
    (ToolCall(name='defer', arguments={}),)
    """
    text = raw.split(_END, 1)[0]
    blocks = text.count(_OPEN)
    calls: list[ToolCall] = []
    outside: list[str] = []
    position = 0
    try:
        while (start := text.find(_OPEN, position)) >= 0:
            outside.append(text[position:start])
            close = _CLOSE.search(text, start + len(_OPEN))
            if close is None:
                raise _MalformedError("a call block is not closed")
            calls.append(_read_call(text[start + len(_OPEN) : close.start()]))
            position = close.end()
    except _MalformedError as error:
        return ParsedCompletion((), text.strip(), blocks, str(error))
    outside.append(text[position:])
    return ParsedCompletion(tuple(calls), "".join(outside).strip(), blocks, None)


def _read_call(body: str) -> ToolCall:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _MalformedError("a call block is not JSON") from error
    if not isinstance(parsed, dict):
        raise _MalformedError("a call block is not a JSON object")
    name, arguments = parsed.get("name"), parsed.get("arguments")
    if not isinstance(name, str):
        raise _MalformedError("a call has no name")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise _MalformedError("the arguments of a call are not an object")
    return ToolCall(name, arguments)
