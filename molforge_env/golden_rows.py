"""Recorded rows in the golden formats, read into models before anything is compared.

Rows come from other environments and other people, so each is checked here; what a format does not promise is ignored.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from pydantic import ConfigDict, Field, ValidationError

from molforge_env.errors import UnreadableError
from molforge_env.frozen import FrozenModel
from molforge_env.models import RewardMode

_IGNORE_MORE = ConfigDict(extra="ignore")
_LINE_LIMIT = 4_000_000


class PropertyRow(FrozenModel):
    """True properties of one molecule under one pair of flags."""

    model_config = _IGNORE_MORE

    scenario: str
    trap: bool
    shift: bool
    mol: str
    potency: float
    safety: float
    toxicity: float
    synth: float
    novelty: float
    objective: float


class DescriptorRow(FrozenModel):
    """RDKit's word on one molecule."""

    model_config = _IGNORE_MORE

    mol: str
    qed: float
    logp: float
    tpsa: float
    mw: float
    rotatable: int
    aromatic_rings: int
    rings: int
    stereocenters: int
    max_tanimoto_num: int
    max_tanimoto_den: int = Field(gt=0)
    canonical_smiles: str


class DrawRow(FrozenModel):
    """One training reset of a sequential stream."""

    model_config = _IGNORE_MORE

    reset: int = Field(ge=0, le=100_000)
    scenario: str
    budget: int
    max_steps: int
    start: str


class AttachedRow(FrozenModel):
    """What the review board attached to a tool call."""

    model_config = _IGNORE_MORE

    messages: list[list[str]]
    evidence: list[str]
    expected_effects: dict[str, str]


class StepRow(FrozenModel):
    """One recorded step; `exception` stands alone."""

    model_config = _IGNORE_MORE

    exception: str | None = None
    reward: float = 0.0
    done: bool = False
    error: str = ""
    gov: str = ""
    budget: int = 0
    mol: str = ""
    comp: list[tuple[str, float]] = Field(default_factory=list)
    vetoes: list[str] = Field(default_factory=list)
    approvals: list[str] = Field(default_factory=list)
    objections: list[str] = Field(default_factory=list)
    assays: list[tuple[str, str, float, float, float, int, str]] | None = None
    """The whole list of known readings, only where it changed."""
    tool_reward: float | None = None
    act: AttachedRow | None = None


class EpisodeRow(FrozenModel):
    """One recorded episode, through actions or through tool calls."""

    model_config = _IGNORE_MORE

    scenario: str
    mode: RewardMode
    start: str | None = None
    actions: list[dict[str, Any]] | None = None
    calls: list[tuple[str, dict[str, Any]]] | None = None
    steps: list[StepRow]
    scores: dict[str, float] | None = None
    counters: dict[str, Any] | None = None
    role_metrics: dict[str, list[int]] | None = None
    state_path: list[str] | None = None
    quirk: str | None = None


Row = PropertyRow | DescriptorRow | DrawRow | EpisodeRow


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Read a recorded file: JSON Lines, or the descriptor table as CSV; either may be gzip-compressed.

    Yields:
        Line number, from 1, and the row.

    Raises:
        UnreadableError: The file is absent, or a line is not a row of a golden format.
    """
    try:
        with _open_text(path) as handle:
            lines = _csv_lines(handle) if path.name.removesuffix(".gz").endswith(".csv") else _json_lines(path, handle)
            for number, parsed in lines:
                yield number, _row_from_object(path, number, parsed)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise UnreadableError(
            f"{path.name} cannot be read: {reason}", where=str(path), mend="Give a file in one of the golden formats."
        ) from error


def _open_text(path: Path) -> TextIO:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def _json_lines(path: Path, handle: TextIO) -> Iterator[tuple[int, object]]:
    for number in count(1):
        line = handle.readline(_LINE_LIMIT + 1)
        if not line:
            return
        if len(line) > _LINE_LIMIT:
            raise bad_line(path, number, f"is longer than {_LINE_LIMIT} characters")
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise bad_line(path, number, "is not JSON") from error


def _csv_lines(handle: TextIO) -> Iterator[tuple[int, object]]:
    yield from enumerate(csv.DictReader(handle), start=2)


def _row_from_object(path: Path, number: int, parsed: object) -> Row:
    if not isinstance(parsed, dict):
        raise bad_line(path, number, "is not an object")
    kind = _kind_of(parsed)
    if kind is None:
        raise bad_line(path, number, "fits none of the golden formats")
    try:
        return kind.model_validate(parsed)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise bad_line(path, number, f"does not fit its format at {place!r}: {first['msg']}") from error


def _kind_of(parsed: dict[str, Any]) -> type[Row] | None:
    if "steps" in parsed and ("actions" in parsed or "calls" in parsed):
        return EpisodeRow
    if "trap" in parsed:
        return PropertyRow
    if "reset" in parsed:
        return DrawRow
    return DescriptorRow if "qed" in parsed else None


def bad_line(path: Path, number: int, what: str) -> UnreadableError:
    """Make the error of a line; `what` goes on from the line's number and the file's name."""
    return UnreadableError(
        f"line {number} of {path.name} {what}",
        where=f"{path}:{number}",
        mend="Record the row again in one of the golden formats.",
    )
