"""The part of the evidence that only a run of format version 0 has: what it lists, and what its layout lacks.

Such a run names no plan and no seed, so nothing here is paired, and nothing here can be played again.
"""

from __future__ import annotations

from typing import Literal, get_args

from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import Count
from molforge_eval.report.number_book import NumberId

ArmName = Literal["before", "after"]
ArmState = Literal["listed", "failed", "skipped", "hollow", "absent", "unusable"]
Lack = Literal[
    "plan",
    "seeds",
    "decoding",
    "arguments",
    "completions",
    "rules",
    "endings",
    "run_id",
    "hashes",
    "adapters",
    "machine",
]
FileState = Literal["absent", "empty", "hollow", "unusable", "skipped"]
LACKS: tuple[Lack, ...] = get_args(Lack)
"""What the layout has no place for, in the order of the page."""


class ArmStatement(FrozenModel):
    """One of the two evaluations, as its file lists it; its numbers are `unpaired.mean.<name>*`."""

    name: ArmName
    file: str
    state: ArmState
    """`failed`: episodes are listed and none of them counts; `hollow`: the file can be read and lists none."""
    reason: str | None
    """Why it was skipped, in the words of the run."""
    label: str | None


class ListedTask(FrozenModel):
    """One scenario of the evaluations; its numbers are `unpaired.<task>.*` and, on the ladder, `score.<task>.*`."""

    task: str
    label: str
    is_official: bool


class TraceStep(FrozenModel):
    """One entry of a trace."""

    step: str
    action: str | None
    reward: str | None
    error: str | None


class Trace(FrozenModel):
    """One evaluation episode as far as its trace tells it."""

    arm: ArmName
    label: str
    difficulty: str | None
    file: str
    pointer: str
    score: NumberId
    steps: tuple[TraceStep, ...]
    omitted_steps: Count


class LoggedColumn(FrozenModel):
    """A key of the trainer rows that has no chart; its numbers are `column.<key>.*`."""

    key: str
    label: str


class MissingFile(FrozenModel):
    """A file that the layout knows and that this run does not hold, or not in a form that can be used."""

    path: str
    state: FileState
    reason: str | None


class OldStatement(FrozenModel):
    """Everything that is said of a run of format version 0 and of no other."""

    arms: tuple[ArmStatement, ArmStatement]
    absences: tuple[str, ...]
    """What became of an evaluation that gives no score."""
    tasks: tuple[ListedTask, ...]
    omitted_tasks: Count
    traces: tuple[tuple[Trace, ...], ...]
    """Episodes of one scenario side by side."""
    omitted_scenarios: Count
    """Scenarios of which no trace is shown."""
    columns: tuple[LoggedColumn, ...]
    lacks: tuple[Lack, ...]
    missing_files: tuple[MissingFile, ...]
    difference_reason: str | None
    """Why no difference is stated; `None` when one is."""
    is_official: bool
    """The evaluations list the three official scenarios, so that the ladder may stand beside their mean."""
    is_once_each: bool
    """No scenario was counted more than once on a side."""
