"""What `molforge-eval run` shows and writes: the bar, the summary, the file."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from molforge_env.errors import UsageError
from molforge_eval.canonical import file_bytes, plain
from molforge_eval.ladder import Ladder, ladder_of
from molforge_eval.play import run_evaluation
from molforge_eval.played import Player
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan, PartSummary


def read_clock() -> datetime:
    """Read the time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - an evaluation says when it was made


def play_with_bar(plan: EvaluationPlan, player: Player, label: str, *, is_quiet: bool) -> Evaluation:
    """Play a plan with a bar on standard error, which is off when that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    total = 0
    for part in plan.parts:
        total += len(part.tasks) * len(part.seeds)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=is_quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("episodes", total=total)
        return run_evaluation(plan, player, label, clock=read_clock, on_episode=lambda _record: bar.advance(task))


def check_target(out: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before anything is loaded.

    Raises:
        UsageError: The folder is absent, or the file exists and may not be replaced.
    """
    if not out.parent.is_dir():
        raise UsageError("the folder of --out does not exist", where=str(out.parent), mend=f"mkdir -p {out.parent}")
    if out.exists() and not force:
        raise UsageError("the file of --out exists", where=str(out), mend="Give another name, or --force.")


def write_evaluation(evaluation: Evaluation, out: Path) -> None:
    """Write an evaluation whole or not at all."""
    part = out.with_name(f".{out.name}.part")
    try:
        part.write_bytes(file_bytes(evaluation))
        os.replace(part, out)  # noqa: PTH105 - atomic on one file system, and says so
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(
            f"the evaluation cannot be written: {error.strerror}",
            where=str(out),
            mend="Give a file that can be written.",
        ) from error


def summary_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return what a program may want to read: everything but the episodes and the plan."""
    whole: dict[str, Any] = plain(evaluation)
    summary = {key: value for key, value in whole.items() if key not in ("episodes", "plan")}
    summary["endings"] = _endings(evaluation)
    return summary


def summary_text(evaluation: Evaluation) -> str:
    """Write the summary for a person."""
    rungs = ladder_of(evaluation.plan)
    lines = [f"{evaluation.label}: {evaluation.policy.name}"]
    for summary in evaluation.summaries:
        lines += _part_lines(summary, evaluation)
    lines.append(
        f"ladder{_of_suite(rungs)}: do nothing {rungs.mean('do_nothing'):.4f}, "
        f"random {rungs.mean('random_valid'):.4f}, heuristic {rungs.mean('heuristic'):.4f}, "
        f"ceiling {rungs.mean('ceiling'):.4f}"
    )
    return "\n".join(lines)


def _of_suite(rungs: Ladder) -> str:
    return "" if rungs.suite == "official" else f" of {rungs.suite} variants"


def _part_lines(summary: PartSummary, evaluation: Evaluation) -> list[str]:
    mean = "unknown" if summary.mean_final_score is None else f"{summary.mean_final_score:.4f}"
    counts = f"{summary.completed} of {summary.planned} episodes, {summary.distinct_scores} distinct scores"
    lines = [f"{summary.part}: final_score {mean} ({counts})"]
    for task in summary.tasks:
        own = "unknown" if task.mean_final_score is None else f"{task.mean_final_score:.4f}"
        lines.append(f"  {task.scenario_id}: {own} ({task.counted} of {task.planned})")
    lines.append("  ended by: " + ", ".join(f"{name} {n}" for name, n in _endings(evaluation)[summary.part].items()))
    if summary.errored:
        lines.append(f"  {summary.errored} broke in the environment and are averaged nowhere")
    if summary.reason is not None:
        lines.append(f"  no mean: {summary.reason}")
    return lines


def _endings(evaluation: Evaluation) -> dict[str, dict[str, int]]:
    return {
        summary.part: dict(
            sorted(Counter(episode.ended_by for episode in evaluation.episodes if episode.part == summary.part).items())
        )
        for summary in evaluation.summaries
    }
