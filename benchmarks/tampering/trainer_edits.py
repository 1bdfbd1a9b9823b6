"""Tampering with the trainer's log: means, rows, steps, the learning rate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence_builder import read_json

from benchmarks.tampering.operator import Line, Operator, UnfitRunError, find, lines_edit
from molforge_eval import layout


def _rows(change: Callable[[list[Line]], list[Line] | None]) -> Callable[..., None]:
    return lines_edit(change, layout.TRAINER_LOG)


def _second(key: str, change: Callable[[Any], Any]) -> Callable[..., None]:
    def edit(rows: list[Line]) -> None:
        row = find(rows, lambda row: row["type"] == "train" and row["step"] > 1 and row.get(key) is not None)
        row[key] = change(row[key])

    return _rows(edit)


def _row(name: str, gain: str, key: str, change: Callable[[Any], Any]) -> Operator:
    return Operator(f"trainer log: {name}", gain, _second(key, change), ("means",))


def _rise(rows: list[Line]) -> None:
    train = [row for row in rows if row.get("reward") is not None]
    for row, reward in zip(train, sorted(row["reward"] for row in train), strict=True):
        row["reward"] = reward
    train[-1]["reward"] += 0.3


def _drop(place: int) -> Callable[[list[Line]], list[Line]]:
    def change(rows: list[Line]) -> list[Line]:
        dropped = [row for row in rows if row["type"] == "train"][place]
        return [row for row in rows if row is not dropped]

    return change


def _drop_summary(root: Path) -> None:
    if read_json(root, layout.MANIFEST)["status"] != "complete":
        # A run that was cut short need not have the row.
        raise UnfitRunError
    _rows(lambda rows: rows[:-1])(root)


def _repeat(rows: list[Line]) -> list[Line]:
    return [rows[0], rows[0], *rows[1:]]


def _reorder(rows: list[Line]) -> list[Line]:
    return [rows[1], rows[0], *rows[2:]]


def _clear(rows: list[Line]) -> None:
    rows[1].update(non_finite={"loss": "NaN"})


def _last(**changes: Any) -> Callable[[list[Line]], None]:
    return lambda rows: rows[-1].update(changes)


def _reverse_time(rows: list[Line]) -> None:
    rows[1]["time"], rows[2]["time"] = rows[2]["time"], rows[1]["time"]
    if rows[1]["time"] == rows[2]["time"]:
        raise UnfitRunError


def _no_divergence(rows: list[Line]) -> None:
    for row in rows:
        row.pop("kl", None)


def _pretend_resume(rows: list[Line]) -> list[Line]:
    """Say that the run went on from a checkpoint, so that steps may be done again."""
    return [*rows[:2], {**rows[1], "type": "resume", "step": 1}, *rows[2:]]


_CURVE = "the curve looks better"
OPERATORS: tuple[Operator, ...] = (
    _row("reward of a row", _CURVE, "reward", lambda value: value + 0.4),
    Operator("trainer log: reward curve that rises", _CURVE, _rows(_rise), ("means",)),
    _row("reward_std", "a signal to learn from", "reward_std", lambda value: value + 0.3),
    _row("frac_reward_zero_std", "a dead group is hidden", "frac_reward_zero_std", lambda value: value + 0.9),
    _row("rewards/episode_reward/mean", _CURVE, "rewards/episode_reward/mean", lambda value: value + 0.4),
    _row("rewards/episode_reward/std", _CURVE, "rewards/episode_reward/std", lambda value: value + 0.4),
    _row("strict_score", _CURVE, "strict_score", lambda value: min(1.0, value + 0.4)),
    _row("submit_rate", "the model seems to finish", "submit_rate", lambda value: 1.0 - value / 2),
    _row("unfinished_rate", "the model seems to finish", "unfinished_rate", lambda value: value + 0.5),
    _row("calls an episode", "the model seems quicker", "tools/call_frequency", lambda value: value - 1.0),
    _row("failed calls", "the model seems careful", "tools/failure_frequency", lambda value: value + 0.5),
    _row("part for the score", _CURVE, "reward_part/final_score", lambda value: value + 0.2),
    _row("part for constraints", _CURVE, "reward_part/constraint", lambda value: value + 0.2),
    _row("penalty for invalid calls", "the model seems careful", "reward_part/invalid_call", lambda value: value - 0.2),
    _row("learning rate", "another schedule is claimed", "learning_rate", lambda value: value * 0.5),
    _row("step", "more steps are claimed", "step", lambda value: value + 50),
    _row("epoch", "more data are claimed", "epoch", lambda value: value + 5.0),
    _row("tokens seen", "more data are claimed", "num_tokens", lambda value: value / 1e3),
    _row("elapsed seconds", "a quicker run", "elapsed_seconds", lambda value: value / 1e3),
    Operator("trainer log: first row dropped", "a bad start is gone", _rows(_drop(0)), ("means",)),
    Operator("trainer log: middle row dropped", "a bad step is gone", _rows(_drop(1)), ("means",)),
    Operator("trainer log: last row dropped", "a bad end is gone", _rows(_drop(-1)), ("means",)),
    Operator("trainer log: summary row dropped", "a broken run seems whole", _drop_summary, ("means",)),
    Operator("trainer log: row repeated", "more steps are claimed", _rows(_repeat), ("means",)),
    Operator("trainer log: rows reordered", _CURVE, _rows(_reorder), ("means",)),
    Operator("trainer log: mean loss of the summary", "a lower loss", _rows(_last(train_loss=-0.5)), ("means",)),
    Operator("trainer log: step of the summary", "more steps are claimed", _rows(_last(step=99)), ("means",)),
    Operator("trainer log: speed of the summary", "a faster machine", _rows(_last(train_runtime=9.5e6)), ("means",)),
    Operator("trainer log: number named as not finite", "a fault is hidden", _rows(_clear), ("means",)),
    Operator("trainer log: times exchanged", "another order", _rows(_reverse_time), ("means",)),
    Operator("trainer log: no kl though beta is set", "a drift is hidden", _rows(_no_divergence), ("means",)),
    Operator("trainer log: invented resume", "steps may be done again", _rows(_pretend_resume), ("means",)),
)
