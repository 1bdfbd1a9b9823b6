"""Format version 0: the records of a run as the public training script writes them.

Keys beyond the public ones are kept, for a stranger's script may add its own; the public ones have their types. A key
that is absent is `None`: what an old file never had is no fault of it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import Count, RelativePath

_OPEN = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

Clock = Annotated[float, Field(ge=0.0, lt=253_402_300_800.0)] | str
"""A moment: seconds since 1970, as the script writes it, up to the year 9999, or a text."""


class OldManifest(FrozenModel):
    """`run_manifest.json`: the settings that the script took from its environment."""

    model_config = _OPEN

    run_name: str | None = None
    script: str | None = None
    root: str | None = None
    output_dir: str | None = None
    base_model: str | None = None
    sft_adapter_path: str | None = None
    rl_max_steps: Count | None = None
    dataset_size: Count | None = None
    num_generations: Count | None = None
    batch_size: Count | None = None
    gradient_accumulation: Count | None = None
    learning_rate: float | None = None
    max_completion_length: Count | None = None
    run_before_eval: bool | None = None
    run_after_eval: bool | None = None
    drive_output_dir: str | None = None


class OldTraceStep(FrozenModel):
    """One step of an evaluation episode, or the error that ended it."""

    model_config = _OPEN

    step: Count | None = None
    """Step counter after the action."""
    action_type: str | None = None
    reward: float | None = None
    error: str | None = None


class OldEpisode(FrozenModel):
    """One evaluation episode; an episode that the laboratory did not end has scores of 0.0."""

    model_config = _OPEN

    scenario_id: str
    difficulty: str | None = None
    final_score: float | None = None
    submission_score: float | None = None
    progress_score: float | None = None
    trace: tuple[OldTraceStep, ...] | None = None


class OldEvaluation(FrozenModel):
    """`eval_before_training.json` or `eval_after_training.json`: played, or skipped with a reason."""

    model_config = _OPEN

    label: str | None = None
    episodes: tuple[OldEpisode, ...] | None = None
    """`None` when nothing was played."""
    average_final_score: float | None = None
    skipped: bool | None = None
    reason: str | None = None
    """Why it was skipped."""


class OldRolloutLine(FrozenModel):
    """One line of `logs/openenv_tool_rollouts.jsonl`: a tool call, with nothing that says which episode it is of."""

    model_config = _OPEN

    timestamp: Clock | None = None
    scenario_id: str
    difficulty: str | None = None
    step_index: Count | None = None
    action_type: str
    acting_role: str | None = None
    slot: str | None = None
    fragment: str | None = None
    tool_name: str | None = None
    reward: float | None
    """The final score when the episode is done, else the transition reward."""
    transition_reward: float | None = None
    done: bool | None = None
    governance_status: str | None = None
    final_score: float | None = None
    """The grader's scores when the episode is done, 0.0 before."""
    submission_score: float | None = None
    progress_score: float | None = None
    summary: str | None = None


class OldTrainerRow(FrozenModel):
    """One row of the trainer's log: the host's own keys, flat."""

    model_config = _OPEN

    step: Count
    time: Clock | None = None
    epoch: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    learning_rate: float | None = None
    reward: float | None = None
    reward_std: float | None = None
    kl: float | None = None
    entropy: float | None = None
    train_loss: float | None = None
    train_runtime: float | None = None


class OldTrainerState(FrozenModel):
    """`trainer_state.json`, which the host trainer writes beside each checkpoint."""

    model_config = _OPEN

    log_history: tuple[OldTrainerRow, ...]
    global_step: Count | None = None
    max_steps: int | None = None
    """-1 where the host was given epochs."""


class OldSummary(FrozenModel):
    """`openenv_rl_summary.json`: aggregates over the logs, and the means of both evaluations."""

    model_config = _OPEN

    run_name: str | None = None
    base_model: str | None = None
    sft_adapter_path: str | None = None
    num_tool_calls: Count | None = None
    mean_tool_reward: float | None = None
    max_tool_reward: float | None = None
    action_counts: dict[str, Count] | None = None
    latest_trainer_log: dict[str, Any] | None = None
    eval_before: float | dict[str, Any] | None = None
    """A mean, an object that holds `average_final_score`, or nothing."""
    eval_after: float | dict[str, Any] | None = None


class KeyUse(FrozenModel):
    """How many lines of the rollout log have a public key."""

    key: str
    lines: Count
    first_without: Annotated[int, Field(ge=1)] | None
    """The first line that lacks it; `None` when none does."""


RUN_NAMES = ("run_name", "run_id")
"""Keys by which a file says of which run it is."""


class LineName(FrozenModel):
    """A run that a line of the rollout log names, and the first line that does."""

    key: str
    name: str
    line: Annotated[int, Field(ge=1)]


class OldRun(FrozenModel):
    """What a run of format version 0 says besides its two logs; a record that could not be used is `None`."""

    manifest: OldManifest | None
    before: OldEvaluation | None
    after: OldEvaluation | None
    summary: OldSummary | None
    trainer_source: RelativePath | None
    """File that the trainer rows were read from; `None` when the run has no trainer log."""
    trainer_form: Literal["lines", "list", "state"] = "lines"
    """How the rows stand in that file: one a line, as a bare list, or in the state of the host trainer."""
    trainer_state: OldTrainerState | None
    """The state that the rows were read from, when it was one."""
    lines_left_out: Annotated[int, Field(ge=0)]
    """Lines of the rollout log that could not be used."""
    line_keys: tuple[KeyUse, ...] = ()
    """One for each public key; empty when the log has no line that could be used."""
    line_names: tuple[LineName, ...] = ()
    """Runs that the lines name, in the order of the log; the first few of them."""

    def evaluations(self) -> tuple[tuple[str, OldEvaluation], ...]:
        """Return name and evaluation of those that hold an episode, before first."""
        pairs = (("before", self.before), ("after", self.after))
        return tuple((name, found) for name, found in pairs if found is not None and found.episodes)
