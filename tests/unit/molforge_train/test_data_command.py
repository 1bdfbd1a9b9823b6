"""`molforge-train data`: the same options give the same bytes, and nobody's file is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from molforge_env.errors import UsageError
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import true_properties
from molforge_eval.conversations import is_official, read_conversations
from molforge_train.cli import cli


def run(*words: str):
    return CliRunner().invoke(cli, ["data", *words], catch_exceptions=True)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "deep" / "sft.jsonl"
    answer = run("--out", str(path), "--conversations", "40", "--seed", "9")

    assert answer.exit_code == 0, answer.output
    return path


def test_the_file_is_sound_and_says_its_seed_on_each_line(file: Path) -> None:
    found = read_conversations(file)

    assert found.ledger.findings() == ()
    assert [(item.seed, item.place) for item in found.conversations] == [(9, place) for place in range(40)]
    assert {item.teacher for item in found.conversations} == {"expert", "habit", "random"}


def test_no_line_is_of_a_task_that_is_evaluated_or_holds_a_true_value(file: Path) -> None:
    for item in read_conversations(file).conversations:
        hidden = true_properties(molecule_from_code(item.scenario.start_molecule), trap=False, shift=False)
        texts = "\n".join(message.content for message in item.messages)

        assert item.scenario.suite == "randomized"
        assert not is_official(item.scenario)
        # A true value has four decimals; a text shows three at most.
        assert not [value for value in hidden if f"{value:.4f}" in texts]


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_writes_the_same_bytes(file: Path, tmp_path: Path, hash_seed: str) -> None:
    words = ["data", "--out", str(tmp_path / "again.jsonl"), "--conversations", "40", "--seed", "9", "--quiet"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "molforge_train.cli", *words]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


def test_a_chat_trainer_finds_the_keys_that_it_reads(file: Path) -> None:
    row = orjson.loads(file.read_bytes().splitlines()[0])

    assert [message["role"] for message in row["messages"][:3]] == ["user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in row["tools"]] == ["defer", "edit", "restart", "run_assay", "submit"]


def test_progress_goes_to_standard_error(tmp_path: Path) -> None:
    answer = run("--out", str(tmp_path / "a.jsonl"), "--conversations", "4")

    assert "conversation 4/4" in answer.stderr
    assert "conversation 4/4" not in answer.stdout


def test_a_file_that_exists_is_left_alone(file: Path) -> None:
    before = file.read_bytes()
    answer = run("--out", str(file))

    assert isinstance(answer.exception, UsageError)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--out", "a.json"], "does not end in .jsonl"),
        (["--out", "a.jsonl", "--teachers", "oracle=1"], "'oracle=1' is no share of a teacher"),
        (["--out", "a.jsonl", "--teachers", "expert"], "'expert' is no share"),
        (["--out", "a.jsonl", "--teachers", "expert=nan"], "'expert=nan' is no share"),
        (["--out", "a.jsonl", "--teachers", "expert=1,expert=0.2"], "expert has two shares"),
        (["--out", "a.jsonl", "--teachers", "expert=-1"], "'expert=-1' is no share"),
        (["--out", "a.jsonl", "--teachers", "expert=0"], "no teacher has a share"),
        (["--out", "/dev/null/a.jsonl"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_in_three_lines(words: list[str], what: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run(*words, "--conversations", "1")

    assert isinstance(answer.exception, UsageError)
    assert what in str(answer.exception)
    assert list(tmp_path.iterdir()) == []
