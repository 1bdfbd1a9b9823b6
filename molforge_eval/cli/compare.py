"""`molforge-report compare`: several runs on one page, and who can be told from whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from molforge_env.command_line import report_error
from molforge_env.errors import EXIT_SOUND
from molforge_eval.cli.browser import open_page
from molforge_eval.cli.paths import FolderName, line_of, text_of
from molforge_eval.cli.progress import show_progress
from molforge_eval.cli.titles import take_title

if TYPE_CHECKING:
    from molforge_eval.report.comparison_build import Comparison

_FIELDS = ("difference", "low", "high", "p", "holm", "seeds")


@click.command(short_help="Hold several runs against each other on one page.")
@click.argument("runs", type=click.Path(readable=False), metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--out",
    type=FolderName(),
    default=Path(),
    help="Folder to write to; the working directory when absent. Not one of the runs.",
)
@click.option("--html/--no-html", default=True, show_default=True, help="Write comparison.html.")
@click.option("--pdf/--no-pdf", default=True, show_default=True, help="Write comparison.pdf.")
@click.option("--title", help="Title of the page.")
@click.option(
    "--verify-level",
    type=click.Choice(["E2", "E3"]),
    default="E3",
    show_default=True,
    help="E3 plays every episode of every run again; E2 checks the files only.",
)
@click.option("--paper", type=click.Choice(["A4", "letter"]), default="A4", show_default=True, help="Sheet of the PDF.")
@click.option(
    "--templates",
    type=FolderName(exists=True),
    help="Folder whose templates stand for the shipped ones of the same name.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the paths, the outcome and every pair as JSON.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
def compare(runs: tuple[str, ...], *, out: Path, quiet: bool, **given: Any) -> int:
    """Check two to twelve runs and hold their scores against each other: comparison.html, .pdf and .json.

    RUN is a run directory, a zip archive of one, a packet PDF, or a pattern in quotes.

    \b
    Two runs:
      molforge-report compare runs/a runs/b
    Every archive of a folder, into a folder of its own:
      molforge-report compare 'submissions/*.zip' --out comparison

    Runs are paired by the seeds that both played. Runs that do not measure the same thing (tasks, budget, turn limit,
    reward mode, rules, decoding, prompt, interface) get no difference: every key that differs is listed. A run with
    findings of severity error is shown with its level, and its scores are withheld. Runs that share a letter were not
    told apart; no run is ranked.

    Exit code 0 when the comparison was written, whatever it says. 2 wrong usage, or a PDF that could not be made (the
    page stands), 3 a run that cannot be read (the page stands, and says so, when two others could be).
    """
    from molforge_eval.cli.inputs import ended_like_a_key, expand_runs
    from molforge_eval.report.comparison_build import ComparisonOptions, compare_runs

    options = ComparisonOptions(
        html=given["html"],
        pdf=given["pdf"],
        replay=given["verify_level"] == "E3",
        paper_size=given["paper"],
        templates=given["templates"],
        **take_title(given["title"]),
    )
    with ended_like_a_key(), show_progress(quiet=quiet) as shown:
        comparison = compare_runs(
            expand_runs(runs),
            out=out,
            options=options,
            on_run=shown.run,
            on_stage=shown.stage,
            on_episodes=shown.episodes,
        )
    if not quiet:
        click.echo(_as_json(comparison) if given["as_json"] else _as_text(comparison), nl=False)
    if given["is_opened"] and comparison.html is not None:
        open_page(comparison.html)
    codes = [report_error(fault) for fault in (*comparison.run_faults, comparison.paper_fault) if fault is not None]
    return max(codes, default=EXIT_SOUND)


def _as_text(comparison: Comparison) -> str:
    evidence = comparison.evidence
    wide = max(len(run.label) for run in evidence.runs)
    lines = [f"outcome   {evidence.outcome}"]
    for run in evidence.runs:
        scores = " → ".join(evidence.number(f"run.{run.key}.{side}").text for side in ("before", "after"))
        shown = scores if run.state in {"compared", "unpaired"} else run.state
        lines.append(f"{run.key:<9} {run.label:<{wide}}  {run.level or 'none'}  {shown}  {run.letters}".rstrip())
    for pair in evidence.pairs:
        at = f"pair.{pair.key}.mean"
        difference, p_value = (evidence.number(f"{at}.{field}").text for field in ("difference", "holm"))
        keys = ", ".join(unlike.key for unlike in pair.differing)
        words = keys or pair.reason if pair.meeting == "refused" else f"{difference}, p {p_value}"
        lines.append(f"{pair.key:<9} {pair.meeting}: {words}")
    lines += [f"{name:<9} {line_of(path)}" for name, path in comparison.paths.items()]
    return "\n".join(lines) + "\n"


def _as_json(comparison: Comparison) -> str:
    from molforge_eval.canonical import file_bytes

    evidence = comparison.evidence
    named = {name: text_of(comparison.paths[name]) if name in comparison.paths else None for name in ("html", "pdf")}
    answer = {
        "outcome": evidence.outcome,
        "runs": [
            {name: getattr(run, name) for name in ("key", "label", "state", "level", "letters")}
            for run in evidence.runs
        ],
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                "meeting": pair.meeting,
                **{name: evidence.value(f"pair.{pair.key}.mean.{name}") for name in _FIELDS},
            }
            for pair in evidence.pairs
        ],
        "evidence": text_of(comparison.paths["evidence"]),
        **named,
    }
    return file_bytes(answer).decode()
