"""Phases, noise and the pay of steps in a real training run, from the preset to the replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from molforge_env.errors import UsageError
from molforge_env.models import REWARD_MODES
from molforge_env.tools import ToolSession
from molforge_eval import layout
from molforge_eval.records.manifest import MOST_PHASES
from molforge_eval.replay import verify
from molforge_eval.sealing import seal_run
from molforge_train import settings
from molforge_train.config import preset_text, resolve
from molforge_train.preflight import check
from molforge_train.recording import read_clock
from molforge_train.run_plan import setting_lines
from molforge_train.training_run import train

PAY = """
[reward_weights]
final_score = 1.0
step_rewards = 0.2
unfinished = 0.1

[[reward_phases]]
from_step = 2
reward_mode = "assay_gated"
reward_weights = { final_score = 1.0, constraint = 0.3, vetoed_call = 0.05 }
"""
SMALL = {
    "num_generations": "2",
    "batch_size": "4",
    "max_steps": "4",
    "dataset_size": "4",
    "max_completion_length": "240",
    "reward_mode": "curriculum",
    "anti_farming": "1",
    "assay_noise": "1",
    "run_before_eval": "0",
    "run_after_eval": "0",
}


@pytest.fixture(scope="module")
def preset(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("presets") / "phases.toml"
    path.write_text(preset_text("tiny-cpu") + PAY, "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, preset: str) -> Path:
    root = tmp_path_factory.mktemp("runs")
    resolved = resolve(preset, {**SMALL, "output_root": str(root), "run_name": "phases"}, {}, now=read_clock())
    check(resolved.configuration, {})
    return train(resolved, quiet=True, say=[].append).folder


def lines_of(folder: Path, path: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / path).read_bytes().splitlines()]


def test_every_episode_is_played_and_paid_again_without_a_difference(folder: Path) -> None:
    result = verify(folder)

    assert [finding.code for finding in result.findings if finding.severity == "error"] == []
    assert result.counts["training_episodes"] == 8
    assert result.counts["episodes_differing"] == 0


def test_the_mode_changes_with_the_phase_and_each_part_has_its_own_column(folder: Path) -> None:
    lines = lines_of(folder, layout.ROLLOUTS)
    rows = [row for row in lines_of(folder, layout.TRAINER_LOG) if "reward" in row]

    assert {(line["trainer_step"], line["reward_mode"]) for line in lines} == {(0, "curriculum"), (2, "assay_gated")}
    for row in rows:
        parts = [value for name, value in row.items() if name.startswith("reward_part/")]
        assert sum(parts) == pytest.approx(row["reward"], abs=1e-5)
        assert 0.0 <= row["strict_score"] <= 1.0
    assert rows[0]["reward_part/step_rewards"] != 0.0
    assert rows[1]["reward_part/step_rewards"] == 0.0


def test_the_manifest_says_how_it_was_paid_and_another_pay_is_found_out(folder: Path, tmp_path: Path) -> None:
    manifest = orjson.loads((folder / layout.MANIFEST).read_bytes())
    settings = manifest["configuration"]

    assert (settings["anti_farming"], settings["assay_noise"]) == (True, True)
    assert [phase["from_step"] for phase in settings["reward_phases"]] == [2]
    copy = tmp_path / "run"
    copy.mkdir()
    for path in folder.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    settings["reward_phases"] = []
    (copy / layout.MANIFEST).write_bytes(orjson.dumps(manifest))
    seal_run(copy)

    codes = {finding.code for finding in verify(copy).findings if finding.severity == "error"}
    assert {"CONFIGURATION_DIFFERS", "REPLAY_REWARD_DIFFERS"} <= codes


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("from_step = 2", "from_step = 900", "a phase begins at step 900"),
        ("constraint = 0.3", "luck = 0.3", "reward weight 'luck' names no part"),
    ],
)
def test_a_phase_that_cannot_be_is_refused_before_anything_is_loaded(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    (tmp_path / "phases.toml").write_text(preset_text("tiny-cpu") + PAY.replace(old, new), "utf-8")
    resolved = resolve(str(tmp_path / "phases.toml"), {"output_root": str(tmp_path)}, {}, now=read_clock())
    with pytest.raises(UsageError, match=told):
        check(resolved.configuration, {})


def test_a_phase_without_its_mode_is_refused_with_its_shape(tmp_path: Path) -> None:
    wrong = PAY.replace('reward_mode = "assay_gated"', "")
    (tmp_path / "phases.toml").write_text(preset_text("tiny-cpu") + wrong, "utf-8")
    with pytest.raises(UsageError, match="tables of from_step, reward_mode and reward_weights"):
        resolve(str(tmp_path / "phases.toml"), {}, {}, now=read_clock())


def test_more_phases_than_a_manifest_may_have_are_refused_with_how_many_may_be(tmp_path: Path) -> None:
    assert (settings.MOST_PHASES, settings.REWARD_MODES) == (MOST_PHASES, REWARD_MODES)
    phase = '[[reward_phases]]\nfrom_step = 2\nreward_mode = "dense"\nreward_weights = { final_score = 1.0 }\n'
    (tmp_path / "phases.toml").write_text(preset_text("tiny-cpu") + phase * 65, "utf-8")
    with pytest.raises(UsageError, match="up to 64 tables"):
        resolve(str(tmp_path / "phases.toml"), {}, {}, now=read_clock())


def test_phases_are_spelled_in_the_plan_of_a_dry_run(tmp_path: Path) -> None:
    (tmp_path / "phases.toml").write_text(preset_text("tiny-cpu") + PAY, "utf-8")
    shown = list(setting_lines(resolve(str(tmp_path / "phases.toml"), {}, {}, now=read_clock())))

    (line,) = [line for line in shown if line.startswith("reward_phases")]
    assert "from step 2 assay_gated, " in line
    assert "RewardPhase" not in line


def test_noise_moves_the_readings_by_its_seed_and_neither_the_scores_nor_an_evaluation() -> None:
    texts, scores = [], []
    for noise_seed in (None, None, 1, 1, 2):
        session = ToolSession()
        session.reset(scenario_id="level_0_easy", noise_seed=noise_seed)
        texts.append(session.call("run_assay", {"tool_name": "run_md_simulation"}).text)
        while not session.done:
            session.call("defer", {})
        scores.append(session.scores)

    assert texts[0] == texts[1] != texts[2] == texts[3] != texts[4]
    assert scores == [scores[0]] * 5
