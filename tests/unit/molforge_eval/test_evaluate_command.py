from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from molforge_env.command_line import run_to_code
from molforge_env.tools import ToolSession
from molforge_eval.canonical import file_bytes
from molforge_eval.cli.evaluate import cli
from molforge_eval.ladder import ladder
from molforge_eval.plan import standard_plan
from molforge_eval.records.evaluation import Evaluation

ROOT = Path(__file__).resolve().parents[3]


def _run(*arguments: str) -> int:
    return run_to_code(cli, ["run", *arguments])


def test_the_summary_says_how_many_were_counted_and_where_that_stands(capsys: pytest.CaptureFixture[str]) -> None:
    code = _run("--policy", "scripted:heuristic", "--seeds", "2", "--label", "by hand")
    lines = capsys.readouterr().out.splitlines()

    assert code == 0
    assert lines[0] == "by hand: heuristic"
    assert lines[1] == "greedy: final_score 0.8773 (3 of 3 episodes, 3 distinct scores)"
    assert "  level_2_hard: 0.8883 (2 of 2)" in lines
    assert "  ended by: submit 6" in lines
    assert lines[-1].startswith("ladder: do nothing 0.0933")


def test_holdout_variants_stand_on_a_ladder_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    code = _run("--policy", "scripted:heuristic", "--seeds", "2", "--suite", "holdout")
    lines = capsys.readouterr().out.splitlines()

    assert code == 0
    assert lines[-1].startswith("ladder of holdout variants: do nothing 0.0919")
    assert lines[-1].endswith("ceiling 0.8897")


def test_a_plan_and_a_suite_are_not_given_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_bytes(file_bytes(standard_plan(suite="holdout", seeds=0)))
    arguments = ("--policy", "scripted:do_nothing", "--plan", str(tmp_path / "plan.json"))

    assert _run(*arguments, "--suite", "official") == 2
    assert "--plan and --suite were given" in capsys.readouterr().err
    assert _run(*arguments) == 0


def test_json_is_for_programs_and_leaves_episodes_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--policy", "scripted:do_nothing", "--seeds", "1", "--json") == 0
    summary = json.loads(capsys.readouterr().out)

    assert summary["endings"] == {"greedy": {"step_limit": 3}, "sampled": {"step_limit": 3}}
    assert summary["summaries"][1]["completed"] == 3
    assert "episodes" not in summary


def test_the_file_holds_the_whole_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "after.json"
    assert _run("--policy", "scripted:heuristic", "--seeds", "1", "--out", str(out)) == 0
    evaluation = Evaluation.model_validate_json(out.read_bytes())

    assert len(evaluation.episodes) == 6
    assert capsys.readouterr().out.splitlines()[-1] == f"written: {out}"
    assert [path.name for path in tmp_path.iterdir()] == ["after.json"]


def test_quiet_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--policy", "scripted:heuristic", "--seeds", "0", "--quiet", "--out", str(tmp_path / "x.json")) == 0
    printed = capsys.readouterr()

    assert (printed.out, printed.err) == ("", "")


def test_a_file_is_replaced_only_when_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.json"
    out.write_text("mine")
    arguments = ("--policy", "scripted:heuristic", "--seeds", "0", "--out", str(out))

    assert _run(*arguments) == 2
    assert out.read_text() == "mine"
    assert "the file of --out exists" in capsys.readouterr().err
    assert _run(*arguments, "--force") == 0
    assert out.read_text() != "mine"


def test_an_absent_folder_is_named_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("--policy", "scripted:heuristic", "--out", str(tmp_path / "no" / "x.json")) == 2
    assert "the folder of --out does not exist" in capsys.readouterr().err


def test_the_plan_of_a_run_is_played_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "eval_plan.json"
    plan.write_bytes(file_bytes(standard_plan(seeds=3, observation_length="compact", run_id="run-0123456789ab")))
    assert _run("--policy", "scripted:heuristic", "--plan", str(plan), "--json") == 0
    summary = json.loads(capsys.readouterr().out)

    assert summary["summaries"][1]["planned"] == 9
    assert _run("--policy", "scripted:heuristic", "--plan", str(plan), "--seeds", "5") == 2
    assert "--plan and --seeds were given" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--policy", "heuristic"], 2, "policy 'heuristic' is not known"),
        (["--policy", "scripted:x"], 2, "policy 'x' is not known"),
        (["--policy", "hf:./nowhere"], 2, "there is no model at ./nowhere"),
        (["--policy", "scripted:heuristic", "--plan", "absent.json"], 3, "the plan cannot be read"),
        (["--policy", "scripted:heuristic", "--seeds", "-1"], 2, "Invalid value for '--seeds'"),
        (["--policy", "scripted:heuristic", "--max-new-tokens", "9999"], 2, "is more than max_completion_length"),
        ([], 2, "Missing option '--policy'"),
    ],
)
def test_wrong_usage_is_three_lines_and_the_right_code(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*arguments) == code
    printed = capsys.readouterr()

    assert said in printed.err
    assert len(printed.err.splitlines()) == 3
    assert printed.out == ""


def test_episodes_that_broke_leave_with_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: Any) -> Any:
        raise ConnectionError("gone")

    ladder()  # measured on a sound laboratory
    # The embedded laboratory does not fail by itself; a remote one may.
    monkeypatch.setattr(ToolSession, "call", gone)
    assert _run("--policy", "scripted:heuristic", "--seeds", "1") == 1
    out = capsys.readouterr().out

    assert "greedy: final_score unknown (0 of 3 episodes, 0 distinct scores)" in out
    assert "  3 broke in the environment and are averaged nowhere" in out
    assert "  no mean: no counted episode of level_0_easy, level_1_medium, level_2_hard" in out


def test_the_group_lists_every_command_without_importing_it() -> None:
    program = """
import sys
from molforge_env.command_line import run_to_code
from molforge_eval.cli.evaluate import cli
run_to_code(cli, ["--help"])
print("imported", sorted({"molforge_eval.cli.check", "molforge_eval.play", "pydantic", "numpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert [f"  {name}" in done.stdout for name in ("explain", "run", "validate", "verify")] == [True] * 4
    assert done.stdout.splitlines()[-1] == "imported []"


def test_a_command_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_to_code(cli, ["conclude"]) == 2
    assert "No such command 'conclude'" in capsys.readouterr().err


def test_two_processes_with_other_hash_seeds_play_the_same_episodes(tmp_path: Path) -> None:
    files = []
    for hash_seed in ("1", "2"):
        out = tmp_path / f"{hash_seed}.json"
        program = "from molforge_eval.cli.evaluate import main; main()"
        arguments = ["run", "--policy", "scripted:random_valid", "--seeds", "2", "--quiet", "--out", str(out)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        subprocess.run([sys.executable, "-c", program, *arguments], cwd=ROOT, env=environment, check=True)
        files.append(Evaluation.model_validate_json(out.read_bytes()))
    facts = [
        [episode.model_dump(exclude={"wall_time_seconds", "seal"}) for episode in evaluation.episodes]
        for evaluation in files
    ]

    assert facts[0] == facts[1]
