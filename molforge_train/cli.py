"""`molforge-train`: a GRPO run, the recipe of the built-in model, and the presets.

Only the table of settings is imported here, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from molforge_env.command_line import run
from molforge_env.errors import EXIT_SOUND
from molforge_train.settings import SETTINGS

if TYPE_CHECKING:
    from molforge_train.config import Resolved
    from molforge_train.machine import Machine
    from molforge_train.ranks import Ranks
    from molforge_train.training_run import FinishedRun


def _setting_flags(command: Callable[..., int]) -> Callable[..., int]:
    for setting in reversed(SETTINGS):
        if setting.kind in ("weights", "phases"):
            continue
        words = setting.help + (f" One of {', '.join(setting.choices)}." if setting.choices else "")
        metavar = {"whole": "N", "number": "X", "switch": "1|0"}.get(setting.kind, "TEXT")
        command = click.option(
            setting.flag, setting.name, metavar=metavar, help=words + f" [{setting.variable}]" * bool(setting.variable)
        )(command)
    return command


_LATER = {
    "data": "molforge_train.data_command",
    "deliver": "molforge_train.deliver_command",
    "sft": "molforge_train.sft_command",
    "warmstart": "molforge_tiny.command",
}
"""Commands whose modules are imported only when they are asked about; nothing here rests on the last one's package."""


class _Later(click.Group):
    """A group that imports the module of a command only when it is asked about."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LATER])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _LATER:
            command: click.Command = import_module(_LATER[cmd_name]).command
            return command
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Later, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="molforge-evidence")
def cli() -> None:
    """Train a language model in the MolForge laboratory and keep the evidence.

    \b
    molforge-train grpo --preset tiny-cpu            the built-in model, minutes on two CPU cores
    molforge-train presets                           what there is for which machine
    molforge-train grpo --preset colab-demo --dry-run

    A model of your own, from nothing:

    \b
    molforge-train data --out sft.jsonl
    molforge-train sft sft.jsonl --base-model unsloth/Qwen3.5-2B --out sft_adapter
    molforge-train grpo --preset colab-demo --sft-adapter-path sft_adapter --run-name first
    molforge-report build runs/first
    """


@cli.command(short_help="Train by GRPO, evaluated before and after.")
@click.option("--preset", metavar="NAME|FILE", help="Shipped preset, or a TOML file. See `molforge-train presets`.")
@click.option("--dry-run", is_flag=True, help="Show plan, memory and checks; load and write nothing.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
@_setting_flags
def grpo(preset: str | None, *, dry_run: bool, quiet: bool, **flags: str | None) -> int:
    """Train by GRPO in the real environment, evaluated before and after.

    A flag wins over an environment variable (named in brackets), that over the preset, that over the default. Without
    --preset a machine with a CUDA GPU takes colab-demo, any other tiny-cpu. The run directory holds every artifact.

    \b
    molforge-train grpo                                        what this machine is for
    molforge-train grpo --preset colab-demo --dry-run          plan, memory and checks; nothing is loaded
    molforge-train grpo --preset h100-strong --sft-adapter-path my_adapter --run-name strong
    RL_MAX_STEPS=20 NUM_GENERATIONS=4 RL_BATCH_SIZE=4 molforge-train grpo
    molforge-report build runs/strong                          the packet of the run

    Out of memory: MAX_COMPLETION_LENGTH=1024 with compact texts, then a smaller RL_BATCH_SIZE that NUM_GENERATIONS
    divides, with RL_GRAD_ACCUM raised by as much. A run that was stopped goes on with `molforge-train resume RUN_DIR`.
    """
    from molforge_train.adapter_search import with_found_adapter
    from molforge_train.config import Resolved, choose_preset, process_environment, resolve, stray_variables
    from molforge_train.machine import look_at_machine
    from molforge_train.preflight import check
    from molforge_train.ranks import is_alone_unasked, ranks_of
    from molforge_train.recording import read_clock

    environment = process_environment()
    ranks = ranks_of(environment)
    if not ranks.is_first:
        return EXIT_SOUND if dry_run else _assist(ranks, preset, flags, environment)
    for warning in stray_variables(environment):
        click.echo(f"warning: {warning}", err=True)
    machine = look_at_machine(environment)
    if machine.idle_reason is not None:
        click.echo(f"warning: {machine.idle_reason}", err=True)
    if is_alone_unasked(environment):
        asked = "accelerate was asked for several processes and started one; docs/scale.md says how to start them"
        click.echo(f"warning: {asked}", err=True)
    choice = choose_preset(preset, flags, environment, machine)
    resolved = resolve(choice.preset, flags, environment, now=read_clock())
    origin = resolved.sources["preset"] if preset is not None else "default"
    resolved = Resolved(resolved.configuration, {**resolved.sources, "preset": origin}, choice.reason)
    if dry_run:
        from molforge_train.run_plan import plan_lines

        for line in plan_lines(resolved, machine):
            click.echo(line)
    resolved = with_found_adapter(resolved)
    check(resolved.configuration, environment)
    if dry_run:
        click.echo(
            f"\nchecks\n  settings, model, adapter and folders are sound{_here_refused(resolved, machine, ranks)}"
        )
        click.echo("nothing was loaded and nothing was written")
        return EXIT_SOUND
    from molforge_train.training_run import train

    return _show_finished(train(resolved, quiet=quiet, say=click.echo, ranks=ranks))


def _assist(ranks: Ranks, preset: str | None, flags: Mapping[str, str | None], environment: Mapping[str, str]) -> int:
    from molforge_train.config import choose_preset, resolve
    from molforge_train.machine import look_at_machine
    from molforge_train.recording import read_clock
    from molforge_train.training_run import assist

    choice = choose_preset(preset, flags, environment, look_at_machine(environment))
    assist(resolve(choice.preset, flags, environment, now=read_clock()).configuration, ranks)
    return EXIT_SOUND


def _here_refused(resolved: Resolved, machine: Machine, ranks: Ranks) -> str:
    from molforge_train.preflight import missing_packages

    reasons = []
    if missing := missing_packages():
        reasons.append(f"packages: this environment has no {', '.join(missing)}; the `train` extra brings them")
    if resolved.configuration.device == "cuda" and machine.gpu is None:
        reasons.append("device cuda: there is none on this machine that torch can use")
    if len(machine.gpus) > 1 and resolved.configuration.device in {"auto", "cuda"} and ranks.size == 1:
        reasons.append(f"{len(machine.gpus)} GPUs and one process: set CUDA_VISIBLE_DEVICES=0, or see docs/scale.md")
    return "".join(f"\n  {reason}; the run itself would be refused here" for reason in reasons)


def _show_finished(finished: FinishedRun) -> int:
    from molforge_train.deliver_command import show_delivery

    click.echo(f"run directory  {finished.folder}\narchive        {finished.archive}")
    code = show_delivery(finished.delivery)
    click.echo(f"next           molforge-report build {finished.folder}")
    settings = finished.manifest.configuration
    if settings.drive_output_dir or settings.hf_output_repo:
        click.echo(f"then           molforge-train deliver {finished.folder}")
    return code


@cli.command()
@click.argument("run_dir", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def resume(run_dir: Path, *, quiet: bool) -> int:
    """Go on with a run that was stopped or killed.

    Training goes on from its last checkpoint with the same adapter, steps, seeds and logs. Episodes that were played
    after the checkpoint stay in the log, marked as superseded, and count in no mean.

    \b
    molforge-train resume runs/first
    """
    from molforge_train.config import process_environment
    from molforge_train.ranks import ranks_of
    from molforge_train.run_record import RunRecord
    from molforge_train.training_run import assist
    from molforge_train.training_run import resume as go_on

    ranks = ranks_of(process_environment())
    if not ranks.is_first:
        assist(RunRecord.read(run_dir).manifest.configuration, ranks)
        return EXIT_SOUND
    return _show_finished(go_on(run_dir, quiet=quiet, say=click.echo, ranks=ranks))


@cli.command(short_help="List the shipped presets, or print one.")
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
    try:
        run(cli)
    except SystemExit as end:
        ranks = sys.modules.get("molforge_train.ranks")
        if ranks is not None:
            ranks.leave_at_once(end.code)
        raise


if __name__ == "__main__":
    main()
