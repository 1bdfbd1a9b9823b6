"""The table of settings: every knob of a training run, once, under one spelling.

Flags, environment variables, preset keys and the manifest all read this table, so a knob has the same name everywhere
(`max_steps`, `--max-steps`) and, where the Colab workflow has one, its variable (`RL_MAX_STEPS`).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from molforge_env.errors import UsageError

Kind = Literal["whole", "number", "text", "switch", "weights", "phases"]
Value = int | float | str | bool | dict[str, float] | list[dict[str, Any]] | None

LOSS_TYPES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")
SCHEDULERS = ("linear", "cosine", "constant", "constant_with_warmup", "polynomial", "inverse_sqrt")
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


REWARD_MODES = ("assay_gated", "curriculum", "dense")
MOST_PHASES = 64
"""Both as the records have them, whose modules take too long to load for `--help`."""


class Setting(NamedTuple):
    """One knob: its name, how it is read, what it may be."""

    name: str
    kind: Kind
    help: str
    variable: str | None = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The command-line flag of the setting."""
        return "--" + self.name.replace("_", "-")


SETTINGS = (
    Setting("base_model", "text", "Folder or hub name of the base model.", "BASE_MODEL_NAME"),
    Setting("sft_adapter_path", "text", "LoRA adapter that training goes on from.", "SFT_ADAPTER_PATH"),
    Setting("run_name", "text", "Name of the run directory [the preset and the time].", "RUN_NAME"),
    Setting("output_root", "text", "Folder that holds run directories.", "RL_OUTPUT_ROOT"),
    Setting("drive_output_dir", "text", "Folder that gets a copy of the run.", "DRIVE_OUTPUT_DIR"),
    Setting("hf_output_repo", "text", "Repository of the hub that gets the run.", "HF_OUTPUT_REPO"),
    Setting("max_steps", "whole", "Optimizer steps.", "RL_MAX_STEPS", low=1),
    Setting("dataset_size", "whole", "Rows of prompts; a run that needs more goes round.", "RL_DATASET_SIZE", low=1),
    Setting("num_generations", "whole", "Episodes of one prompt, compared with each other.", "NUM_GENERATIONS", low=2),
    Setting("batch_size", "whole", "Episodes a device and micro-step.", "RL_BATCH_SIZE", low=1),
    Setting("gradient_accumulation", "whole", "Micro-steps of one optimizer step.", "RL_GRAD_ACCUM", low=1),
    Setting("num_iterations", "whole", "Optimizer passes over one batch of episodes.", low=1),
    Setting("learning_rate", "number", "Peak learning rate.", "RL_LEARNING_RATE", low=0.0, high=1.0),
    Setting("lr_scheduler", "text", "Course of the learning rate.", choices=SCHEDULERS),
    Setting("adam_beta2", "number", "Second decay of Adam.", low=0.0, high=1.0),
    Setting("max_grad_norm", "number", "Gradients are clipped to this norm.", low=0.0),
    Setting("beta", "number", "Weight of the divergence from the start adapter.", low=0.0),
    Setting("loss_type", "text", "Loss of the trainer.", choices=LOSS_TYPES),
    Setting("temperature", "number", "Sampling temperature in training and in the sampled evaluation.", low=0.01),
    Setting("top_p", "number", "Share of probability that is sampled from.", low=0.01, high=1.0),
    Setting("top_k", "whole", "Tokens that are sampled from; 0 keeps all.", low=0),
    Setting("max_completion_length", "whole", "Tokens an episode, tool results too.", "MAX_COMPLETION_LENGTH", low=16),
    Setting("max_new_tokens", "whole", "Tokens a turn.", low=4),
    Setting("turn_limit", "whole", "Turns with a call an episode.", low=1),
    Setting("seed", "whole", "Seed of every draw.", "RL_SEED", low=0, high=2**31 - 1),
    Setting("logging_steps", "whole", "Optimizer steps between two rows of the log.", "RL_LOGGING_STEPS", low=1),
    Setting("save_steps", "whole", "Optimizer steps between checkpoints; 0: at a signal only.", "RL_SAVE_STEPS", low=0),
    Setting("run_before_eval", "switch", "Evaluate before training.", "RUN_BEFORE_EVAL"),
    Setting("run_after_eval", "switch", "Evaluate after training.", "RUN_AFTER_EVAL"),
    Setting("eval_seeds", "whole", "Sampled episodes a task in each evaluation.", low=1),
    Setting("reward_mode", "text", "Reward rules in training episodes.", choices=REWARD_MODES),
    Setting("reward_weights", "weights", "Weights of the training reward; a table of the preset."),
    Setting("reward_phases", "phases", "Pay from a later step on; an array of tables of the preset."),
    Setting("anti_farming", "switch", "Pay nothing for a step that runs an assay again.", "RL_ANTI_FARMING"),
    Setting("assay_noise", "switch", "Readings in training err by the episode's seed.", "RL_ASSAY_NOISE"),
    Setting("canonical_share", "number", "Share of prompts that are official scenarios.", low=0.0, high=1.0),
    Setting("observation_length", "text", "Length of observation texts.", choices=("full", "compact")),
    Setting("dtype", "text", "Number type of the weights.", choices=("auto", "float32", "bfloat16")),
    Setting("device", "text", "Where to train.", choices=("auto", "cpu", "cuda", "mps")),
    Setting(
        "gradient_checkpointing",
        "text",
        "Compute activations twice to save memory; auto: on a GPU.",
        "GRADIENT_CHECKPOINTING",
        choices=("auto", "on", "off"),
    ),
    Setting("load_in_4bit", "switch", "Keep the base model in 4 bits (bitsandbytes, CUDA).", "LOAD_IN_4BIT"),
    Setting("use_unsloth", "switch", "Load the base model by Unsloth (CUDA).", "USE_UNSLOTH"),
    Setting(
        "vllm_mode",
        "text",
        "Generate training episodes by vLLM (CUDA).",
        "VLLM_MODE",
        choices=("off", "colocate", "server"),
    ),
    Setting("vllm_server_host", "text", "Host of the vLLM server.", "VLLM_SERVER_HOST"),
    Setting("vllm_server_port", "whole", "Port of the vLLM server.", "VLLM_SERVER_PORT", low=1, high=65535),
    Setting(
        "vllm_gpu_memory_utilization",
        "number",
        "Share of the GPU's memory that a colocated vLLM takes.",
        "VLLM_GPU_MEMORY_UTILIZATION",
        low=0.01,
        high=1.0,
    ),
    Setting(
        "report_to",
        "text",
        "Tracker that gets the trainer's logs too.",
        "REPORT_TO",
        choices=("none", "trackio", "wandb", "tensorboard"),
    ),
)
_LARGEST = 2**31 - 1
"""Of a whole number without a bound of its own: the largest that every library takes."""
BY_NAME = {setting.name: setting for setting in SETTINGS}


def value_from_text(setting: Setting, text: str, where: str) -> Value:
    """Read the text of a flag or a variable.

    Raises:
        UsageError: The text is not such a value; `where` is named.
    """
    value: Value = text
    if setting.kind == "switch":
        value = _SWITCHES.get(text.strip().lower(), text)
    elif setting.kind in ("whole", "number"):
        try:
            value = int(text) if setting.kind == "whole" else float(text)
        except ValueError:
            value = text
    return checked(setting, value, where)


def checked(setting: Setting, value: object, where: str) -> Value:
    """Check kind, range and choice of a value.

    Raises:
        UsageError: It is not such a value.
    """
    if setting.kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not _is_of_kind(setting.kind, value) or not _is_in_range(setting, value) or not _is_offered(setting, value):
        wanted = _wanted(setting, _high_of(setting, value))
        raise UsageError(f"{setting.name} is {value!r}, not {wanted}", where=where, mend=f"Set {wanted}.")
    return value  # type: ignore[return-value] # `_is_of_kind` has just shown the type


def _is_of_kind(kind: Kind, value: object) -> bool:
    if kind == "weights":
        return isinstance(value, dict) and all(_is_of_kind("number", weight) for weight in value.values())
    if kind == "phases":
        if not isinstance(value, list) or len(value) > MOST_PHASES:
            return False
        return all(isinstance(phase, dict) and _is_phase(phase) for phase in value)
    if isinstance(value, bool) or kind == "switch":
        return isinstance(value, bool) and kind == "switch"
    if kind == "number":
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, int if kind == "whole" else str)


def _is_phase(phase: dict[str, Any]) -> bool:
    return (
        phase.keys() == {"from_step", "reward_mode", "reward_weights"}
        and _is_of_kind("whole", phase["from_step"])
        and phase["from_step"] >= 0
        and phase["reward_mode"] in REWARD_MODES
        and _is_of_kind("weights", phase["reward_weights"])
    )


def _is_in_range(setting: Setting, value: object) -> bool:
    if not isinstance(value, int | float):
        return True
    high = _high_of(setting, value)
    return (setting.low is None or value >= setting.low) and (high is None or value <= high)


def _high_of(setting: Setting, value: object) -> float | None:
    # The largest of a whole number is said to those only who are above it.
    is_too_large = setting.kind == "whole" and isinstance(value, int) and value > _LARGEST
    return _LARGEST if is_too_large and setting.high is None else setting.high


def _is_offered(setting: Setting, value: object) -> bool:
    return not setting.choices or value in setting.choices


def _wanted(setting: Setting, high: float | None) -> str:
    if setting.choices:
        return "one of " + ", ".join(setting.choices)
    words = {
        "whole": "a whole number",
        "number": "a number",
        "text": "a text",
        "switch": "1 or 0",
        "weights": "a table of numbers",
        "phases": f"up to {MOST_PHASES} tables of from_step, reward_mode and reward_weights",
    }[setting.kind]
    if setting.low is not None and high is not None:
        return f"{words} from {setting.low:.10g} to {high:.10g}"
    return words if setting.low is None else f"{words} of at least {setting.low:g}"
