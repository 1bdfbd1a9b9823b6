"""Of a stranger's adapter a model library sees the weights and the few settings that say how they are used."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from molforge_env.errors import UsageError
from molforge_eval.canonical import sha256_hex
from molforge_eval.trusted_adapter import MOST_RANK, copy_weights, plain_settings

ADAPTER = Path(__file__).resolve().parents[3] / "molforge_train" / "models" / "tiny" / "sft_adapter"
MODULE = "model.layers.0.self_attn.q_proj"
SHAPES = {
    f"base_model.model.{MODULE}.lora_A.weight": (16, 128),
    f"base_model.model.{MODULE}.lora_B.weight": (128, 16),
    "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight": (4, 128),
    "base_model.model.model.layers.1.mlp.up_proj.lora_B.weight": (384, 4),
}


def written() -> dict[str, Any]:
    """Settings as peft writes them."""
    settings: dict[str, Any] = json.loads((ADAPTER / "adapter_config.json").read_text(encoding="utf-8"))
    return settings


def test_the_settings_of_a_plain_adapter_are_taken_and_its_modules_read_from_the_tensors() -> None:
    settings = plain_settings(written(), SHAPES)

    assert settings["target_modules"] == [MODULE, "model.layers.1.mlp.up_proj"]
    assert (settings["r"], settings["rank_pattern"]) == (16, {"model.layers.1.mlp.up_proj": 4})
    assert settings["lora_alpha"] == 32
    assert "base_model_name_or_path" not in settings


def test_nothing_that_names_a_module_a_model_or_a_pattern_is_handed_on() -> None:
    hostile = {
        "auto_mapping": {"parent_library": "antigravity"},
        "megatron_core": "antigravity",
        "base_model_name_or_path": "someone/model",
        "target_modules": "(a+)+$",
        "rank_pattern": {"(a+)+$": 10**9},
        "r": 10**9,
        "a_key_of_tomorrow": None,
    }
    spelled = json.dumps(plain_settings({**written(), **hostile}, SHAPES))

    assert not [word for word in ("antigravity", "someone", "(a+)", "1000000000", "tomorrow") if word in spelled]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("megatron_config", {"tensor_parallel": 2}),
        ("layer_replication", [[0, 1], [0, 2]]),
        ("trainable_token_indices", [1]),
        ("a_key_of_tomorrow", "on"),
        ("peft_type", "PROMPT_TUNING"),
        ("init_lora_weights", "pissa"),
        ("lora_alpha", "32"),
        ("lora_alpha", True),
        ("alpha_pattern", {"(a+)+$": 1}),
        ("alpha_pattern", [1]),
        ("modules_to_save", ["lm_head", "(a+)+$"]),
        ("bias", "some"),
    ],
)
def test_a_setting_that_asks_for_more_is_refused_by_its_name(key: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"setting {key} = ") as refusal:
        plain_settings({**written(), key: value}, SHAPES)

    assert len(str(refusal.value).splitlines()) == 3


def test_a_rank_beyond_all_use_gets_no_room_in_the_model() -> None:
    with pytest.raises(UsageError, match=f"has rank {MOST_RANK + 1}, the limit is {MOST_RANK}"):
        plain_settings(written(), {f"base_model.model.{MODULE}.lora_A.weight": (MOST_RANK + 1, 1)})


def test_a_tensor_whose_name_is_a_pattern_is_refused() -> None:
    with pytest.raises(UsageError, match="has no plain name"):
        plain_settings(written(), {"base_model.model.(a+)+$.lora_A.weight": (4, 4)})


def test_weights_without_a_factor_of_lora_are_refused() -> None:
    with pytest.raises(UsageError, match="no tensor of the adapter is a factor of LoRA"):
        plain_settings(written(), {"lm_head.weight": (4, 4)})


def test_the_hash_is_of_what_was_copied_and_not_of_what_has_grown_since(tmp_path: Path) -> None:
    assert copy_weights(io.BytesIO(b"weights and more"), tmp_path, at_most=7) == sha256_hex(b"weights")
    assert (tmp_path / "adapter_model.safetensors").read_bytes() == b"weights"
