from __future__ import annotations

import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from molforge_env.errors import MissingDependencyError, UnreadableError, UsageError
from molforge_eval.records.manifest import Configuration
from molforge_train.config import resolve, shipped_path
from molforge_train.host_trainer import host_arguments
from molforge_train.preflight import check, check_packages

ADAPTER = "molforge_train/models/tiny/sft_adapter"


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    flags = {"output_root": str(tmp_path / "runs"), "run_name": "a"}
    return resolve("tiny-cpu", flags, {}, now=datetime(2026, 1, 1, tzinfo=UTC)).configuration


def refusal_of(configuration: Configuration, environment: dict[str, str] | None = None, **changes) -> UsageError:
    with pytest.raises(UsageError) as refusal:
        check(configuration.model_copy(update=changes), environment or {})
    assert len(str(refusal.value).splitlines()) == 3
    return refusal.value


def test_the_shipped_preset_passes_and_nothing_is_written(configuration, tmp_path: Path) -> None:
    check(configuration, {})

    assert list(tmp_path.iterdir()) == []


def test_a_batch_that_cannot_hold_whole_groups_is_refused_with_the_numbers(configuration) -> None:
    refusal = refusal_of(configuration, batch_size=3, gradient_accumulation=4, num_generations=8)

    assert "3 x 4 = 12 episodes cannot hold whole groups of 8" in refusal.what
    assert refusal.mend == "Set RL_BATCH_SIZE=2 or 4, or NUM_GENERATIONS=2, 3, 4, 6 or 12."


@pytest.mark.parametrize(("batch", "accumulation", "group"), [(1, 1, 3), (7, 3, 4), (5, 1, 2), (2, 5, 6), (24, 1, 7)])
def test_the_batches_that_are_offered_in_its_place_are_taken(configuration, batch, accumulation, group) -> None:
    shape = {"batch_size": batch, "gradient_accumulation": accumulation, "num_generations": group}
    refusal = refusal_of(configuration, **shape)
    offered, _, groups = refusal.mend.removeprefix("Set RL_BATCH_SIZE=").partition(", or NUM_GENERATIONS=")

    for size in re.findall(r"\d+", offered):
        check(configuration.model_copy(update={**shape, "batch_size": int(size)}), {})
    for size in re.findall(r"\d+", groups):
        check(configuration.model_copy(update={**shape, "num_generations": int(size)}), {})


def test_the_numbers_that_are_refused_are_those_that_the_host_refuses(configuration, tmp_path: Path) -> None:
    from trl import GRPOConfig

    from molforge_train.host_trainer import host_arguments

    def host_takes(changed: Configuration) -> bool:
        try:
            GRPOConfig(**host_arguments(changed, tmp_path))
        except ValueError:
            return False
        return True

    def we_take(changed: Configuration) -> bool:
        try:
            check(changed, {})
        except UsageError:
            return False
        return True

    sizes = [(batch, steps, group) for batch in (1, 2, 3, 4, 6) for steps in (1, 2, 3) for group in (2, 3, 4)]
    for batch, steps, group in sizes:
        fields = {"batch_size": batch, "gradient_accumulation": steps, "num_generations": group}
        changed = configuration.model_copy(update=fields)
        assert we_take(changed) == host_takes(changed), fields


def test_rows_that_cannot_fill_a_batch_are_refused(configuration) -> None:
    assert "2 rows cannot fill a batch of 3 prompts" in refusal_of(configuration, dataset_size=2).what


def test_a_turn_longer_than_its_episode_is_refused(configuration) -> None:
    refusal = refusal_of(configuration, max_new_tokens=64, max_completion_length=32)

    assert "a turn of 64 tokens is longer than an episode of 32" in refusal.what


def test_an_optimizer_that_torch_would_refuse_after_the_first_evaluation_is_refused(configuration) -> None:
    assert "adam_beta2 is 1" in refusal_of(configuration, adam_beta2=1.0).what

    refusal = refusal_of(configuration, lr_scheduler="polynomial", learning_rate=1e-7)

    assert "begins at 1e-07" in refusal.what


def test_an_adapter_below_the_home_folder_is_found_by_its_tilde(configuration, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(shipped_path(ADAPTER), tmp_path / "home" / "adapter")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    check(configuration.model_copy(update={"sft_adapter_path": "~/adapter"}), {})

    assert Path(shipped_path("~/adapter")).is_dir()


def test_a_reward_weight_that_names_no_part_is_refused(configuration) -> None:
    assert "'bonus' names no part" in refusal_of(configuration, reward_weights={"bonus": 1.0}).what


def test_rows_have_to_fill_a_batch_of_all_processes(configuration) -> None:
    shape = {"batch_size": 4, "gradient_accumulation": 1, "num_generations": 2, "dataset_size": 4}
    check(configuration.model_copy(update=shape), {"WORLD_SIZE": "2"})

    assert "4 rows cannot fill a batch of 8 prompts" in refusal_of(configuration, {"WORLD_SIZE": "4"}, **shape).what


def test_an_absent_model_or_adapter_is_refused(configuration, tmp_path: Path) -> None:
    assert "there is no folder ./nowhere" in refusal_of(configuration, base_model="./nowhere").what
    (tmp_path / "empty").mkdir()
    assert "no config.json" in refusal_of(configuration, base_model=str(tmp_path / "empty")).what
    assert "there is no adapter" in refusal_of(configuration, sft_adapter_path=str(tmp_path / "nowhere")).what


def test_damaged_weights_of_the_base_model_are_named_before_they_are_loaded(configuration, tmp_path: Path) -> None:
    base = Path(shutil.copytree(shipped_path("molforge_train/models/tiny/base"), tmp_path / "base"))
    (base / "model.safetensors").write_bytes((base / "model.safetensors").read_bytes()[:2000])

    with pytest.raises(UnreadableError, match="no readable safetensors file"):
        check(configuration.model_copy(update={"base_model": str(base)}), {})

    (base / "model.safetensors").rename(base / "pytorch_model.bin")

    assert "a pickle runs code" in refusal_of(configuration, base_model=str(base)).what


def test_a_pointer_in_place_of_the_weights_is_named(configuration, tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    shutil.copytree(shipped_path(ADAPTER), folder)
    (folder / "adapter_model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")

    with pytest.raises(UnreadableError, match="Git LFS pointer"):
        check(configuration.model_copy(update={"sft_adapter_path": str(folder)}), {})


def test_a_pickle_in_place_of_safetensors_is_refused_unread(configuration, tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    shutil.copytree(shipped_path(ADAPTER), folder)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")

    assert "adapter_model.bin" in refusal_of(configuration, sft_adapter_path=str(folder)).what


def test_a_folder_that_holds_a_run_is_not_written_over(configuration, tmp_path: Path) -> None:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "run_manifest.json").write_text("{}")

    assert "holds another run" in refusal_of(configuration).what


def test_an_archive_of_another_run_is_not_written_over(configuration, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.zip").write_bytes(b"PK")

    assert "a.zip of another run" in refusal_of(configuration).what


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "", "x" * 81, "a b"])
def test_a_name_that_is_no_folder_name_is_refused(configuration, name: str) -> None:
    assert "is no name for a run" in refusal_of(configuration, run_name=name).what


def test_a_copy_inside_the_run_or_over_another_one_is_refused(configuration, tmp_path: Path) -> None:
    inside = tmp_path / "runs" / "a" / "copy"
    assert "inside the run" in refusal_of(configuration, drive_output_dir=str(inside)).what
    assert "where the run does" in refusal_of(configuration, drive_output_dir=str(tmp_path / "runs")).what
    (tmp_path / "drive" / "a").mkdir(parents=True)
    assert "is taken" in refusal_of(configuration, drive_output_dir=str(tmp_path / "drive")).what


def test_a_repository_without_an_owner_and_a_drive_that_is_not_mounted_are_refused(configuration) -> None:
    assert "is no repository of the hub" in refusal_of(configuration, hf_output_repo="run").what
    assert "nothing is mounted" in refusal_of(configuration, drive_output_dir="/mnt/no_such_disk/runs").what


def test_a_root_that_is_a_file_is_refused(configuration, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    assert "output_root" in refusal_of(configuration, output_root=str(tmp_path / "file")).where


def test_missing_packages_are_named_with_the_command_that_installs_them() -> None:
    with pytest.raises(MissingDependencyError, match="no_such_package") as refusal:
        check_packages(("json", "no_such_package"))

    assert 'pip install -c constraints.txt ".[train]"' in refusal.value.mend


def test_a_refusal_comes_before_torch_is_loaded() -> None:
    words = ["grpo", "--preset", "tiny-cpu", "--num-generations", "5"]
    program = (
        "import sys\n"
        "from molforge_env.command_line import run_to_code\n"
        "from molforge_train.cli import cli\n"
        f"code = run_to_code(cli, {words})\n"
        "print(code, sorted({'torch', 'transformers', 'trl'} & set(sys.modules)))\n"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert told.stdout.strip() == "2 []"
    assert "cannot hold whole groups of 5" in told.stderr


@pytest.mark.parametrize(
    ("key", "value", "package"),
    [
        ("load_in_4bit", True, "bitsandbytes"),
        ("use_unsloth", True, "unsloth"),
        ("vllm_mode", "colocate", "vllm"),
        ("vllm_mode", "server", "vllm"),
    ],
)
def test_an_engine_that_is_asked_for_is_refused_where_it_cannot_run_or_is_absent(
    configuration, key: str, value: object, package: str
) -> None:
    assert (
        refusal_of(configuration, **{key: value, "device": "cpu"}).what
        == f"{package} runs on CUDA, and the device is cpu"
    )
    with pytest.raises(MissingDependencyError) as absent:
        check(configuration.model_copy(update={key: value, "device": "cuda"}), {})

    assert absent.value.what == f"{key} asks for {package}, which this environment has not"
    assert absent.value.mend == f"Install it (pip install {package}), or leave {key} out."


@pytest.mark.parametrize("tracker", ["trackio", "wandb", "tensorboard"])
def test_a_tracker_that_is_asked_for_and_absent_is_refused(configuration, tracker: str) -> None:
    with pytest.raises(MissingDependencyError, match=f"report_to asks for {tracker}"):
        check(configuration.model_copy(update={"report_to": tracker}), {})


def test_engines_reach_the_host_under_its_own_names_and_only_when_asked(configuration, tmp_path: Path) -> None:
    plain = host_arguments(configuration, tmp_path)
    asked = {"vllm_mode": "server", "vllm_server_host": "node-1", "report_to": "wandb", "gradient_checkpointing": "on"}
    told = host_arguments(configuration.model_copy(update=asked), tmp_path)

    assert not [name for name in plain if "vllm" in name]
    assert (plain["report_to"], plain["gradient_checkpointing"]) == ("none", False)
    assert plain["generation_kwargs"] == {"max_new_tokens": configuration.max_new_tokens}
    assert (told["use_vllm"], told["vllm_mode"], told["vllm_server_host"]) == (True, "server", "node-1")
    assert told["generation_kwargs"] == {"max_tokens": configuration.max_new_tokens}
    assert (told["report_to"], told["gradient_checkpointing"]) == ("wandb", True)
