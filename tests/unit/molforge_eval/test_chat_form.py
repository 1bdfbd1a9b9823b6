"""Spelling and reading of conversations; the reading agrees with the host trainer's own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from molforge_env.errors import UsageError
from molforge_env.interface import parse_completion, tool_schemas
from molforge_eval.chat_form import TokenizerForm

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "molforge_train" / "models" / "tiny" / "base"
END = "<|im_end|>"
CALL = '<tool_call>\n{"name": "defer", "arguments": {}}\n</tool_call>'


def _block(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


CORPUS = [
    CALL + END,
    CALL,
    CALL + "\n" + CALL + END,
    "thinking " + CALL + END,
    CALL + " tail" + END,
    "plain" + END,
    "plain",
    END,
    "</tool_call>" + CALL + END,
    CALL + "</tool_call>" + END,
    "<tool_call>" + CALL + END,
    "<tool_call>" + END,
    "<tool_call>",
    '<tool_call>\n{"name": "defer", "arguments": {}}\n',
    '<tool_call>\n{"name": "defer", "arguments": {}}\n' + END,
    '<tool_call>\n{"name": "defer", "argum',
    CALL + END + CALL + END,
    CALL + END + "more",
    "<|im_start|>assistant\n" + CALL + END,
    "<|endoftext|>" + CALL,
    CALL + "<|endoftext|>",
    "<think>" + CALL + END,
    "<think>x</think>\n" + CALL + END,
    "<think>x</think>" + CALL + "<think>" + CALL + END,
    "<think></think>" + END,
    "</think>" + CALL + END,
    "x" + _block("bad") + CALL + END,
    *(
        _block(body) + END
        for body in (
            "",
            "{}",
            "null",
            '"text"',
            "[]",
            '[{"name": "defer", "arguments": {}}]',
            '{"name": "defer"}',
            '{"name": "defer", "arguments": null}',
            '{"name": "defer", "arguments": [1]}',
            '{"name": "defer", "arguments": "{}"}',
            '{"name": "defer", "arguments": 0}',
            '{"name": "defer", "arguments": false}',
            '{"name": 3, "arguments": {}}',
            '{"name": "defer", "arguments": {}, "extra": 1}',
            '{"function": {"name": "defer", "arguments": {}}}',
            '{"name": "edit", "arguments": {"slot": NaN}}',
            '{"name": "edit", "arguments": {"slot": "\\ud800"}}',
            '{"name": "edit", "arguments": {"slot": 1e999, "slot": "b"}}',
            '{"name": "edit", "arguments": {"slot": "</tool_call>"}}',
            '{"name": "edit", "arguments": {"slot": "<think>"}}',
            '{"name": "edit", "arguments": {"slot": "<|im_end|>"}}',
            '{"name": "edit", "arguments": {"slot": "a\nb"}}',
            '{"name": "edit", "arguments": {"slot": 5}}',
            '{"name": "edit", "arguments": {"slot": 1' + "0" * 5_000 + "}}",
            "{'name': 'defer'}",
            '{"name": "defer",}',
            '\ufeff{"name": "defer"}',
            '  {"name": "defer"}  ',
        )
    ),
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer
    from trl.chat_template_utils import add_response_schema

    return add_response_schema(AutoTokenizer.from_pretrained(MODEL))


@pytest.fixture(scope="module")
def form(tokenizer: Any) -> TokenizerForm:
    return TokenizerForm(tokenizer, template=None, tools=tool_schemas("compact"), context_limit=2048)


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_our_reading_of_a_completion_is_that_of_the_host_trainer(text: str, tokenizer: Any, form: Any) -> None:
    from trl.chat_template_utils import parse_response

    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    context = form.prompt_ids("hello")
    message = parse_response(tokenizer, ids, prefix=context, tools=tool_schemas("compact"))
    theirs = [(entry["function"]["name"], entry["function"]["arguments"]) for entry in message.get("tool_calls") or ()]
    ours = form.parse(ids, context)

    assert repr([(call.name, call.arguments) for call in ours.calls]) == repr(theirs)
    assert form.decode(ids) == text


@pytest.mark.parametrize(
    ("text", "is_malformed"),
    [("plain", False), ("<think>" + CALL, False), (CALL, False), ("<tool_call>{", True), (_block("{}"), True)],
)
def test_a_block_that_cannot_be_read_is_told_from_no_block(text: str, is_malformed: bool) -> None:
    assert (parse_completion(text).malformed is not None) is is_malformed


def test_json_too_deep_to_read_is_malformed_and_stops_nothing() -> None:
    assert parse_completion(_block("[" * 100_000)).malformed is not None


def test_the_prompt_shows_the_tools_and_ends_where_the_model_writes(form: TokenizerForm) -> None:
    text = form.decode(form.prompt_ids("hello"))

    assert '"name": "run_assay"' in text
    assert text.endswith("hello<|im_end|>\n<|im_start|>assistant\n")


def test_the_suffix_goes_from_the_end_mark_to_where_the_model_writes_again(form: TokenizerForm) -> None:
    answers = [{"role": "tool", "name": "defer", "content": "one"}, {"role": "tool", "name": "edit", "content": "two"}]

    assert form.decode(form.suffix_ids(answers)) == (
        "\n<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert form.suffix_ids(answers) == form.suffix_ids(answers)


def test_a_template_that_rewrites_earlier_turns_is_refused(tokenizer: Any) -> None:
    template = "{% for m in messages %}{{ messages|length }}{{ m.role }}{{ m.content }}<|im_end|>{% endfor %}"
    form = TokenizerForm(tokenizer, template=template, tools=[], context_limit=10)

    with pytest.raises(UsageError, match="changes earlier turns"):
        form.suffix_ids([{"role": "tool", "name": "defer", "content": "x"}])


def test_the_template_in_effect_is_the_given_one_or_the_tokenizers_own(tokenizer: Any, form: Any) -> None:
    assert form.template == tokenizer.chat_template
    assert TokenizerForm(tokenizer, template="own", tools=[], context_limit=10).template == "own"


def test_calls_of_another_form_are_read_by_the_hosts_parser(tokenizer: Any) -> None:
    said = {"tool_calls": [{"type": "function", "function": {"name": "defer", "arguments": {}}}], "content": "hm"}
    form = TokenizerForm(tokenizer, template=None, tools=[], context_limit=10, host_parser=lambda _ids, _context: said)
    deaf = TokenizerForm(tokenizer, template=None, tools=[], context_limit=10, host_parser=lambda _ids, _context: {})
    ids = tokenizer(CALL)["input_ids"]

    assert [(call.name, call.arguments) for call in form.parse(ids, []).calls] == [("defer", {})]
    assert form.parse(ids, []).malformed is None
    assert deaf.parse(ids, []).malformed == "a call block could not be read"
    assert deaf.parse(tokenizer("plain")["input_ids"], []).malformed is None
