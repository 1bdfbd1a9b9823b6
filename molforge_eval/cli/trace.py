"""`molforge-report trace`: follow a number of a packet to the rows that it is made from."""

from __future__ import annotations

from typing import Any

import click

from molforge_env.errors import EXIT_FINDINGS, EXIT_SOUND

_ALL = "all"


class RowCount(click.ParamType):  # type: ignore[type-arg] # it yields a number, or nothing for all
    """A number of rows, or the word for all of them."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Read a count from 0 on, or `all`."""
        if value == _ALL or isinstance(value, int):
            return _ALL if value == _ALL else int(value)
        if not str(value).isdecimal():
            self.fail(f"{str(value)!r} is neither a number of rows nor {_ALL!r}", param, ctx)
        return int(value)


@click.command(short_help="Follow a number to its rows.")
@click.argument("run_dir", type=click.Path(readable=False), metavar="RUN")
@click.argument("asked", nargs=-1, metavar="[ID]...")
@click.option(
    "--rows", "shown", type=RowCount(), default=10, show_default=True, help="Rows to list of each number, or all."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for a person, or one object for a program (schemas/trace.schema.json).",
)
def trace(run_dir: str, *, asked: tuple[str, ...], shown: int | str, form: str) -> int:
    """Say how numbers of a packet are made: formula, rows by file and line, hashes, and the same computed once more.

    RUN is a run directory, a zip archive of one, or a packet PDF. ID is the id of a number, as it stands in the section
    "How each number is made" of a packet, a pattern of ids, or the address of a point of a curve, curve.NAME@STEP.
    Without an ID, and for a pattern, the numbers are listed with their values.

    \b
    Every number of a run:
      molforge-report trace runs/demo
    Those of the learning curves:
      molforge-report trace runs/demo 'curve.*'
    The headline, down to each episode:
      molforge-report trace runs/demo score.mean.difference --rows all
    What the curve of the loss has at optimizer step 12:
      molforge-report trace runs/demo curve.loss@12
    From the PDF alone:
      molforge-report trace judge_packet.pdf score.mean.after

    Each number is computed again from the rows as they stand now, what a check has counted by checking and playing the
    run again, and each file is hashed and compared with the seal.
    Exit codes: 0 every number is what its rows give, 1 one is not, or a file differs from its seal, is sealed and
    absent or cannot be read, 2 wrong usage or no such number, 3 a run that cannot be read.
    """
    from molforge_eval.canonical import file_bytes
    from molforge_eval.cli.inputs import ended_like_a_key, expand_run
    from molforge_eval.cli.progress import show_progress
    from molforge_eval.report.trace import choose, is_pattern, trace_numbers
    from molforge_eval.report.trace_subject import open_subject
    from molforge_eval.report.trace_text import list_text, trace_text
    from molforge_eval.run_directory import load

    with ended_like_a_key():
        run = load(expand_run(run_dir))
        subject = open_subject(run)
        chosen = choose(subject, asked)
        is_list = not asked or any(map(is_pattern, asked))
        if is_list and form == "text":
            click.echo(list_text(chosen), nl=False)
            return EXIT_SOUND
        with show_progress(quiet=False) as shown_work:
            answer = trace_numbers(
                subject, chosen, shown=None if shown == _ALL else int(shown), on_episodes=shown_work.episodes
            )
        click.echo(file_bytes(answer).decode() if form == "json" else trace_text(answer), nl=False)
    return EXIT_SOUND if answer.is_sound() else EXIT_FINDINGS
