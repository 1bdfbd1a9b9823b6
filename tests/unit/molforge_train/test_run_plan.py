from __future__ import annotations

import re
import tomllib
from itertools import pairwise

import pytest
from click.testing import CliRunner

from molforge_train.cli import cli
from molforge_train.config import preset_names, preset_text
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
