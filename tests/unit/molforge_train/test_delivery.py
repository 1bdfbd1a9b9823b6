from __future__ import annotations

from pathlib import Path

import pytest

from molforge_train.delivery import DeliveryError, copy_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "a"
    (folder / "logs").mkdir(parents=True)
    (folder / "run_manifest.json").write_text("{}\n")
    (folder / "logs" / "trainer_log_history.jsonl").write_text("{}\n")
    (folder / ".env").write_text("SECRET=1\n")
    folder.with_name("a.zip").write_bytes(b"zip")
    return folder


def test_a_copy_holds_records_and_archive_and_nothing_else(run: Path, tmp_path: Path) -> None:
    target = copy_run(run, run.with_name("a.zip"), tmp_path / "drive")
    copied = {path.relative_to(tmp_path / "drive").as_posix() for path in (tmp_path / "drive").rglob("*")}

    assert target == tmp_path / "drive" / "a"
    assert copied == {"a", "a/logs", "a/logs/trainer_log_history.jsonl", "a/run_manifest.json", "a.zip"}


def test_a_copy_to_a_place_that_is_no_folder_says_where_the_run_stands(run: Path, tmp_path: Path) -> None:
    (tmp_path / "drive").write_text("a file")

    with pytest.raises(DeliveryError, match="the run is sealed, and its copy failed") as failed:
        copy_run(run, run.with_name("a.zip"), tmp_path / "drive")

    assert "runs/a" in failed.value.mend


def test_a_copy_that_breaks_off_leaves_no_draft(run: Path, tmp_path: Path) -> None:
    run.joinpath("logs", "trainer_log_history.jsonl").unlink()
    # What shows as a file and cannot be read in full: the process's own memory.
    run.joinpath("logs", "trainer_log_history.jsonl").symlink_to("/proc/self/mem")

    with pytest.raises(DeliveryError):
        copy_run(run, run.with_name("a.zip"), tmp_path / "drive")

    assert list((tmp_path / "drive").iterdir()) == []


def test_a_copy_never_mixes_with_what_stands_in_its_place(run: Path, tmp_path: Path) -> None:
    (tmp_path / "drive" / "a").mkdir(parents=True)
    (tmp_path / "drive" / "a" / "other").write_text("x")

    with pytest.raises(DeliveryError):
        copy_run(run, run.with_name("a.zip"), tmp_path / "drive")

    assert [path.name for path in (tmp_path / "drive" / "a").iterdir()] == ["other"]
