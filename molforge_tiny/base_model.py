"""The tiny base model: Qwen3's architecture, half a million weights, trained from nothing on laboratory transcripts.

The loss is over the whole sequence, observations too: a model that has learned only the assistant's words knows the
form of a call and not which fragment belongs to which slot. Equal texts, seed, thread count and versions give equal
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from molforge_env.frozen import FrozenModel
from molforge_env.seeding import stream

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ReportStep = Callable[[dict[str, Any]], None]


class BaseRecipe(FrozenModel):
    """Shape and training of the base model."""

    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    initializer_range: float
    """Standard deviation of the first weights; 0.02, the usual one, learns the format only."""
    context_length: int
    steps: int
    batch_size: int
    """Conversations a step."""
    learning_rate: float
    """Peak; linear warm-up, cosine to zero."""
    warmup_steps: int
    weight_decay: float
    max_grad_norm: float


def build_model(recipe: BaseRecipe, tokenizer: PreTrainedTokenizerBase, *, seed: int) -> PreTrainedModel:
    """Make the untrained model that fits the tokenizer.

    Args:
        recipe: Shape of the model.
        tokenizer: Gives the vocabulary and the ids of padding and end of turn.
        seed: Source of the first weights.
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.intermediate_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.key_value_heads,
        head_dim=recipe.hidden_size // recipe.heads,
        max_position_embeddings=recipe.context_length,
        initializer_range=recipe.initializer_range,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        use_cache=True,
    )
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(config)


def train_base(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    recipe: BaseRecipe,
    *,
    seed: int,
    report: ReportStep,
) -> None:
    """Train the model in place on rendered conversations.

    Args:
        model: From [`build_model`][molforge_tiny.base_model.build_model].
        tokenizer: Encodes the texts.
        texts: Conversations rendered by the chat template.
        recipe: Steps, batch and learning rate.
        seed: Order in which conversations are drawn.
        report: Called after each step with step, loss, learning rate, gradient norm and tokens.
    """
    import torch

    encoded = [tokenizer.encode(text, add_special_tokens=False)[: recipe.context_length] for text in texts]
    decayed = [weight for weight in model.parameters() if weight.ndim > 1]
    others = [weight for weight in model.parameters() if weight.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=recipe.learning_rate,
        betas=(0.9, 0.95),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, recipe))
    batches = _draw_batches(encoded, recipe.batch_size, seed)
    model.train()
    for step in range(1, recipe.steps + 1):
        batch = _pad(next(batches), tokenizer)
        loss = model(**batch, use_cache=False).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
        rate = schedule.get_last_lr()[0]
        optimizer.step()
        schedule.step()
        report(
            {
                "stage": "base",
                "step": step,
                "loss": round(loss.item(), 6),
                "learning_rate": round(float(rate), 9),
                "grad_norm": round(norm.item(), 6),
                "tokens": int(batch["attention_mask"].sum()),
            }
        )
    model.eval()


def _rate(step: int, recipe: BaseRecipe) -> float:
    if step < recipe.warmup_steps:
        return (step + 1) / (recipe.warmup_steps + 1)
    share = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * share))


def _draw_batches(encoded: Sequence[list[int]], size: int, seed: int) -> Iterator[list[list[int]]]:
    # Passes over shuffled conversations; within a window the lengths are alike, so that little padding is computed.
    rng = stream(seed, "base", "order")
    while True:
        order = list(range(len(encoded)))
        rng.shuffle(order)
        batches = []
        window = size * 8
        for start in range(0, len(order), window):
            chosen = sorted(order[start : start + window], key=lambda index: len(encoded[index]))
            batches += [chosen[at : at + size] for at in range(0, len(chosen), size)]
        rng.shuffle(batches)
        for batch in batches:
            if len(batch) == size:
                yield [encoded[index] for index in batch]


def _pad(rows: Sequence[list[int]], tokenizer: PreTrainedTokenizerBase) -> dict[str, torch.Tensor]:
    import torch

    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), tokenizer.pad_token_id, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}
