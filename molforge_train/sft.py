"""Supervised fine-tuning of a LoRA adapter on transcripts, with TRL's trainer.

Only the assistant's turns carry a loss where TRL can mark them in the chat template, else the whole conversation does.
The stage takes any base model whose tool calls TRL can read; the tiny model is one of them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_eval.canonical import file_bytes
from molforge_eval.records.conversations import Conversation
from molforge_train.checkpoints import Checkpoint, mark_whole
from molforge_train.policy import PROCESSOR, Place

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ReportStep = Callable[[dict[str, Any]], None]
_LOGGED = ("loss", "learning_rate", "grad_norm", "mean_token_accuracy")


class SftRecipe(FrozenModel):
    """LoRA and training of the adapter."""

    rank: Annotated[int, Field(ge=1)]
    alpha: Annotated[int, Field(ge=1)]
    """Scale of the adapter, over the rank."""
    dropout: Annotated[float, Field(ge=0, lt=1)]
    target_modules: str
    """`all-linear`, or a regular expression that peft understands."""
    steps: Annotated[int, Field(ge=1)]
    batch_size: Annotated[int, Field(ge=1)]
    """Conversations a batch."""
    learning_rate: Annotated[float, Field(gt=0, le=1)]
    """Peak; linear warm-up, cosine to zero."""
    warmup_steps: Annotated[int, Field(ge=0)]
    max_length: Annotated[int, Field(ge=16)]
    """Tokens of a conversation that are trained on; longer ones are cut."""
    gradient_accumulation: Annotated[int, Field(ge=1)] = 1
    """Batches of one step."""
    one_table: bool = False
    """Whether all rows share one set of keys, absent ones written as null into the prompt's list of tools. Only the
    shipped adapter was made so, before it was seen; its bytes are kept."""


class Saving(NamedTuple):
    """Where the trainer keeps its own files, and what it can go on from when it is stopped."""

    folder: Path
    every: int = 0
    """Steps between two checkpoints; 0 makes none."""
    identity: str = ""
    """Of what is tuned on what by which settings: a checkpoint of another is none of ours."""
    start: Checkpoint | None = None
    """What training goes on from."""


def train_adapter(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    conversations: Sequence[Conversation],
    recipe: SftRecipe,
    *,
    seed: int,
    saving: Saving,
    report: ReportStep,
    place: Place = PROCESSOR,
) -> Any:
    """Train a fresh LoRA adapter on the assistant's turns.

    Args:
        model: The base; its own weights stay as they are.
        tokenizer: With a chat template that TRL knows.
        conversations: What the teachers did.
        recipe: Rank, steps and learning rate.
        seed: First weights of the adapter and order of the conversations.
        saving: The trainer's own files; nothing of them is needed afterwards.
        report: Called for each step with step, loss, learning rate and gradient norm; for those before the checkpoint
            that training goes on from, too.
        place: Device and number type of the training.

    Returns:
        The peft model; `save_pretrained` writes the adapter.
    """
    from peft import LoraConfig
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    def tell(logs: dict[str, Any], step: int) -> None:
        if "loss" in logs:
            report({"stage": "sft", "step": step, **{n: round(float(logs[n]), 9) for n in _LOGGED if n in logs}})

    class Steps(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **extra: Any) -> None:  # noqa: ARG002 - the host's names
            for row in state.log_history:
                tell(row, int(row["step"]))

        def on_log(self, args: Any, state: Any, control: Any, **extra: Any) -> None:  # noqa: ARG002 - the host's names
            tell(extra.get("logs") or {}, int(state.global_step))

        def on_save(self, args: Any, state: Any, control: Any, **extra: Any) -> None:  # noqa: ARG002 - the host's names
            mark_whole(saving.folder, int(state.global_step), saving.identity)

    with warnings.catch_warnings():
        # TRL passes settings by names that transformers is about to drop.
        warnings.simplefilter("ignore", FutureWarning)
        trainer = SFTTrainer(
            model=model,
            args=SFTConfig(
                output_dir=str(saving.folder),
                max_steps=recipe.steps,
                per_device_train_batch_size=recipe.batch_size,
                gradient_accumulation_steps=recipe.gradient_accumulation,
                learning_rate=recipe.learning_rate,
                lr_scheduler_type="cosine",
                warmup_steps=recipe.warmup_steps,
                max_length=recipe.max_length,
                assistant_only_loss=can_mark_assistant(tokenizer),
                logging_steps=1,
                save_strategy="steps" if saving.every else "no",
                save_steps=saving.every or 1,
                # The last one may be half written when the process is killed.
                save_total_limit=2,
                report_to="none",
                seed=seed,
                data_seed=seed,
                bf16=place.dtype == "bfloat16",
                gradient_checkpointing=place.device != "cpu",
                disable_tqdm=True,
                use_cpu=place.device == "cpu",
            ),
            train_dataset=_rows(conversations, one_table=recipe.one_table),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                r=recipe.rank,
                lora_alpha=recipe.alpha,
                lora_dropout=recipe.dropout,
                target_modules=recipe.target_modules,
                task_type="CAUSAL_LM",
            ),
            callbacks=[Steps()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if saving.start is None else str(saving.start.folder))
    return trainer.model


def _rows(conversations: Sequence[Conversation], *, one_table: bool) -> Any:
    from datasets import Dataset

    if one_table:
        return Dataset.from_list([{"messages": item.chat(), "tools": list(item.tools)} for item in conversations])
    rows = [{"messages": _with_objects(item), "tools": list(item.tools)} for item in conversations]
    # Each row keeps its own keys: a table would write the absent ones into the prompt.
    return Dataset.from_list(rows, on_mixed_types="use_json")


def _with_objects(conversation: Conversation) -> list[dict[str, Any]]:
    # Templates with XML calls go through the arguments, so they need the object and not its text.
    messages = conversation.chat()
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


def can_mark_assistant(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Tell whether TRL can mark the assistant's turns in a chat template."""
    from trl.chat_template_utils import get_training_chat_template

    try:
        get_training_chat_template(tokenizer)
    except ValueError:
        return False
    return True


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


@contextmanager
def reproducible(threads: int, device: str = "cpu") -> Iterator[None]:
    """Compute on so many threads and by deterministic algorithms where that can be had: on a processor.

    On a GPU some steps of a model have no deterministic form, and torch would end the training at the first of them.
    What the libraries draw meanwhile is not shown.

    Args:
        threads: Threads of a processor.
        device: Where the model is.
    """
    import datasets
    import torch
    from transformers.utils import logging

    # Both libraries draw a bar for each small thing they do.
    logging.disable_progress_bar()
    datasets.disable_progress_bars()
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    if device == "cpu":
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(mode=True)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(mode=before[1])
