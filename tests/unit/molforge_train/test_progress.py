from __future__ import annotations

import sys
from pathlib import Path

import pytest

from molforge_train.progress import BatchFigures, Progress, TrainingTable


def test_a_full_disk_behind_standard_error_fails_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115 - closing it would raise
    monkeypatch.setattr(sys, "stderr", full)
    progress = Progress(2, quiet=False)
    progress.show(1, "reward 0.1")
    progress.show(2, "reward 0.2")
    monkeypatch.undo()

    with pytest.raises(OSError, match="No space left"):
        full.close()


def test_ten_plain_lines_are_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(100, quiet=False)
    for step in range(1, 101):
        progress.show(step, "reward 0.1")

    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == [f"{n}0/100" for n in range(1, 11)]


def test_a_line_counts_what_is_done_by_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    Progress(1, quiet=False, unit="episode").show(1, "mean final score 0.2")

    assert capsys.readouterr().err.startswith("episode 1/1  mean final score 0.2")


def test_the_table_of_a_training_has_a_head_and_a_row_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    table = TrainingTable(80, quiet=False)
    figures = BatchFigures(reward=0.4127, strict_score=0.21, submit_rate=1 / 3, veto_rate=0.04, no_call_rate=0.125)
    table.show(1, figures)
    table.show(2, figures)
    head, first, second = capsys.readouterr().err.splitlines()

    assert head.split() == ["step", "reward", "strict", "submit", "veto", "no", "call", "time", "left"]
    assert first.split()[:6] == ["1/80", "0.413", "0.210", "33%", "4%", "12%"]
    assert second.split()[0] == "2/80"
    assert len(first) == len(head) == len(second)


def test_a_quiet_table_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    TrainingTable(80, quiet=True).show(1, BatchFigures(0.0, 0.0, 0.0, 0.0, 0.0))

    assert capsys.readouterr().err == ""
