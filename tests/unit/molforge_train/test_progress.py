from __future__ import annotations

import sys
from pathlib import Path

import pytest

from molforge_train.progress import Progress


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
