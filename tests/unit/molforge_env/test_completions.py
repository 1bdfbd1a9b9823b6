from __future__ import annotations

import pytest

from molforge_env.completions import Spelling, ToolCall, parse_completion, spelling_of

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


XML_CALL = """<tool_call>
<function=edit>
<parameter=slot>
hinge
</parameter>
<parameter=fragment>
azaindole
</parameter>
</function>
</tool_call>"""
XML = Spelling("xml")


def test_calls_in_xml_are_read_in_order_and_text_beside_them_is_kept() -> None:
    parsed = parse_completion(f"I edit.\n{XML_CALL}\n{XML_CALL}<|im_end|>", XML)

    assert parsed.calls == (EDIT, EDIT)
    assert (parsed.content, parsed.blocks, parsed.malformed) == ("I edit.", 2, None)


def test_a_call_in_the_other_form_is_none() -> None:
    assert parse_completion(CALL, XML).malformed == "a call block could not be read"
    assert parse_completion(XML_CALL).malformed == "a call block is not JSON"


def test_a_call_in_xml_that_the_text_ends_in_has_the_arguments_that_are_whole() -> None:
    cut = XML_CALL[: XML_CALL.index("azaindole")]

    assert parse_completion(cut, XML).calls == (ToolCall("edit", {"slot": "hinge"}),)


def test_a_completion_that_begins_in_a_thought_calls_after_it() -> None:
    assert parse_completion(f"{XML_CALL}\n</think>\n\n{XML_CALL}", Spelling("xml", thinks=True)).calls == (EDIT,)
    assert parse_completion(XML_CALL, Spelling("xml", thinks=True)).calls == ()


@pytest.mark.parametrize(
    ("prompt", "spelling"),
    [
        ("<tool_call>\n<function=example_function_name>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", XML),
        ("<function=x> <|im_start|>assistant\n<think>\n", Spelling("xml", thinks=True)),
        ('<tool_call>\n{"name": <function-name>}\n<|im_start|>assistant\n', Spelling("json")),
        ("", Spelling()),
    ],
)
def test_the_prompt_tells_how_completions_are_spelled(prompt: str, spelling: Spelling) -> None:
    assert spelling_of(prompt) == spelling


@pytest.mark.parametrize(
    "raw",
    [
        "<parameter=" * 200_000,
        "<parameter=a>" * 200_000,
        "<parameter=a\n" * 200_000,
        "<tool_call><function=" * 100_000,
        "<tool_call>" + " " * 1_000_000,
    ],
)
def test_hostile_text_in_xml_is_read_in_one_pass(raw: str) -> None:
    assert len(parse_completion(f"<tool_call><function=f>{raw}", XML).calls) >= 1
