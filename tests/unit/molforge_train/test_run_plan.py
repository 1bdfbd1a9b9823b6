from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from click.testing import CliRunner

from molforge_env.errors import UsageError
from molforge_train.cli import cli
from molforge_train.config import preset_names, preset_text, resolve
from molforge_train.machine import Machine
from molforge_train.run_plan import plan_lines
from molforge_train.settings import SETTINGS


def told(*words: str) -> str:
    answer = CliRunner().invoke(cli, list(words), env={"CUDA_VISIBLE_DEVICES": ""})
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_presets_are_listed_with_machine_values_and_time() -> None:
    shown = told("presets")

    assert re.findall(r"^[a-z]\S+", shown, re.MULTILINE) == ["colab-demo", "h100-strong", "tiny-cpu"]
    assert "80 steps of 8 episodes (2 x 4) in groups of 2, 120 prompts, learning rate 2e-06" in shown
    assert "200 steps of 16 episodes (4 x 4) in groups of 4" in shown
    assert shown.count("time: ") == 3
    assert shown.count("time: not run") == 2


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_printed_as_written_with_every_value_and_its_origin(name: str, tmp_path) -> None:
    shown = told("presets", name)

    assert shown.startswith(preset_text(name))
    assert tomllib.loads(shown) == tomllib.loads(preset_text(name))
    origins = dict(re.findall(r"^# (\w+) .*\((preset|default|flag)\)$", shown, re.MULTILINE))
    assert set(origins) == {"preset", *(setting.name for setting in SETTINGS)}
    assert origins["max_steps"] == "preset"
    assert origins["max_grad_norm"] == "default"


@pytest.mark.parametrize("name", ["colab-demo", "h100-strong"])
def test_every_value_that_a_preset_of_the_workflow_brings_stands_under_a_reason(name: str) -> None:
    like_the_other = "# What follows is as in colab-demo"
    written = preset_text(name).partition("\n[about]")[0].partition(like_the_other)[0].split("\n")
    bare = [line for above, line in pairwise(written) if " = " in line and line[0] != "#" and above[:1] != "#"]

    # One reason covers the four numbers that make a batch.
    assert bare == (
        ["num_generations = 2", "batch_size = 2", "gradient_accumulation = 4"] if name == "colab-demo" else []
    )


def test_a_dry_run_shows_settings_course_memory_disk_and_checks_and_loads_nothing(tmp_path) -> None:
    program = (
        "import sys\nfrom molforge_env.command_line import run_to_code\nfrom molforge_train.cli import cli\n"
        "code = run_to_code(cli, ['grpo', '--dry-run', '--preset', 'tiny-cpu', '--output-root', sys.argv[1]])\n"
        "print(code, sorted({'torch', 'transformers', 'trl', 'peft', 'datasets'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()

    assert lines[-1] == "0 []"
    assert [line for line in lines if line and line[0] != " "] == [
        "model          molforge_train/models/tiny/base",
        "adapter        molforge_train/models/tiny/sft_adapter",
        "preset         tiny-cpu, seed 1 (as asked)",
        lines[3],
        "settings", "course", "memory, estimated", "disk, estimated", "checks",
        "nothing was loaded and nothing was written",
        "0 []",
    ]  # fmt: skip
    assert "  960 training episodes: 24 a batch, in 3 groups of 8" in lines
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_a_plan_that_would_be_refused_shows_it_and_ends_with_the_refusal(tmp_path) -> None:
    words = ["grpo", "--dry-run", "--preset", "tiny-cpu", "--num-generations", "5", "--output-root", str(tmp_path)]
    answer = CliRunner().invoke(cli, words)

    assert isinstance(answer.exception, UsageError)
    assert "whole groups of 5" in answer.exception.what
    assert "memory, estimated" in answer.output
    assert "checks" not in answer.output


def test_a_plan_for_another_machine_says_that_this_one_has_no_such_device(tmp_path) -> None:
    words = (
        "--sft-adapter-path",
        "",
        "--base-model",
        "molforge_train/models/tiny/base",
        "--output-root",
        str(tmp_path),
    )
    shown = told("grpo", "--dry-run", "--preset", "colab-demo", *words)

    assert "the run itself would be refused here" in shown
    assert "what is free is unknown: this machine has no GPU that torch can use" in shown
    assert "adapter        a new one" in shown


def test_a_plan_without_the_packages_of_training_says_that_the_run_would_be_refused(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in {"torch", "trl"} else find(name))
    shown = told("grpo", "--dry-run", "--preset", "tiny-cpu", "--output-root", str(tmp_path))

    assert "packages: this environment has no torch, trl; the `train` extra brings them" in shown
    assert "the run itself would be refused here" in shown


def test_a_plan_that_does_not_fit_names_the_levers() -> None:
    machine = Machine((), "2.13.0", torch_uses_gpus=True, free_memory_bytes=1 << 30)
    lines = list(plan_lines(resolve("tiny-cpu", {}, {}, now=datetime(2026, 1, 1, tzinfo=UTC)), machine))

    assert "  it would not fit: MAX_COMPLETION_LENGTH=300; RL_BATCH_SIZE=8 with RL_GRAD_ACCUM=3" in "\n".join(lines)
    assert "1.0 GiB free: main memory" in "\n".join(lines)


def test_without_a_preset_the_first_lines_say_which_one_and_why(tmp_path) -> None:
    shown = told("grpo", "--dry-run", "--output-root", str(tmp_path)).splitlines()

    assert shown[2] == "preset         tiny-cpu, seed 1 (this machine has no GPU; --preset names another)"
    assert ["preset", "tiny-cpu", "(default)"] in [line.split() for line in shown]
