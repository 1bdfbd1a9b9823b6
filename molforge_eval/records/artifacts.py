"""Shapes of what is no record model by itself: table rows, adapter settings, archive listings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import Count, RelativePath

CellNumber = Annotated[str, Field(pattern=r"^(-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)?$")]
CellFlag = Literal["true", "false"]


class MetricsRow(FrozenModel):
    """One row of `openenv_tool_metrics.csv`, every cell as its text; an absent value is an empty cell."""

    timestamp: str
    run_id: str
    episode_id: str
    seed: CellNumber
    trainer_step: CellNumber
    generation: CellNumber
    turn: CellNumber
    scenario_id: str
    difficulty: str
    step_index: CellNumber
    action_type: str
    acting_role: str
    slot: str
    fragment: str
    tool_name: str
    reward: CellNumber
    transition_reward: CellNumber
    done: CellFlag
    governance_status: str
    error_code: str
    status: str
    source: str
    remaining_budget: CellNumber
    molecule: str
    final_score: CellNumber
    submission_score: CellNumber
    progress_score: CellNumber
    ended_by: str
    episode_score: CellNumber
    training_reward: CellNumber
    summary: str


class AdapterConfig(BaseModel):
    """`adapter_config.json`: the core keys are checked, keys of any PEFT version may stand beside them."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    peft_type: Literal["LORA"]
    r: Annotated[int, Field(ge=1)]
    target_modules: list[str] | str | None
    """`None` or empty where parameters are adapted that belong to no module of their own."""
    base_model_name_or_path: str | None


class ArchiveEntry(FrozenModel):
    """One member of an archive, as its listing has it."""

    path: RelativePath
    size: Count
    """Bytes when unpacked, as the listing claims."""
    compressed: Count
    """Bytes in the archive."""


class ArchiveListing(FrozenModel):
    """The listing of an archive, read into an object."""

    entries: tuple[ArchiveEntry, ...]
