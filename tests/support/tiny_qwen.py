"""A random-weight Qwen3.5 of two hundred thousand parameters, as its maker uploads it, with the template of TRL.

The upload is the model that also sees: its text half lies below `language_model`, and who trains it loads that half.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from molforge_env.interface import TOOL_NAMES, tool_schemas
from molforge_env.tool_schemas import TOOL_ARGUMENTS
from molforge_eval.chat_templates import known_templates
from molforge_tiny.tokenizer import train_tokenizer
from molforge_tiny.warmstart import render
from molforge_train.transcripts import TranscriptRecipe, generate_transcripts

TEMPLATE = "qwen3_5_nothink"
_HIDDEN = 64
_CONTEXT = 4096
_LONG = 12
"""Characters from which a line of the prompt is one token."""


def make_tiny_qwen(folder: Path) -> Path:
    """Write tokenizer and model: one layer of linear attention, one of full attention, one that sees."""
    import torch
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    tokenizer = _make_tokenizer()
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": _HIDDEN,
        "intermediate_size": 2 * _HIDDEN,
        "num_hidden_layers": 2,
        "layer_types": ["linear_attention", "full_attention"],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": _HIDDEN // 4,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": _HIDDEN // 4,
        "linear_value_head_dim": _HIDDEN // 4,
        "max_position_embeddings": _CONTEXT,
        "tie_word_embeddings": True,
        # Embeddings that no adapter trains have to be apart from each other for one to learn anything from them.
        "initializer_range": 0.2,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    sight = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_heads": 2,
        "out_hidden_size": _HIDDEN,
        "num_position_embeddings": 16,
    }
    torch.manual_seed(1)
    config = Qwen3_5Config(text_config=text, vision_config=sight, tie_word_embeddings=True)
    Qwen3_5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _make_tokenizer() -> Any:
    recipe = TranscriptRecipe(conversations=8, mixture={"random": 1.0}, observation_length="compact")
    texts = render(list(generate_transcripts(recipe, seed=4)))
    tokenizer: Any = train_tokenizer(texts, vocabulary=1024, context_length=_CONTEXT)
    tokenizer.chat_template = known_templates()[TEMPLATE]
    # The layers of linear attention are slow on a processor: what never changes is one token each.
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "x"}], tools=tool_schemas("compact"), tokenize=False, add_generation_prompt=True
    )
    lines = [line for line in prompt[prompt.index("# Tools") :].splitlines() if len(line) >= _LONG]
    names = {name for arguments in TOOL_ARGUMENTS.values() for name in arguments}
    syntax = ["<think>\n\n</think>\n\n", "</function>\n", "\n</parameter>\n"]
    calls = [*(f"\n<function={name}>\n" for name in TOOL_NAMES), *(f"<parameter={name}>\n" for name in sorted(names))]
    tokenizer.add_tokens(list(dict.fromkeys([*lines, *calls, *syntax])))
    return tokenizer
