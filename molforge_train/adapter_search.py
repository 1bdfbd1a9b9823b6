"""Where an adapter lies: in the folder that is named, in the usual places of Colab and Kaggle, or on the hub.

A name that was written for another machine is looked for by its last part, so that one setting serves Colab, whose
drive is mounted, and Kaggle, whose inputs are. No folder is searched deeper than such a machine lays its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from molforge_env.errors import UsageError
from molforge_eval.model_loading import find_folder
from molforge_eval.weights import ADAPTER_CONFIG
from molforge_train.config import Resolved, shipped_path

KEY = "configuration key sft_adapter_path (SFT_ADAPTER_PATH)"
_PLACES = ("content", "content/drive/MyDrive", "kaggle/working", "kaggle/input")
_DATASET_DEPTH = 3
"""Kaggle mounts an input at `NAME`, `OWNER/NAME` or deeper, by its kind."""
_SHOWN = 3


class Search(NamedTuple):
    """What was found, and where it was looked for."""

    folder: Path | None
    looked: tuple[str, ...]


def search_adapter(name: str, *, root: Path = Path("/")) -> Search:
    """Look for an adapter on this machine.

    Args:
        name: A folder, a name below one of the usual places, or a hub name, which is found by its last part.
        root: Where the file system of the machine begins.

    Returns:
        The folder that holds the adapter's settings, `None` when there is none.

    Raises:
        UsageError: The folder that is named holds several adapters, or an archive stands in its place.
    """
    given = Path(shipped_path(name))
    candidates = list(dict.fromkeys([given, *_elsewhere(given, root)]))
    for place in candidates:
        if place.is_file():
            what = "one file of the adapter" if place.suffix in (".safetensors", ".json") else "a file, not a folder"
            mend = "Give its folder, unpacked: unzip -d FOLDER FILE."
            raise UsageError(f"{place.name} is {what}", where=f"{KEY}, {place}", mend=mend)
        if place.is_dir() and (found := _adapter_in(place)) is not None:
            return Search(found, ())
    return Search(None, (str(given), *(str(place) for place in _places(root))))


def with_found_adapter(resolved: Resolved, *, root: Path = Path("/")) -> Resolved:
    """Put the folder that was found in the place of the name that was given; a hub name stays what it is.

    Raises:
        UsageError: It is nowhere; the message lists where it was looked for.
    """
    name = resolved.configuration.sft_adapter_path
    # What ships is recorded by the name that is the same on every machine.
    if name is None or name.startswith("molforge_train/"):
        return resolved
    found = search_adapter(name, root=root)
    if found.folder is None and not is_hub_name(name):
        raise not_found(name, found.looked)
    if found.folder is None or found.folder == Path(name):
        return resolved
    return resolved._replace(
        configuration=resolved.configuration.model_copy(update={"sft_adapter_path": str(found.folder)})
    )


def adapter_folder(name: str) -> Path:
    """Find the folder of an adapter, fetched from the hub when it is on no place of this machine.

    Raises:
        UsageError: It is nowhere; the message lists where it was looked for.
    """
    found = search_adapter(name)
    if found.folder is not None:
        return found.folder
    if not is_hub_name(name):
        raise not_found(name, found.looked)
    try:
        return find_folder(name, "adapter")
    except UsageError as error:
        raise not_found(name, (*found.looked, "the hub")) from error


def is_hub_name(name: str) -> bool:
    """Tell whether a name may be one of the hub: an owner and a name."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith("/")


def not_found(name: str, looked: tuple[str, ...]) -> UsageError:
    """Say that an adapter is nowhere, and where it was looked for."""
    return UsageError(
        f"there is no adapter {name}",
        where=f"{KEY}; looked in {', '.join(looked)}",
        mend=f"Give the folder that holds {ADAPTER_CONFIG}, or make one: molforge-train data, then molforge-train sft.",
    )


def _elsewhere(given: Path, root: Path) -> Iterator[Path]:
    for place in _places(root):
        if not given.is_absolute():
            yield place / given
        yield place / given.name


def _places(root: Path) -> Iterator[Path]:
    for name in _PLACES:
        place = root / name
        yield place
        if name == "kaggle/input":
            for depth in range(1, _DATASET_DEPTH + 1):
                yield from sorted(path for path in place.glob("/".join("*" * depth)) if path.is_dir())


def _adapter_in(folder: Path) -> Path | None:
    if (folder / ADAPTER_CONFIG).is_file():
        return folder
    # What is unpacked or mounted often has its folder once more inside.
    inside = sorted({path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{ADAPTER_CONFIG}")})
    if len(inside) > 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in inside[:_SHOWN])
        raise UsageError(
            f"{folder.name} holds {len(inside)} adapters: {names}",
            where=f"{KEY}, {folder}",
            mend="Name the folder of one of them.",
        )
    return inside[0] if inside else None
