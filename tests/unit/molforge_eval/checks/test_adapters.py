"""The adapter's file, read without torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest
from evidence_builder import reseal, write
from evidence_cases.forgeries import adapter_everywhere
from evidence_cases.pictures import change_tensors

from molforge_eval import layout
from molforge_eval.validate import validate


def spell(header: dict[str, object], data: bytes, *, pad: int = 0) -> bytes:
    """Write a safetensors file by hand."""
    text = orjson.dumps(header) + b" " * pad
    return len(text).to_bytes(8, "little") + text + data


def codes(run: Path) -> set[str]:
    adapter_everywhere(run)
    reseal(run)
    return {item.code for item in validate(run).findings}


BROKEN = {
    "F64": np.array([1, np.nan], "<f8").tobytes(),
    "F32": np.array([1, np.nan], "<f4").tobytes(),
    "F16": np.array([1, np.nan], "<f2").tobytes(),
    "BF16": (np.array([1, np.nan], "<f4").view("<u4") >> 16).astype("<u2").tobytes(),
    "F8_E4M3": b"\x38\x7f",
    "F8_E5M2": b"\x3c\xfc",
}
"""A one and a value that is not finite."""


@pytest.mark.parametrize("kind", BROKEN)
def test_a_value_that_is_not_finite_is_counted_in_every_number_format(run_copy: Path, kind: str) -> None:
    data = BROKEN[kind]
    entry = {"dtype": kind, "shape": [2], "data_offsets": [0, len(data)]}
    write(run_copy, layout.ADAPTER_WEIGHTS, spell({"a": entry}, data))
    adapter_everywhere(run_copy)
    items = [item for item in validate(run_copy).findings if item.code == "WEIGHTS_NOT_FINITE"]

    assert [(item.what, item.where.pointer) for item in items] == [('1 values of tensor "a" are not finite', "a")]


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "I64", "U8", "BOOL"])
def test_a_number_format_of_any_version_is_read(run_copy: Path, kind: str) -> None:
    width = 8 if kind == "I64" else 1
    entry = {"dtype": kind, "shape": [2], "data_offsets": [0, 2 * width]}
    write(run_copy, layout.ADAPTER_WEIGHTS, spell({"a": entry}, b"\x01" * 2 * width))

    assert codes(run_copy) == {"ADAPTER_COUNT_DIFFERS", "ADAPTER_KEYS_DIFFER"}


def test_a_header_that_begins_like_a_pickle_is_a_header(run_copy: Path) -> None:
    entry = {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}
    bare = spell({"a": entry}, b"")
    write(run_copy, layout.ADAPTER_WEIGHTS, spell({"a": entry}, b"\0" * 256, pad=0x0480 - len(bare) + 8))

    assert (run_copy / layout.ADAPTER_WEIGHTS).read_bytes().startswith(b"\x80\x04")
    assert codes(run_copy) == {"ADAPTER_COUNT_DIFFERS", "ADAPTER_KEYS_DIFFER"}


def tensor(shape: list[int], *offsets: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": shape, **({"data_offsets": list(offsets)} if offsets else {})}


@pytest.mark.parametrize(
    "header",
    [
        {"a": tensor([4], 0, 8)},
        {"a": tensor([4], 4, 20)},
        {"a": tensor([2**40], 0, 16)},
        {"a": tensor([4], 16, 0)},
        {"a": tensor([4])},
        {"a": tensor([2], 0, 8)},
        {"a": tensor([4], 0, 16), "b": tensor([4], 0, 16)},
    ],
    ids=["size", "beyond", "enormous", "backwards", "nowhere", "rest", "overlap"],
)
def test_tensors_that_do_not_fill_the_file_are_named(run_copy: Path, header: dict[str, object]) -> None:
    write(run_copy, layout.ADAPTER_WEIGHTS, spell(header, b"\0" * 16))

    assert codes(run_copy) == {"WEIGHTS_UNREADABLE"}


@pytest.mark.parametrize("header", [{"a": 7}, {"a": {"dtype": "Q4", "shape": [16], "data_offsets": [0, 16]}}])
def test_a_header_of_another_shape_is_named_by_its_key(run_copy: Path, header: dict[str, object]) -> None:
    write(run_copy, layout.ADAPTER_WEIGHTS, spell(header, b"\0" * 16))

    assert codes(run_copy) == {"SCHEMA_UNMET"}


def configure(run: Path, **changes: object) -> None:
    path = run / layout.ADAPTER_CONFIG
    settings = {**orjson.loads(path.read_bytes()), **changes}
    path.write_bytes(orjson.dumps({key: value for key, value in settings.items() if value is not ...}))


def test_ranks_that_are_set_for_single_modules_are_ranks_too(run_copy: Path) -> None:
    configure(run_copy, r=64, rank_pattern={"q_proj": 4})
    assert codes(run_copy) == set()
    configure(run_copy, rank_pattern={"q_proj": 8})

    assert codes(run_copy) == {"ADAPTER_RANK_DIFFERS"}


OLD = {
    "alpha_pattern": {},
    "auto_mapping": None,
    "bias": "none",
    "fan_in_fan_out": False,
    "inference_mode": True,
    "init_lora_weights": True,
    "layers_pattern": None,
    "layers_to_transform": None,
    "lora_dropout": 0.0,
    "modules_to_save": None,
    "rank_pattern": {},
    "revision": None,
    "task_type": "CAUSAL_LM",
}
SETTINGS = {
    "0.6": OLD,
    "0.9": {**OLD, "loftq_config": {}, "megatron_config": None, "use_rslora": False, "use_dora": False},
    "0.13": {**OLD, "layer_replication": None, "runtime_config": {"ephemeral_gpu_offload": False}},
    "0.15": {**OLD, "eva_config": None, "exclude_modules": None, "lora_bias": False, "corda_config": None},
    "0.19": {**OLD, "peft_version": "0.19.0", "target_parameters": None, "arrow_config": None, "qalora_group_size": 16},
    "expression": {**OLD, "target_modules": r"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:q_proj)).*?"},
    "shorthand": {**OLD, "target_modules": "all-linear"},
    "whole names": {**OLD, "target_modules": [f"model.layers.{layer}.self_attn.q_proj" for layer in range(2)]},
    "hub": {**OLD, "base_model_name_or_path": "unsloth/Tiny-unsloth-bnb-4bit"},
    "no base": {**OLD, "base_model_name_or_path": None},
}


@pytest.mark.parametrize("version", SETTINGS)
def test_c031_settings_of_any_version_are_accepted(run_copy: Path, version: str) -> None:
    configure(run_copy, **SETTINGS[version])

    assert codes(run_copy) == set()


@pytest.mark.parametrize("key", ["peft_type", "r", "target_modules", "base_model_name_or_path"])
def test_c031_a_core_key_that_is_absent_is_named(run_copy: Path, key: str) -> None:
    configure(run_copy, **{key: ...})
    reseal(run_copy)
    (item,) = validate(run_copy).findings

    assert (item.code, item.where.file, item.what) == (
        "SCHEMA_UNMET",
        layout.ADAPTER_CONFIG,
        f'key "{key}" is missing',
    )


@pytest.mark.parametrize(
    ("key", "value"), [("peft_type", "IA3"), ("r", 0), ("r", "4"), ("target_modules", []), ("target_modules", None)]
)
def test_c031_a_core_key_that_says_nothing_is_named(run_copy: Path, key: str, value: object) -> None:
    configure(run_copy, **{key: value})

    assert codes(run_copy) == {"SCHEMA_UNMET"}


def renamed(spelling: str) -> Callable[[Path], None]:
    def rename(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = {}
        for name, value in values.items():
            module, _, side = name.removesuffix(".weight").rpartition(".lora_")
            found[spelling.format(module=module, bare=module.removeprefix("base_model.model."), side=side)] = value
        return found

    return lambda run: change_tensors(run, rename)


@pytest.mark.parametrize(
    "spelling",
    [
        "{module}.lora_{side}.weight",
        "{module}.lora_{side}.default.weight",
        "{module}.lora_{side}",
        "{bare}.lora_{side}.weight",
        "{module}.base_layer.lora_{side}.weight",
        "{module}.lora_embedding_{side}",
    ],
)
def test_c032_keys_are_read_as_every_writer_spells_them(run_copy: Path, spelling: str) -> None:
    renamed(spelling)(run_copy)

    assert codes(run_copy) == set()


def test_c032_a_module_that_the_settings_do_not_name_is_named_with_the_count(run_copy: Path) -> None:
    configure(run_copy, target_modules=["k_proj", "v_proj"])
    reseal(run_copy)
    (item,) = validate(run_copy).findings

    assert item.code == "ADAPTER_KEYS_DIFFER"
    assert item.what == (
        'module "model.layers.0.self_attn.q_proj" is none of target_modules; 2 of 2 modules do not match'
    )


def test_c032_a_module_with_one_factor_and_a_named_one_without_any_are_named(run_copy: Path) -> None:
    change_tensors(run_copy, lambda values: {name: value for name, value in values.items() if "layers.1" not in name})
    configure(run_copy, target_modules=[f"model.layers.{layer}.self_attn.q_proj" for layer in range(2)])

    assert "ADAPTER_KEYS_DIFFER" in codes(run_copy)


def test_weights_beside_the_factors_are_not_taken_for_factors(run_copy: Path) -> None:
    def dress(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        first = "base_model.model.model.layers.0.self_attn.q_proj"
        still = {name: value * (".lora_B" not in name) for name, value in values.items()}
        magnitude = np.ones(16, np.float32)
        head = np.ones((8, 16), np.float32)
        return {**still, f"{first}.lora_magnitude_vector": magnitude, "base_model.model.lm_head.weight": head}

    change_tensors(run_copy, dress)
    found = codes(run_copy)

    # The manifest counted the factors alone.
    assert found == {"ADAPTER_COUNT_DIFFERS"}


def test_embeddings_that_were_saved_and_not_trained_do_not_count_as_trainable(run_copy: Path) -> None:
    def embed(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {**values, "base_model.model.model.embed_tokens.weight": np.ones((8, 16), np.float32)}

    manifest = orjson.loads((run_copy / layout.MANIFEST).read_bytes())
    manifest["output_adapter"]["parameters"] += 8 * 16
    (run_copy / layout.MANIFEST).write_bytes(orjson.dumps(manifest))
    change_tensors(run_copy, embed)

    assert codes(run_copy) == set()


def test_a_first_factor_of_zero_is_as_good_as_a_second_one(run_copy: Path) -> None:
    change_tensors(run_copy, lambda values: {name: value * ("lora_B" in name) for name, value in values.items()})
    assert codes(run_copy) == {"ADAPTER_ZERO"}


def test_shards_are_named_as_what_they_are(run_copy: Path) -> None:
    data = (run_copy / layout.ADAPTER_WEIGHTS).read_bytes()
    (run_copy / layout.ADAPTER_WEIGHTS).unlink()
    write(run_copy, "adapters/adapter_model-00001-of-00002.safetensors", data)
    reseal(run_copy)
    items = {item.code: item.what for item in validate(run_copy).findings}

    assert "1 shards, the first is adapters/adapter_model-00001-of-00002.safetensors" in items["WEIGHTS_MISSING"]


def test_one_second_factor_that_moved_is_enough(run_copy: Path) -> None:
    def still(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: value * (".lora_B" not in name or "layers.1" in name) for name, value in values.items()}

    change_tensors(run_copy, still)

    assert codes(run_copy) == set()


def test_a_shape_without_end_is_a_misfit_and_stops_no_check(run_copy: Path) -> None:
    header = orjson.dumps({"a": {"dtype": "F32", "shape": [2**62] * 2_000, "data_offsets": [0, 4]}})
    write(run_copy, layout.ADAPTER_WEIGHTS, len(header).to_bytes(8, "little") + header + b"0000")
    codes = {item.code for item in validate(run_copy).findings}

    assert "SCHEMA_UNMET" in codes
    assert "CHECK_STOPPED" not in codes
