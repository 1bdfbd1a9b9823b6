"""`molforge-eval validate`, `verify` and `explain`: what a judge or a CI job runs on the evidence of others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from molforge_env.command_line import report_error
from molforge_env.errors import (
    EXIT_FINDINGS,
    EXIT_SOUND,
    EXIT_UNREADABLE,
    MolForgeError,
    UnreadableError,
    UsageError,
)
from molforge_eval.cli.wishes import take_wish, with_wish

if TYPE_CHECKING:
    from molforge_eval.catalogue import Level
    from molforge_eval.limits import Limits
    from molforge_eval.validation_result import ValidationResult

_LONGEST_LIMIT = 16
"""Digits of a limit, and one more."""


def _expand(_context: click.Context, _argument: click.Parameter, given: tuple[str, ...]) -> tuple[Path, ...]:
    from molforge_eval.cli.inputs import expand_runs

    return expand_runs(given)


_RUNS = click.argument(
    "runs", nargs=-1, required=True, type=click.Path(readable=False), metavar="RUN...", callback=_expand
)
_OPTIONS = (
    click.option("--strict", is_flag=True, help="A warning fails the run too."),
    click.option(
        "--format",
        "formats",
        multiple=True,
        metavar="KIND[=FILE]",
        help="text, json, github (annotations), markdown (job summary), junit or sarif: into FILE, or printed. Repeat "
        "it for several; one of them is printed, which is text unless another has no FILE. json is the shape of "
        "schemas/validation_result.schema.json, a list for several runs.",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="CODE",
        help="Show findings of this code and let only them fail the run; repeat it for several. Every format says so, "
        "and the level still counts all findings.",
    ),
    click.option(
        "--waivers",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="TOML file of findings to let pass: [[waiver]] tables with code, where, reason and until. Every format "
        "shows them, and the level still counts them.",
    ),
    click.option(
        "--as-of",
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="DATE",
        help="Day, in UTC, that waivers are held against; today when absent.",
    ),
    click.option("--all", "show_all", is_flag=True, help="Show every finding, not the first three of a code."),
    click.option(
        "limits",
        "--limit",
        multiple=True,
        metavar="NAME=NUMBER",
        help="Change a bound on reading, such as line_bytes=10000000; docs/findings.md lists them.",
    ),
    click.option("--quiet", is_flag=True, help="Print errors only; the exit code says the rest."),
)


def _with_options(command: Callable[..., int]) -> Callable[..., int]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return _RUNS(command)


@click.command(short_help="Check a run directory, archive or packet, up to evidence level E2.")
@click.option("--require", type=click.Choice(["E0", "E1", "E2"]), help="Fail when the run reaches less than this.")
@_with_options
def validate(runs: tuple[Path, ...], *, require: Literal["E0", "E1", "E2"] | None, **given: Any) -> int:
    """Check runs: files, schemas, hashes, identity, every recomputed number.

    A RUN is a run directory, a zip archive of one, or a packet PDF, whose attachments are the run. A pattern such as
    'submissions/*.zip' stands for what it matches; ** matches folders of any depth, and no link is followed. A file of
    conversations for fine-tuning (.jsonl, from `molforge-train data`) is checked too, and each of them played again.

    Nothing in a run is executed, no link is followed, nothing is fetched.

    \b
    Exit codes: 0 sound, 1 findings of severity error (with --strict: warning) or less than --require,
    2 wrong usage, 3 a run that cannot be read at all.
    """
    from molforge_eval.validate import validate as validate_run

    return _answer(runs, validate_run, require=require, **given)


@click.command(short_help="Validate, then play every recorded episode again, up to E3 or E4.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; as many as the episodes are worth when absent.")
@with_wish
@_with_options
def verify(runs: tuple[Path, ...], *, workers: int | None, quiet: bool, **given: Any) -> int:
    """Validate runs and play every evaluation and training episode again in the laboratory.

    A difference names the first step that differs, with the recorded value and the one that was played. A run of
    format version 0 has nothing that can be played again: `validate` takes it, `verify` leaves with 1.

    With --regenerate the model of the run then plays its greedy episodes again. A difference names the turn, both
    texts, and the gap between the two tokens in the model's logits.

    \b
    Exit codes: 0 level E3 (every episode played the same), with --regenerate level E4; 1 findings or a lower level,
    2 wrong usage, 3 a run that cannot be read.
    """
    from molforge_eval.replay import verify as verify_run

    wish = take_wish(given)

    def look(run: Path, bounds: Limits) -> ValidationResult:
        with _progress(run.name, quiet=quiet) as on_progress:
            return verify_run(run, workers=workers, limits=bounds, wish=wish, on_progress=on_progress)

    return _answer(runs, look, require="E3" if wish is None else "E4", quiet=quiet, **given)


@click.command(short_help="Tell what a finding means, why it exists and how to mend it.")
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Tell what one finding code means, why the rule exists, and how to mend it; without a code, list all of them.

    CODE is the word that a finding begins with, such as HEADLINE_DIFFERS.
    """
    from molforge_eval.catalogue import codes, entry_of

    if code is None:
        width = max(map(len, codes()))
        for entry in codes().values():
            click.echo(f"{entry.code:<{width}} {entry.severity:<8} {entry.level}  {entry.meaning}")
        return
    entry = entry_of(code.upper())
    click.echo(f"{entry.code}: {entry.meaning}")
    old = "" if entry.old_severity is None else f" ({entry.old_severity} in format version 0)"
    click.echo(f"  severity: {entry.severity}{old}; an error of this code denies level {entry.level}")
    click.echo(f"  rule:     {entry.rule}")
    click.echo(f"  why:      {entry.reason}")
    click.echo(f"  example:  {entry.example}")
    click.echo(f"  mend:     {entry.mend}")


def _answer(
    runs: tuple[Path, ...],
    look: Callable[[Path, Limits], ValidationResult],
    *,
    require: Level | None,
    strict: bool,
    show_all: bool,
    quiet: bool,
    waivers: Path | None,
    as_of: datetime | None,
    **given: tuple[str, ...],
) -> int:
    """Look at each run, print what was found, and give the exit code; one that cannot be read hides no other."""
    from molforge_eval.catalogue import entry_of
    from molforge_eval.cli.inputs import ended_like_a_key
    from molforge_eval.cli.outputs import parse_outputs, path_in_checkout, render
    from molforge_eval.voices.judged_run import JudgedRun
    from molforge_eval.waivers import read_waivers

    bounds = _read_limits(given["limits"])
    outputs = parse_outputs(given["formats"], runs)
    codes = {entry_of(name.upper()).code for name in given["only"]}
    waived = () if waivers is None else read_waivers(waivers, runs=runs)
    # A waiver ends by the calendar; with --as-of an answer can be had again on a later day.
    day = (as_of or datetime.now(UTC)).date()  # noqa: TID251 - whether a waiver has expired is a question to the clock
    judged: list[JudgedRun] = []
    code = EXIT_SOUND
    for run in runs:
        asked = JudgedRun(path_in_checkout(run), run.is_dir(), None, wanted=require, strict=strict)
        try:
            with ended_like_a_key():
                result = look(run, bounds)
        except UnreadableError as error:
            report_error(error)
            code = EXIT_UNREADABLE
            judged.append(asked._replace(error=error))
            continue
        result = result.waived_by(waived, today=day) if waived else result
        result = result.limited_to(codes) if codes else result
        judged.append(asked._replace(result=result))
        if outputs.printed == "text" and not quiet:
            click.echo("\n" * (len(judged) > 1) + render("text", judged[-1:], show_all=show_all), nl=False)
        if result.has_errors(strict=strict):
            code = max(code, EXIT_FINDINGS)
        elif not _reaches(result, require):
            _report_shortfall(result, require)
            code = max(code, EXIT_FINDINGS)
    if outputs.printed != "text" and not quiet:
        click.echo(render(outputs.printed, judged, show_all=show_all), nl=False)
    outputs.write(judged, show_all=show_all)
    return code


def _read_limits(settings: tuple[str, ...]) -> Limits:
    from molforge_eval.limits import Limits

    given: dict[str, int] = {}
    for setting in settings:
        name, sign, number = (part.strip() for part in setting.partition("="))
        if name not in Limits.model_fields:
            raise _wrong_limit(setting, f"{name!r} is no limit", Limits.model_fields)
        if not sign:
            raise _wrong_limit(setting, "no number is given", Limits.model_fields)
        # Longer numbers are none that anyone means, and long ones are slow to read.
        if not (number.isascii() and number.isdecimal() and len(number) < _LONGEST_LIMIT and int(number)):
            raise _wrong_limit(setting, f"{number!r} is no whole number above 0", Limits.model_fields)
        given[name] = int(number)
    return Limits(**given)


def _wrong_limit(setting: str, what: str, names: Iterable[str]) -> UsageError:
    mend = f"Give NAME=NUMBER with one of {', '.join(names)}."
    return UsageError(f"limit {setting!r}: {what}", where="--limit", mend=mend)


def _reaches(result: ValidationResult, wanted: str | None) -> bool:
    return wanted is None or (result.level is not None and result.level >= wanted)


def _report_shortfall(result: ValidationResult, wanted: str | None) -> None:
    """Say why a run without a failing finding still fails."""
    from molforge_eval.catalogue import printable

    is_unplayed = wanted == "E3" and "episodes_replayed" not in result.counts
    played = ", and no episode was played again" if is_unplayed else ""
    mend = "Make the run again with `molforge-train`; `molforge-eval validate` checks what is there."
    if wanted == "E4" and result.level == "E3":
        mend = "Do what the findings above advise, and verify again with --regenerate."
    report_error(
        MolForgeError(
            f"level {wanted} is required, {result.level or 'none'} was reached: {result.level_reason}{played}",
            where=printable(result.run),
            mend=mend,
        )
    )


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    from molforge_eval.catalogue import printable

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"playing {escape(printable(name))} again", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
