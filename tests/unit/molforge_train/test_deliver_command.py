from __future__ import annotations

from pathlib import Path

import pytest

from molforge_env.command_line import run_to_code
from molforge_eval import layout
from molforge_train.cli import cli


def deliver(*words: object) -> int:
    return run_to_code(cli, ["deliver", *map(str, words)])


def test_a_run_is_brought_to_a_folder_again_and_again(run_copy: Path, tmp_path: Path, capsys) -> None:
    assert deliver(run_copy, "--drive", tmp_path / "drive") == 0
    assert not (tmp_path / "drive" / "run" / layout.PACKET_HTML).exists()
    (run_copy / layout.PACKET_HTML).write_text("<!doctype html>")
    assert deliver(run_copy, "--drive", tmp_path / "drive") == 0

    assert (tmp_path / "drive" / "run" / layout.PACKET_HTML).read_text() == "<!doctype html>"
    assert (tmp_path / "drive" / "run.zip").read_bytes() == run_copy.with_name("run.zip").read_bytes()
    assert f"copy           {tmp_path / 'drive' / 'run'}" in capsys.readouterr().out


def test_the_variable_says_where_when_the_flag_does_not(
    run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVE_OUTPUT_DIR", str(tmp_path / "drive"))

    assert deliver(run_copy) == 0
    assert (tmp_path / "drive" / "run.zip").is_file()


def test_a_place_that_does_not_get_the_run_is_three_lines_and_code_1(run_copy: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "drive").write_text("no folder")
    code = deliver(run_copy, "--drive", tmp_path / "drive")
    told = capsys.readouterr().err.splitlines()

    assert code == 1
    assert len(told) == 3
    assert "the run is whole in" in told[0]
    assert "molforge-train deliver" in told[2]


def test_a_run_without_a_seal_or_a_place_is_refused(run_copy: Path, tmp_path: Path, capsys) -> None:
    assert deliver(run_copy) == 2
    assert "nobody says where the run is to go" in capsys.readouterr().err
    (run_copy / layout.CHECKSUMS).unlink()
    assert deliver(run_copy, "--drive", tmp_path / "drive") == 2
    assert "the run is not sealed" in capsys.readouterr().err
    assert deliver(tmp_path / "nothing", "--drive", tmp_path / "drive") == 3
    assert not (tmp_path / "drive").exists()
