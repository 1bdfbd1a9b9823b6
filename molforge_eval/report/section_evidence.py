"""The part of the evidence that single sections show: molecules, seeds, paid episodes, surroundings.

As in the whole of the evidence, a number that is printed stands in the number book; what stands here places it or is
drawn.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import Count, MoleculeCode
from molforge_eval.report.number_book import NumberId

PaidPhase = Literal["early", "between", "late"]
SurroundingGroup = Literal["model", "machine", "laboratory", "evaluation"]


class MoleculeCell(FrozenModel):
    """What happened to one molecule."""

    code: MoleculeCode
    visits: Count
    """Lines of the rollout log that left it on the bench."""
    trained: Count
    """Training episodes that submitted it."""
    before: Count
    """Episodes of the deciding part that submitted it before training."""
    after: Count
    ceiling_of: tuple[str, ...]
    """Tasks whose exact search submits it."""


class CeilingMolecule(FrozenModel):
    """What the exact search submits on one official task."""

    task: str
    label: str
    code: MoleculeCode


class Exploration(FrozenModel):
    """Where the policy went among the 256 molecules; its numbers are `explore.*`."""

    part: str
    """Part of the plan whose submissions are counted."""
    cells: tuple[MoleculeCell, ...]
    """Molecules that were visited or submitted, or that are a ceiling, by code."""
    ceilings: tuple[CeilingMolecule, ...]
    top_before: MoleculeCode | None
    """Submitted most often before training, the first of equals by code; `None` when none was."""
    top_after: MoleculeCode | None


class SeedPair(NamedTuple):
    """One score of a seed before and after; `None` where it was not counted."""

    before: float | None
    after: float | None


class SeedLine(FrozenModel):
    """One seed of the deciding part; its numbers are `seed.<seed>.<task>.*` and `seed.<seed>.mean.*`."""

    seed: int
    mean: SeedPair
    """Equal-weight mean over the tasks."""
    tasks: tuple[SeedPair, ...]
    """In the order of the tasks of the results."""


class SeedTable(FrozenModel):
    """Every seed of the deciding part, or so many of them as are shown."""

    lines: tuple[SeedLine, ...]
    planned: Count
    """Seeds of the plan, of which `lines` are some, evenly spread."""
    has_tasks: bool
    """The table names the score of each task; with many seeds or tasks it names the mean alone."""
    is_claimed: bool
    """A difference may be stated."""


class PaidPoint(NamedTuple):
    """Training episodes of one part of training with one strict score and one reward, both to two decimals."""

    phase: PaidPhase
    score: float
    reward: float
    episodes: int


class ActionShift(FrozenModel):
    """The actions whose share of the calls moved most; their shares are `mix.grew.*` and `mix.shrank.*`."""

    grew: str | None
    shrank: str | None


class Surrounding(FrozenModel):
    """One recorded fact about what a run was made of and on."""

    group: SurroundingGroup
    key: str
    """A word of the templates."""
    value: str | None
    """As printed; `None` where it is not recorded."""


class Resumption(FrozenModel):
    """A place where training went on after a stop; its number is `resume.<number>.step`."""

    number: Count
    step: Count
    """Optimizer steps that were done when it went on."""


class ChartSeries(FrozenModel):
    """What one chart draws of the evidence."""

    label: str
    """What the chart calls it."""
    pointer: str | None
    """Where its points stand in `evidence.json`; `None` when it draws numbers."""
    numbers: tuple[NumberId, ...]
    """Ids of the numbers that it draws."""
    points: Count
    """Points that are drawn."""
    kept_every: Count
    """1 when all points are there; n when every n-th and the last one are."""


class ChartNote(FrozenModel):
    """One chart of the packet; nothing is drawn in it that does not stand in the evidence."""

    name: str
    x_title: str | None
    y_title: str | None
    series: tuple[ChartSeries, ...]
