"""`molforge-report`: make the packet that a judge reads."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from molforge_env.command_line import report_error
from molforge_env.command_line import run as run_command
from molforge_env.errors import EXIT_SOUND, UsageError
from molforge_eval.cli.browser import open_page
from molforge_eval.cli.compare import compare
from molforge_eval.cli.paths import FolderName, line_of, text_of
from molforge_eval.cli.progress import show_progress
from molforge_eval.cli.titles import take_title
from molforge_eval.cli.trace import trace
from molforge_eval.cli.wishes import take_wish, with_wish

if TYPE_CHECKING:
    from molforge_eval.report.packet import Packet

_SELDOM = (200_000, 50, 50)
"""Allocations, and rounds of each younger generation, between two searches for cycles."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="molforge-evidence", message="%(prog)s %(version)s")
def cli() -> None:
    """Make the packet of a run: one HTML page, one PDF, and the evidence behind both; or hold several runs together."""


cli.add_command(compare)
cli.add_command(trace)


@cli.command(short_help="Check a run and write its packet.")
@click.argument("run_dir", type=click.Path(readable=False), metavar="RUN")
@click.option("--out", type=FolderName(), help="Folder to write to; the run's own when absent.")
@click.option("--html/--no-html", default=True, show_default=True, help="Write judge_packet.html.")
@click.option("--pdf/--no-pdf", default=True, show_default=True, help="Write judge_packet.pdf.")
@click.option("--title", help="Title of the packet.")
@click.option(
    "--verify-level",
    type=click.Choice(["E2", "E3"]),
    default="E3",
    show_default=True,
    help="E3 plays every episode again; E2 checks the files only.",
)
@with_wish
@click.option("--paper", type=click.Choice(["A4", "letter"]), default="A4", show_default=True, help="Sheet of the PDF.")
@click.option(
    "--templates",
    type=FolderName(exists=True),
    help="Folder whose templates stand for the shipped ones of the same name.",
)
@click.option(
    "--log-bytes",
    type=click.IntRange(min=0),
    default=10 * 2**20,
    show_default=True,
    help="Compressed logs of more bytes stay out of the PDF, which then shows E3 for the evaluation only.",
)
@click.option("--pack/--no-pack", default=True, show_default=True, help="Make the archive beside the run again.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the paths, the verdict and the level as JSON.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
def build(run_dir: str, *, out: Path | None, quiet: bool, **given: Any) -> int:
    """Check a run, judge it by its plan, and write evidence.json, judge_packet.html and .pdf.

    RUN is a run directory, a zip archive of one, or a packet PDF, whose attachments are the run.

    \b
    The packet of a run, into the run:
      molforge-report build runs/demo
    Of a stranger's archive, into a folder of its own:
      molforge-report build submission.zip --out packet

    With --regenerate the packet shows level E4 when the run's model has written its greedy episodes again for this very
    packet; no file of the run can say so.

    Findings are shown in the packet and do not fail the build: exit code 0 when the packet was written. 2 wrong usage,
    or a PDF that could not be made (the page stands), 3 a run that cannot be read.
    """
    from molforge_eval.cli.inputs import ended_like_a_key, expand_run
    from molforge_eval.report.build import PacketOptions, build_packet

    run = expand_run(run_dir)
    title = take_title(given.pop("title"))
    wish = take_wish(given)
    if wish is not None and given["verify_level"] != "E3":
        mend = "Leave --verify-level out: E4 includes E3."
        raise UsageError("--regenerate with --verify-level E2", where="--verify-level", mend=mend)
    options = PacketOptions(
        html=given["html"],
        pdf=given["pdf"],
        replay=given["verify_level"] == "E3",
        wish=wish,
        paper_size=given["paper"],
        log_bytes=given["log_bytes"],
        pack=given["pack"],
        templates=given["templates"],
        **title,
    )
    with ended_like_a_key(), show_progress(quiet=quiet) as shown:
        packet = build_packet(run, out=out, options=options, on_stage=shown.stage, on_episodes=shown.episodes)
    if not quiet:
        click.echo(_as_json(packet) if given["as_json"] else _as_text(packet), nl=False)
    if given["is_opened"] and packet.html is not None:
        open_page(packet.html)
    return EXIT_SOUND if packet.paper_fault is None else report_error(packet.paper_fault)


def _as_text(packet: Packet) -> str:
    evidence = packet.evidence
    errors, warnings = (evidence.number(f"findings.{severity}").text for severity in ("error", "warning"))
    lines = [
        f"verdict   {evidence.verdict.outcome}",
        f"level     {evidence.level.level or 'none'} ({evidence.level.reason})",
        f"findings  {errors} of severity error, {warnings} of severity warning",
    ]
    lines += [f"{name:<9} {line_of(path)}" for name, path in _paths(packet).items() if path is not None]
    return "\n".join(lines) + "\n"


def _as_json(packet: Packet) -> str:
    from molforge_eval.canonical import file_bytes

    paths = {name: None if path is None else text_of(path) for name, path in _paths(packet).items()}
    head = {"verdict": packet.evidence.verdict.outcome, "level": packet.evidence.level.level}
    return file_bytes({**head, **paths}).decode()


def _paths(packet: Packet) -> dict[Literal["evidence", "html", "pdf", "archive"], Path | None]:
    return {"evidence": packet.evidence_file, "html": packet.html, "pdf": packet.pdf, "archive": packet.archive}


def main() -> None:
    """Run the program."""
    # A program that ends after one packet leaves few cycles; looking for them all the time is a sixteenth of its work.
    gc.set_threshold(*_SELDOM)
    run_command(cli)


if __name__ == "__main__":
    main()
