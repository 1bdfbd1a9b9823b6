"""Tool calls in a model's raw text, in the Qwen3 instruct form.

The verdicts equal those of the trainer's own parser for this form: one bad block makes the whole text plain text, which
is then no call at all. Nothing is repaired.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_OPEN = "<tool_call>"
_MARK = re.compile(r"<think>|<tool_call>|<\|im_end\|>\s*")
_CLOSE = {"<think>": re.compile(r"</think>\s*"), _OPEN: re.compile(r"</tool_call>\s*")}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it; whether the tool exists and likes its arguments is not judged here."""

    name: str
    arguments: Any
    """A mapping by name; whatever else the model wrote in its place stands as it is, and the call is refused."""


@dataclass(frozen=True, slots=True)
class ParsedCompletion:
    """What a completion holds."""

    calls: tuple[ToolCall, ...]
    content: str
    """Text outside thoughts and call blocks."""
    blocks: int
    """How often a call block was opened, readable or not."""
    malformed: str | None
    """Why no call could be read, if a block was opened and could not."""


class _MalformedError(Exception):
    """A block that is not a call; never leaves this module."""


def parse_completion(raw: str) -> ParsedCompletion:
    r"""Read the tool calls of a completion.

    A block that the text ends in counts when its JSON is whole: a turn that was cut at its token limit, just before
    the closing mark, is a call for the trainer too. Inside a thought nothing is a call.

    Args:
        raw: Decoded text of one assistant turn, the end marker included or not.

    Returns:
        Calls in order. After a malformed block there are no calls and the content is the whole text.

    >>> parse_completion('<tool_call>\n{"name": "defer", "arguments": {}}\n</tool_call>').calls
    (ToolCall(name='defer', arguments={}),)
    """
    calls: list[ToolCall] = []
    outside: list[str] = []
    position = 0
    while (mark := _MARK.search(raw, position)) is not None:
        outside.append(raw[position : mark.start()])
        position = mark.end()
        close = _CLOSE.get(mark.group())
        if close is None:
            continue  # an end marker
        end = close.search(raw, position)
        body = raw[position:] if end is None else raw[position : end.start()]
        position = len(raw) if end is None else end.end()
        if mark.group() == _OPEN:
            try:
                calls.append(_read_call(body, is_closed=end is not None))
            except _MalformedError as error:
                return ParsedCompletion((), raw.replace("<|im_end|>", "").strip(), raw.count(_OPEN), str(error))
    outside.append(raw[position:])
    return ParsedCompletion(tuple(calls), "".join(outside).strip(), len(calls), None)


def _read_call(body: str, *, is_closed: bool) -> ToolCall:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _MalformedError("a call block is not JSON" if is_closed else "a call block is not closed") from error
    if not isinstance(parsed, dict):
        raise _MalformedError("a call block is not a JSON object")
    name, arguments = parsed.get("name"), parsed.get("arguments")
    if not isinstance(name, str):
        raise _MalformedError("a call has no name")
    return ToolCall(name, {} if arguments is None else arguments)
