"""A sound sealed run of any length, for measuring: a small run played for real, its training repeated.

A run that goes round its prompts again meets the same prompts, so repetition is what the settings plan. Lines are
written as they are made: a run larger than memory can be built.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_builder import build_run, edit_json, read_lines, write, write_lines

from molforge_eval import layout
from molforge_eval.canonical import JsonValue, chain_of, chain_start, file_bytes, line_bytes
from molforge_eval.metrics_table import COLUMNS, row_of
from molforge_eval.run_directory import load
from molforge_eval.run_summary import compute_summary
from molforge_eval.sealing import seal_run

_STEPS = 4
_PROMPTS = 8
_GENERATIONS = 6

Row = dict[str, JsonValue]


class LargeRun(NamedTuple):
    """A run that was made."""

    folder: Path
    lines: int
    log_bytes: int


def make_run(folder: Path, lines_wanted: int, *, seeds: int = 2) -> LargeRun:
    """Make a run with at least so many rollout lines; a whole number of rounds through its prompts.

    Args:
        folder: Where it is written; must not exist.
        lines_wanted: The least number of lines.
        seeds: Sampled evaluation episodes a task and side.
    """
    run = build_run(folder, seeds=seeds, steps=_STEPS, prompts=_PROMPTS, generations=_GENERATIONS, plots=False)
    lines, rows = read_lines(run), read_lines(run, layout.TRAINER_LOG)
    rounds = -(-lines_wanted // len(lines))
    *rows, summary = rows
    # Later rounds are all logged at the moment of the last row: moments never go back.
    end = {key: rows[-1][key] for key in ("time", "elapsed_seconds")}
    _write_log(run, lines, rounds, moment=end["time"])
    steps = rounds * _STEPS
    repeated = [
        {**row, **(end if turn else {}), "step": row["step"] + turn * _STEPS} for turn in range(rounds) for row in rows
    ]
    losses = [float(row["loss"]) for row in repeated]
    write_lines(
        run, [*repeated, {**summary, "step": steps, "train_loss": sum(losses) / len(losses)}], layout.TRAINER_LOG
    )

    def lengthen(manifest: JsonValue) -> None:
        manifest["configuration"]["max_steps"] = manifest["steps_completed"] = steps

    edit_json(run, layout.MANIFEST, lengthen)
    write(run, layout.SUMMARY, file_bytes(compute_summary(load(run))))
    seal_run(run)
    return LargeRun(run, rounds * len(lines), (run / layout.ROLLOUTS).stat().st_size)


def _write_log(run: Path, lines: list[Row], rounds: int, *, moment: str) -> None:
    with (run / layout.ROLLOUTS).open("wb") as log, (run / layout.METRICS_TABLE).open("w", newline="") as table:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(COLUMNS)
        later = [{**line, "timestamp": moment} for line in lines]
        moved = (_moved_lines(turn, later if turn else lines) for turn in range(rounds))
        for line in _chained(chain.from_iterable(moved)):
            log.write(line_bytes(line))
            writer.writerow(row_of(line))


def _moved_lines(turn: int, lines: list[Row]) -> Iterator[Row]:
    for line in lines:
        step = line["trainer_step"] + turn * _STEPS
        yield {**line, "trainer_step": step, "episode_id": f"step{step:05d}-{line['episode_id'].partition('-')[2]}"}


def _chained(lines: Iterator[Row]) -> Iterator[Row]:
    last: dict[str, str] = {}
    for line in lines:
        episode = line["episode_id"]
        previous = last.get(episode) or chain_start(line["run_id"], episode)
        line["chain"] = last[episode] = chain_of(previous, line)
        if line["ended_by"] is not None:
            del last[episode]
        yield line
