from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from molforge_env.errors import UnreadableError, UsageError
from molforge_eval.weights import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    base_model_digest,
    hash_file,
    read_adapter,
    read_tensor_shapes,
    tokenizer_digest,
    weight_files,
)

CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "r": 2,
    "target_modules": ["q_proj"],
    "base_model_name_or_path": "models/base",
}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 314888\n"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / ADAPTER_CONFIG).write_text(json.dumps(CONFIG))
    save_file({"b.lora_A": np.ones((2, 3), "f4"), "a.lora_B": np.ones((3, 2), "f4")}, folder / ADAPTER_WEIGHTS)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    save_file({"w": np.ones((2, 2), "f4")}, folder / "model.safetensors")
    return folder


def _lines(error: Exception) -> list[str]:
    return str(error).splitlines()


def test_an_adapter_is_read_by_its_header(adapter: Path) -> None:
    found = read_adapter(adapter)

    assert found.keys == ("a.lora_B", "b.lora_A")
    assert found.parameters == 12
    assert found.sha256 == hash_file(adapter / ADAPTER_WEIGHTS)
    assert found.config["r"] == 2


def test_keys_that_a_newer_library_wrote_are_accepted(adapter: Path) -> None:
    (adapter / ADAPTER_CONFIG).write_text(json.dumps(CONFIG | {"quantum_rank": 7}))

    assert read_adapter(adapter).config["quantum_rank"] == 7


def test_an_absent_adapter_names_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        read_adapter(tmp_path / "nowhere")

    assert len(_lines(refusal.value)) == 3
    assert str(tmp_path / "nowhere") in _lines(refusal.value)[1]


@pytest.mark.parametrize("name", [ADAPTER_CONFIG, ADAPTER_WEIGHTS])
def test_an_adapter_without_one_of_its_files_is_refused(adapter: Path, name: str) -> None:
    (adapter / name).unlink()

    with pytest.raises(UsageError, match=f"has no {name}"):
        read_adapter(adapter)


def test_a_pickle_in_place_of_the_weights_is_never_loaded(adapter: Path) -> None:
    (adapter / ADAPTER_WEIGHTS).rename(adapter / "adapter_model.bin")

    with pytest.raises(UsageError, match=r"only adapter_model\.bin: a pickle runs code"):
        read_adapter(adapter)


def test_a_pointer_in_place_of_the_weights_is_named_with_the_command_that_fetches_it(adapter: Path) -> None:
    (adapter / ADAPTER_WEIGHTS).write_bytes(POINTER)

    with pytest.raises(UnreadableError) as refusal:
        read_adapter(adapter)

    assert "is a Git LFS pointer" in _lines(refusal.value)[0]
    assert f'git lfs pull --include "*{ADAPTER_WEIGHTS}"' in _lines(refusal.value)[2]
    assert refusal.value.exit_code == 3


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 8 + b"{}"])
def test_damaged_weights_are_unreadable(adapter: Path, content: bytes) -> None:
    (adapter / ADAPTER_WEIGHTS).write_bytes(content)

    with pytest.raises(UnreadableError, match="no readable safetensors file"):
        read_adapter(adapter)


def test_an_adapter_without_a_tensor_is_unreadable(adapter: Path) -> None:
    save_file({}, adapter / ADAPTER_WEIGHTS)

    with pytest.raises(UnreadableError, match="holds no tensor"):
        read_adapter(adapter)


@pytest.mark.parametrize(("content", "said"), [(b"{", "is no JSON"), (b"[]", "lacks peft_type"), (b'{"r": 2}', "peft")])
def test_a_configuration_that_says_too_little_is_unreadable(adapter: Path, content: bytes, said: str) -> None:
    (adapter / ADAPTER_CONFIG).write_bytes(content)

    with pytest.raises(UnreadableError, match=said):
        read_adapter(adapter)


def test_a_model_is_known_by_content_whatever_its_files_are_called(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "config.json").write_text("{}")
    (copy / "other.safetensors").write_bytes((model / "model.safetensors").read_bytes())

    assert base_model_digest(copy) == base_model_digest(model)
    save_file({"w": np.zeros((2, 2), "f4")}, copy / "other.safetensors")
    assert base_model_digest(copy) != base_model_digest(model)


def test_an_adapter_beside_the_model_is_no_part_of_it(model: Path, adapter: Path) -> None:
    own = base_model_digest(model)
    (model / ADAPTER_WEIGHTS).write_bytes((adapter / ADAPTER_WEIGHTS).read_bytes())

    assert base_model_digest(model) == own
    assert [path.name for path in weight_files(model)] == ["model.safetensors"]


def test_a_model_of_pickles_or_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no safetensors file\n"):
        weight_files(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80")
    with pytest.raises(UsageError, match=r"only pytorch_model\.bin"):
        weight_files(tmp_path)


def test_a_model_pointer_is_named(model: Path) -> None:
    (model / "model.safetensors").write_bytes(POINTER)

    with pytest.raises(UnreadableError, match="Git LFS pointer"):
        base_model_digest(model)


def test_a_tokenizer_is_known_by_its_files(model: Path) -> None:
    before = tokenizer_digest(model)
    (model / "merges.txt").write_text("a b\n")

    assert tokenizer_digest(model) != before


def test_shapes_come_from_the_header(model: Path) -> None:
    assert read_tensor_shapes(model / "model.safetensors") == {"w": (2, 2)}
