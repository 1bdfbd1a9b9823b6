"""Tampering with the manifest, the summary and the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence_builder import edit_json, read_json, write

from benchmarks.tampering.operator import Operator, UnfitRunError, put, record_edit
from molforge_eval import layout

_TABLE = ("table",)
_SUMMARY = ("summary",)


def _manifest(name: str, gain: str, *keys: str, value: Any) -> Operator:
    return Operator(f"manifest: {name}", gain, record_edit(put(*keys, value=value), layout.MANIFEST))


def _setting(key: str, gain: str, value: Any) -> Operator:
    return _manifest(key, gain, "configuration", key, value=value)


def _scaled(key: str, gain: str, factor: float) -> Operator:
    def change(manifest: Any) -> None:
        manifest["configuration"][key] = type(manifest["configuration"][key])(manifest["configuration"][key] * factor)

    return Operator(f"manifest: {key}", gain, record_edit(change, layout.MANIFEST))


def _reweigh(manifest: Any) -> None:
    manifest["configuration"]["reward_weights"]["final_score"] = 0.5


def _keep_adapter(manifest: Any) -> None:
    manifest["input_adapter"]["sha256"] = manifest["output_adapter"]["sha256"]


def _keep_tensors(manifest: Any) -> None:
    """Say that the adapter that came out is the one that went in, saved again in other bytes."""
    manifest["input_adapter"]["tensors_sha256"] = manifest["output_adapter"]["tensors_sha256"]


def _read_otherwise(manifest: Any) -> None:
    settings = manifest["configuration"]
    settings["observation_length"] = "compact" if settings["observation_length"] == "full" else "full"


def _ask_for_more(manifest: Any) -> None:
    if manifest["status"] != "complete":
        # A run that was cut short says so of any number of steps.
        raise UnfitRunError
    manifest["configuration"]["max_steps"] = 4_000


def _finish(root: Path) -> None:
    """Say that an interrupted run is complete."""
    manifest = read_json(root, layout.MANIFEST)
    if manifest["status"] != "interrupted":
        raise UnfitRunError
    edit_json(root, layout.MANIFEST, lambda value: value.update(status="complete", status_reason=None))


def _summary(key: str, change: Callable[[Any], Any]) -> Operator:
    def edit(summary: Any) -> None:
        summary[key] = change(summary[key])

    return Operator(f"summary: {key}", "the summary looks better", record_edit(edit, layout.SUMMARY), _SUMMARY)


def _count_more(counts: dict[str, int]) -> dict[str, int]:
    return {key: count + 5 for key, count in counts.items()}


def _table(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Operator:
    def edit(root: Path) -> None:
        rows = (root / layout.METRICS_TABLE).read_bytes().splitlines(keepends=True)
        write(root, layout.METRICS_TABLE, b"".join(change(rows)))

    return Operator(f"table: {name}", "the spreadsheet looks better", edit, _TABLE)


def _edit_cell(rows: list[bytes]) -> list[bytes]:
    place = next((number for number, row in enumerate(rows) if b",defer," in row), None)
    if place is None:
        raise UnfitRunError
    return [*rows[:place], rows[place].replace(b",defer,", b",submit,", 1), *rows[place + 1 :]]


def _raise_cell(rows: list[bytes]) -> list[bytes]:
    cells = rows[2].split(b",")
    place = next(number for number, cell in enumerate(cells) if b"." in cell)
    return [*rows[:2], b",".join([*cells[:place], b"9.9", *cells[place + 1 :]]), *rows[3:]]


OPERATORS: tuple[Operator, ...] = (
    Operator("manifest: max_steps", "more training is claimed", record_edit(_ask_for_more, layout.MANIFEST)),
    _manifest("steps_completed", "more training is claimed", "steps_completed", value=4_000),
    _setting("num_generations", "larger groups are claimed", 2),
    _scaled("batch_size", "larger batches are claimed", 2),
    _setting("gradient_accumulation", "larger batches are claimed", 4),
    _scaled("num_iterations", "more use of each episode is claimed", 3),
    _scaled("learning_rate", "another recipe is claimed", 0.1),
    _setting("lr_scheduler", "another recipe is claimed", "linear"),
    _manifest("lr_scheduler of no host", "another recipe", "configuration", "lr_scheduler", value="hard_edges"),
    _setting("beta", "no anchor was needed, it is claimed", 0.0),
    _setting("reward_mode", "a stricter pay is claimed", "dense"),
    Operator("manifest: reward_weights", "a stricter pay is claimed", record_edit(_reweigh, layout.MANIFEST)),
    _setting("seed", "another training seed is claimed", 77),
    _setting("canonical_share", "the tasks seem unseen", 0.0),
    _scaled("dataset_size", "more data are claimed", 3),
    _setting("logging_steps", "rows seem complete", 5),
    _setting("eval_seeds", "more seeds are claimed", 64),
    _setting("turn_limit", "a stricter limit is claimed", 3),
    _setting("max_new_tokens", "a stricter limit is claimed", 9),
    _setting("max_completion_length", "a stricter limit is claimed", 99),
    _setting("temperature", "another sampling is claimed", 0.2),
    _setting("top_p", "another sampling is claimed", 0.5),
    Operator("manifest: observation_length", "other texts are claimed", record_edit(_read_otherwise, layout.MANIFEST)),
    _setting("run_after_eval", "the evaluation seems independent", value=False),
    _setting("base_model", "a larger model is claimed", "vast-70b"),
    _setting("sft_adapter_path", "no warm start is claimed", None),
    _setting("run_name", "another run", "another"),
    _setting("device", "another machine is claimed", "cuda"),
    _manifest("base_model_sha256", "a larger model is claimed", "base_model_sha256", value="1" * 64),
    _manifest("rules_version", "other rules", "rules_version", value="molforge-rules/0"),
    _manifest("backend", "another laboratory", "backend", "property_table_sha256", value="1" * 64),
    _manifest("version of the chemistry", "another laboratory", "backend", "rdkit_version", value="1999.01.1"),
    Operator(
        "manifest: plan_sha256",
        "another plan",
        record_edit(put("plan_sha256", value="1" * 64), layout.MANIFEST),
        ("plan",),
    ),
    Operator(
        "manifest: output adapter",
        "another adapter",
        record_edit(put("output_adapter", "sha256", value="1" * 64), layout.MANIFEST),
        ("adapter",),
    ),
    _manifest("no output adapter", "nothing to check", "output_adapter", value=None),
    Operator(
        "manifest: tensors of the output adapter",
        "another adapter",
        record_edit(put("output_adapter", "tensors_sha256", value="1" * 64), layout.MANIFEST),
        ("adapter",),
    ),
    Operator("manifest: input adapter", "nothing was learned", record_edit(_keep_adapter, layout.MANIFEST)),
    Operator(
        "manifest: tensors of the input adapter", "nothing was learned", record_edit(_keep_tensors, layout.MANIFEST)
    ),
    _manifest("trainable_parameters", "a smaller change is claimed", "trainable_parameters", value=7),
    _manifest("total_parameters", "a larger model is claimed", "total_parameters", value=7),
    _manifest("non_finite_steps", "faults are claimed or hidden", "non_finite_steps", value=3),
    _manifest("started_at", "a shorter run", "started_at", value="2027-01-01T00:00:00Z"),
    _manifest("ended_at", "a shorter run", "ended_at", value="2020-01-01T00:00:00Z"),
    _manifest("no end", "a run in progress", "ended_at", value=None),
    _manifest("training_seconds", "a longer training is claimed", "training_seconds", value=9.0e8),
    _manifest("run_id", "another run", "run_id", value="run-ffffffffffff"),
    _manifest("status", "a fault is claimed or hidden", "status", value="running"),
    Operator("manifest: interrupted run called complete", "a broken run seems whole", _finish),
    _summary("num_episodes", lambda value: value + 100),
    _summary("num_tool_calls", lambda value: value + 100),
    _summary("mean_tool_reward", lambda value: value + 1.0),
    _summary("max_tool_reward", lambda value: value + 1.0),
    _summary("action_counts", _count_more),
    _summary("ended_by_counts", _count_more),
    _summary("veto_count", lambda value: value + 1),
    _summary("invalid_count", lambda value: value + 1),
    _summary("env_error_count", lambda value: value + 1),
    _summary("mean_episode_score", lambda value: min(1.0, value + 0.3)),
    _summary("latest_trainer_log", lambda value: {**value, "reward": 2.09}),
    _summary("eval_before", lambda value: {**value, "average_final_score": 0.01}),
    _summary("eval_after", lambda value: {**value, "average_final_score": 0.99}),
    Operator(
        "summary: sampled headline",
        "the difference grows",
        record_edit(put("eval_before", "sampled_mean_final_score", value=0.012), layout.SUMMARY),
        _SUMMARY,
    ),
    _summary("base_model", lambda _: "vast-70b"),
    _summary("sft_adapter_path", lambda _: None),
    _summary("run_name", lambda _: "another"),
    _table("cell", _edit_cell),
    _table("reward", _raise_cell),
    _table("dropped row", lambda rows: [*rows[:8], *rows[9:]]),
    _table("repeated row", lambda rows: [*rows[:8], rows[3], *rows[8:]]),
    _table("reordered rows", lambda rows: [rows[0], *rows[2:9], rows[1], *rows[9:]]),
    _table("header", lambda rows: [rows[0].replace(b"final_score", b"final_scores", 1), *rows[1:]]),
)
