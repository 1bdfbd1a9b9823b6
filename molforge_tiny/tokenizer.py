"""The tiny model's tokenizer: byte-level BPE, cut so that every name of the laboratory is one token.

Any text can be encoded, since the alphabet is all 256 bytes. Merges never cross the border of a name, so that a model
meets `morpholine` as one token wherever a slot holds it and wherever a call asks for it. Special tokens and the chat
template are those of Qwen3-Instruct-2507, which TRL recognises by exact text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from molforge_env.errors import UsageError
from molforge_env.interface import TOOL_NAMES
from molforge_env.models import MEASURED, SLOTS, TOOLS
from molforge_env.molecules import FRAGMENT_NAMES
from molforge_env.scenarios import SCENARIO_IDS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

END_OF_TEXT = "<|endoftext|>"
END_OF_TURN = "<|im_end|>"
SPECIAL_TOKENS = (END_OF_TEXT, "<|im_start|>", END_OF_TURN)
MARKUP_TOKENS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
_PIECE_WEIGHT = 2_000

# The fixed parts of a call and of a turn's header are one token each: a call is then ten tokens, not eighteen, and a
# rollout on a CPU pays a forward pass for each of them.
_CALL_SYNTAX = (
    '\n{"name": "',
    '", "arguments": {"slot": "',
    '", "fragment": "',
    '", "arguments": {"tool_name": "',
    '", "arguments": {}}\n',
    '"}}\n',
    "assistant\n",
    "user\n",
)
# The tool list stands in every prompt, and every turn reads the prompt again.
_SCHEMA_SYNTAX = (
    "system\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n",
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>",
    '\n{"type": "function", "function": {"name": "',
    '", "description": "',
    '.", "parameters": {"type": "object", "properties": {"',
    '": {"type": "string", "description": "',
    '."}, "',
    '."}}, "required": ["',
    '"]}, "return": {"type": "string", "description": "',
    '."}}}, "return": {"type": "string", "description": "',
    '."}}}\n{"type": "function", "function": {"name": "',
    '."}}}\n</tools>\n\nFor each function call, return a json object with function name and arguments within ',
    " XML tags:\n",
    '\n{"name": <function-name>, "arguments": <args-json-object>}\n',
)


def laboratory_names() -> tuple[str, ...]:
    """List every name that must be one token: fragments, tools, assays, slots, measured properties, scenarios."""
    fragments = [name for slot in SLOTS for name in FRAGMENT_NAMES[slot]]
    return tuple(dict.fromkeys([*fragments, *TOOL_NAMES, *TOOLS, *SLOTS, *MEASURED, *SCENARIO_IDS]))


def split_pattern() -> str:
    """Write the regular expression whose matches are the pieces that no merge may cross."""
    syntax = sorted((*_CALL_SYNTAX, *_SCHEMA_SYNTAX), key=len, reverse=True)
    names = sorted(laboratory_names(), key=len, reverse=True)
    alternatives = [
        # `re.escape` writes a newline as backslash and newline, which the tokenizer's engine reads otherwise.
        *(re.escape(piece).replace("\\\n", r"\n") for piece in syntax),
        *(rf" ?{re.escape(name)}(?![A-Za-z_0-9])" for name in names),
        r" ?[0-9]+(?:\.[0-9]+)?",
        r" ?[A-Za-z_]+",
        r" ?[^A-Za-z0-9_ ]+",
        r" +",
    ]
    return "|".join(alternatives)


def train_tokenizer(texts: Iterable[str], *, vocabulary: int, context_length: int) -> PreTrainedTokenizerBase:
    """Train the tokenizer on rendered conversations.

    Args:
        texts: Conversations rendered by the chat template, tools and all.
        vocabulary: Tokens in all, special ones included.
        context_length: Longest text that the model is made for, in tokens.

    Returns:
        A fast tokenizer with Qwen3's special tokens and chat template.

    Raises:
        UsageError: A name of the laboratory is more than one token, because `vocabulary` is too small.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_instruct_2507_chat_template

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split_pattern()), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    markup = [AddedToken(token, special=False, normalized=False) for token in MARKUP_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(markup),
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    core.train_from_iterator(chain(_without_markup(texts), _whole_pieces()), trainer)
    core.add_tokens(markup)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END_OF_TURN,
        pad_token=END_OF_TEXT,
        model_max_length=context_length,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = qwen3_instruct_2507_chat_template
    _require_single_tokens(tokenizer)
    return tokenizer


def _names_in_text() -> Iterable[str]:
    for name in laboratory_names():
        yield name
        yield f" {name}"


def _whole_pieces() -> Iterable[str]:
    # Repeated so often that their merges come before those of any other word.
    for _ in range(_PIECE_WEIGHT):
        yield from (*_CALL_SYNTAX, *_SCHEMA_SYNTAX)
        yield from _names_in_text()


def _without_markup(texts: Iterable[str]) -> Iterable[str]:
    # Special and markup tokens are cut out before pieces are formed, in training as in use.
    border = re.compile("|".join(re.escape(token) for token in (*SPECIAL_TOKENS, *MARKUP_TOKENS)))
    for text in texts:
        yield from filter(None, border.split(text))


def _require_single_tokens(tokenizer: PreTrainedTokenizerBase) -> None:
    for name in _names_in_text():
        count = len(tokenizer.encode(name, add_special_tokens=False))
        if count != 1:
            raise UsageError(
                f"the name {name!r} is {count} tokens, not one",
                where="tokenizer.vocabulary",
                mend="Raise the vocabulary.",
            )
