"""Tool calls in a model's raw text, in the JSON form of Qwen3 or the XML form of Qwen3.5.

The verdicts equal those of the trainer's own parser for each form. In JSON one bad block makes the whole text plain
text, which is then no call at all; in XML what is no call is passed over. Nothing is repaired.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

_OPEN = "<tool_call>"
_THINK = "<think>"
_MARK = {
    "json": re.compile(r"<think>|<tool_call>|<\|im_end\|>\s*"),
    "xml": re.compile(r"<think>|<tool_call>\s*<function=(?P<name>[^\n>]+)>|<\|im_end\|>\s*"),
}
_END_OF_THOUGHT = re.compile(r"</think>\s*")
_END_OF_CALL = re.compile(r"</tool_call>\s*")
# Where no `>` follows, none follows for a tag that begins further on in what was passed over.
_PARAMETER = re.compile(r"<parameter=(?P<key>[^>\n]*)(?P<whole>>)?")
_END_OF_PARAMETER = "</parameter>"


class Spelling(NamedTuple):
    """How a model was asked to write, told from what it was given to read."""

    form: Literal["json", "xml"] = "json"
    """Of the calls."""
    thinks: bool = False
    """Whether the prompt ends inside a thought, so that the completion begins in one."""


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


def spelling_of(prompt: str) -> Spelling:
    r"""Read from an episode's first prompt how its completions are spelled.

    >>> spelling_of("<|im_start|>system\nReply with <tool_call>\n<function=NAME>").form
    'xml'
    """
    return Spelling("xml" if "<function=" in prompt else "json", prompt.rstrip().endswith(_THINK))


def parse_completion(raw: str, spelling: Spelling = Spelling()) -> ParsedCompletion:  # noqa: B008 - it cannot be changed
    r"""Read the tool calls of a completion.

    A block that the text ends in counts when it is whole: a turn that was cut at its token limit, just before the
    closing mark, is a call for the trainer too. In XML every block is whole. Inside a thought nothing is a call.

    Args:
        raw: Decoded text of one assistant turn, the end marker included or not.
        spelling: The form of its calls, and whether it begins in a thought.

    Returns:
        Calls in order. After a malformed JSON block there are no calls and the content is the whole text.

    >>> parse_completion('<tool_call>\n{"name": "defer", "arguments": {}}\n</tool_call>').calls
    (ToolCall(name='defer', arguments={}),)
    """
    calls: list[ToolCall] = []
    outside: list[str] = []
    position = _skip_thought(raw, 0) if spelling.thinks else 0
    while (mark := _MARK[spelling.form].search(raw, position)) is not None:
        outside.append(raw[position : mark.start()])
        position = mark.end()
        if mark.group() == _THINK:
            position = _skip_thought(raw, position)
        if not mark.group().startswith(_OPEN):
            continue
        end = _END_OF_CALL.search(raw, position)
        body = raw[position:] if end is None else raw[position : end.start()]
        position = len(raw) if end is None else end.end()
        if spelling.form == "xml":
            calls.append(ToolCall(mark["name"], _read_parameters(body)))
            continue
        try:
            calls.append(_read_call(body, is_closed=end is not None))
        except _MalformedError as error:
            return ParsedCompletion((), raw.replace("<|im_end|>", "").strip(), raw.count(_OPEN), str(error))
    outside.append(raw[position:])
    blocks = len(calls) or (raw.count(_OPEN) if spelling.form == "xml" else 0)
    unread = "a call block could not be read" if blocks and not calls else None
    return ParsedCompletion(tuple(calls), "".join(outside).strip(), blocks, unread)


def _skip_thought(raw: str, position: int) -> int:
    end = _END_OF_THOUGHT.search(raw, position)
    return len(raw) if end is None else end.end()


def _read_parameters(body: str) -> dict[str, str]:
    found: dict[str, str] = {}
    position = 0
    while (tag := _PARAMETER.search(body, position)) is not None:
        position = tag.end()
        if not tag["key"] or tag["whole"] is None:
            continue
        end = body.find(_END_OF_PARAMETER, position)
        if end < 0:
            break
        found[tag["key"]] = body[position:end].strip()
        position = end + len(_END_OF_PARAMETER)
    return found


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
