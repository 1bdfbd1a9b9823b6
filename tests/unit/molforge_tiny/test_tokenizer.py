"""The tiny model's tokenizer: names whole, bytes complete, template known to the trainer."""

from __future__ import annotations

import pytest

from molforge_env.errors import UsageError
from molforge_env.interface import tool_schemas
from molforge_tiny.tokenizer import laboratory_names, train_tokenizer
from molforge_tiny.warmstart import render
from molforge_train.transcripts import TranscriptRecipe, generate_transcripts

RECIPE = TranscriptRecipe(conversations=12, mixture={"random": 1.0}, observation_length="compact")


@pytest.fixture(scope="module")
def conversations():
    return list(generate_transcripts(RECIPE, seed=5))


@pytest.fixture(scope="module")
def tokenizer(conversations):
    return train_tokenizer(render(conversations), vocabulary=1024, context_length=2048)


@pytest.mark.parametrize("name", laboratory_names())
def test_a_name_is_one_token_alone_and_after_a_blank(tokenizer, name):
    assert [len(tokenizer.encode(text)) for text in (name, f" {name}")] == [1, 1]


@pytest.mark.parametrize("text", ["", "naïve café\n\t", "\x00\x7f", "分子 🧪", "morpholines", "  two  blanks "])
def test_any_text_comes_back_unchanged(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_vocabulary_has_the_size_that_was_asked_for(tokenizer):
    assert len(tokenizer) == 1024


def test_a_vocabulary_that_cannot_hold_the_names_is_refused(conversations):
    with pytest.raises(UsageError, match="tokens, not one"):
        train_tokenizer(render(conversations), vocabulary=400, context_length=2048)


def test_equal_texts_give_an_equal_tokenizer(tokenizer, conversations):
    again = train_tokenizer(render(conversations), vocabulary=1024, context_length=2048)

    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_the_trainer_knows_the_template_and_can_mask_the_assistants_turns(tokenizer):
    from trl.chat_template_utils import get_training_chat_template, supports_tool_calling

    assert supports_tool_calling(tokenizer)
    assert get_training_chat_template(tokenizer) is not None


def test_a_prompt_with_five_tools_stays_short(tokenizer, conversations):
    prompt = tokenizer.apply_chat_template(
        conversations[0].chat()[:1], tools=tool_schemas("compact"), add_generation_prompt=True, return_dict=False
    )

    assert len(prompt) < 200


def test_a_call_is_a_dozen_tokens_at_most(tokenizer, conversations):
    calls = [message for item in conversations for message in item.chat() if "tool_calls" in message]
    texts = [
        '<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call><|im_end|>'.format(
            **call["tool_calls"][0]["function"]
        )
        for call in calls
    ]

    assert max(len(tokenizer.encode(text)) for text in texts) <= 12
