"""What is not the same in the runs of a comparison: settings, what was measured, where they come from, packages.

Only keys that differ are listed. A run that does not record a key is said not to, and does not make it differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from molforge_eval.canonical import canonical_bytes, plain
from molforge_eval.catalogue import seen
from molforge_eval.comparability import POLICY_KEYS, plan_facts
from molforge_eval.records.evaluation import Evaluation
from molforge_eval.records.manifest import RunManifest
from molforge_eval.records.old import OldManifest
from molforge_eval.report.comparison_evidence import SettingKind, UnlikeSetting
from molforge_eval.report.numerals import scientific
from molforge_eval.report.old_provenance import short_path
from molforge_eval.report.quoting import quote
from molforge_eval.report.rivals import Rival

MOST_SETTINGS = 200
LONGEST_KEY = 80
LONGEST_VALUE = 60
_OWN_NAMES = frozenset({"run_name", "output_root", "drive_output_dir", "hf_output_repo"})
"""They name the run and where it was written; they always differ and set nothing."""
_OLD_NAMES = {"rl_max_steps": "max_steps"}
_HASH_DIGITS = 64
_SHOWN_DIGITS = 12


class _Value(NamedTuple):
    kind: SettingKind
    spelled: bytes
    """What is compared."""
    shown: str


def find_unlike(rivals: Sequence[Rival]) -> tuple[UnlikeSetting, ...]:
    """List every key that two of the runs record with unlike values: settings first, then what was measured."""
    recorded = [dict(_values_of(rival)) for rival in rivals]
    keys: dict[str, SettingKind] = {key: value.kind for values in recorded for key, value in values.items()}
    order: dict[SettingKind, int] = {"setting": 0, "identity": 1, "measured": 2, "package": 3}
    found = []
    for key, kind in keys.items():
        values = [recording.get(key) for recording in recorded]
        if len({value.spelled for value in values if value is not None}) > 1:
            shown = tuple(None if value is None else value.shown for value in values)
            found.append(UnlikeSetting(key=quote(key, LONGEST_KEY), kind=kind, values=shown))
    return tuple(sorted(found, key=lambda setting: order[setting.kind]))


def show_value(value: Any) -> str:
    """Spell a value for a cell: a hash by its first digits, a text without the folders of a machine."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return scientific(value)
    if isinstance(value, str):
        is_hash = len(value) == _HASH_DIGITS and set(value) <= set("0123456789abcdef")
        return f"{value[:_SHOWN_DIGITS]}…" if is_hash else quote(short_path(value), LONGEST_VALUE) or "empty"
    return quote(seen(value), LONGEST_VALUE)


def _values_of(rival: Rival) -> Iterator[tuple[str, _Value]]:
    checked = rival.checked
    if checked is None:
        return
    run = checked.run
    if run.manifest is not None:
        yield from _of_manifest(run.manifest)
    if run.after is not None:
        yield from _of_evaluation(run.after)
    if run.old is not None and run.old.manifest is not None:
        yield from _of_old_manifest(run.old.manifest)


def _of_manifest(manifest: RunManifest) -> Iterator[tuple[str, _Value]]:
    for key, value in plain(manifest.configuration).items():
        if key in _OWN_NAMES:
            continue
        if isinstance(value, Mapping):
            for name, inner in value.items():
                yield _pair("setting", f"{key}.{name}", inner)
        else:
            yield _pair("setting", key, value)
    adapters = {"input_adapter": manifest.input_adapter, "output_adapter": manifest.output_adapter}
    yield _pair("identity", "steps_completed", manifest.steps_completed)
    yield _pair("identity", "status", manifest.status)
    for name, adapter in adapters.items():
        yield _pair("identity", f"{name}.sha256", None if adapter is None else adapter.sha256)
    yield _pair("identity", "trainable_parameters", manifest.trainable_parameters)
    yield _pair("identity", "product_version", manifest.product_version)
    yield _pair("identity", "git_commit", manifest.git_commit)
    yield _pair("identity", "hardware.accelerator", manifest.hardware.accelerator)
    for name, version in sorted(manifest.packages.items()):
        yield _pair("package", f"packages.{name}", version)


def _of_evaluation(evaluation: Evaluation) -> Iterator[tuple[str, _Value]]:
    yield _pair("measured", "rules_version", evaluation.rules_version)
    yield _pair("measured", "backend_fingerprint", evaluation.backend_fingerprint)
    yield _pair("measured", "seed_honoured", evaluation.seed_honoured)
    policy = plain(evaluation.policy)
    for key in POLICY_KEYS:
        yield _pair("measured", f"policy.{key}", policy[key])
    for key, value in plan_facts(evaluation.plan):
        yield _pair("measured", key, value)


def _of_old_manifest(manifest: OldManifest) -> Iterator[tuple[str, _Value]]:
    values = {**{key: getattr(manifest, key) for key in OldManifest.model_fields}, **(manifest.model_extra or {})}
    for key, value in values.items():
        if value is not None and key not in _OWN_NAMES and key not in {"root", "output_dir", "script"}:
            yield _pair("setting", _OLD_NAMES.get(key, key), value)


def _pair(kind: SettingKind, key: str, value: Any) -> tuple[str, _Value]:
    try:
        spelled = canonical_bytes(value)
    except TypeError:
        # An integer of a stranger's manifest may be longer than JSON of ours spells.
        spelled = repr(value).encode()
    return key, _Value(kind, spelled, show_value(value))
