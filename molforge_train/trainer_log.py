"""The trainer's log: a row for each log of the host trainer, with numbers that are not finite named.

The host's own filter would replace such a number by a mean, so it is switched off and they are counted here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from molforge_eval.canonical import line_bytes
from molforge_eval.records.training import TrainerRow
from molforge_train.log_file import append_lines

Spelling = Literal["NaN", "Infinity", "-Infinity"]


class TrainerLog:
    """The trainer log of one run."""

    def __init__(self, path: Path, run_id: str, clock: Callable[[], datetime]) -> None:
        """Begin an empty log, or go on with one that is there."""
        self._path = path
        self._run_id = run_id
        self._clock = clock
        self._began = time.perf_counter()
        self.latest: dict[str, Any] | None = None
        """The last row of type `train`."""
        self.non_finite_steps = 0
        """Training rows with a number that is not finite."""
        append_lines(path, [])
        self._spent = 0.0
        for line in path.read_bytes().splitlines():
            row = orjson.loads(line)
            self._spent = row["elapsed_seconds"]
            self.non_finite_steps += bool(row["non_finite"]) and row["type"] == "train"

    @property
    def elapsed_seconds(self) -> float:
        """Seconds of training, those of a part before a resume included."""
        return round(self._spent + time.perf_counter() - self._began, 3)

    def write(self, step: int, logs: Mapping[str, Any]) -> TrainerRow:
        """Append a row and force it to disk."""
        values, non_finite = split_finite(logs)
        row = TrainerRow(
            format_version=1,
            run_id=self._run_id,
            type="summary" if "train_runtime" in logs else "train",
            step=step,
            time=self._clock(),
            elapsed_seconds=self.elapsed_seconds,
            non_finite=non_finite,
            **values,
        )
        append_lines(self._path, [line_bytes(row)])
        if row.type == "train":
            self.latest = row.model_dump(mode="json")
            self.non_finite_steps += bool(non_finite)
        return row

    def mark_resume(self, step: int, marks: Mapping[str, int]) -> None:
        """Write that training goes on from a step.

        Args:
            step: Steps of the checkpoint.
            marks: What `molforge_eval.resumes.MARKS` names.
        """
        row = TrainerRow(
            format_version=1,
            run_id=self._run_id,
            type="resume",
            step=step,
            time=self._clock(),
            elapsed_seconds=self.elapsed_seconds,
            non_finite={},
            **marks,
        )
        append_lines(self._path, [line_bytes(row)])


def split_finite(logs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Spelling]]:
    """Replace numbers that are not finite by `None` and name them.

    The host averages a metric that was NaN throughout to `None`; it is named as the NaN that it was.

    >>> split_finite({"loss": 0.5, "grad_norm": float("nan")})
    ({'loss': 0.5, 'grad_norm': None}, {'grad_norm': 'NaN'})
    """
    values: dict[str, Any] = {}
    non_finite: dict[str, Spelling] = {}
    for name, value in logs.items():
        values[name] = value
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            values[name] = None
            infinite: Spelling = "Infinity" if value is not None and value > 0 else "-Infinity"
            non_finite[name] = "NaN" if value is None or math.isnan(value) else infinite
    return values, non_finite
