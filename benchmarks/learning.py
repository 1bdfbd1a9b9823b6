"""Whether training works: the shipped preset over seeds fixed beforehand, every one reported, on every suite.

`python -m benchmarks.learning --root FOLDER` trains seeds 1 to 5 and evaluates each before and after: official greedy
and sampled, randomized, holdout. A run or evaluation that stands in the folder is not made again, so a table that was
stopped goes on. `--seeds` names others; `--table` writes the table of what is there and plays nothing. The A/A row
plays the untrained adapter twice, with disjoint seeds: differences of its size are no learning.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from molforge_env.suites import SUITES, SuiteName
from molforge_eval import layout
from molforge_eval.canonical import file_bytes
from molforge_eval.comparison import Bounds
from molforge_eval.decision import interval_of
from molforge_eval.ladder import ladder
from molforge_eval.pairing import counted_scores, score_table
from molforge_eval.plan import Limits, plan_digest, standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.policies import Loading, PolicySpec, open_policy
from molforge_eval.records.evaluation import DecisionRule, Evaluation, EvaluationPlan
from molforge_eval.records.manifest import Configuration, RunManifest
from molforge_eval.sealing import write_whole
from molforge_eval.verdict import decide
from molforge_train.config import process_environment, resolve
from molforge_train.preflight import check, run_folder
from molforge_train.recording import read_clock
from molforge_train.training_run import resume, train

SEEDS = (1, 2, 3, 4, 5)
HEAD = (
    "seed",
    "training s",
    *(f"{name} {arm}" for name in ("greedy", "sampled", "randomized", "holdout") for arm in ("before", "after")),
    "sampled gain [95 %]",
    "holdout gain [95 %]",
    "gap closed",
    "verdict",
)


class Played(NamedTuple):
    """Before and after on one suite, as one row of the JSON file."""

    before: Evaluation
    after: Evaluation


def say(line: str) -> None:
    """Tell a person; standard output is the table's."""
    print(line, file=sys.stderr, flush=True)


def trained_run(preset: str, seed: int, root: Path) -> Path:
    """Train a seed, go on with it, or find it done."""
    flags = {"seed": str(seed), "output_root": str(root), "run_name": f"{preset}-seed-{seed}"}
    resolved = resolve(preset, flags, process_environment(), now=read_clock())
    folder = run_folder(resolved.configuration)
    if (folder / layout.MANIFEST).exists():
        manifest = manifest_of(folder)
        if manifest.status == "complete":
            return folder
        return resume(folder, quiet=False, say=say).folder
    check(resolved.configuration, {})
    return train(resolved, quiet=False, say=say).folder


def manifest_of(folder: Path) -> RunManifest:
    """Read what a run says of itself."""
    return RunManifest.model_validate_json((folder / layout.MANIFEST).read_bytes())


def plan_of(settings: Configuration, suite: SuiteName, *, seeds: range) -> EvaluationPlan:
    """Plan one suite with the limits of a run; the seeds follow each other from any first one."""
    plan = standard_plan(
        suite=suite,
        seeds=len(seeds),
        observation_length=settings.observation_length,
        limits=Limits(settings.max_new_tokens, settings.max_completion_length, settings.turn_limit),
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
    )
    parts = [part.model_copy(update={"seeds": tuple(seeds)}) if part.name == "sampled" else part for part in plan.parts]
    return plan.model_copy(update={"parts": tuple(parts)})


def evaluated(plan: EvaluationPlan, settings: Configuration, adapter: str, root: Path) -> Evaluation:
    """Play an adapter by a plan, or read the evaluation of equal weights and plan that stands in the folder."""
    spec = PolicySpec("hf", settings.base_model, adapter)
    weights = hashlib.sha256((Path(adapter) / "adapter_model.safetensors").read_bytes()).hexdigest()
    path = root / "evaluations" / f"{plan.parts[0].suite}-{weights[:12]}-{plan_digest(plan)[:12]}.json"
    if path.exists():
        return Evaluation.model_validate_json(path.read_bytes())
    say(f"evaluating {path.stem}")
    played = run_evaluation(plan, open_policy(spec, Loading(device=settings.device)), path.stem, clock=read_clock)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, file_bytes(played))
    return played


def row_of(played: Played) -> dict[str, Any]:
    """Compare two evaluations by the rule of their plan."""
    verdict = decide(played.before, played.after, played.before.plan)
    sampled, greedy = verdict.sampled, verdict.greedy
    return {
        "greedy_before": greedy.before_mean,
        "greedy_after": greedy.after_mean,
        "before": sampled.before_mean,
        "before_interval": _ends(sampled.before_interval),
        "after": sampled.after_mean,
        "after_interval": _ends(sampled.after_interval),
        "difference": sampled.difference,
        "interval": _ends(sampled.interval),
        "p_value": sampled.p_value,
        "gap_closed": verdict.scale.gap_closed,
        "verdict": verdict.outcome,
    }


def noise_of(first: Evaluation, second: Evaluation) -> dict[str, Any]:
    """Compare one policy with itself over disjoint seeds, the seeds laid side by side in their order."""
    tables = []
    for played in (first, second):
        cells = counted_scores(played, "sampled")
        tasks = tuple(dict.fromkeys(task for task, _ in cells))
        tables.append(score_table(cells, tasks, tuple(sorted({seed for _, seed in cells}))))
    differences = tables[1] - tables[0]
    found = interval_of(differences, DecisionRule(), "A/A")
    return {
        "before": float(np.mean(tables[0])),
        "after": float(np.mean(tables[1])),
        "difference": float(np.mean(differences)),
        "interval": None if found is None else [found.low, found.high],
    }


def _ends(bounds: Bounds | None) -> list[float] | None:
    return None if bounds is None else [bounds.low, bounds.high]


def seed_row(preset: str, seed: int, root: Path) -> dict[str, Any]:
    """Train one seed and compare it with the untrained adapter on every suite."""
    folder = trained_run(preset, seed, root)
    manifest = manifest_of(folder)
    settings = manifest.configuration
    row: dict[str, Any] = {"seed": seed, "training_seconds": manifest.training_seconds, "suites": {}}
    for suite in SUITES:
        plan = plan_of(settings, suite, seeds=range(settings.eval_seeds))
        before = evaluated(plan, settings, start_adapter(settings), root)
        after = evaluated(plan, settings, str(folder / layout.ADAPTER_FOLDER), root)
        row["suites"][suite] = row_of(Played(before, after))
    return row


def start_adapter(settings: Configuration) -> str:
    """Name the folder of the adapter that training began with."""
    from molforge_train.adapter_search import adapter_folder

    if settings.sft_adapter_path is None:
        raise SystemExit("the preset begins without an adapter: there is nothing to compare with")
    return str(adapter_folder(settings.sft_adapter_path))


def noise_row(preset: str, root: Path) -> dict[str, Any]:
    """Play the untrained adapter with the seeds of the table and with as many others."""
    settings = resolve(preset, {}, process_environment(), now=read_clock()).configuration
    count = settings.eval_seeds
    suites = {}
    for suite in SUITES:
        plans = [plan_of(settings, suite, seeds=range(first, first + count)) for first in (0, count)]
        suites[suite] = noise_of(*(evaluated(plan, settings, start_adapter(settings), root) for plan in plans))
    return {"seed": "A/A", "training_seconds": None, "suites": suites}


def summary_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say what the table shows over its seeds."""
    official = [row["suites"]["official"] for row in rows]
    holdout = [row["suites"]["holdout"] for row in rows]
    return {
        "seeds": [row["seed"] for row in rows],
        "improved": sum(row["verdict"] == "improved" for row in official),
        "sampled_after_mean": float(np.mean([row["after"] for row in official])),
        "sampled_after_least": min(row["after"] for row in official),
        "holdout_improved": sum(row["verdict"] == "improved" for row in holdout),
        "holdout_before_mean": float(np.mean([row["before"] for row in holdout])),
        "holdout_after_mean": float(np.mean([row["after"] for row in holdout])),
        "longest_training_seconds": max(row["training_seconds"] or 0.0 for row in rows),
        "ceilings": {suite: ladder(suite).mean("ceiling") for suite in SUITES},
    }


def table_text(rows: Sequence[dict[str, Any]]) -> str:
    """Write the table as Markdown, a row a seed."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for row in rows:
        official, randomized, holdout = (row["suites"][suite] for suite in SUITES)
        seconds = row["training_seconds"]
        cells = [
            str(row["seed"]),
            "" if seconds is None else f"{seconds:.0f}",
            *(spelled(official.get(f"greedy_{arm}")) for arm in ("before", "after")),
            *(with_ends(part, arm) for part in (official, randomized, holdout) for arm in ("before", "after")),
            with_ends(official, "difference", "interval"),
            with_ends(holdout, "difference", "interval"),
            "" if official.get("gap_closed") is None else f"{official['gap_closed']:.0%}",
            official.get("verdict", "no training"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_ends(row: dict[str, Any], name: str, ends: str | None = None) -> str:
    """Spell a score with its interval."""
    bounds = row.get(ends or f"{name}_interval")
    return spelled(row[name]) + ("" if bounds is None else f" [{bounds[0]:.2f}, {bounds[1]:.2f}]")


def spelled(value: float | None) -> str:
    """Spell a score with three decimals."""
    return "" if value is None else f"{value:.3f}"


def main() -> None:
    """Train every seed and write the table as each row is done."""
    parser = argparse.ArgumentParser(description="Train the shipped preset over several seeds.")
    parser.add_argument("--preset", default="tiny-cpu")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--root", type=Path, default=Path("runs/learning"), help="folder of runs and evaluations")
    parser.add_argument("--table", action="store_true", help="write the table of the rows that are there")
    given = parser.parse_args()
    given.root.mkdir(parents=True, exist_ok=True)
    kept = given.root / "learning.json"
    rows = json.loads(kept.read_text("utf-8"))["rows"] if given.table and kept.exists() else []
    if not given.table:
        rows = [noise_row(given.preset, given.root)]
        for seed in given.seeds:
            rows.append(seed_row(given.preset, seed, given.root))
            written = {"preset": given.preset, "rows": rows, "summary": summary_of(rows[1:])}
            kept.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
            (given.root / "learning.md").write_text(table_text(rows), "utf-8")
    print(table_text(rows), end="")
    if rows[1:]:
        print(json.dumps(summary_of(rows[1:]), indent=2))


if __name__ == "__main__":
    main()
