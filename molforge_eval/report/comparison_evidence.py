"""The evidence of a comparison: everything that its page says of several runs, before anything is drawn or worded.

It is the `comparison.json` that is written beside the page. A number stands once, in `numbers`, under its id.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_eval.catalogue import Level
from molforge_eval.records.fields import Count, Sha256
from molforge_eval.report.number_book import Number, NumberId
from molforge_eval.report.old_evidence import Lack
from molforge_eval.verdict import Outcome

RunKey = Annotated[str, Field(pattern=r"^r[1-9][0-9]?$")]
"""`r1`, `r2`, … in the order in which the runs were named; it is no rank."""
RunState = Literal["compared", "unpaired", "incomplete", "withheld", "repeated", "unreadable"]
Meeting = Literal["higher", "lower", "alike", "not told apart", "not tested", "refused"]
ComparisonOutcome = Literal["told apart", "partly told apart", "not told apart", "nothing compared"]
Note = Literal["no pair can be told apart", "some pairs cannot be told apart"]
SettingKind = Literal["measured", "setting", "identity", "package"]


class ComparedRun(FrozenModel):
    """One run as it enters the comparison; its numbers are `run.<key>.*`."""

    key: RunKey
    label: str
    """Its name, told apart from the others'."""
    run_id: str
    run_format: Literal[0, 1] | None
    """`None` when it could not be read."""
    state: RunState
    reasons: tuple[str, ...]
    """Why it is not compared, or what has to be known of it."""
    lacks: tuple[Lack, ...]
    """What the layout of format version 0 has no place for."""
    level: Level | None
    level_reason: str
    replayed: bool
    outcome: Outcome | None
    """The verdict on the run itself, by its own plan."""
    error_codes: tuple[str, ...]
    same_as: RunKey | None
    """The run that it repeats."""
    league: Count | None
    """Runs of one league measure the same thing; `None` for one that is not compared."""
    letters: str
    """Runs of a league that share a letter were not told apart; empty for one that is not compared."""
    model: str
    root_sha256: Sha256 | None
    output_adapter_sha256: Sha256 | None


class UnlikeKey(FrozenModel):
    """A key in which two runs do not measure the same thing."""

    key: str
    first: str
    second: str


class Pair(FrozenModel):
    """Two runs; differences are the first minus the second. Its numbers are `pair.<key>.<task>.*`."""

    key: str
    first: RunKey
    second: RunKey
    meeting: Meeting
    """How the first stands to the second, by the mean over tasks."""
    reason: str | None
    """Why there is no test, or what has to be known of it."""
    differing: tuple[UnlikeKey, ...]
    """Every key by which the difference is refused."""
    tasks_apart: tuple[str, ...]
    """Tasks whose difference stands after the adjustment over all pairs and tasks; they decide nothing."""


class ComparedTask(FrozenModel):
    """A task of the part that decides."""

    key: str
    label: str


class UnlikeSetting(FrozenModel):
    """A key whose value is not the same in all runs that record it."""

    key: str
    kind: SettingKind
    values: tuple[str | None, ...]
    """One a run, in their order; `None` where it is not recorded."""


class Tie(FrozenModel):
    """Runs of which no two were told apart."""

    letter: str
    runs: tuple[RunKey, ...]


class Method(FrozenModel):
    """One formula with where it comes from."""

    name: Literal["difference", "interval", "test", "adjustment", "letters", "pairing"]
    source: str


class ComparisonEvidence(FrozenModel):
    """The whole of a comparison."""

    comparison_version: Literal[1]
    product_version: str
    title: str
    date: str
    """Day on which the last of the runs ended."""
    outcome: ComparisonOutcome
    note: Note | None
    """What has to be known of the tests as a whole."""
    short_pairs: tuple[str, ...]
    """Pairs with too few seeds for any difference to tell them apart."""
    runs: tuple[ComparedRun, ...]
    tasks: tuple[ComparedTask, ...]
    pairs: tuple[Pair, ...]
    ties: tuple[Tie, ...]
    settings: tuple[UnlikeSetting, ...]
    omitted_settings: Count
    has_ladder: bool
    """Every score that is shown is of the three official tasks, so that reference policies stand beside it."""
    methods: tuple[Method, ...]
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

    def run(self, key: str) -> ComparedRun:
        """Find a run.

        Raises:
            KeyError: There is none of this key.
        """
        found = next((run for run in self.runs if run.key == key), None)
        if found is None:
            raise KeyError(key)
        return found

    def value(self, number_id: str) -> float | None:
        """Look a value up; a number that was not put down is unknown."""
        found = self.by_id.get(number_id)
        return None if found is None else found.value
