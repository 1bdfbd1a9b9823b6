"""The run manifest: what was asked for, on what, and what came out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from molforge_env.fingerprint import BackendFingerprint
from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import (
    Count,
    FormatVersion,
    Moment,
    ObservationLength,
    RewardMode,
    RunId,
    Sha256,
)

MOST_PHASES = 64
"""A check nests a condition for each; thousands of them would end its process."""


class RewardPhase(FrozenModel):
    """How training is paid from one step on."""

    from_step: Count
    """Optimizer step of its first episodes; the phase before ends there."""
    reward_mode: RewardMode
    reward_weights: dict[str, float]


class Configuration(FrozenModel):
    """Every setting of a training run, resolved."""

    preset: str
    base_model: str
    sft_adapter_path: str | None
    run_name: str
    output_root: str
    """As given, without home folder or host; `runs` by default."""
    drive_output_dir: str | None
    hf_output_repo: str | None = None
    """Repository of the hub that gets the run; absent in manifests that are older than the setting."""
    max_steps: Count
    """Optimizer steps."""
    dataset_size: Count
    num_generations: Count
    batch_size: Count
    """Completions a device and micro-step."""
    gradient_accumulation: Count
    num_iterations: Count
    learning_rate: float
    lr_scheduler: str
    adam_beta2: float
    max_grad_norm: float
    beta: float
    loss_type: str
    temperature: float
    top_p: float
    top_k: Count
    max_completion_length: Count
    max_new_tokens: Count
    turn_limit: Count
    seed: int
    logging_steps: Count
    save_steps: Count
    run_before_eval: bool
    run_after_eval: bool
    eval_seeds: Count
    """Sampled episodes a task."""
    reward_mode: RewardMode
    reward_weights: dict[str, float]
    reward_phases: Annotated[tuple[RewardPhase, ...], Field(max_length=MOST_PHASES)] = ()
    """Pay of later steps, in order; until the first begins, `reward_mode` and `reward_weights` hold."""
    anti_farming: bool = False
    """An assay that was run before on the same molecule adds nothing to the part `step_rewards`."""
    assay_noise: bool = False
    """Readings of training episodes err by the episode's seed; those of an evaluation never do."""
    canonical_share: float = Field(ge=0.0, le=1.0)
    """Share of the prompts that are official scenarios; the others are seeded variants."""
    observation_length: ObservationLength
    dtype: str
    device: str
    gradient_checkpointing: str = "auto"
    """This and what follows is absent in manifests that are older than the settings."""
    load_in_4bit: bool = False
    use_unsloth: bool = False
    vllm_mode: str = "off"
    vllm_server_host: str = "127.0.0.1"
    vllm_server_port: Count = 8000
    vllm_gpu_memory_utilization: float = 0.3
    report_to: str = "none"


class Hardware(FrozenModel):
    """The machine, without its name."""

    platform: str
    machine: str
    cpu_count: Count
    memory_bytes: Count | None
    accelerator: str | None


class AdapterIdentity(FrozenModel):
    """An adapter folder, by content."""

    path: str
    sha256: Sha256
    """Over the weights file."""
    parameters: Count
    tensors_sha256: Sha256 | None = None
    """Over names, shapes and values of the tensors, however a file spells them; `None` when it is not known."""
    tensors_sha256_reason: str | None = None
    """Why it is not known; absent in manifests that are older than the field."""


class RunManifest(FrozenModel):
    """One per run directory; written before step 0 with status `running`, and again at the end."""

    format_version: FormatVersion
    run_id: RunId
    run_name: str
    product_version: str
    rules_version: str
    script: str
    status: Literal["running", "complete", "interrupted", "failed"]
    status_reason: str | None
    started_at: Moment
    ended_at: Moment | None
    configuration: Configuration
    configuration_sources: dict[str, Literal["flag", "environment", "preset", "default"]]
    seeds: dict[str, int]
    git_commit: str | None
    git_commit_reason: str | None
    """Why the commit is unknown."""
    packages: dict[str, str]
    hardware: Hardware
    processes: int = Field(default=1, ge=1, le=2**20)
    """Processes that trained together: each has a device and whole groups of every batch, in the order of its rank."""
    backend: BackendFingerprint
    plan_sha256: Sha256
    base_model_sha256: Sha256 | None
    input_adapter: AdapterIdentity | None
    output_adapter: AdapterIdentity | None
    trainable_parameters: Count | None
    total_parameters: Count | None
    steps_completed: Count
    training_seconds: float | None
    non_finite_steps: Count
    """Training rows with a number that is not finite."""
