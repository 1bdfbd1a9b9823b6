"""The factors of a LoRA adapter, told from the names and shapes of its tensors.

Names are read as every version of the library writes them, with or without the name of the adapter within
(`lora_A.weight`, `lora_A.default.weight`, `lora_embedding_A`). Patterns of a stranger's settings are compared as plain
suffixes, never run as expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_FACTOR = re.compile(r"^(?P<module>.+?)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(\.[A-Za-z0-9_-]+)?(\.weight)?$")
_BESIDE = re.compile(r"\.lora_magnitude_vector|\.lora_[AB](\.[A-Za-z0-9_-]+)?\.bias$|lora_mag")
"""Further weights of an adapter: the magnitudes of DoRA, and the bias of a factor."""
_PREFIXES = ("base_model.model.", "base_model.")
_WRAPPED = re.compile(r"(?<![^.])(?:_orig_mod|_fsdp_wrapped_module|base_layer|(?<=model\.)language_model)\.")
"""Names that a compiled, a divided or an adapted module has around its own, and that of the text half of a model that
also sees, which Unsloth loads where PEFT is given the text model alone."""
_ADAPTER = re.compile(
    r"\.(?P<part>lora_(?:embedding_)?[AB]|lora_magnitude_vector)"
    r"(?:\.(?!weight$|bias$)[A-Za-z0-9_-]+)?(?P<rest>\.weight|\.bias)?$"
)
"""A part of an adapter at the end of a name, with or without the name of the adapter."""
_SAVED = re.compile(r"\.modules_to_save(?:\.(?!(?:weight|bias)$)[A-Za-z0-9_-]+)?(?=\.)")
"""What a module that is trained whole has around its own name in memory."""


class Factor(NamedTuple):
    """One of the two factors of a module."""

    module: str
    """Name of the module that is adapted, as the base model has it."""
    side: str
    """`A` or `B`."""
    rank: int | None
    """`None` for a tensor without a rank."""


def plain_name(name: str) -> str:
    """Spell the name of a tensor as no writer does: without what different ones put around it.

    >>> plain_name("base_model.model.model.layers.0.q_proj.lora_A.default.weight")
    'model.layers.0.q_proj.lora_A.weight'
    >>> plain_name("model.layers.0.q_proj.lora_A")
    'model.layers.0.q_proj.lora_A.weight'
    """
    bare = _SAVED.sub("", _without_prefix(_WRAPPED.sub("", name)))
    return _ADAPTER.sub(lambda match: f".{match['part']}{match['rest'] or '.weight'}", bare)


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def factor_of(name: str, shape: list[int]) -> Factor | None:
    """Read a tensor as a factor; `None` when its name is that of none.

    >>> factor_of("base_model.model.model.layers.0.q_proj.lora_A.weight", [4, 16])
    Factor(module='model.layers.0.q_proj', side='A', rank=4)
    """
    match = _FACTOR.match(name)
    if match is None:
        return None
    module = _without_prefix(match["module"].removesuffix(".base_layer"))
    place = 0 if match["side"] == "A" else 1
    return Factor(module, match["side"], shape[place] if len(shape) >= 2 else None)


def is_beside(name: str) -> bool:
    """Tell whether a tensor is a further weight of the adapter that changes the model without its factors."""
    return _BESIDE.search(name) is not None


def is_targeted(module: str, targets: Iterable[str]) -> bool:
    """Tell whether a module is one of those that the settings name, by its whole name or its end."""
    return any(module == target or module.endswith(f".{target}") for target in targets)


def is_whole_name(target: str) -> bool:
    """Tell whether a target names one module of one layer, so that it must be there.

    >>> is_whole_name("model.layers.0.q_proj"), is_whole_name("q_proj")
    (True, False)
    """
    return any(part.isdigit() for part in target.split("."))


def target_names(config: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the modules that the settings list; `None` when an expression or a shorthand stands in their place."""
    targets = config.get("target_modules")
    if not isinstance(targets, list) or config.get("target_parameters"):
        return None
    return tuple(target for target in targets if isinstance(target, str))


def ranks_of(config: Mapping[str, Any]) -> frozenset[int] | None:
    """Return the ranks that a factor may have; `None` when the settings leave them open."""
    if config.get("target_parameters"):
        # Parameters of experts are adapted side by side, in one factor of several ranks.
        return None
    pattern = config.get("rank_pattern") or {}
    apart = pattern.values() if isinstance(pattern, dict) else ()
    return frozenset({int(config["r"]), *(rank for rank in apart if isinstance(rank, int))})
