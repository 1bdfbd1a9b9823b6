"""Supervised fine-tuning of a LoRA adapter on transcripts, with TRL's trainer.

Only the assistant's turns carry a loss. The stage takes any base model whose chat template TRL can train on; the tiny
model is one of them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from molforge_env.frozen import FrozenModel
from molforge_eval.canonical import file_bytes
from molforge_eval.records.conversations import Conversation

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ReportStep = Callable[[dict[str, Any]], None]
_LOGGED = ("loss", "learning_rate", "grad_norm", "mean_token_accuracy")


class SftRecipe(FrozenModel):
    """LoRA and training of the adapter."""

    rank: int
    alpha: int
    dropout: float
    target_modules: str
    """`all-linear`, or a regular expression that peft understands."""
    steps: int
    batch_size: int
    """Conversations a step."""
    learning_rate: float
    """Peak; linear warm-up, cosine to zero."""
    warmup_steps: int
    max_length: int
    """Tokens of a conversation that are trained on; longer ones are cut."""


def train_adapter(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    conversations: Sequence[Conversation],
    recipe: SftRecipe,
    *,
    seed: int,
    scratch: Path,
    report: ReportStep,
) -> Any:
    """Train a fresh LoRA adapter on the assistant's turns.

    Args:
        model: The base; its own weights stay as they are.
        tokenizer: With a chat template that TRL knows.
        conversations: What the teachers did.
        recipe: Rank, steps and learning rate.
        seed: First weights of the adapter and order of the conversations.
        scratch: Folder for the trainer's own files; nothing in it is needed afterwards.
        report: Called for each step with step, loss, learning rate and gradient norm.

    Returns:
        The peft model; `save_pretrained` writes the adapter.
    """
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    class ReportLogs(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **extra: Any) -> None:  # noqa: ARG002 - the host's names
            logs = extra.get("logs") or {}
            if "loss" in logs:
                kept = {name: round(float(logs[name]), 9) for name in _LOGGED if name in logs}
                report({"stage": "sft", "step": int(state.global_step), **kept})

    rows = [{"messages": item.chat(), "tools": list(item.tools)} for item in conversations]
    with warnings.catch_warnings():
        # TRL passes settings by names that transformers is about to drop.
        warnings.simplefilter("ignore", FutureWarning)
        trainer = SFTTrainer(
            model=model,
            args=SFTConfig(
                output_dir=str(scratch),
                max_steps=recipe.steps,
                per_device_train_batch_size=recipe.batch_size,
                learning_rate=recipe.learning_rate,
                lr_scheduler_type="cosine",
                warmup_steps=recipe.warmup_steps,
                max_length=recipe.max_length,
                assistant_only_loss=True,
                logging_steps=1,
                save_strategy="no",
                report_to="none",
                seed=seed,
                data_seed=seed,
                bf16=False,
                gradient_checkpointing=False,
                disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                r=recipe.rank,
                lora_alpha=recipe.alpha,
                lora_dropout=recipe.dropout,
                target_modules=recipe.target_modules,
                task_type="CAUSAL_LM",
            ),
            callbacks=[ReportLogs()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return trainer.model


def save_adapter(model: Any, folder: Path, *, base_name: str) -> None:
    """Write an adapter so that equal weights give equal bytes.

    Args:
        model: From [`train_adapter`][molforge_train.sft.train_adapter].
        folder: Made if absent.
        base_name: What the adapter calls its base model.
    """
    model.peft_config["default"].base_model_name_or_path = base_name
    # The vocabulary is the base's own; asking the base's folder would fail while that has no place yet.
    model.save_pretrained(folder, save_embedding_layers=False)
    # The library's own card names nothing that the record does not.
    (folder / "README.md").unlink(missing_ok=True)
    settings = folder / "adapter_config.json"
    table = json.loads(settings.read_bytes())
    # The library keeps the module names in a set, and a set has no order.
    table["target_modules"] = sorted(table["target_modules"])
    settings.write_bytes(file_bytes(table))
