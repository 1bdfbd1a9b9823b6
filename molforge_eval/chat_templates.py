"""Whether a model's chat template is one whose tool calls the host trainer can read, told from text alone.

The trainer knows a template by its exact text, and models are often uploaded again with an edited one. Nothing is
imported and no weight is read: an edited template is named together with the one that it was made from.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env.errors import UsageError
from molforge_eval.catalogue import seen

_HOST = "trl"
_TRAINING = "_training"
_ALIKE = 0.5
"""Share of common lines from which one template counts as made from another."""
_LONGEST = 200_000
"""Characters up to which a text is compared with the known ones."""
_VENDORS = {"qwen": "Qwen", "llama": "meta-llama", "gemma": "google", "glm": "zai-org", "gptoss": "openai"}


class Nearest(NamedTuple):
    """The known template that is most like another text."""

    name: str
    alike: float
    """Share of common lines."""
    changed: int
    """Lines that differ."""
    line: int
    """The first of them, from 1, in the text that was asked about."""


def known_templates() -> Mapping[str, str]:
    """Read the templates that the installed trainer knows, by name; none when it is not installed."""
    spec = importlib.util.find_spec(_HOST)
    return _templates_of(tuple(spec.submodule_search_locations or ()) if spec else ())


@cache
def _templates_of(places: tuple[str, ...]) -> Mapping[str, str]:
    folders = [Path(place) / "chat_templates" for place in places]
    files = sorted(path for folder in folders for path in folder.glob("*.jinja") if not path.stem.endswith(_TRAINING))
    return {path.stem: path.read_text("utf-8") for path in files}


def nearest_template(text: str) -> Nearest | None:
    """Find the known template that a text was most likely made from."""
    lines = text.splitlines()
    best: Nearest | None = None
    for name, known in known_templates().items():
        own = known.splitlines()
        blocks = SequenceMatcher(None, own, lines, autojunk=False).get_matching_blocks()
        common = sum(block.size for block in blocks)
        longest = max(len(lines), len(own), 1)
        if best is None or common / longest > best.alike:
            alike = takewhile(lambda pair: pair[0] == pair[1], zip(own, lines, strict=False))
            first = sum(1 for _ in alike) + 1
            best = Nearest(name, common / longest, longest - common, min(first, max(len(lines), 1)))
    return best


def template_fault(stated: object, model: str) -> UsageError:
    """Say what is wrong with a template that the trainer does not know, and how it is mended.

    Args:
        stated: The text; or several by name, in the way of tokenizers; or nothing.
        model: What the model is called.
    """
    where = f"chat template of {model}"
    if isinstance(stated, list | dict) and stated:
        return UsageError(
            f"the model has chat templates by name, {seen(_names_of(stated))}: the trainer reads calls by one text",
            where=where,
            mend="Keep the one that the trainer knows, as chat_template.jinja in a copy of the model's folder, and no "
            "other (docs/warm_start.md).",
        )
    text = stated if isinstance(stated, str) else ""
    nearest = nearest_template(text) if 0 < len(text) <= _LONGEST else None
    if nearest is None or nearest.alike < _ALIKE:
        what = "the model has no chat template" if not text else "the trainer does not know this chat template"
        mend = "Use an instruction model whose template the trainer knows, such as Qwen2.5, Qwen3 or Qwen3.5."
        return UsageError(f"{what}, so it cannot read its tool calls", where=where, mend=mend)
    first = (text.splitlines() or [""])[nearest.line - 1].strip()
    vendor = next((owner for stem, owner in _VENDORS.items() if nearest.name.startswith(stem)), "its maker")
    edited = f"{nearest.changed} lines edited" if nearest.changed else "other line ends"
    return UsageError(
        f"the chat template is {nearest.name} with {edited}: the trainer cannot read its calls",
        where=f"{where}, line {nearest.line}: {seen(first)}",
        mend=f"Name the upload of {vendor}, or put {_HOST}/chat_templates/{nearest.name}.jinja in the place of "
        "chat_template.jinja in a copy of the model's folder (docs/warm_start.md).",
    )


def check_template_files(folder: Path, model: str) -> None:
    """Refuse a model folder whose template the trainer does not know, before anything of it is loaded.

    A tokenizer that says itself how its calls are read is left to the trainer.

    Raises:
        UsageError: The template is absent, edited or of another kind.
    """
    settings = _settings_of(folder / "tokenizer_config.json")
    if not known_templates() or settings.get("response_template") or settings.get("response_schema"):
        return
    stated = _stated(folder, settings)
    if stated is None and not (folder / "tokenizer_config.json").is_file():
        # Not a whole model: the loader says what is missing.
        return
    if stated not in known_templates().values():
        raise template_fault(stated, model)


def _stated(folder: Path, settings: Mapping[str, Any]) -> Any:
    """Find what the loader of tokenizers takes: files win over settings, and one without a name is a plain text."""
    one = folder / "chat_template.jinja"
    others = sorted((folder / "additional_chat_templates").glob("*.jinja"))
    files = {"default": one} if one.is_file() else {}
    files |= {path.stem: path for path in others}
    if not files:
        return settings.get("chat_template")
    texts = {name: path.read_text("utf-8", errors="replace") for name, path in files.items()}
    return texts["default"] if list(texts) == ["default"] else texts


def _names_of(templates: list[Any] | dict[str, Any]) -> str:
    entries = (
        templates if isinstance(templates, dict) else [item.get("name") for item in templates if isinstance(item, dict)]
    )
    return ", ".join(str(name) for name in entries)


def _settings_of(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
