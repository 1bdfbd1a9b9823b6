"""A stranger's adapter made fit to be loaded: its weights by content, its settings by an allow-list.

A model library does what an adapter's settings say: it imports a module that they name, asks a hub for the base model
that they name, and matches patterns of theirs. So the library never sees them. What it gets is a folder of ours with
the weights, whose hash was taken while they were copied, and settings written from the few that say how LoRA weights
are used. Which modules have weights, and of which rank, is read from the tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from molforge_env.errors import UsageError
from molforge_eval.catalogue import seen
from molforge_eval.weights import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_tensor_shapes

MOST_RANK = 1024
"""A model is given room for an adapter by its rank: one beyond all use is refused before that."""
_BLOCK = 1 << 20
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.]{1,300}")
_FACTOR = re.compile(r"base_model\.model\.(.+)\.lora_(?:embedding_)?([AB])(?:\.weight|\.bias)?")
_SWITCHES = ("use_rslora", "use_dora", "fan_in_fan_out", "lora_bias")
_WITHOUT_EFFECT = frozenset(
    {
        "auto_mapping", "base_model_name_or_path", "inference_mode", "lora_dropout", "megatron_core", "peft_type",
        "peft_version", "qalora_group_size", "r", "rank_pattern", "revision", "target_modules", "task_type",
        # What chooses the modules: the tensors say which were chosen.
        "exclude_modules", "layers_pattern", "layers_to_transform",
    }
)  # fmt: skip
"""Settings that change nothing once the tensors are there, or that are read from the tensors."""
_READ = frozenset({"lora_alpha", "alpha_pattern", "bias", "init_lora_weights", "modules_to_save", *_SWITCHES})
_PLAIN_STARTS = (True, False, None, "gaussian", "orthogonal")
"""Ways to begin that leave the base model as it is."""


def copy_weights(source: BinaryIO, folder: Path, *, at_most: int) -> str:
    """Copy an adapter's weights into a folder of ours.

    Args:
        source: The opened file.
        folder: Where to; it must exist.
        at_most: Bytes that are copied; a file that has grown since it was listed is cut, and its hash differs.

    Returns:
        SHA-256 of what was copied.
    """
    found = sha256()
    left = at_most
    with (folder / ADAPTER_WEIGHTS).open("wb") as target:
        while left > 0 and (block := source.read(min(left, _BLOCK))):
            found.update(block)
            target.write(block)
            left -= len(block)
    return found.hexdigest()


def write_settings(given: Mapping[str, Any], folder: Path, *, base: Path) -> None:
    """Write the settings that go with copied weights.

    Args:
        given: The settings as the stranger has them.
        folder: Where the weights were copied to.
        base: Folder of the base model.

    Raises:
        UsageError: A setting asks for more than LoRA weights on a base model that stays as it is.
        UnreadableError: The weights are damaged.
    """
    settings = plain_settings(given, read_tensor_shapes(folder / ADAPTER_WEIGHTS))
    settings["base_model_name_or_path"] = str(base)
    (folder / ADAPTER_CONFIG).write_bytes(orjson.dumps(settings))


def plain_settings(given: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Choose the settings that a library may see.

    Args:
        given: The settings as the stranger has them.
        shapes: Shape of each tensor by its name.

    Raises:
        UsageError: A setting asks for more than LoRA weights on a base model that stays as it is.
    """
    for key in sorted(given):
        if given[key] and key not in _READ and key not in _WITHOUT_EFFECT:
            raise _refused(key, given[key], "is not used on a stranger's adapter")
    if given.get("peft_type") != "LORA":
        raise _refused("peft_type", given.get("peft_type"), "is not LORA")
    ranks = _ranks(shapes)
    alpha = given.get("lora_alpha", 8)
    alphas = given.get("alpha_pattern") or {}
    saved = given.get("modules_to_save")
    start = given.get("init_lora_weights")
    bias = given.get("bias", "none")
    if not _is_number(alpha):
        raise _refused("lora_alpha", alpha, "is no number")
    if not isinstance(alphas, dict) or not all(_is_plain(name) and _is_number(alphas[name]) for name in alphas):
        raise _refused("alpha_pattern", alphas, "is no table of module names and numbers")
    if saved is not None and not (isinstance(saved, list) and all(_is_plain(name) for name in saved)):
        raise _refused("modules_to_save", saved, "is no list of module names")
    if not any(start is allowed or start == allowed for allowed in _PLAIN_STARTS):
        raise _refused("init_lora_weights", start, "changes the base model")
    if bias not in ("none", "all", "lora_only"):
        raise _refused("bias", bias, "is not known")
    ordered = sorted(ranks.values())
    usual = ordered[len(ordered) // 2]
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "inference_mode": True,
        "r": usual,
        "rank_pattern": {module: rank for module, rank in ranks.items() if rank != usual},
        "target_modules": sorted(ranks),
        "lora_alpha": alpha,
        "alpha_pattern": alphas,
        "modules_to_save": saved,
        "bias": bias,
        **{name: given.get(name) is True for name in _SWITCHES},
    }


def _ranks(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Read the rank of each module from its first factor."""
    ranks: dict[str, int] = {}
    for name, shape in sorted(shapes.items()):
        factor = _FACTOR.fullmatch(name)
        if factor is None or not shape:
            continue
        module, letter = factor.groups()
        if not _is_plain(module):
            raise UsageError(f"tensor {seen(name)} has no plain name", where=ADAPTER_WEIGHTS, mend="Save it again.")
        rank = shape[0] if letter == "A" else ranks.get(module, shape[-1])
        if not 0 < rank <= MOST_RANK:
            what = f"tensor {seen(name)} has rank {rank}, the limit is {MOST_RANK}"
            raise UsageError(what, where=ADAPTER_WEIGHTS, mend="Train an adapter of a smaller rank.")
        ranks[module] = rank
    if not ranks:
        what = "no tensor of the adapter is a factor of LoRA"
        raise UsageError(what, where=ADAPTER_WEIGHTS, mend="Save the adapter again with peft.")
    return ranks


def _is_plain(name: object) -> bool:
    return isinstance(name, str) and _PLAIN_NAME.fullmatch(name) is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6


def _refused(key: str, value: object, why: str) -> UsageError:
    return UsageError(
        f"setting {key} = {seen(value)} {why}", where=ADAPTER_CONFIG, mend="Train a plain LoRA adapter, or evaluate it."
    )
