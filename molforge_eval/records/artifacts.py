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


class PdfAttachment(FrozenModel):
    """One file attached to a PDF."""

    name: Annotated[str, Field(max_length=400)]
    """As a reader of the PDF shows it."""
    size: Count
    """Bytes that were unpacked of it."""
    compressed: Count
    """Bytes in the PDF."""
    piece: Annotated[str, Field(pattern=r"^piece-[0-9]{1,6}$")] | None
    """The file that it was unpacked into; `None` when it was not."""
    fault: Literal["repeated", "unknown", "unreadable", "too_large"] | None
    reason: str | None
    """What was wrong, in words."""


class ActiveContent(FrozenModel):
    """Something in a PDF that acts or that lies outside of it."""

    kind: str
    object_number: Count


class PrintedPage(FrozenModel):
    """The first page of a PDF."""

    words: Annotated[str, Field(max_length=100_000)] | None
    """Its text without blanks; `None` when it cannot be read."""
    creator: Annotated[str, Field(max_length=400)]
    """The program that made the document, as the document says."""
    strange: Annotated[tuple[Annotated[str, Field(max_length=80)], ...], Field(max_length=20)]
    """What is put on the page and on no page of a packet, by kind."""


class PdfListing(FrozenModel):
    """A PDF as the child process read it: attachments, what acts, and the words of the first page."""

    attachments: tuple[PdfAttachment, ...]
    attachments_in_all: Count
    active: tuple[ActiveContent, ...]
    first_page: PrintedPage
