"""Whether a model's chat template is one whose tool calls the host trainer can read, told from text alone.

The trainer knows a template by its exact text, and models are often uploaded again with an edited one. Nothing is
imported and no weight is read: an edited template is named together with the one that it was made from.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env.errors import UsageError
from molforge_eval.catalogue import seen

_HOST = "trl"
_TRAINING = "_training"
_ALIKE = 0.5
"""Share of common lines from which one template counts as made from another."""
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


@cache
def known_templates() -> Mapping[str, str]:
    """Read the templates that the installed trainer knows, by name; none when it is not installed."""
    spec = importlib.util.find_spec(_HOST)
    folders = [Path(place) / "chat_templates" for place in (spec.submodule_search_locations or ())] if spec else []
    files = sorted(path for folder in folders for path in folder.glob("*.jinja") if not path.stem.endswith(_TRAINING))
    return {path.stem: path.read_text("utf-8") for path in files}


def nearest_template(text: str) -> Nearest | None:
    """Find the known template that a text was most likely made from."""
    lines = text.splitlines()
    best: Nearest | None = None
    for name, known in known_templates().items():
        blocks = SequenceMatcher(None, known.splitlines(), lines, autojunk=False).get_matching_blocks()
        common = sum(block.size for block in blocks)
        longest = max(len(lines), len(known.splitlines()), 1)
        if best is None or common / longest > best.alike:
            first = blocks[0].size if blocks[0].a == blocks[0].b == 0 else 0
            best = Nearest(name, common / longest, longest - common, min(first + 1, max(len(lines), 1)))
    return best


def template_fault(text: str | None, model: str) -> UsageError:
    """Say what is wrong with a template that the trainer does not know, and how it is mended."""
    where = f"chat template of {model}"
    nearest = nearest_template(text) if text else None
    if text is None or nearest is None or nearest.alike < _ALIKE:
        what = "the model has no chat template" if not text else "the trainer does not know this chat template"
        mend = "Use an instruction model whose template the trainer knows, such as Qwen2.5, Qwen3 or Qwen3.5."
        return UsageError(f"{what}, so it cannot read its tool calls", where=where, mend=mend)
    first = (text.splitlines() or [""])[nearest.line - 1].strip()
    vendor = next((owner for stem, owner in _VENDORS.items() if nearest.name.startswith(stem)), "its maker")
    return UsageError(
        f"the chat template is {nearest.name} with {nearest.changed} lines edited: the trainer cannot read its calls",
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
    file = folder / "chat_template.jinja"
    stated = settings.get("chat_template")
    text = file.read_text("utf-8", errors="replace") if file.is_file() else stated
    if text is None and not (folder / "tokenizer_config.json").is_file():
        # Not a whole model: the loader says what is missing.
        return
    if not isinstance(text, str | None):
        # Several templates by name; the loader chooses.
        return
    if text not in known_templates().values():
        raise template_fault(text, model)


def _settings_of(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
