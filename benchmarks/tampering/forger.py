"""A careful forger: after a lie everything that can be computed again is computed again, from the lie on.

What the operator names as kept is the lie itself and stays. The forger has the source of the validator, and uses it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from evidence_builder import edit_json, read_json, read_lines, tensors_of, with_text, write, write_lines
from evidence_cases.forgeries import plan_everywhere

from benchmarks.tampering.operator import Line, Part, episodes_of, rename_policy
from molforge_eval import layout
from molforge_eval.canonical import chain_of, chain_start, file_bytes, seal_of, sha256_hex
from molforge_eval.metrics_table import COLUMNS, row_of
from molforge_eval.plan import plan_digest
from molforge_eval.played import total_reward
from molforge_eval.records import Evaluation, StepRecord
from molforge_eval.records.fields import COMPLETED_ENDINGS
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.plots import plots_of
from molforge_eval.run_directory import load
from molforge_eval.run_summary import compute_summary
from molforge_eval.sealing import seal_run
from molforge_eval.summaries import average_final_score, summarise
from molforge_eval.training_reward import GRADERS, conduct_of


def forge(root: Path, kept: Collection[Part] = ()) -> None:
    """Compute again what follows from the records of a run, in the order in which it follows."""
    if "adapter" not in kept:
        _name_adapter(root)
    if "plan" not in kept:
        plan_everywhere(root)
    _chain(root, kept)
    for path in layout.EVALUATIONS:
        if (root / path).exists():
            _seal_evaluation(root, path, kept)
    if "summary" not in kept:
        write(root, layout.SUMMARY, file_bytes(compute_summary(load(root))))
    if "pictures" not in kept and (root / layout.PLOT_DATA).exists():
        _sign_pictures(root)
    if "seal" in kept:
        return
    checksums = seal_run(root)
    if (root / layout.EVIDENCE).exists():
        if "packet" in kept:
            edit_json(root, layout.EVIDENCE, lambda value: value["identity"].update(root_sha256=checksums.root_sha256))
        else:
            build_packet(root, options=PacketOptions(html=False, pdf=False, replay=False, pack=False))


def _name_adapter(root: Path) -> None:
    """Let manifest and after evaluation name the weights that lie in the run."""
    weights = root / layout.ADAPTER_WEIGHTS
    if not weights.exists():
        return
    own = sha256_hex(weights.read_bytes())
    manifest = read_json(root, layout.MANIFEST)
    if manifest["output_adapter"] is None or manifest["output_adapter"]["sha256"] == own:
        return
    manifest["output_adapter"].update(sha256=own, tensors_sha256=tensors_of(root))
    write(root, layout.MANIFEST, file_bytes(manifest))
    if (root / layout.AFTER).exists():
        evaluation = read_json(root, layout.AFTER)
        evaluation["policy"]["adapter_sha256"] = own
        rename_policy(evaluation)
        write(root, layout.AFTER, file_bytes(evaluation))


def _chain(root: Path, kept: Collection[Part]) -> None:
    if not (root / layout.ROLLOUTS).exists():
        return
    lines = read_lines(root)
    last: dict[str, str] = {}
    for line in lines:
        previous = last.get(line["episode_id"]) or chain_start(line["run_id"], line["episode_id"])
        line["chain"] = last[line["episode_id"]] = chain_of(previous, line)
    write_lines(root, lines)
    if "table" not in kept:
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(row_of(line) for line in lines)
        write(root, layout.METRICS_TABLE, written.getvalue().encode())
    if "means" not in kept:
        _average(root, lines)


def _average(root: Path, lines: Sequence[Line]) -> None:
    """Write the means of the trainer log that the episodes of each row give."""
    weights = read_json(root, layout.MANIFEST)["configuration"]["reward_weights"]
    batches: dict[int, list[list[Line]]] = {}
    for episode in episodes_of(lines).values():
        batches.setdefault(episode[0]["trainer_step"], []).append(episode)
    rows = read_lines(root, layout.TRAINER_LOG)
    before = 0
    for row in rows:
        if row["type"] != "train":
            continue
        own = [batches[step] for step in range(before, row["step"]) if step in batches]
        before = row["step"]
        if own:
            told = [_means_of(batch, weights) for batch in own]
            _write_means(row, {key: _mean([batch[key] for batch in told]) for key in told[0]})
    write_lines(root, rows, layout.TRAINER_LOG)


def _write_means(row: Line, means: Mapping[str, float | None]) -> None:
    for key, value in means.items():
        if key in row:
            row[key] = None if value is None else float(np.float32(value))
    parts = [f"reward_part/{part}" for part in GRADERS if part != "final_score"]
    if all(part in row and row[part] is not None for part in parts) and row.get("reward") is not None:
        # Nobody can hold these three to anything but their sum.
        others = math.fsum(row[key] for key in row if key.startswith("reward_part/") and key != parts[-1])
        row[parts[-1]] = row["reward"] - others


def _means_of(batch: Sequence[Sequence[Line]], weights: Mapping[str, float]) -> dict[str, float | None]:
    ends = [episode[-1] for episode in batch]
    paid = [line["training_reward"] for line in ends if line["training_reward"] is not None]
    counted = [episode for episode in batch if episode[-1]["episode_score"] is not None]
    over = [episode[-1]["ended_by"] in COMPLETED_ENDINGS for episode in counted]
    groups: dict[tuple[str, int], list[float]] = {}
    for line in ends:
        if line["training_reward"] is not None:
            groups.setdefault((line["scenario_id"], line["seed"]), []).append(line["training_reward"])
    spread = float(np.std(paid, ddof=1)) if len(paid) > 1 else None
    conducts = [
        conduct_of(((row["status"], row["error_code"], row["governance_status"]) for row in episode), done=done)
        for episode, done in zip(counted, over, strict=True)
    ]
    penalties = {
        "invalid_call": [conduct.invalid_calls for conduct in conducts],
        "vetoed_call": [conduct.vetoed_calls for conduct in conducts],
        "after_end_call": [conduct.after_end_calls for conduct in conducts],
        "unfinished": [not done for done in over],
    }
    scores = [episode[-1]["episode_score"] for episode in counted]
    return {
        "reward": _mean(paid),
        "reward_std": spread,
        "rewards/episode_reward/mean": _mean(paid),
        "rewards/episode_reward/std": spread,
        "frac_reward_zero_std": _mean([float(min(pay) == max(pay)) for pay in groups.values()]),
        "strict_score": _mean(scores),
        "submit_rate": _mean([episode[-1]["ended_by"] == "submit" for episode in counted]),
        "unfinished_rate": _mean([not done for done in over]),
        "tools/call_frequency": _mean([sum(line["tool"] is not None for line in episode) for episode in batch]),
        "reward_part/final_score": _mean(
            [score * done * weights.get("final_score", 0.0) for score, done in zip(scores, over, strict=True)]
        ),
        **{
            f"reward_part/{part}": _mean([-weights.get(part, 0.0) * count for count in counts])
            for part, counts in penalties.items()
        },
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _seal_evaluation(root: Path, path: str, kept: Collection[Part]) -> None:
    value: dict[str, Any] = read_json(root, path)
    for episode in value["episodes"]:
        if "totals" not in kept:
            steps = tuple(StepRecord.model_validate(step) for step in episode["steps"])
            episode["total_reward"] = None if episode["ended_by"] == "env_error" else total_reward(steps)
            episode["completion_tokens"] = sum(turn["completion_tokens"] for turn in episode["turns"])
            for key in ("final_score", "submission_score", "progress_score"):
                if episode["scores"] is not None:
                    episode[key] = episode["scores"][key]
        episode["seal"] = seal_of(episode)
    evaluation = Evaluation.model_validate(value)
    changes: dict[str, Any] = {}
    if "plan" not in kept:
        changes["plan_sha256"] = plan_digest(evaluation.plan)
    if "summaries" not in kept:
        summaries = summarise(evaluation.plan, evaluation.episodes)
        changes |= {"summaries": summaries, "average_final_score": average_final_score(summaries)}
    write(root, path, file_bytes(evaluation.model_copy(update=changes)))


def _sign_pictures(root: Path) -> None:
    """Write points, words and digest of every picture anew, and put the digest under the old pixels."""
    table = read_json(root, layout.PLOT_DATA)
    records = {plot.record.path: plot.record for plot in plots_of(load(root))}
    table["plots"] = [
        records[entry["path"]].model_dump(mode="json") for entry in table["plots"] if entry["path"] in records
    ]
    for path in sorted(path.relative_to(root).as_posix() for path in (root / "plots").glob("*.png")):
        if path not in records:
            (root / path).unlink()
            continue
        picture = (root / path).read_bytes()
        write(root, path, with_text(picture, "molforge:data_sha256", records[path].data_sha256))
    write(root, layout.PLOT_DATA, file_bytes(table))
