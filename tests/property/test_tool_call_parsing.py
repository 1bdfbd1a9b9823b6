"""Our reading of tool calls equals that of the trainer's parser, on any text made of its building blocks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molforge_env.completions import Spelling, parse_completion
from molforge_env.tool_schemas import tool_schemas

_PIECES = st.one_of(
    st.sampled_from(
        [
            "<tool_call>",
            "</tool_call>",
            "<think>",
            "</think>",
            "<|im_end|>",
            "\n",
            " ",
            "hinge",
            '{"name": "defer", "arguments": {}}',
            '{"name": "defer"}',
            '{"name": "defer", "arguments": null}',
            '{"name": "edit", "arguments": {"slot": "hinge", "fragment": "azaindole"}}',
            '{"name": "edit", "arguments": "slot"}',
            '{"name": "edit", "arguments": [1]}',
            '{"name": 3, "arguments": {}}',
            '{"arguments": {}}',
            "[]",
            "{",
            "NaN",
            "\x00",
            "Ω",
        ]
    ),
    st.just('\n<tool_call>\n{"name": "submit", "arguments": {}}\n</tool_call>'),
)

_XML_PIECES = st.one_of(
    st.sampled_from(
        [
            "<tool_call>",
            "</tool_call>",
            "<think>",
            "</think>",
            "<|im_end|>",
            "<function=",
            "<function=edit>",
            "</function>",
            "<parameter=",
            "<parameter=slot>",
            "<parameter=>",
            "</parameter>",
            ">",
            "\n",
            " ",
            "\x1c\u2003",
            "hinge",
            '{"name": "defer", "arguments": {}}',
            "7",
            "\x00",
            "Ω",
        ]
    ),
    st.just("\n<tool_call>\n<function=submit>\n</function>\n</tool_call>"),
    st.just("<tool_call>\n<function=edit>\n<parameter=slot>\nhinge\n</parameter>\n<parameter=dose>\n7"),
)
_PREFIXES = {False: "<|im_start|>assistant\n<think>\n\n</think>\n\n", True: "<|im_start|>assistant\n<think>\n"}


@pytest.fixture(scope="module")
def read_by_trainer():
    from transformers.utils.chat_parsing import parse_response
    from trl.chat_template_utils import _validate_tool_calls, qwen3_5_template, qwen3_template

    tools = tool_schemas("full")
    templates = {"json": qwen3_template, "xml": qwen3_5_template}

    def read(text: str, form: str = "json", prefix: str = "") -> list[tuple[str, object]]:
        try:
            parsed = parse_response(text, response_template=templates[form], prefix=prefix, tools=tools)
            calls = parsed.get("tool_calls", [])
            _validate_tool_calls(calls)
        except (ValueError, TypeError):
            return []
        return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]

    return read


@settings(max_examples=400)
@given(st.lists(_PIECES, max_size=9).map("".join))
def test_any_text_holds_the_calls_that_the_trainer_finds(read_by_trainer, text) -> None:
    assert [(call.name, call.arguments) for call in parse_completion(text).calls] == read_by_trainer(text)


@settings(max_examples=600)
@given(st.lists(_XML_PIECES, max_size=12).map("".join), st.booleans())
def test_any_text_in_xml_holds_the_calls_that_the_trainer_finds(read_by_trainer, text, thinks) -> None:
    found = parse_completion(text, Spelling("xml", thinks=thinks))

    assert [(call.name, call.arguments) for call in found.calls] == read_by_trainer(text, "xml", _PREFIXES[thinks])
    assert bool(found.malformed) == ("<tool_call>" in text and not found.calls)


@given(st.lists(_PIECES, max_size=9).map("".join))
def test_a_malformed_text_has_a_reason_and_no_calls(text) -> None:
    parsed = parse_completion(text)

    assert not (parsed.malformed and parsed.calls)
    assert parsed.blocks >= len(parsed.calls)
    assert "<|im_end|>" not in parsed.content
