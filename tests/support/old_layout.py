"""Runs in the layout of the public training script (format version 0), made of sound runs of this version.

What was played stays what was played: only the public fields are kept, spelled as the script spells them.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from evidence_builder import read_json, read_lines, write

from molforge_eval import layout

LINE_KEYS = (
    "timestamp", "scenario_id", "difficulty", "step_index", "action_type", "acting_role", "slot", "fragment",
    "tool_name", "reward", "transition_reward", "done", "governance_status", "final_score", "submission_score",
    "progress_score", "summary",
)  # fmt: skip
TABLE_KEYS = tuple(key for key in LINE_KEYS if key != "acting_role")
SCORES = ("final_score", "submission_score", "progress_score")
_HEAD = ("format_version", "run_id", "type", "step", "time", "elapsed_seconds", "non_finite")
_TEXT_CHUNKS = (b"tEXt", b"iTXt", b"zTXt")


def make_bare_old_run(source: Path, root: Path) -> Path:
    """Do what `make_old_run` does, without the folder of the host trainer, which is warned of."""
    make_old_run(source, root)
    shutil.rmtree(root / layout.TRAINER_FOLDER)
    return root


def make_old_run(source: Path, root: Path) -> Path:
    """Write a run of format version 0 from a sound run of this version."""
    manifest = read_json(source, layout.MANIFEST)
    settings = manifest["configuration"]
    put_json(
        root,
        layout.MANIFEST,
        {
            "run_name": settings["run_name"],
            "script": "train_openenv_tools.py",
            "root": "/content/molforge",
            "output_dir": f"/content/molforge_rl_runs/{settings['run_name']}",
            "base_model": settings["base_model"],
            "sft_adapter_path": settings["sft_adapter_path"],
            "rl_max_steps": settings["max_steps"],
            "dataset_size": settings["dataset_size"],
            "num_generations": settings["num_generations"],
            "batch_size": settings["batch_size"],
            "gradient_accumulation": settings["gradient_accumulation"],
            "learning_rate": settings["learning_rate"],
            "max_completion_length": settings["max_completion_length"],
            "run_before_eval": True,
            "run_after_eval": True,
            "drive_output_dir": "",
        },
    )
    for path, label in ((layout.BEFORE, "before_rl"), (layout.AFTER, "after_rl")):
        put_json(root, path, old_evaluation(read_json(source, path), label))
    put_lines(root, layout.ROLLOUTS, [old_line(line) for line in read_lines(source) if line["tool"] is not None])
    put_lines(root, layout.TRAINER_LOG, [old_row(row) for row in read_lines(source, layout.TRAINER_LOG)])
    summarise_old(root)
    for path in layout.PLOTS:
        write(root, path, without_text((source / path).read_bytes()))
    for path in (layout.ADAPTER_CONFIG, layout.ADAPTER_WEIGHTS):
        write(root, path, (source / path).read_bytes())
    _write_checkpoint(root, settings["max_steps"])
    return root


def old_evaluation(evaluation: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Keep of an evaluation the greedy episodes, with the public fields."""
    episodes = [old_episode(entry) for entry in evaluation["episodes"] if entry["part"] == "greedy"]
    mean = sum(entry["final_score"] for entry in episodes) / max(len(episodes), 1)
    return {"label": label, "episodes": episodes, "average_final_score": mean}


def old_episode(episode: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the public fields of an episode; one that the laboratory did not end has scores of 0.0."""
    trace: list[dict[str, Any]] = [
        {"step": step["step"], "action_type": step["action_type"], "reward": step["reward"]}
        for step in episode["steps"]
    ]
    if episode["scores"] is None:
        trace.append({"step": trace[-1]["step"] if trace else 0, "error": "parse_failed"})
    scores = {key: episode["scores"][key] if episode["scores"] else 0.0 for key in SCORES}
    return {"scenario_id": episode["scenario_id"], "difficulty": episode["difficulty"], **scores, "trace": trace}


def old_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the public fields of a rollout line."""
    scores = {key: line[key] or 0.0 for key in SCORES}
    return {key: line[key] for key in LINE_KEYS} | {"timestamp": _seconds(line["timestamp"]), **scores}


def old_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Spell a trainer row as the host logs it."""
    own = {key: value for key, value in row.items() if key not in _HEAD}
    return {"step": row["step"], "time": _seconds(row["time"]), **own}


def summarise_old(root: Path) -> None:
    """Write summary and table from what stands on disk, as the script does at the end of a run."""
    lines = read_lines(root)
    rows = [json.loads(line) for line in (root / layout.TRAINER_LOG).read_text().splitlines()]
    rewards = [line["reward"] for line in lines]
    manifest = read_json(root, layout.MANIFEST)
    means = {
        name: json.loads((root / path).read_text()).get("average_final_score") if (root / path).exists() else None
        for name, path in (("eval_before", layout.BEFORE), ("eval_after", layout.AFTER))
    }
    put_json(
        root,
        layout.SUMMARY,
        {
            "run_name": manifest["run_name"],
            "base_model": manifest["base_model"],
            "sft_adapter_path": manifest["sft_adapter_path"],
            "num_tool_calls": len(lines),
            "mean_tool_reward": sum(rewards) / max(len(rewards), 1),
            "max_tool_reward": max(rewards, default=0.0),
            "action_counts": dict(Counter(line["action_type"] for line in lines)),
            "latest_trainer_log": rows[-1] if rows else {},
            **{name: {"average_final_score": mean} for name, mean in means.items()},
        },
    )
    written = io.StringIO(newline="")
    table = csv.DictWriter(written, fieldnames=TABLE_KEYS, extrasaction="ignore")
    table.writeheader()
    table.writerows(lines)
    write(root, layout.METRICS_TABLE, written.getvalue().encode())


def reseal_old(root: Path) -> None:
    """Compute again whatever a careful forger of an old run can: means, summary, table."""
    for path in layout.EVALUATIONS:
        if (root / path).exists():
            change_json(root, path, _average)
    summarise_old(root)


def _average(value: dict[str, Any]) -> None:
    scores = [entry["final_score"] for entry in value.get("episodes") or []]
    if scores:
        value["average_final_score"] = sum(scores) / len(scores)


def put_json(root: Path, path: str, value: Any) -> None:
    """Write a JSON file as Python's own writer does, NaN included."""
    write(root, path, json.dumps(value, indent=2).encode())


def put_lines(root: Path, path: str, lines: list[dict[str, Any]]) -> None:
    """Write a log as the script does."""
    write(root, path, "".join(json.dumps(line) + "\n" for line in lines).encode())


def change_json(root: Path, path: str, change: Callable[[Any], Any]) -> None:
    """Change the value of a JSON file in place."""
    value = json.loads((root / path).read_text())
    change(value)
    put_json(root, path, value)


def change_lines(root: Path, path: str, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Change the lines of a log in place."""
    lines = [json.loads(line) for line in (root / path).read_text().splitlines()]
    change(lines)
    put_lines(root, path, lines)


def without_text(picture: bytes) -> bytes:
    """Take the text chunks out of a PNG."""
    kept, place = [picture[:8]], 8
    while place < len(picture):
        end = place + 12 + int.from_bytes(picture[place : place + 4], "big")
        if picture[place + 4 : place + 8] not in _TEXT_CHUNKS:
            kept.append(picture[place:end])
        place = end
    return b"".join(kept)


def _write_checkpoint(root: Path, steps: int) -> None:
    rows = [{"epoch": 0.5, **{key: row[key] for key in row if key != "time"}} for row in _trainer_rows(root)[:steps]]
    folder = f"{layout.TRAINER_FOLDER}/checkpoint-{steps}"
    put_json(root, f"{folder}/{layout.TRAINER_STATE}", {"global_step": steps, "max_steps": steps, "log_history": rows})
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        write(root, f"{folder}/{name}", b"\x80\x02never opened")


def _trainer_rows(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / layout.TRAINER_LOG).read_text().splitlines()]


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() + 0.25
