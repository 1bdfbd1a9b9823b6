from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path

import pytest

from molforge_env.cli import cli, main
from molforge_env.command_line import run_to_code

ROOT = Path(__file__).resolve().parents[3]


def _run(capsys, *arguments: str) -> tuple[int, str]:
    code = run_to_code(cli, arguments)
    return code, capsys.readouterr().out


def test_the_ceilings_are_printed_with_their_calls(capsys) -> None:
    code, text = _run(capsys, "ceiling")

    assert code == 0
    assert [line for line in text.splitlines() if line.startswith("level")] == [
        "level_0_easy  0.8780  (21 states opened)",
        "level_1_medium  0.8926  (28 states opened)",
        "level_2_hard  0.9032  (106 states opened)",
    ]
    assert "  edit solvent_tail morpholine" in text
    assert "  submit" in text.splitlines()


def test_one_ceiling_can_be_read_by_a_program(capsys) -> None:
    code, text = _run(capsys, "ceiling", "--scenario", "level_1_medium", "--json")

    assert code == 0
    assert [row["final_score"] for row in json.loads(text)] == [0.8926]


def test_the_ceiling_of_a_randomized_task_is_searched(capsys) -> None:
    _, text = _run(capsys, "ceiling", "--suite", "randomized", "--seed", "3", "--scenario", "level_0_easy", "--json")

    assert json.loads(text)[0]["scenario"]["seed"] == 3


def test_the_ladder_is_printed_with_a_mean_for_each_player(capsys) -> None:
    code, text = _run(capsys, "baselines", "--episodes", "5", "--quiet")
    heads, *rows = text.splitlines()

    assert code == 0
    assert heads.split()[:5] == ["player", "level_0_easy", "level_1_medium", "level_2_hard", "mean"]
    assert {row.split()[0]: row.split()[1:5] for row in rows}["heuristic"] == ["0.8703", "0.8733", "0.8883", "0.8773"]
    assert {row.split()[0]: row.split()[4] for row in rows}["ceiling"] == "0.8913"


def test_the_ladder_can_be_read_by_a_program(capsys) -> None:
    _, text = _run(capsys, "baselines", "--episodes", "5", "--json")

    assert [rung["name"] for rung in json.loads(text)["rungs"]][-1] == "ceiling"


def test_conformance_says_by_its_code_whether_something_differs(capsys, golden, tmp_path) -> None:
    sound = golden / "randomized.jsonl.gz"
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(gzip.decompress(sound.read_bytes()).replace(b'"budget":4', b'"budget":9'))

    assert _run(capsys, "conformance", str(sound))[0] == 0

    code, text = _run(capsys, "conformance", str(changed))
    assert code == 1
    assert text.splitlines()[-1].startswith("episodes=0 steps=0 differences=")


def test_the_fingerprint_is_printed_for_people_and_programs(capsys) -> None:
    _, text = _run(capsys, "fingerprint")
    _, parsed = _run(capsys, "fingerprint", "--json")

    assert [line.split(": ")[0] for line in text.splitlines()] == list(json.loads(parsed))


def test_the_version_is_that_of_the_project(capsys) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert _run(capsys, "--version") == (0, f"molforge-env, version {project['version']}\n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ceiling", "--scenario", "level_9"), "level_9"),
        (("ceiling", "--suite", "randomized"), "seed"),
        (("ceiling", "--suite", "final"), "final"),
        (("baselines", "--episodes", "0"), "0"),
        (("play", "level_9"), "level_9"),
    ],
)
def test_wrong_usage_is_told_in_three_lines(capsys, arguments, named) -> None:
    assert run_to_code(cli, arguments) == 2

    text = capsys.readouterr().err
    assert named in text.splitlines()[0]
    assert len(text.splitlines()) == 3


def test_the_program_leaves_with_the_code_of_its_command(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["molforge-env", "fingerprint"])

    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    assert "rules_version" in capsys.readouterr().out
