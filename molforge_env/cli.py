"""`molforge-env`: the laboratory on the command line.

Heavy imports wait inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from molforge_env import __version__
from molforge_env.command_line import run

if TYPE_CHECKING:
    from molforge_env.ladder import Ladder
    from molforge_env.suites import SuiteName

_SCENARIO_HELP = "Scenario id; all three when absent."
_JSON_HELP = "Print JSON for a program."
_suite_option = click.option(
    "--suite",
    type=click.Choice(["official", "randomized", "holdout"]),
    default="official",
    show_default=True,
    help="Family of tasks.",
)
_seed_option = click.option("--seed", type=int, help="Seed of a variant.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="molforge-env")
def cli() -> None:
    """Play, measure and check the MolForge laboratory."""


@cli.command(short_help="Search the best score that is possible, exactly.")
@click.option("--scenario", help=_SCENARIO_HELP)
@_suite_option
@_seed_option
@click.option("--json", "as_json", is_flag=True, help=_JSON_HELP)
def ceiling(scenario: str | None, suite: str, seed: int | None, *, as_json: bool) -> None:
    """Search the best final score that the five tools can reach, exactly."""
    import orjson

    from molforge_env.arithmetic import text_of
    from molforge_env.ceiling import find_ceiling
    from molforge_env.suites import SCENARIO_IDS, resolve_scenario

    names = SCENARIO_IDS if scenario is None else (scenario,)
    found = [find_ceiling(resolve_scenario(suite=suite, scenario_id=name, seed=seed)) for name in names]
    if as_json:
        click.echo(orjson.dumps([row.model_dump(mode="json") for row in found], option=orjson.OPT_INDENT_2))
        return
    for row in found:
        click.echo(
            f"{row.scenario.scenario_id}  {text_of(row.final_score, decimals=4)}  ({row.expanded} states opened)"
        )
        for tool, arguments in row.calls:
            click.echo(f"  {tool} {' '.join(arguments.values())}".rstrip())


@cli.command(short_help="Print what players without a model reach.")
@_suite_option
@click.option(
    "--episodes", type=click.IntRange(min=1), help="Random episodes a task [1000], or variants of each [16], one each."
)
@click.option("--seed", type=int, default=0, show_default=True, help="First seed of those episodes.")
@click.option("--search", is_flag=True, help="Search the ceilings again instead of reading the kept ones.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help=_JSON_HELP)
def baselines(suite: SuiteName, episodes: int | None, seed: int, *, search: bool, quiet: bool, as_json: bool) -> None:
    """Print the ladder: what players without a model reach on the tasks of a suite."""
    import orjson

    from molforge_env.ladder import measure_ladder

    def show_progress(name: str) -> None:
        if not quiet and sys.stderr.isatty():
            click.echo(f"measuring {name}", err=True)

    ladder = measure_ladder(suite=suite, episodes=episodes, seed=seed, search=search, on_progress=show_progress)
    if as_json:
        click.echo(orjson.dumps(ladder.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    else:
        _print_ladder(ladder)


def _print_ladder(ladder: Ladder) -> None:
    from molforge_env.arithmetic import text_of

    names = list(ladder.rungs[0].scores)
    heads = ["player", *names, "mean", "episodes a task"]
    rows = [
        [
            rung.name,
            *(text_of(rung.scores[name], decimals=4) for name in names),
            text_of(rung.mean, decimals=4),
            str(rung.episodes_per_task),
        ]
        for rung in ladder.rungs
    ]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        click.echo("  ".join(cells).rstrip())


@cli.command(short_help="Play recorded episodes again and compare.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.pass_context
def conformance(context: click.Context, files: tuple[Path, ...]) -> None:
    """Play recorded episodes again and print where this laboratory differs.

    Reads the golden formats as JSON Lines or CSV, gzip-compressed or not. Exit code 1 when something differs.
    """
    from molforge_env.conformance import compare_files, write_report

    total = compare_files(files)
    click.echo(write_report(total))
    context.exit(1 if total.differences else 0)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help=_JSON_HELP)
def fingerprint(*, as_json: bool) -> None:
    """Print which chemistry this laboratory judges by."""
    import orjson

    from molforge_env.fingerprint import backend_fingerprint

    values = backend_fingerprint().model_dump(mode="json")
    if as_json:
        click.echo(orjson.dumps(values, option=orjson.OPT_INDENT_2))
        return
    for name, value in values.items():
        click.echo(f"{name}: {value}")


@cli.command()
@click.argument("scenario", default="level_0_easy")
@_suite_option
@_seed_option
@click.option(
    "--reward-mode",
    type=click.Choice(["assay_gated", "curriculum", "dense"]),
    default="assay_gated",
    show_default=True,
    help="How steps are paid; the final score does not depend on it.",
)
def play(scenario: str, suite: str, seed: int | None, reward_mode: str) -> None:
    """Play one episode in the terminal."""
    from molforge_env.terminal import play_in_terminal

    play_in_terminal(scenario_id=scenario, suite=suite, seed=seed, reward_mode=reward_mode)


def main() -> NoReturn:
    """Run `molforge-env`."""
    run(cli)


if __name__ == "__main__":
    main()
