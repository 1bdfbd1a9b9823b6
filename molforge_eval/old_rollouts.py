"""The rollout log of format version 0 as the table of this version, with nulls where it has no such field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.ledger import Ledger
from molforge_eval.limits import Limits
from molforge_eval.log_tables import fits, gated_lines
from molforge_eval.old_trainer_log import moment_text
from molforge_eval.records.fields import Tool
from molforge_eval.records.old import RUN_NAMES, KeyUse, LineName, OldRolloutLine
from molforge_eval.rollout_table import CALL_OPENING, MADE, ROLLOUT_SCHEMA
from molforge_eval.run_files import RunFiles

_BATCH = 2_000
_MOST_NAMES = 10
_LONGEST_ERROR = 200
_LOSING = frozenset(
    {
        *("FILE_UNREADABLE", "JSON_TOO_DEEP", "JSON_UNREADABLE", "LINE_CUT", "LINE_NOT_OBJECT", "LINE_TOO_LONG"),
        *("TEXT_NUL", "TEXT_UNDECODABLE"),
    }
)
"""Faults of a line that leave no object of it."""
NO_CALL = "none"
"""Action of a line that is a completion without a call."""
_TOOLS = frozenset(get_args(Tool))
_PUBLIC = frozenset(OldRolloutLine.model_fields)
_SCORES = ("final_score", "submission_score", "progress_score")
_KINDS: Mapping[Any, Callable[[Any], bool]] = {
    pl.Int64: lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63,
    pl.Float64: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    pl.String: lambda value: isinstance(value, str),
    pl.Boolean: lambda value: isinstance(value, bool),
}
_NAMES = ("scenario_id", "action_type")
_OURS = frozenset({*MADE, "run_id", "timestamp", "tool", "vetoes"})
_COPIED = {column: _KINDS[kind] for column, kind in ROLLOUT_SCHEMA.items() if column not in _OURS}


class OldRollouts(NamedTuple):
    """The table, and how many lines are not in it."""

    frame: pl.DataFrame
    """Columns of `rollout_table.ROLLOUT_SCHEMA`. Scores of a line that is not done are null: the script writes 0.0."""
    left_out: int
    keys: tuple[KeyUse, ...]
    names: tuple[LineName, ...] = ()


class _Keys:
    """Counts which public keys the lines have."""

    def __init__(self) -> None:
        self._missing: Counter[str] = Counter()
        self._without: dict[str, int] = {}
        self._total = 0

    def add(self, number: int, line: Mapping[str, Any]) -> None:
        self._total += 1
        for key in _PUBLIC - line.keys():
            self._missing[key] += 1
            self._without.setdefault(key, number)

    def uses(self) -> tuple[KeyUse, ...]:
        if not self._total:
            return ()
        return tuple(
            KeyUse(key=key, lines=self._total - self._missing[key], first_without=self._without.get(key))
            for key in sorted(_PUBLIC)
        )


def read_old_rollouts(files: RunFiles, ledger: Ledger, limits: Limits) -> OldRollouts:
    """Read the rollout log; an absent one is an empty table."""
    path = layout.ROLLOUTS
    schema = dict(ROLLOUT_SCHEMA)
    batches = [pl.DataFrame(schema=schema)]
    rows: list[dict[str, Any]] = []
    left_out = 0
    if path not in files:
        return OldRollouts(batches[0], 0, ())
    keys = _Keys()
    names: dict[tuple[str, str], int] = {}
    own = Ledger(limits.findings_a_code)
    for number, line in gated_lines(files, path, own, limits):
        if not fits(line, "rollout_line_v0", path, number, own):
            left_out += 1
            continue
        keys.add(number, line)
        for key in RUN_NAMES:
            if key in line and isinstance(line[key], str) and len(names) < _MOST_NAMES:
                names.setdefault((key, line[key]), number)
        rows.append(_table_row(number, line))
        lost = _lost_calls(line)
        if lost is not None:
            place: dict[str, Any] = {"line": number, "pointer": "/raw_completion"}
            own.add(finding("CALL_UNREAD", lost, file=path, **place))
        if len(rows) == _BATCH:
            batches.append(pl.from_dicts(rows, schema=schema))
            rows.clear()
    if rows:
        batches.append(pl.from_dicts(rows, schema=schema))
    ledger.extend(own.findings())
    ledger.count_omitted(own.omitted())
    left_out += _count_lost(own)
    told = tuple(LineName(key=key, name=name, line=number) for (key, name), number in names.items())
    return OldRollouts(pl.concat(batches, rechunk=True), left_out, keys.uses(), told)


def _count_lost(ledger: Ledger) -> int:
    """Count lines that gave no object; of a fault beyond the limit each is counted."""
    lines = {item.where.line for item in ledger.findings() if item.code in _LOSING}
    return len(lines) + sum(count for code, count in ledger.omitted().items() if code in _LOSING)


def _lost_calls(line: Mapping[str, Any]) -> str | None:
    """Say that a text opens more call blocks than the line is calls, where a line has its text at all."""
    completion = line.get("raw_completion")
    if not isinstance(completion, str):
        return None
    opened, carried = completion.count(CALL_OPENING), int(line["action_type"] != NO_CALL)
    return f"the completion opens {opened} call blocks, {carried} was carried out" if opened > carried else None


def _table_row(number: int, line: Mapping[str, Any]) -> dict[str, Any]:
    # An empty text says no more than null, where a call has no such field; what is counted by name keeps its name.
    told = {key: value for key, value in line.items() if value != "" or key in _NAMES}
    row = dict.fromkeys(_COPIED) | {key: value for key, value in told.items() if key in _COPIED and _COPIED[key](value)}
    if not line.get("done"):
        # Before the end there is no score; 0.0 is how the script spells that.
        row |= {key: None for key in _SCORES if not row[key]}
    error = line.get("error")
    if error and row["status"] is None:
        # The host hands the model an object with this key when a tool call raises.
        row |= {"status": "env_error", "error_code": str(error)[:_LONGEST_ERROR]}
    action, completion = line["action_type"], line.get("raw_completion")
    return {
        **row,
        "line": number,
        "timestamp": moment_text(line.get("timestamp")),
        "tool": action if action in _TOOLS else None,
        "has_completion": isinstance(completion, str),
        "opens_call": isinstance(completion, str) and CALL_OPENING in completion,
        "names_tool": None,
    }
