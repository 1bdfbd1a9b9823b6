"""The adapter's file, read without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from evidence_builder import reseal, write
from flaws import rename_adapter, tensors

from molforge_eval import layout
from molforge_eval.canonical import sha256_hex
from molforge_eval.validate import validate


def spell(header: dict[str, object], data: bytes, *, pad: int = 0) -> bytes:
    """Write a safetensors file by hand."""
    text = orjson.dumps(header) + b" " * pad
    return len(text).to_bytes(8, "little") + text + data


def codes(run: Path) -> set[str]:
    rename_adapter(run, sha256_hex((run / layout.ADAPTER_WEIGHTS).read_bytes()))
    reseal(run)
    return {item.code for item in validate(run).findings}


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32", "F64"])
def test_a_value_that_is_not_finite_is_counted_in_every_number_format(run_copy: Path, kind: str) -> None:
    width = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8}[kind]
    values = {
        "F16": np.array([1, np.nan], "<f2").tobytes(),
        "BF16": (np.array([1, np.nan], "<f4").view("<u4") >> 16).astype("<u2").tobytes(),
        "F32": np.array([1, np.nan], "<f4").tobytes(),
        "F64": np.array([1, np.nan], "<f8").tobytes(),
    }[kind]
    entry = {"dtype": kind, "shape": [2], "data_offsets": [0, 2 * width]}
    write(run_copy, layout.ADAPTER_WEIGHTS, spell({"a": entry}, values))

    assert codes(run_copy) == {"WEIGHTS_NOT_FINITE", "ADAPTER_COUNT_DIFFERS"}


def test_a_header_that_begins_like_a_pickle_is_a_header(run_copy: Path) -> None:
    entry = {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}
    bare = spell({"a": entry}, b"")
    write(run_copy, layout.ADAPTER_WEIGHTS, spell({"a": entry}, b"\0" * 256, pad=0x0480 - len(bare) + 8))

    assert (run_copy / layout.ADAPTER_WEIGHTS).read_bytes().startswith(b"\x80\x04")
    assert codes(run_copy) == {"ADAPTER_COUNT_DIFFERS"}


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


@pytest.mark.parametrize("header", [{"a": 7}, {"a": {"dtype": "U8", "shape": [16], "data_offsets": [0, 16]}}])
def test_a_header_of_another_shape_is_named_by_its_key(run_copy: Path, header: dict[str, object]) -> None:
    write(run_copy, layout.ADAPTER_WEIGHTS, spell(header, b"\0" * 16))

    assert codes(run_copy) == {"SCHEMA_UNMET"}


def test_ranks_that_are_set_for_single_modules_are_not_held_to_r(run_copy: Path) -> None:
    path = run_copy / layout.ADAPTER_CONFIG
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "r": 64, "rank_pattern": {"q_proj": 4}}))

    assert codes(run_copy) == set()


def test_one_second_factor_that_moved_is_enough(run_copy: Path) -> None:
    def still(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: value * (".lora_B" not in name or "layers.1" in name) for name, value in values.items()}

    tensors(still)(run_copy)

    assert codes(run_copy) == set()


def test_a_shape_without_end_is_a_misfit_and_stops_no_check(run_copy: Path) -> None:
    header = orjson.dumps({"a": {"dtype": "F32", "shape": [2**62] * 2_000, "data_offsets": [0, 4]}})
    write(run_copy, layout.ADAPTER_WEIGHTS, len(header).to_bytes(8, "little") + header + b"0000")
    codes = {item.code for item in validate(run_copy).findings}

    assert "SCHEMA_UNMET" in codes
    assert "CHECK_STOPPED" not in codes
