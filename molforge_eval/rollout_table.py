"""The rollout log as one table, built some lines at a time so that no line is held longer than it takes to use it.

Long texts (prompt, completion, arguments) never enter the table: with them it would be as large as the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import polars as pl

CALL_OPENING = "<tool_call>"
_ROWS = 2**14
"""Rows of a piece of the table: until so many are there they are Python objects, which take more room."""

ROLLOUT_SCHEMA: Mapping[str, Any] = {
    "line": pl.Int64,
    "start": pl.Int64,
    "run_id": pl.String,
    "episode_id": pl.String,
    "timestamp": pl.String,
    "trainer_step": pl.Int64,
    "generation": pl.Int64,
    "turn": pl.Int64,
    "seed": pl.Int64,
    "scenario_id": pl.String,
    "difficulty": pl.String,
    "reward_mode": pl.String,
    "step_index": pl.Int64,
    "tool": pl.String,
    "action_type": pl.String,
    "acting_role": pl.String,
    "slot": pl.String,
    "fragment": pl.String,
    "tool_name": pl.String,
    "reward": pl.Float64,
    "transition_reward": pl.Float64,
    "done": pl.Boolean,
    "governance_status": pl.String,
    "vetoes": pl.List(pl.String),
    "error_code": pl.String,
    "remaining_budget": pl.Int64,
    "molecule": pl.String,
    "final_score": pl.Float64,
    "submission_score": pl.Float64,
    "progress_score": pl.Float64,
    "summary": pl.String,
    "source": pl.String,
    "status": pl.String,
    "ended_by": pl.String,
    "episode_score": pl.Float64,
    "training_reward": pl.Float64,
    "prompt_mark": pl.UInt64,
    "suite": pl.String,
    "max_budget": pl.Int64,
    "has_completion": pl.Boolean,
    "opens_call": pl.Boolean,
    "names_tool": pl.Boolean,
    "chain_holds": pl.Boolean,
}
"""What checks and reports ask of a rollout line. Long texts stay in the file: `start` is the byte at which the line
begins there. `prompt_mark` is the `mark_of` its prompt, `suite` and `max_budget` are those of its scenario, each `None`
without one; `opens_call` tells whether its completion opens a call block, `names_tool` whether it names the tool that
was called (`None` without a call or a completion), `chain_holds` whether the line is chained to
the one before it."""

MADE = (
    "line",
    "start",
    "prompt_mark",
    "suite",
    "max_budget",
    "has_completion",
    "opens_call",
    "names_tool",
    "chain_holds",
)
"""Columns that no key of a line gives."""
_COPIED = tuple(name for name in ROLLOUT_SCHEMA if name not in MADE)
_take_copied = itemgetter(*_COPIED)
_take_texts = itemgetter("prompt", "scenario", "raw_completion", "tool")
_take_task = itemgetter("suite", "max_budget")
_NO_TASK = (None, None)


def mark_of(text: str) -> int:
    """Return a number of 64 bits that two texts share only when they are the same."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


class GrowingTable:
    """A table of rollout lines that grows by some lines at a time."""

    def __init__(self) -> None:
        """Start without a row."""
        self._columns: dict[str, list[Any]] = {name: [] for name in ROLLOUT_SCHEMA}
        self._pieces = [pl.DataFrame(schema=dict(ROLLOUT_SCHEMA))]

    def add(
        self, numbers: Iterable[int], starts: Iterable[int], rows: Sequence[Mapping[str, Any]], holds: Iterable[bool]
    ) -> None:
        """Add lines that fit their schema.

        Args:
            numbers: Number of each line.
            starts: Byte at which each line begins.
            rows: The lines.
            holds: Whether each is chained to the one before it.
        """
        if not rows:
            return
        prompts, scenarios, completions, tools = zip(*map(_take_texts, rows), strict=True)
        tasks = [_NO_TASK if scenario is None else _take_task(scenario) for scenario in scenarios]
        suites, budgets = zip(*tasks, strict=True)
        made: tuple[Iterable[Any], ...] = (
            numbers,
            starts,
            [None if prompt is None else mark_of(prompt) for prompt in prompts],
            suites,
            budgets,
            [completion is not None for completion in completions],
            [completion is not None and CALL_OPENING in completion for completion in completions],
            [
                None if completion is None or tool is None else tool in completion
                for completion, tool in zip(completions, tools, strict=True)
            ],
            holds,
        )
        for name, values in zip(MADE, made, strict=True):
            self._columns[name].extend(values)
        for name, values in zip(_COPIED, zip(*map(_take_copied, rows), strict=True), strict=True):
            self._columns[name].extend(values)
        if len(self._columns["line"]) >= _ROWS:
            self._close_piece()

    def append(self, piece: pl.DataFrame) -> None:
        """Add lines that are a table already."""
        self._close_piece()
        self._pieces.append(piece)

    def table(self) -> pl.DataFrame:
        """Return all rows in the order in which they were added."""
        self._close_piece()
        return pl.concat(self._pieces)

    def _close_piece(self) -> None:
        if self._columns["line"]:
            self._pieces.append(pl.DataFrame([_series_of(name, values) for name, values in self._columns.items()]))
            self._columns = {name: [] for name in ROLLOUT_SCHEMA}


def _series_of(name: str, values: list[Any]) -> pl.Series:
    kind = ROLLOUT_SCHEMA[name]
    if not isinstance(kind, pl.List):
        return pl.Series(name, values, dtype=kind)
    # Lists are made slowly, and few of them differ.
    distinct: dict[tuple[str, ...], int] = {}
    places = [distinct.setdefault(tuple(value), len(distinct)) for value in values]
    return pl.Series(name, list(map(list, distinct)), dtype=kind).gather(places)
