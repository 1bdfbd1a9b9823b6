from __future__ import annotations

import pytest

from molforge_env.completions import ToolCall, parse_completion

CALL = '<tool_call>\n{"name": "edit", "arguments": {"slot": "hinge", "fragment": "azaindole"}}\n</tool_call>'
EDIT = ToolCall("edit", {"slot": "hinge", "fragment": "azaindole"})


@pytest.mark.parametrize("raw", [CALL, f"{CALL}<|im_end|>", f"{CALL}<|im_end|>\n", CALL.replace("\n", "")])
def test_one_call_is_read_with_or_without_the_end_mark(raw) -> None:
    parsed = parse_completion(raw)

    assert parsed.calls == (EDIT,)
    assert (parsed.content, parsed.blocks, parsed.malformed) == ("", 1, None)


def test_calls_are_read_in_order_and_text_beside_them_is_kept() -> None:
    parsed = parse_completion(f"I edit.\n{CALL}\n{CALL}<|im_end|>")

    assert parsed.calls == (EDIT, EDIT)
    assert parsed.content == "I edit."


def test_plain_text_is_no_call_and_not_malformed() -> None:
    parsed = parse_completion("I would submit.<|im_end|>")

    assert (parsed.calls, parsed.blocks, parsed.malformed) == ((), 0, None)
    assert parsed.content == "I would submit."


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "a call block is not JSON"),
        ("", "a call block is not JSON"),
        ("[" * 100_000, "a call block is not JSON"),
        ("[]", "a call block is not a JSON object"),
        ('{"arguments": {}}', "a call has no name"),
        ('{"name": 3}', "a call has no name"),
    ],
)
def test_one_bad_block_makes_the_whole_text_plain(body, reason) -> None:
    parsed = parse_completion(f"{CALL}\n<tool_call>{body}</tool_call>")

    assert parsed.calls == ()
    assert parsed.malformed == reason
    assert parsed.blocks == 2
    assert parsed.content.startswith("<tool_call>")


def test_a_block_that_the_text_ends_in_counts_when_it_is_whole() -> None:
    assert parse_completion(CALL.removesuffix("\n</tool_call>")).calls == (EDIT,)
    assert parse_completion('<tool_call>\n{"name": "ed').malformed == "a call block is not closed"


def test_inside_a_thought_nothing_is_a_call() -> None:
    parsed = parse_completion(f"<think>{CALL}</think>so I wait")

    assert (parsed.calls, parsed.content) == ((), "so I wait")
    assert parse_completion(f"<think>{CALL}").calls == ()


def test_absent_arguments_are_none_at_all() -> None:
    assert parse_completion('<tool_call>{"name": "defer"}</tool_call>').calls == (ToolCall("defer", {}),)
