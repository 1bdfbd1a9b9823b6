"""`molforge-train`: a GRPO run, the recipe of the built-in model, and the presets.

Only the table of settings is imported here, so that `--help` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from molforge_env.command_line import run
from molforge_env.errors import EXIT_SOUND
from molforge_train.settings import SETTINGS

if TYPE_CHECKING:
    from molforge_train.config import Resolved
    from molforge_train.training_run import FinishedRun


def _setting_flags(command: Callable[..., int]) -> Callable[..., int]:
    for setting in reversed(SETTINGS):
        if setting.kind == "weights":
            continue
        words = setting.help + (f" One of {', '.join(setting.choices)}." if setting.choices else "")
        metavar = {"whole": "N", "number": "X", "switch": "1|0"}.get(setting.kind, "TEXT")
        command = click.option(
            setting.flag, setting.name, metavar=metavar, help=words + f" [{setting.variable}]" * bool(setting.variable)
        )(command)
    return command


_LATER = ("data", "deliver", "sft", "warmstart")
"""Commands whose modules are imported only when they are asked about."""


class _Later(click.Group):
    """A group that imports the module of a command only when it is asked about."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LATER])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _LATER:
            command: click.Command = import_module(f"molforge_train.{cmd_name}_command").command
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Later, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="molforge-evidence")
def cli() -> None:
    """Train a language model in the MolForge laboratory and keep the evidence.

    \b
    molforge-train grpo --preset tiny-cpu            the built-in model, minutes on two CPU cores
    molforge-train grpo --base-model MODEL --sft-adapter-path ADAPTER
    """


@cli.command()
@click.option("--preset", metavar="NAME|FILE", help="Shipped preset, or a TOML file. See `molforge-train presets`.")
@click.option("--dry-run", is_flag=True, help="Show the resolved plan and write nothing.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
@_setting_flags
def grpo(preset: str | None, *, dry_run: bool, quiet: bool, **flags: str | None) -> int:
    """Train by GRPO in the real environment, evaluated before and after.

    A flag wins over an environment variable (named in brackets), that over the preset, that over the default. The run
    directory holds every artifact; build the packet from it with `molforge-report build RUN_DIR`.
    """
    from molforge_train.adapter_search import with_found_adapter
    from molforge_train.config import choose_preset, process_environment, resolve, stray_variables
    from molforge_train.machine import look_at_machine
    from molforge_train.preflight import check
    from molforge_train.recording import read_clock

    environment = process_environment()
    for warning in stray_variables(environment):
        click.echo(f"warning: {warning}", err=True)
    machine = look_at_machine(environment)
    if machine.idle_reason is not None:
        click.echo(f"warning: {machine.idle_reason}", err=True)
    choice = choose_preset(preset, flags, environment, machine)
    resolved = with_found_adapter(resolve(choice.preset, flags, environment, now=read_clock()))
    resolved = resolved._replace(preset_reason=choice.reason)
    check(resolved.configuration, environment)
    if dry_run:
        _show_plan(resolved)
        return EXIT_SOUND
    from molforge_train.training_run import train

    return _show_finished(train(resolved, quiet=quiet, say=click.echo))


def _show_finished(finished: FinishedRun) -> int:
    from molforge_train.deliver_command import show_delivery

    click.echo(f"run directory  {finished.folder}\narchive        {finished.archive}")
    code = show_delivery(finished.delivery)
    click.echo(f"next           molforge-report build {finished.folder}")
    if finished.manifest.configuration.drive_output_dir is not None:
        click.echo(f"then           molforge-train deliver {finished.folder}")
    return code


def _show_plan(resolved: Resolved) -> None:
    from molforge_train.preflight import run_folder

    settings = resolved.configuration
    width = max(len(name) for name in resolved.sources)
    for name, source in resolved.sources.items():
        click.echo(f"{name:<{width}}  {getattr(settings, name)}  ({source})")
    batch = settings.batch_size * settings.gradient_accumulation
    batches = -(-settings.max_steps // settings.num_iterations)
    episodes = f"{batches * batch} training episodes, {batch} a batch in groups of {settings.num_generations}"
    evaluations = settings.run_before_eval + settings.run_after_eval
    click.echo(f"{episodes}; {evaluations} evaluations; into {run_folder(settings)}; nothing was written")


@cli.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def resume(run_dir: Path, *, quiet: bool) -> int:
    """Go on with a run that was stopped or killed.

    Training goes on from its last checkpoint with the same adapter, steps, seeds and logs. Episodes that were played
    after the checkpoint stay in the log, marked as superseded, and count in no mean.
    """
    from molforge_train.training_run import resume as go_on

    return _show_finished(go_on(run_dir, quiet=quiet, say=click.echo))


@cli.command()
@click.argument("name", required=False)
def presets(name: str | None) -> None:
    """List the shipped presets, or print one with its reasons and with the origin of each value.

    A preset of your own is a TOML file with the same keys: print one, change it, and give its path to --preset.

    \b
    molforge-train presets
    molforge-train presets colab-demo
    molforge-train presets tiny-cpu > mine.toml && molforge-train grpo --preset mine.toml --dry-run
    """
    from molforge_train.run_plan import preset_page, preset_table

    click.echo("\n".join(preset_table() if name is None else preset_page(name)))


def main() -> None:
    """Run the command line."""
    run(cli)


if __name__ == "__main__":
    main()
