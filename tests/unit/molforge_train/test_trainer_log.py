from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from molforge_train.trainer_log import TrainerLog, split_finite


@pytest.fixture
def log(tmp_path: Path) -> TrainerLog:
    return TrainerLog(tmp_path / "log.jsonl", "run-0123456789ab", lambda: datetime(2026, 1, 1, tzinfo=UTC))


def test_a_log_begins_empty_and_is_on_disk_after_each_row(log: TrainerLog, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"

    assert file.read_bytes() == b""
    log.write(1, {"loss": 0.5})
    assert orjson.loads(file.read_bytes())["loss"] == 0.5


def test_a_number_that_is_not_finite_is_null_named_and_counted(log: TrainerLog, tmp_path: Path) -> None:
    log.write(1, {"loss": 0.5, "grad_norm": float("nan"), "kl": float("-inf"), "entropy": float("inf")})
    log.write(2, {"loss": 0.4})
    row = orjson.loads((tmp_path / "log.jsonl").read_bytes().splitlines()[0])

    assert row["grad_norm"] is None
    assert row["non_finite"] == {"grad_norm": "NaN", "kl": "-Infinity", "entropy": "Infinity"}
    assert log.non_finite_steps == 1


def test_a_metric_that_was_nan_throughout_is_named_as_such() -> None:
    assert split_finite({"reward": None}) == ({"reward": None}, {"reward": "NaN"})


def test_the_last_row_of_the_host_is_a_summary_and_no_training_row(log: TrainerLog) -> None:
    log.write(1, {"loss": 0.5})
    row = log.write(1, {"train_runtime": 3.0, "train_loss": float("nan")})

    assert row.type == "summary"
    assert log.latest is not None
    assert log.latest["loss"] == 0.5
    assert log.non_finite_steps == 0
