"""A random-weight Qwen3.5 of some hundred thousand parameters, as transformers builds it, with the template of TRL."""

from __future__ import annotations

from pathlib import Path

from molforge_eval.chat_templates import known_templates
from molforge_train.tokenizer import train_tokenizer
from molforge_train.transcripts import TranscriptRecipe, generate_transcripts
from molforge_train.warmstart import render

TEMPLATE = "qwen3_5_nothink"


def make_tiny_qwen(folder: Path) -> Path:
    """Write tokenizer and model: one layer of linear attention, one of full attention."""
    import torch
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    recipe = TranscriptRecipe(conversations=8, mixture={"random": 1.0}, observation_length="compact")
    texts = render(list(generate_transcripts(recipe, seed=4)))
    tokenizer = train_tokenizer(texts, vocabulary=1024, context_length=4096)
    tokenizer.chat_template = known_templates()[TEMPLATE]
    torch.manual_seed(1)
    model = Qwen3_5ForCausalLM(
        Qwen3_5TextConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            layer_types=["linear_attention", "full_attention"],
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=16,
            linear_value_head_dim=16,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            initializer_range=0.08,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
