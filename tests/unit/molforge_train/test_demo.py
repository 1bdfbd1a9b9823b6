from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click
import pytest

from molforge_eval import layout
from molforge_train.demo import PROGRAMS, run_demo, steps_of

SMALL = [
    *("--max-steps", "2", "--num-generations", "4", "--batch-size", "8", "--dataset-size", "8"),
    *("--eval-seeds", "1", "--max-completion-length", "240", "--learning-rate", "0.02", "--quiet"),
]


def test_every_step_is_a_command_that_users_have() -> None:
    for words in steps_of("a", Path("runs"), []):
        group = import_module(PROGRAMS[words[0]]).cli
        command = group.get_command(click.Context(group), words[1])
        assert command is not None
        command.make_context(words[1], words[2:])


def test_a_step_that_breaks_ends_the_demo_with_its_exit_code(tmp_path: Path, capsys) -> None:
    assert run_demo(tmp_path, ["--num-generations", "5"]) == 2
    assert capsys.readouterr().out.count("$ molforge-") == 1


def test_the_whole_way_ends_in_a_packet_whatever_was_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_demo(tmp_path, SMALL)
    told = capsys.readouterr().out
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())

    assert code == 0, told
    assert "verdict: " in told
    assert told.count("exit code 0") == 4
    for path in (folder, folder / layout.PACKET_HTML, folder / layout.PACKET_PDF):
        assert path.exists()
        assert str(path) in told
