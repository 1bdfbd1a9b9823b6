"""The evidence model: everything that a packet says, before anything is drawn or worded.

Templates and charts read this and nothing else. A number stands once, in `numbers`, and is named by its id wherever it
is used; wording belongs to the templates, which choose it by the closed words here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from molforge_env.frozen import FrozenModel
from molforge_env.models import Slot
from molforge_env.suites import SuiteName
from molforge_eval.catalogue import Level
from molforge_eval.findings import Finding
from molforge_eval.records.fields import Count, EndedBy, MoleculeCode, Sha256
from molforge_eval.report.number_book import Number, NumberId
from molforge_eval.report.old_evidence import OldStatement
from molforge_eval.report.section_evidence import (
    ActionShift,
    ChartNote,
    Exploration,
    PaidPoint,
    Resumption,
    SeedTable,
    Surrounding,
)
from molforge_eval.report.series import ActionShare, Curve
from molforge_eval.verdict import Outcome

Standing = Literal["supported", "partly", "unclear", "not shown", "contradicted", "not tested", "withheld"]
ClaimKey = Literal[
    "score_rose",
    "every_task_rose",
    "reward_tracks_score",
    "training_happened",
    "scores_replayed",
    "unseen_tasks",
    "other_seeds",
    "adapter_regenerates",
]
Trend = Literal["rose", "fell", "flat", "unknown"]
MissingPart = Literal["before", "after", "plan"]
Floor = Literal["under", "at", "above"]
Direction = Literal["up", "down", "equal", "unknown"]


class Identity(FrozenModel):
    """Which run this is and what made it."""

    title: str
    run_id: str
    run_name: str
    run_format: Literal[0, 1]
    status: str
    """As the manifest has it, or `unknown`."""
    status_reason: str | None
    date: str
    """Day on which the run ended, or started when it did not end."""
    model: str
    adapter: str | None
    preset: str
    device: str
    product_version: str
    rules_version: str
    git_commit: str | None
    git_commit_reason: str | None
    root_sha256: Sha256 | None
    plan_sha256: Sha256 | None
    input_adapter_sha256: Sha256 | None
    output_adapter_sha256: Sha256 | None


class LevelStatement(FrozenModel):
    """What checking has shown."""

    level: Level | None
    reason: str
    """Why it is not higher."""
    replayed: bool
    """Whether episodes were played again for this packet."""
    regenerated: Count | None = None
    """Evaluations of which the model wrote the greedy episodes again for this packet; `None` when it was not asked."""


class VerdictStatement(FrozenModel):
    """The outcome, and the facts that its sentence must not leave out."""

    outcome: Outcome
    reasons: tuple[str, ...]
    before_against_floor: Floor | None
    after_against_floor: Floor | None
    has_interval: bool
    interval_reason: str | None
    trained_on_official: bool | None
    """Whether official tasks were among the training prompts; `None` when not recorded."""
    suite: SuiteName = "official"
    """Family of the tasks that the verdict is over."""
    missing: tuple[MissingPart, ...]
    differing: tuple[str, ...]
    """Keys in which before and after are not comparable."""


class Sentinel(FrozenModel):
    """Training reward against the strict score of the same episodes."""

    reward: Trend
    score: Trend
    flagged: bool
    """The reward rose and the score did not."""
    evaluation_fell: bool
    """The training reward rose and the evaluation score fell."""


class Claim(FrozenModel):
    """One row of the claims table."""

    key: ClaimKey
    standing: Standing


class TaskRow(FrozenModel):
    """One task of the results; its numbers are `score.<task>.*`."""

    task: str
    label: str
    greedy_endings: tuple[EndedBy | None, EndedBy | None]
    """How the greedy episode ended before and after."""


class MetricRow(FrozenModel):
    """One metric that the evaluations list; its numbers are `metric.<key>.*`."""

    key: str
    label: str
    is_primary: bool
    direction: Direction


class SeedRow(FrozenModel):
    """One seed of the deciding part: equal-weight mean over tasks on both sides."""

    seed: int
    before: float
    after: float


class PhaseRow(FrozenModel):
    """What the policy did in one phase; its numbers are `conduct.<phase>.*`."""

    phase: str
    label: str
    actions: tuple[ActionShare, ...]


class Drawing(FrozenModel):
    """A molecule to draw."""

    code: MoleculeCode
    changed: Slot | None


class TranscriptStep(FrozenModel):
    """One call as a reader follows it."""

    step: Count
    turn: Count
    tool: str
    arguments: tuple[tuple[str, str], ...]
    """Name and value, cut to a readable length."""
    status: Literal["ok", "invalid", "env_error"]
    error_code: str
    vetoes: tuple[str, ...]
    reward: str
    budget: str
    answer: str
    """What the laboratory answered, cut."""
    drawing: Drawing | None
    """The molecule after an edit or a restart that was carried out."""


class Transcript(FrozenModel):
    """One evaluation episode to read."""

    key: Literal["before", "after", "best", "median", "worst"]
    also: tuple[Literal["best", "median", "worst"], ...]
    """What else this episode is, so that it is not shown twice."""
    arm: Literal["before", "after"]
    part: str
    task: str
    label: str
    seed: int
    episode_id: str
    file: str
    pointer: str
    score: str
    ended_by: EndedBy
    start: Drawing | None
    steps: tuple[TranscriptStep, ...]
    omitted_steps: Count
    closing: str | None
    """The completion that ended an episode without a call, cut."""


class Setting(FrozenModel):
    """One resolved setting."""

    key: str
    value: str
    origin: str


class Artifact(FrozenModel):
    """One file of the run."""

    path: str
    size: str
    sha256: Sha256


class CurveNote(FrozenModel):
    """A curve with what is said beside it; its numbers are `curve.<name>.*`."""

    name: str
    curve: Curve
    trend: Trend
    """By the slope over all its points."""


class Evidence(FrozenModel):
    """The whole of a packet."""

    evidence_version: Literal[1]
    identity: Identity
    level: LevelStatement
    verdict: VerdictStatement
    sentinel: Sentinel
    claims: tuple[Claim, ...]
    tasks: tuple[TaskRow, ...]
    metrics: tuple[MetricRow, ...]
    """Every metric that the evaluations list, the headline first."""
    seeds: tuple[SeedRow, ...]
    seed_table: SeedTable | None
    """`None` where nothing was judged."""
    curves: tuple[CurveNote, ...]
    resumes: tuple[Resumption, ...] = ()
    """Where training went on after a stop; `resume.count` says how often, also where not every place is named."""
    phases: tuple[PhaseRow, ...]
    shift: ActionShift | None
    """`None` without both evaluations."""
    paid: tuple[PaidPoint, ...]
    """Training episodes by reward and score, the most frequent points when there are too many to draw."""
    exploration: Exploration | None
    """`None` where the layout records no molecule."""
    transcripts: tuple[Transcript, ...]
    settings: tuple[Setting, ...]
    packages: tuple[tuple[str, str], ...]
    surroundings: tuple[Surrounding, ...]
    findings: tuple[Finding, ...]
    omitted_findings: dict[str, Count]
    artifacts: tuple[Artifact, ...]
    commands: tuple[tuple[str, str], ...]
    """What a command is for, by a word of the templates, and the command."""
    old: OldStatement | None = None
    """What is said of a run of format version 0 alone; `None` for any other."""
    charts: tuple[ChartNote, ...] = ()
    """Every chart, and where the data that it draws stand here."""
    numbers: tuple[Number, ...]

    @cached_property
    def by_id(self) -> dict[NumberId, Number]:
        """The numbers by their ids."""
        return {number.id: number for number in self.numbers}

    def number(self, number_id: str) -> Number:
        """Find a number.

        Raises:
            KeyError: There is none of this id.
        """
        return self.by_id[number_id]

    def trend(self, name: str) -> Trend:
        """Say which way a curve went; one that is not there went no way that is known."""
        return next((note.trend for note in self.curves if note.name == name), "unknown")

    def curve(self, name: str) -> Curve | None:
        """Find a curve that has points."""
        return next((note.curve for note in self.curves if note.name == name and note.curve.points), None)
