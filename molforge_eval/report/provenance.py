"""Where a packet comes from: the run's identity, its settings, its files, and the commands that make it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from molforge_eval import layout
from molforge_eval.canonical import plain
from molforge_eval.records.identity import ArtifactChecksum
from molforge_eval.records.manifest import RunManifest
from molforge_eval.report.evidence import Artifact, Identity, Setting
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import duration, scientific, size, whole
from molforge_eval.report.quoting import quote
from molforge_eval.run_directory import RunDirectory

UNKNOWN = "unknown"
LONGEST_SETTING = 120
MOST_PACKAGES = 60
_NO_MANIFEST = "run_manifest.json is missing or cannot be read"
_NO_PRESET = "default"
_NOT_REPEATED = frozenset({"preset", "run_name", "output_root", "drive_output_dir", "hf_output_repo"})
_NOT_RECORDED = "the manifest does not record it"


def identify(run: RunDirectory, root_sha256: str | None, title: str) -> Identity:
    """Say which run this is; what the run does not record is unknown."""
    manifest = run.manifest
    if manifest is None:
        return Identity(
            title=title,
            run_id=UNKNOWN,
            run_name=quote(run.name, LONGEST_SETTING),
            run_format=run.format_version,
            status=UNKNOWN,
            status_reason=_NO_MANIFEST,
            date=UNKNOWN,
            model=UNKNOWN,
            adapter=None,
            preset=UNKNOWN,
            device=UNKNOWN,
            product_version=UNKNOWN,
            rules_version=UNKNOWN,
            git_commit=None,
            git_commit_reason=_NO_MANIFEST,
            root_sha256=root_sha256,
            plan_sha256=None,
            input_adapter_sha256=None,
            output_adapter_sha256=None,
        )
    setting = manifest.configuration
    day = manifest.ended_at or manifest.started_at
    return Identity(
        title=title,
        run_id=manifest.run_id,
        run_name=quote(manifest.run_name, LONGEST_SETTING),
        run_format=run.format_version,
        status=manifest.status,
        status_reason=_quoted(manifest.status_reason),
        date=f"{day.day} {day:%B %Y}",
        model=quote(setting.base_model, LONGEST_SETTING),
        adapter=_quoted(setting.sft_adapter_path),
        preset=quote(setting.preset, LONGEST_SETTING),
        device=quote(setting.device, LONGEST_SETTING),
        product_version=quote(manifest.product_version, LONGEST_SETTING),
        rules_version=quote(manifest.rules_version, LONGEST_SETTING),
        git_commit=_quoted(manifest.git_commit),
        git_commit_reason=_quoted(manifest.git_commit_reason),
        root_sha256=root_sha256,
        plan_sha256=manifest.plan_sha256,
        input_adapter_sha256=None if manifest.input_adapter is None else manifest.input_adapter.sha256,
        output_adapter_sha256=None if manifest.output_adapter is None else manifest.output_adapter.sha256,
    )


def put_manifest(book: NumberBook, manifest: RunManifest | None) -> None:
    """Put down how much training was asked for and done."""
    planned = None if manifest is None else manifest.configuration.max_steps
    done = None if manifest is None else manifest.steps_completed
    seconds = None if manifest is None else manifest.training_seconds
    trainable = None if manifest is None else manifest.trainable_parameters
    total = None if manifest is None else manifest.total_parameters
    reason = _NO_MANIFEST if manifest is None else _NOT_RECORDED
    rows = (
        ("training.steps_planned", planned, whole(planned), "/configuration/max_steps"),
        ("training.steps", done, whole(done), "/steps_completed"),
        ("training.seconds", seconds, duration(seconds), "/training_seconds"),
        ("training.trainable", trainable, whole(trainable), "/trainable_parameters"),
        ("training.parameters", total, whole(total), "/total_parameters"),
    )
    for number_id, value, text, pointer in rows:
        book.put(number_id, value, text, (layout.MANIFEST, pointer), reason=reason)


def list_settings(manifest: RunManifest | None) -> tuple[Setting, ...]:
    """List every resolved setting with where it came from; reward weights one by one."""
    if manifest is None:
        return ()
    rows: list[tuple[str, Any, str]] = []
    for key, value in plain(manifest.configuration).items():
        origin = manifest.configuration_sources.get(key, UNKNOWN)
        if isinstance(value, Mapping):
            rows += [(f"{key}.{name}", inner, origin) for name, inner in value.items()]
        else:
            rows.append((key, value, origin))
    return tuple(
        Setting(key=quote(key, LONGEST_SETTING), value=_spell(value), origin=origin) for key, value, origin in rows
    )


def list_packages(manifest: RunManifest | None) -> tuple[tuple[str, str], ...]:
    """List the packages that the run was made with, by name."""
    if manifest is None:
        return ()
    return tuple(
        (quote(name, LONGEST_SETTING), quote(version, LONGEST_SETTING))
        for name, version in sorted(manifest.packages.items())[:MOST_PACKAGES]
    )


def list_artifacts(book: NumberBook, checksums: tuple[ArtifactChecksum, ...]) -> tuple[Artifact, ...]:
    """List the files of the run as they stand on disk, and put their count down."""
    total = 0
    for entry in checksums:
        total += entry.size
    source = ("the run directory", "records")
    book.put("artifacts.count", len(checksums), whole(len(checksums)), source)
    book.put("artifacts.bytes", total, size(total), source)
    return tuple(
        Artifact(path=quote(entry.path, LONGEST_SETTING), size=size(entry.size), sha256=entry.sha256)
        for entry in checksums
    )


def list_commands(run: RunDirectory, *, is_regenerated: bool = False) -> tuple[tuple[str, str], ...]:
    """List the commands that check this run and make it again; the words before them are the templates'.

    Args:
        run: The run.
        is_regenerated: The run's model has played again, so the commands ask for it.
    """
    asked = " --regenerate" if is_regenerated else ""
    here = shlex.quote(quote(run.name, LONGEST_SETTING))
    commands = [
        ("validate", f"molforge-eval validate {here}"),
        ("verify", f"molforge-eval verify {here}{asked}"),
        ("build", f"molforge-report build {here}{asked}"),
        ("trace", f"molforge-report trace {here} ID"),
    ]
    manifest = run.manifest
    if manifest is not None:
        commands.append(("train", " ".join(["molforge-train", "grpo", *_given_flags(manifest)])))
    return tuple(commands)


def _given_flags(manifest: RunManifest) -> Iterator[str]:
    """Write the preset, and as a flag whatever was set over it; where a run was written is no part of it."""
    values = plain(manifest.configuration)
    if manifest.configuration.preset != _NO_PRESET:
        yield f"--preset {shlex.quote(quote(manifest.configuration.preset, LONGEST_SETTING))}"
    for key, value in values.items():
        is_given = manifest.configuration_sources.get(key) in {"flag", "environment"}
        if (is_given or key == "seed") and key not in _NOT_REPEATED and not isinstance(value, Mapping):
            text = int(value) if isinstance(value, bool) else "" if value is None else value
            yield f"--{key.replace('_', '-')} {shlex.quote(quote(str(text), LONGEST_SETTING))}"


def _quoted(text: str | None) -> str | None:
    return None if text is None else quote(text, LONGEST_SETTING)


def _spell(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return scientific(value)
    # A port or a seed is a name that is typed again, no amount.
    return quote(str(value), LONGEST_SETTING)
