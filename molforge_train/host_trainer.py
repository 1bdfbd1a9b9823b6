"""TRL's GRPO trainer, set up from a configuration: the one module that knows its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from molforge_eval.records.manifest import Configuration
from molforge_train.policy import Policy
from molforge_train.prompts import prompt_rows
from molforge_train.rewards import EpisodeReward
from molforge_train.tool_environment import PlayedEnvironment

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer


def build_trainer(
    configuration: Configuration,
    policy: Policy,
    *,
    environment: type[PlayedEnvironment],
    reward: EpisodeReward,
    callback: TrainerCallback,
    checkpoints: Path,
) -> GRPOTrainer:
    """Set up the trainer; nothing is trained yet.

    Args:
        configuration: With device and number type settled.
        policy: Trained in place.
        environment: Its public methods are the tools.
        reward: Pays and records each batch.
        callback: Gets the trainer's logs.
        checkpoints: Folder for the host's own files, outside the run directory.
    """
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    trainer = GRPOTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        args=GRPOConfig(**host_arguments(configuration, checkpoints)),
        train_dataset=Dataset.from_list(prompt_rows(configuration)),
        reward_funcs=reward,
        # Its reset names the columns that it reads; the host's type only knows any keywords.
        environment_factory=cast("Any", environment),
        callbacks=[callback],
    )
    if configuration.load_in_4bit and not configuration.use_unsloth:
        # The host rounds an adapter on a base of 4 bits to bfloat16, where most of its small steps are rounded away.
        for parameter in policy.model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.float()
    # It would print each log to standard output, which belongs to the command's own lines.
    trainer.remove_callback(PrinterCallback)
    return trainer


def host_arguments(configuration: Configuration, checkpoints: Path) -> dict[str, Any]:
    """Translate a configuration into the host's arguments."""
    on_processor = configuration.device == "cpu"
    checkpointing = {"auto": not on_processor, "on": True, "off": False}[configuration.gradient_checkpointing]
    return {
        "output_dir": str(checkpoints),
        "max_steps": configuration.max_steps,
        "per_device_train_batch_size": configuration.batch_size,
        "gradient_accumulation_steps": configuration.gradient_accumulation,
        "num_generations": configuration.num_generations,
        "num_iterations": configuration.num_iterations,
        "learning_rate": configuration.learning_rate,
        "lr_scheduler_type": configuration.lr_scheduler,
        "adam_beta2": configuration.adam_beta2,
        "max_grad_norm": configuration.max_grad_norm,
        "beta": configuration.beta,
        "loss_type": configuration.loss_type,
        "temperature": configuration.temperature,
        "top_p": configuration.top_p,
        "top_k": configuration.top_k,
        "max_completion_length": configuration.max_completion_length,
        "max_tool_calling_iterations": configuration.turn_limit,
        **_generation(configuration),
        "seed": configuration.seed,
        # The rows stand in the order in which they are to be played.
        "shuffle_dataset": False,
        "logging_steps": configuration.logging_steps,
        # The filter would replace a loss that is not finite by a mean.
        "logging_nan_inf_filter": False,
        "save_strategy": "steps" if configuration.save_steps else "no",
        "save_steps": configuration.save_steps or configuration.max_steps,
        "save_total_limit": 2,
        "use_cpu": on_processor,
        "bf16": configuration.dtype == "bfloat16",
        "gradient_checkpointing": checkpointing,
        "dataloader_pin_memory": not on_processor,
        # Every weight that is trained has a part in every loss.
        "ddp_find_unused_parameters": False,
        "disable_tqdm": True,
        # No reporter is called, whatever is installed, unless it was asked for: a run talks to nobody.
        "report_to": configuration.report_to,
        "run_name": configuration.run_name,
    }


def _generation(configuration: Configuration) -> dict[str, Any]:
    # The host's own limit is that of the whole completion; a turn is bounded here.
    if configuration.vllm_mode == "off":
        return {"generation_kwargs": {"max_new_tokens": configuration.max_new_tokens}}
    names = ("vllm_mode", "vllm_server_host", "vllm_server_port", "vllm_gpu_memory_utilization")
    return {
        "use_vllm": True,
        "generation_kwargs": {"max_tokens": configuration.max_new_tokens},
        **{name: getattr(configuration, name) for name in names},
    }
