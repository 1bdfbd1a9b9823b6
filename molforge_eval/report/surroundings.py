"""What a run was made of and on: model, machine, laboratory, and how it was evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from molforge_eval.records.evaluation import EvaluationPart, EvaluationPlan
from molforge_eval.records.manifest import RunManifest
from molforge_eval.report.numerals import decimal, percent, scientific, size, whole
from molforge_eval.report.quoting import quote
from molforge_eval.report.section_evidence import Surrounding, SurroundingGroup

LONGEST_VALUE = 160
MOST_TASKS = 6
_NONE = "none"
Fact = tuple[str, str | None]


def list_surroundings(manifest: RunManifest | None, plan: EvaluationPlan | None) -> tuple[Surrounding, ...]:
    """List what is recorded; what is not has the value `None`."""
    facts: list[tuple[SurroundingGroup, Fact]] = []
    if manifest is not None:
        facts += [("model", fact) for fact in _model(manifest)]
        facts += [("machine", fact) for fact in _machine(manifest)]
        facts += [("laboratory", fact) for fact in _laboratory(manifest)]
    if plan is not None:
        facts += [("evaluation", fact) for fact in _evaluation(plan)]
    return tuple(
        Surrounding(group=group, key=key, value=None if value is None else quote(value, LONGEST_VALUE))
        for group, (key, value) in facts
    )


def _model(manifest: RunManifest) -> Iterator[Fact]:
    setting = manifest.configuration
    yield "base_model", setting.base_model
    yield "base_model_sha256", manifest.base_model_sha256
    for key, adapter in (("input_adapter", manifest.input_adapter), ("output_adapter", manifest.output_adapter)):
        yield key, _NONE if adapter is None else adapter.path
        yield f"{key}_sha256", None if adapter is None else adapter.sha256
        yield f"{key}_parameters", None if adapter is None else whole(adapter.parameters)


def _machine(manifest: RunManifest) -> Iterator[Fact]:
    hardware = manifest.hardware
    yield "platform", f"{hardware.platform}, {hardware.machine}"
    yield "processors", whole(hardware.cpu_count)
    yield "memory", None if hardware.memory_bytes is None else size(hardware.memory_bytes)
    yield "accelerator", hardware.accelerator or _NONE
    yield "python", manifest.backend.python_version
    yield "git_commit", manifest.git_commit or manifest.git_commit_reason
    yield "script", manifest.script
    yield "started", f"{manifest.started_at:%Y-%m-%d %H:%M} UTC"
    yield "ended", None if manifest.ended_at is None else f"{manifest.ended_at:%Y-%m-%d %H:%M} UTC"
    yield "training_seed", ", ".join(f"{name} {seed}" for name, seed in sorted(manifest.seeds.items())) or None


def _laboratory(manifest: RunManifest) -> Iterator[Fact]:
    setting = manifest.configuration
    yield "rules", manifest.rules_version
    yield "property_table", manifest.backend.property_table_sha256
    yield "rdkit", manifest.backend.rdkit_version
    yield "reward_mode", setting.reward_mode
    yield "canonical_share", percent(setting.canonical_share)
    yield "observation_length", setting.observation_length
    yield "turn_limit", whole(setting.turn_limit)


def _evaluation(plan: EvaluationPlan) -> Iterator[Fact]:
    for part in plan.parts:
        yield f"part_{part.name}", _part(part)
    yield "evaluation_mode", f"{plan.reward_mode}, interface {plan.interface}, turn limit {whole(plan.turn_limit)}"
    rule = plan.decision
    yield "decided_by", f"{rule.primary_metric} of the {rule.part} part; unit: {rule.unit}"
    yield "test", f"{rule.test}, level {scientific(rule.alpha)}, margin {scientific(rule.margin)}"
    yield "intervals", f"{percent(rule.confidence)}, {whole(rule.bootstrap_resamples)} resamples"


def _part(part: EvaluationPart) -> str:
    named = part.tasks[:MOST_TASKS]
    tasks = ", ".join(named) + ("" if len(named) == len(part.tasks) else f" and {len(part.tasks) - len(named)} more")
    decoding = part.decoding
    drawn: str = decoding.method
    if decoding.method == "sampled":
        drawn += f" at temperature {decimal(decoding.temperature)}, top-p {decimal(decoding.top_p)}"
    seeds = "1 seed" if len(part.seeds) == 1 else f"{whole(len(part.seeds))} seeds"
    return f"suite {part.suite}: {tasks}; {seeds} each, {drawn}"
