"""The digest of the tensors of an adapter: over what they are, never over how a file spells them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from safetensors.numpy import save_file

from molforge_eval.checks.factors import plain_name
from molforge_eval.checks.tensors import digest_weights
from molforge_eval.limits import DEFAULT_LIMITS, Limits

NAME = "base_model.model.model.layers.0.q_proj.lora_A.weight"
VALUES = [1.0, -2.0, 0.5, 448.0, 0.0, 2.0**-6, -0.0, 0.40625]
SPELLED = {
    "F64": np.array(VALUES, "<f8").tobytes(),
    "F32": np.array(VALUES, "<f4").tobytes(),
    "F16": np.array(VALUES, "<f2").tobytes(),
    "BF16": (np.array(VALUES, "<f4").view("<u4") >> 16).astype("<u2").tobytes(),
    "F8_E4M3": bytes([0x38, 0xC0, 0x30, 0x7E, 0x00, 0x08, 0x80, 0x2D]),
}
"""The same eight numbers in five formats."""


def digest_of_bytes(folder: Path, entry: dict[str, object], data: bytes, **more: object) -> str | None:
    header = orjson.dumps({NAME: {**entry, "data_offsets": [0, len(data)]}, **more})
    path = folder / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return digest_weights(path, DEFAULT_LIMITS).sha256


def digest_of_tensors(folder: Path, tensors: dict[str, np.ndarray], **metadata: str) -> str | None:
    path = folder / "b.safetensors"
    save_file(tensors, path, metadata=metadata)
    return digest_weights(path, DEFAULT_LIMITS).sha256


@pytest.mark.parametrize("kind", SPELLED)
def test_equal_numbers_have_one_digest_in_every_format_that_holds_them(tmp_path: Path, kind: str) -> None:
    expected = digest_of_tensors(tmp_path, {NAME: np.array(VALUES, np.float32)})

    assert digest_of_bytes(tmp_path, {"dtype": kind, "shape": [8]}, SPELLED[kind]) == expected


def test_the_other_format_of_one_byte_is_read_too(tmp_path: Path) -> None:
    data = bytes([0x3C, 0xC0, 0x00, 0x01])
    expected = digest_of_tensors(tmp_path, {NAME: np.array([1.0, -2.0, 0.0, 2.0**-16], np.float32)})

    assert digest_of_bytes(tmp_path, {"dtype": "F8_E5M2", "shape": [4]}, data) == expected


def test_order_metadata_and_names_do_not_count(tmp_path: Path) -> None:
    first, second = np.arange(4, dtype=np.float32), np.arange(6, dtype=np.float16)
    other = NAME.replace("lora_A", "lora_B")
    told = digest_of_tensors(tmp_path, {NAME: first, other: second})
    again = digest_of_tensors(
        tmp_path,
        {
            other.removeprefix("base_model.model.").replace(".weight", ".default.weight"): second,
            NAME.removesuffix(".weight"): first.astype(np.float64),
        },
        format="pt",
        made="once more",
    )

    assert told == again is not None


@pytest.mark.parametrize(
    "tensors",
    [
        {NAME: np.array([[1, 2], [3, 5]], np.float32)},
        {NAME: np.array([[1, 2, 3, 4]], np.float32)},
        {NAME: np.array([[1, 2], [3, 4]], np.int32)},
        {NAME.replace("q_proj", "k_proj"): np.array([[1, 2], [3, 4]], np.float32)},
        {NAME.replace("lora_A", "lora_B"): np.array([[1, 2], [3, 4]], np.float32)},
        {NAME: np.array([[1, 2], [3, 4]], np.float32), "more": np.zeros(1, np.float32)},
        {NAME: np.array([[1, 2], [3, 4 + 2**-40]], np.float64)},
        {NAME: np.array([[1, 2], [3, 1e300]], np.float64)},
    ],
    ids=["value", "shape", "integers", "module", "side", "more", "finer", "huge"],
)
def test_other_tensors_have_another_digest(tmp_path: Path, tensors: dict[str, np.ndarray]) -> None:
    told = digest_of_tensors(tmp_path, {NAME: np.array([[1, 2], [3, 4]], np.float32)})

    assert digest_of_tensors(tmp_path, tensors) not in (None, told)


def test_a_tensor_that_is_read_in_pieces_has_the_digest_of_the_whole(tmp_path: Path) -> None:
    values = np.zeros(2**20 + 3, np.float32)
    values[-1] = 1
    narrow = digest_of_tensors(tmp_path, {NAME: values})
    fine = values.astype(np.float64)
    fine[-1] += 2**-40

    assert digest_of_tensors(tmp_path, {NAME: values.astype(np.float64)}) == narrow
    assert digest_of_tensors(tmp_path, {NAME: fine}) != narrow


def test_a_file_that_cannot_be_read_has_a_reason_in_place_of_a_digest(tmp_path: Path) -> None:
    path = tmp_path / "b.safetensors"
    save_file({NAME: np.zeros(4, np.float32)}, path)
    beyond = digest_weights(path, Limits(tensor_header_bytes=8))
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    pointer = digest_weights(path, DEFAULT_LIMITS)

    assert beyond.sha256 is None
    assert "its header would have" in (beyond.reason or "")
    assert pointer == (None, "the file is a Git LFS pointer in place of the weights")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("base_model.model.h.q.lora_A.weight", "h.q.lora_A.weight"),
        ("base_model.model.h.q.lora_A.default.weight", "h.q.lora_A.weight"),
        ("_orig_mod.base_model.model.h.q.base_layer.lora_A.policy.weight", "h.q.lora_A.weight"),
        ("base_model.h.q.lora_B.bias", "h.q.lora_B.bias"),
        ("h.q.lora_B.default.bias", "h.q.lora_B.bias"),
        ("base_model.model.embed.lora_embedding_A.default", "embed.lora_embedding_A.weight"),
        ("h.q.lora_magnitude_vector.default.weight", "h.q.lora_magnitude_vector.weight"),
        ("base_model.model.lm_head.modules_to_save.default.weight", "lm_head.weight"),
        ("base_model.model.score.modules_to_save.default.dense.weight", "score.dense.weight"),
        ("base_model.model.lm_head.modules_to_save.weight", "lm_head.weight"),
        ("base_model.model.lm_head.weight", "lm_head.weight"),
    ],
)
def test_a_tensor_has_one_name_whoever_saved_it(name: str, plain: str) -> None:
    assert plain_name(name) == plain
