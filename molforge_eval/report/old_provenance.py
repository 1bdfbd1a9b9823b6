"""Where a run of format version 0 comes from: the few things its manifest says, and the commands that can be given."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from molforge_eval.records.old import OldManifest, OldSummary
from molforge_eval.report.evidence import Identity, Setting
from molforge_eval.report.numerals import scientific
from molforge_eval.report.provenance import LONGEST_SETTING, UNKNOWN
from molforge_eval.report.quoting import quote
from molforge_eval.run_directory import RunDirectory

MOST_SETTINGS = 60
LONGEST_NAME = 40
_NOT_RECORDED = "the layout does not record it"
_ORIGIN = "run_manifest.json"
_FLAGS = {
    "base_model": "--base-model",
    "sft_adapter_path": "--sft-adapter-path",
    "rl_max_steps": "--max-steps",
    "dataset_size": "--dataset-size",
    "num_generations": "--num-generations",
    "batch_size": "--batch-size",
    "gradient_accumulation": "--gradient-accumulation",
    "learning_rate": "--learning-rate",
    "max_completion_length": "--max-completion-length",
}
"""Settings of the public script that a training run here takes too."""


def identify_old(run: RunDirectory, root_sha256: str | None, title: str) -> Identity:
    """Say which run this is; the manifest is asked first, then the summary, and what neither says is unknown."""
    sources = () if run.old is None else (run.old.manifest, run.old.summary)
    name = _first(sources, "run_name") or run.name
    model = _first(sources, "base_model")
    adapter = _first(sources, "sft_adapter_path")
    return Identity(
        title=title,
        run_id=UNKNOWN,
        run_name=quote(name, LONGEST_NAME),
        run_format=0,
        status=UNKNOWN,
        status_reason=_NOT_RECORDED,
        date=UNKNOWN,
        model=UNKNOWN if model is None else quote(short_path(model), LONGEST_NAME),
        adapter=None if adapter is None else quote(short_path(adapter), LONGEST_NAME),
        preset=UNKNOWN,
        device=UNKNOWN,
        product_version=UNKNOWN,
        rules_version=UNKNOWN,
        git_commit=None,
        git_commit_reason=_NOT_RECORDED,
        root_sha256=root_sha256,
        plan_sha256=None,
        input_adapter_sha256=None,
        output_adapter_sha256=None,
    )


def list_old_settings(manifest: OldManifest | None) -> tuple[Setting, ...]:
    """List everything that the manifest writes, the public keys first; a key that it lacks is not listed."""
    if manifest is None:
        return ()
    values = {**{key: getattr(manifest, key) for key in OldManifest.model_fields}, **(manifest.model_extra or {})}
    rows = [
        Setting(key=quote(key, LONGEST_SETTING), value=_spell(value), origin=_ORIGIN)
        for key, value in values.items()
        if value is not None
    ]
    return tuple(rows[:MOST_SETTINGS])


def list_old_commands(run: RunDirectory) -> tuple[tuple[str, str], ...]:
    """List the commands that check this run, and the one that trains with the same settings in a layout that lasts."""
    here = shlex.quote(quote(run.name, LONGEST_SETTING))
    manifest = None if run.old is None else run.old.manifest
    commands = [
        ("validate", f"molforge-eval validate {here}"),
        ("build", f"molforge-report build {here}"),
        ("trace", f"molforge-report trace {here} ID"),
    ]
    flags = [] if manifest is None else list(_flags(manifest))
    if flags:
        commands.append(("train", " ".join(["molforge-train", "grpo", *flags])))
    return tuple(commands)


def short_path(text: str) -> str:
    """Keep the last two parts of an absolute path: the folders above name a machine or a person.

    >>> short_path("/content/runs/first"), short_path("Qwen/Qwen3-0.6B")
    ('…/runs/first', 'Qwen/Qwen3-0.6B')
    """
    parts = text.replace("\\", "/").rstrip("/").split("/")
    is_absolute = text.startswith(("/", "~", "\\")) or text[1:2] == ":"
    return "…/" + "/".join(parts[-2:]) if is_absolute and len(parts) > 2 else text


def _first(sources: tuple[OldManifest | OldSummary | None, ...], key: str) -> str | None:
    found = (getattr(source, key) for source in sources if source is not None)
    return next((value for value in found if value), None)


def _flags(manifest: OldManifest) -> Iterator[str]:
    for key, flag in _FLAGS.items():
        value = getattr(manifest, key)
        if value is not None and value != "":
            yield f"{flag} {shlex.quote(quote(str(value), LONGEST_SETTING))}"


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return scientific(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quote(short_path(value), LONGEST_SETTING) if value else "empty"
    text = orjson.dumps(value, default=str).decode() if isinstance(value, Mapping | list | tuple) else str(value)
    return quote(text, LONGEST_SETTING)
