"""What a person reads on the terminal: a sound run, a broken one, an explanation, the ladder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evidence_builder import edit_line
from syrupy.assertion import SnapshotAssertion


def output_of(*words: str, cwd: Path) -> str:
    program = "from molforge_eval.cli.evaluate import main; main()"
    if words[0] == "molforge-env":
        program = "from molforge_env.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words[1:]], cwd=cwd, capture_output=True, text=True, check=False
    )
    return f"{done.stdout}{done.stderr}exit code {done.returncode}"


def test_a_sound_run_is_answered_in_a_few_lines(sample_run: Path, snapshot: SnapshotAssertion) -> None:
    assert output_of("molforge-eval", "verify", sample_run.name, cwd=sample_run.parent) == snapshot


def test_a_changed_reward_is_named_with_its_place(sample_run: Path, snapshot: SnapshotAssertion) -> None:
    edit_line(sample_run, 5, reward=9.0)

    assert output_of("molforge-eval", "verify", sample_run.name, cwd=sample_run.parent) == snapshot


def test_an_absent_run_is_three_lines(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert output_of("molforge-eval", "validate", "nowhere", cwd=tmp_path) == snapshot


def test_a_code_is_explained(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert output_of("molforge-eval", "explain", "CHAIN_BROKEN", cwd=tmp_path) == snapshot


def test_the_ladder_is_printed(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert output_of("molforge-env", "baselines", "--episodes", "20", "--quiet", cwd=tmp_path) == snapshot
