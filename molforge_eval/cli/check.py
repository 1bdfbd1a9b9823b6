"""`molforge-eval validate`, `verify` and `explain`: what a judge or a CI job runs on the evidence of others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from molforge_env.command_line import report_error
from molforge_env.errors import EXIT_FINDINGS, EXIT_SOUND, EXIT_UNREADABLE, UnreadableError, UsageError

if TYPE_CHECKING:
    from molforge_eval.catalogue import Level
    from molforge_eval.limits import Limits
    from molforge_eval.validation_result import ValidationResult

_RUNS = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
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


@click.command(short_help="Check a run directory or archive, up to evidence level E2.")
@click.option("--require", type=click.Choice(["E0", "E1", "E2"]), help="Fail when the run reaches less than this.")
@_with_options
def validate(runs: tuple[Path, ...], *, require: Literal["E0", "E1", "E2"] | None, **given: Any) -> int:
    """Check run directories or zip archives: files, schemas, hashes, identity, every recomputed number.

    Nothing in a run is executed, no link is followed, nothing is fetched.

    \b
    Exit codes: 0 sound, 1 findings of severity error (with --strict: warning) or less than --require,
    2 wrong usage, 3 a run that cannot be read at all.
    """
    from molforge_eval.validate import validate as validate_run

    return _answer(runs, validate_run, require=require, **given)


@click.command(short_help="Validate, then play every recorded episode again, up to E3.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; as many as the episodes are worth when absent.")
@_with_options
def verify(runs: tuple[Path, ...], *, workers: int | None, quiet: bool, **given: Any) -> int:
    """Validate runs and play every evaluation and training episode again in the laboratory.

    A difference names the first step that differs, with the recorded value and the one that was played.

    \b
    Exit codes: 0 sound and every episode played the same, 1 findings, 2 wrong usage, 3 a run that cannot be read.
    """
    from molforge_eval.replay import verify as verify_run

    def look(run: Path, bounds: Limits) -> ValidationResult:
        with _progress(run.name, quiet=quiet) as on_progress:
            return verify_run(run, workers=workers, limits=bounds, on_progress=on_progress)

    return _answer(runs, look, require="E3", quiet=quiet, **given)


@click.command(short_help="Tell what a finding means, why it exists and how to mend it.")
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Explain one finding code; without a code, list all of them."""
    from molforge_eval.catalogue import codes, entry_of

    if code is None:
        for entry in codes().values():
            click.echo(f"{entry.code:<26} {entry.severity:<8} {entry.level}  {entry.meaning}")
        return
    entry = entry_of(code.upper())
    click.echo(f"{entry.code}: {entry.meaning}")
    click.echo(f"  severity: {entry.severity}; an error of this code denies level {entry.level}")
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
    **given: tuple[str, ...],
) -> int:
    """Look at each run, print what was found, and give the exit code; one that cannot be read hides no other."""
    from molforge_eval.catalogue import entry_of
    from molforge_eval.cli.outputs import parse_outputs, path_in_checkout, render
    from molforge_eval.voices.judged_run import JudgedRun

    bounds = _read_limits(given["limits"])
    outputs = parse_outputs(given["formats"], runs)
    codes = {entry_of(name.upper()).code for name in given["only"]}
    judged: list[JudgedRun] = []
    code = EXIT_SOUND
    for run in runs:
        asked = JudgedRun(path_in_checkout(run), run.is_dir(), None, wanted=require, strict=strict)
        try:
            result = look(run, bounds)
        except UnreadableError as error:
            report_error(error)
            code = EXIT_UNREADABLE
            judged.append(asked._replace(error=error))
            continue
        result = result.limited_to(codes) if codes else result
        judged.append(asked._replace(result=result))
        if outputs.printed == "text" and not quiet:
            click.echo(render("text", judged[-1:], show_all=show_all), nl=False)
        if not _is_sound(result, require=require, strict=strict) and code == EXIT_SOUND:
            code = EXIT_FINDINGS
    if outputs.printed != "text" and not quiet:
        click.echo(render(outputs.printed, judged, show_all=show_all), nl=False)
    outputs.write(judged, show_all=show_all)
    return code


def _read_limits(settings: tuple[str, ...]) -> Limits:
    from pydantic import ValidationError

    from molforge_eval.limits import Limits

    given = dict(setting.partition("=")[::2] for setting in settings)
    try:
        return Limits.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            f"limit {first['loc'][0]}={first['input']}: {first['msg']}",
            where="--limit",
            mend=f"Give NAME=NUMBER with one of {', '.join(Limits.model_fields)}.",
        ) from error


def _is_sound(result: ValidationResult, *, require: str | None, strict: bool) -> bool:
    if result.has_errors(strict=strict):
        return False
    # An old layout reaches no level of replay and is not refused for its age.
    wanted = None if require == "E3" and result.run_format == 0 else require
    return wanted is None or (result.level is not None and result.level >= wanted)


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"playing {name} again", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
