"""`python -m molforge_train.demo`: the whole way with the built-in model, from training to a packet that a judge reads.

The same commands that a user types, one after another. What the model learned decides nothing here: a step that breaks
does.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import click

from molforge_env.command_line import run_to_code
from molforge_eval import layout
from molforge_eval.records.evaluation import EvaluationPlan
from molforge_eval.records.fields import utc_text
from molforge_train.recording import read_clock

ROOT = Path("runs")
PROGRAMS = {
    "molforge-train": "molforge_train.cli",
    "molforge-eval": "molforge_eval.cli.evaluate",
    "molforge-report": "molforge_eval.cli.report",
}


def steps_of(name: str, root: Path, flags: list[str]) -> list[list[str]]:
    """List the commands of the demo.

    Args:
        name: Name of the run.
        root: Folder of the run directory.
        flags: Further flags for the training run.
    """
    folder = str(root / name)
    train = ["molforge-train", "grpo", "--preset", "tiny-cpu", "--run-name", name, "--output-root", str(root), *flags]
    return [
        train,
        ["molforge-eval", "validate", folder],
        ["molforge-eval", "verify", folder, "--regenerate"],
        ["molforge-report", "build", folder, "--regenerate"],
    ]


def run_demo(root: Path, flags: list[str]) -> int:
    """Run every step and print what came out.

    Returns:
        0, or the exit code of the first step that broke.
    """
    name = f"demo-{utc_text(read_clock()).translate(str.maketrans('', '', '-:'))}"
    began = time.perf_counter()
    for words in steps_of(name, root, flags):
        click.echo(f"\n$ {' '.join(words)}")
        started = time.perf_counter()
        code = run_to_code(import_module(PROGRAMS[words[0]]).cli, words[1:])
        click.echo(f"  exit code {code} after {time.perf_counter() - started:.0f} s")
        if code:
            return code
    click.echo(f"\n{results_text(root / name)}\n  {time.perf_counter() - began:.0f} s in all")
    return 0


def results_text(folder: Path) -> str:
    """Say what the run showed and where its files stand."""
    from molforge_eval.run_directory import load
    from molforge_eval.verdict import decide

    run = load(folder)
    plan = run.plan or EvaluationPlan.model_validate_json((folder / layout.PLAN).read_bytes())
    verdict = decide(run.before, run.after, plan)
    sampled, greedy = verdict.sampled, verdict.greedy
    interval = sampled.interval
    spread = "no interval" if interval is None else f"95 % interval {interval.low:+.3f} to {interval.high:+.3f}"
    seconds = None if run.manifest is None else run.manifest.training_seconds
    means = f"{_spelled(sampled.before_mean)} -> {_spelled(sampled.after_mean)}"
    rows = [
        f"verdict: {verdict.outcome}",
        f"  sampled final_score  {means}  ({sampled.seeds_paired} seeds x {greedy.tasks} tasks, {spread})",
        f"  greedy final_score   {_spelled(greedy.before_mean)} -> {_spelled(greedy.after_mean)}  (one episode a task)",
        f"  training took {seconds or 0:.0f} s",
        f"  run directory  {folder}",
        f"  archive        {folder.with_name(folder.name + '.zip')}",
        f"  packet         {folder / layout.PACKET_HTML}",
        f"                 {folder / layout.PACKET_PDF}",
    ]
    return "\n".join(rows)


def _spelled(score: float | None) -> str:
    return "unknown" if score is None else f"{score:.3f}"


if __name__ == "__main__":
    sys.exit(run_demo(ROOT, sys.argv[1:]))
