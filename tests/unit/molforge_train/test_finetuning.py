"""`molforge-train sft`: data in, an adapter with its provenance out, and nothing half-made when it breaks off."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from molforge_env.errors import UsageError
from molforge_eval.canonical import line_bytes, sha256_hex
from molforge_eval.weights import base_model_digest, hash_file, read_adapter
from molforge_train import finetuning
from molforge_train.cli import cli
from molforge_train.config import preset_names, resolve, shipped_path
from molforge_train.finetuning import RECORD_NAME, FinetuningError, SftRecord, finetune
from molforge_train.policy import PROCESSOR, load_policy
from molforge_train.recipes import read_recipe, recipe_names
from molforge_train.recording import read_clock
from molforge_train.sft import SftRecipe, _rows, reproducible
from molforge_train.transcripts import TranscriptRecipe, generate_transcripts

BASE = "molforge_train/models/tiny/base"
SMALL = ("--preset", "tiny-cpu", "--steps", "3", "--batch-size", "2", "--device", "cpu", "--quiet")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sft") / "sft.jsonl"
    recipe = TranscriptRecipe(conversations=8, mixture={"expert": 0.5, "random": 0.5}, observation_length="compact")
    path.write_bytes(b"".join(line_bytes(item.line()) for item in generate_transcripts(recipe, seed=2)))
    return path


def run(data: Path, out: Path, *words: str):
    return CliRunner().invoke(cli, ["sft", str(data), "--base-model", BASE, "--out", str(out), *SMALL, *words])


@pytest.fixture(scope="module")
def made(data: Path) -> tuple[Path, str]:
    answer = run(data, data.parent / "adapter")

    assert answer.exit_code == 0, answer.exception
    return data.parent / "adapter", answer.stdout


def test_the_folder_holds_the_adapter_and_its_provenance(made: tuple[Path, str], data: Path) -> None:
    folder, said = made
    record = SftRecord.model_validate_json((folder / RECORD_NAME).read_bytes())

    assert sorted(path.name for path in folder.iterdir()) == [
        "adapter_config.json", "adapter_model.safetensors", RECORD_NAME,
    ]  # fmt: skip
    assert record.data.sha256 == sha256_hex(data.read_bytes())
    assert (record.data.conversations, record.data.seeds) == (8, (2,))
    assert record.base_model_sha256 == base_model_digest(Path(shipped_path(BASE)))
    assert record.adapter.sha256 == hash_file(folder / "adapter_model.safetensors")
    assert record.recipe == read_recipe("sft", "tiny-cpu", SftRecipe, {"steps": 3, "batch_size": 2})
    assert record.assistant_only_loss
    assert record.adapter.sha256[:16] in said
    assert str(folder.parent) not in (folder / RECORD_NAME).read_text()


def test_training_goes_on_from_the_folder(made: tuple[Path, str]) -> None:
    folder, said = made
    settings = resolve("tiny-cpu", {"sft_adapter_path": str(folder)}, {}, now=read_clock()).configuration
    policy = load_policy(settings, PROCESSOR)

    assert policy.trainable == read_adapter(folder).parameters
    assert f"--sft-adapter-path {folder}" in said


def test_the_same_settings_give_the_same_weights(made: tuple[Path, str], data: Path, tmp_path: Path) -> None:
    assert run(data, tmp_path / "again").exit_code == 0
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (made[0] / name).read_bytes()


def test_the_prompt_is_the_one_of_an_evaluation() -> None:
    # A data set that gives all rows the keys of each would write the absent ones into the list of tools.
    recipe = TranscriptRecipe(conversations=4, mixture={"random": 1.0}, observation_length="compact")
    played = list(generate_transcripts(recipe, seed=1))
    rows = _rows(played, one_table=False)

    for row, item in zip(rows, played, strict=True):
        assert row["tools"] == list(item.tools)
        calls = [call["function"]["arguments"] for m in row["messages"] for call in m.get("tool_calls") or ()]
        spoken = [call.function.arguments for m in item.messages for call in m.tool_calls or ()]
        assert calls == [orjson.loads(text) for text in spoken]


def test_a_length_that_no_conversation_fits_is_named(data: Path, tmp_path: Path) -> None:
    answer = run(data, tmp_path / "adapter", "--max-length", "60")

    assert isinstance(answer.exception, FinetuningError)
    assert "within 60 tokens" in answer.exception.what
    assert list(tmp_path.iterdir()) == []


def test_data_with_faults_is_refused_and_nothing_is_left(data: Path, tmp_path: Path) -> None:
    rows = data.read_bytes().replace(b"ready 0/", b"ready 1/", 1)
    (tmp_path / "bad.jsonl").write_bytes(rows)
    answer = run(tmp_path / "bad.jsonl", tmp_path / "adapter")

    assert isinstance(answer.exception, UsageError)
    assert "CONVERSATION_DIFFERS" in answer.exception.what
    assert "bad.jsonl:1" in answer.exception.where
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl"]


def test_what_was_stopped_goes_on_to_the_bytes_of_an_undisturbed_one(data: Path, tmp_path: Path) -> None:
    recipe = read_recipe("sft", "tiny-cpu", SftRecipe, {"steps": 6, "batch_size": 2})
    seen: list[int] = []

    def tune(name: str, stop_at: int = 0, seed: int = 1) -> SftRecord:
        def show(step: int, _: str) -> None:
            seen.append(step)
            if step == stop_at:
                raise KeyboardInterrupt

        return finetune(data, BASE, tmp_path / name, recipe, seed=seed, place=PROCESSOR, show=show, save_steps=2)

    whole = tune("whole")
    with pytest.raises(KeyboardInterrupt):
        tune("parts", stop_at=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts.checkpoints", "whole"]
    with pytest.raises(UsageError, match="with other settings"):
        tune("parts", seed=2)
    seen.clear()
    resumed = tune("parts")

    assert seen == [5, 6]
    assert resumed.adapter.sha256 == whole.adapter.sha256
    assert (resumed.first_loss, resumed.last_loss) == (whole.first_loss, whole.last_loss)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "whole"]


def test_a_folder_that_exists_is_left_alone(data: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("kept")
    answer = run(data, tmp_path)

    assert isinstance(answer.exception, UsageError)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "out of memory after step 0 of 3"),
        (None, "not finite"),
    ],
)
def test_what_breaks_off_ends_in_three_lines_and_leaves_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, what: str
) -> None:
    def broken(*_: object, report, **__: object) -> None:
        if error is not None:
            raise error
        report({"step": 1, "loss": float("nan")})

    # A test machine cannot be filled to the brim, so the stage that allocates says that it is.
    monkeypatch.setattr(finetuning, "train_adapter", broken)
    recipe = read_recipe("sft", "tiny-cpu", SftRecipe, {"steps": 3})
    with pytest.raises(FinetuningError, match=what):
        finetune(data, BASE, tmp_path / "out", recipe, seed=1, place=PROCESSOR, show=lambda *_: None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--preset", "huge"), "recipe 'huge' is not known"),
        (("--steps", "0"), "steps = 0"),
        (("--learning-rate", "nan"), "learning_rate"),
        (("--base-model", "./nowhere"), "there is no folder ./nowhere"),
    ],
)
def test_wrong_settings_are_named(data: Path, tmp_path: Path, words: tuple[str, ...], what: str) -> None:
    answer = run(data, tmp_path / "out", *words)

    assert isinstance(answer.exception, UsageError)
    assert what in answer.exception.what


def test_recipes_are_no_presets_of_a_run() -> None:
    assert recipe_names("sft") == ["lora", "tiny-cpu"]
    assert not [name for name in preset_names() if name.startswith(("sft", "warmstart"))]


def test_the_help_teaches_the_whole_way() -> None:
    answer = CliRunner().invoke(cli, ["sft", "--help"])

    assert {"data", "sft", "grpo"} <= set(re.findall(r"molforge-train (\w+)", answer.output))


def test_deterministic_algorithms_are_asked_for_on_a_processor_only() -> None:
    import torch

    with reproducible(1, "cuda"):
        assert not torch.are_deterministic_algorithms_enabled()
    with reproducible(1):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() == 1
    assert not torch.are_deterministic_algorithms_enabled()
