"""Weight files on disk: what stands there, and by which hash a policy is known.

Only safetensors are read. A pickle is never loaded, and a Git LFS pointer is named as what it is. Hashes are over
contents, so a copy under another name is the same policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from safetensors import SafetensorError, safe_open

from molforge_env.errors import UnreadableError, UsageError
from molforge_eval.canonical import digest

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_KEYS = ("peft_type", "r", "target_modules", "base_model_name_or_path")
"""Keys of an adapter's configuration that every version of its library writes."""
TOKENIZER_FILES = ("added_tokens.json", "merges.txt", "special_tokens_map.json", "tokenizer.json", "tokenizer.model",
                   "vocab.json")  # fmt: skip
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_BLOCK = 1 << 20


class AdapterFiles(NamedTuple):
    """An adapter that can be loaded."""

    folder: Path
    weights: Path
    config: dict[str, Any]
    sha256: str
    """Over the weights file."""
    keys: tuple[str, ...]
    """Names of its tensors, sorted."""
    parameters: int
    """Numbers in its tensors."""


def read_adapter(folder: Path) -> AdapterFiles:
    """Read an adapter's configuration and the header of its weights.

    Raises:
        UsageError: The folder, its configuration or its weights are absent, or the weights are a pickle.
        UnreadableError: A file is damaged, or a pointer in place of the weights.
    """
    if not folder.is_dir():
        raise UsageError(
            f"there is no adapter at {folder.name}",
            where=f"looked for the folder {folder}",
            mend=f"Give the folder that holds {ADAPTER_CONFIG} and {ADAPTER_WEIGHTS}.",
        )
    config_file, weights = folder / ADAPTER_CONFIG, folder / ADAPTER_WEIGHTS
    if not config_file.is_file():
        raise UsageError(
            f"the adapter {folder.name} has no {ADAPTER_CONFIG}",
            where=str(config_file),
            mend="Give the folder that the trainer saved the adapter to.",
        )
    config = _read_config(config_file)
    if not weights.is_file():
        pickled = sorted(path.name for path in folder.glob("adapter_model.*") if path.suffix in (".bin", ".pt", ".pth"))
        also = f", only {pickled[0]}: a pickle runs code when it is loaded, so it is not" if pickled else ""
        raise UsageError(
            f"the adapter {folder.name} has no {ADAPTER_WEIGHTS}{also}",
            where=str(weights),
            mend="Save the adapter again with `save_pretrained(folder, safe_serialization=True)`.",
        )
    shapes = read_tensor_shapes(weights)
    if not shapes:
        raise UnreadableError(
            f"the adapter {folder.name} holds no tensor", where=str(weights), mend="Save the adapter again."
        )
    return AdapterFiles(folder, weights, config, hash_file(weights), tuple(sorted(shapes)), _count(shapes.values()))


def weight_files(folder: Path) -> tuple[Path, ...]:
    """List the weight files of a model, sorted by name, pointers and pickles refused.

    Raises:
        UsageError: There is no safetensors file.
        UnreadableError: A file is damaged, or a pointer in place of the weights.
    """
    files = tuple(sorted(path for path in folder.glob("*.safetensors") if path.name != ADAPTER_WEIGHTS))
    if not files:
        pickled = sorted(path.name for path in folder.glob("*.bin"))
        also = f", only {pickled[0]}: a pickle runs code when it is loaded, so it is not" if pickled else ""
        raise UsageError(
            f"the model {folder.name} has no safetensors file{also}",
            where=str(folder),
            mend="Give a model folder with safetensors, or a hub name.",
        )
    for path in files:
        read_tensor_shapes(path)
    return files


def base_model_digest(folder: Path) -> str:
    """Hash a model: its configuration and its weight files by content, whatever they are called."""
    files = [folder / "config.json", *weight_files(folder)]
    return digest(sorted(hash_file(path) for path in files if path.is_file()))


def tokenizer_digest(folder: Path) -> str:
    """Hash the files that make a tokenizer, by name and content; the chat template is hashed by itself."""
    return digest([[name, hash_file(folder / name)] for name in TOKENIZER_FILES if (folder / name).is_file()])


def read_tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read names and shapes from the header of a safetensors file.

    Raises:
        UnreadableError: The file is damaged, or a Git LFS pointer.
    """
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise UnreadableError(
                f"{path.name} is a Git LFS pointer, not the weights",
                where=str(path),
                mend=f'Fetch the weights: git lfs pull --include "*{path.name}"',
            )
    try:
        with safe_open(path, framework="numpy") as tensors:
            return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise UnreadableError(
            f"{path.name} is no readable safetensors file: {error}", where=str(path), mend="Copy or save it again."
        ) from error


def hash_file(path: Path) -> str:
    """Hash a file of any size."""
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise UnreadableError(f"{path.name} is no JSON: {error}", where=str(path), mend="Save it again.") from error
    missing = [key for key in ADAPTER_KEYS if not isinstance(config, dict) or key not in config]
    if missing:
        raise UnreadableError(
            f"{path.name} lacks {', '.join(missing)}", where=str(path), mend="Save the adapter again with peft."
        )
    return dict(config)


def _count(shapes: Sequence[tuple[int, ...]] | Any) -> int:
    total = 0
    for shape in shapes:
        size = 1
        for length in shape:
            size *= length
        total += size
    return total
