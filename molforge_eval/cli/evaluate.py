"""`molforge-eval`: play a policy by a plan; check, replay and explain stand in `check`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from molforge_env.command_line import run as run_command

if TYPE_CHECKING:
    from molforge_eval.records.evaluation import Evaluation, EvaluationPlan

_ELSEWHERE = {
    "explain": ("molforge_eval.cli.check", "Tell what a finding means, why it exists and how to mend it."),
    "validate": ("molforge_eval.cli.check", "Check a run directory, archive or packet, up to evidence level E2."),
    "verify": ("molforge_eval.cli.check", "Validate, then play every recorded episode again, up to E3 or E4."),
}


class Commands(click.Group):
    """A group some of whose commands are imported when they are called, so that `--help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands of this module and of the others."""
        return sorted({*super().list_commands(ctx), *_ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command, importing its module if it is another's."""
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(importlib.import_module(_ELSEWHERE[cmd_name][0]), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write one line a command, without importing any."""
        own = {name: command.get_short_help_str(limit=90) for name, command in self.commands.items()}
        lines = own | {name: text for name, (_, text) in _ELSEWHERE.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="molforge-evidence", message="%(prog)s %(version)s")
def cli() -> None:
    """Evaluate a policy in the laboratory, and check what others have recorded.

    A policy is a model, `hf:MODEL` or `hf:MODEL+ADAPTER`, or a reference policy, `scripted:NAME`.
    """


@cli.command("run", short_help="Play a policy by a plan and write the evaluation down.")
@click.option("--policy", required=True, help="hf:MODEL, hf:MODEL+ADAPTER or scripted:NAME.")
@click.option("--adapter", help="Adapter folder, if it is not part of --policy.")
@click.option("--label", default="evaluation", show_default=True, help="Name of the evaluation, for people.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write the evaluation to.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Plan to play, such as a run's eval_plan.json; stands against the options that make a plan.",
)
@click.option(
    "--suite",
    type=click.Choice(["official", "randomized", "holdout"]),
    default="official",
    show_default=True,
    help="Family of the tasks: the three scenarios, variants as training draws them, variants it never plays.",
)
@click.option("--seeds", type=click.IntRange(min=0), default=16, show_default=True, help="Sampled episodes a task.")
@click.option(
    "--observation-length",
    type=click.Choice(["full", "compact"]),
    default="full",
    show_default=True,
    help="Length of the texts that the model reads; use what it was trained on.",
)
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=256, show_default=True, help="Limit of a turn.")
@click.option(
    "--max-completion-length",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    help="Limit of all turns of an episode, tool results included, in tokens.",
)
@click.option("--turn-limit", type=click.IntRange(min=1), default=11, show_default=True, help="Turns that may call.")
@click.option(
    "--temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Of the sampled part; the greedy part has none.",
)
@click.option(
    "--top-p",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    help="Of the sampled part: least probability mass that is kept.",
)
@click.option(
    "--top-k",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the sampled part: tokens that are kept; 0 keeps all.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Episodes at a time; changes no draw.",
)
@click.option(
    "--dtype",
    type=click.Choice(["auto", "float64", "float32", "bfloat16", "float16"]),
    default="auto",
    show_default=True,
    help="Number format of the model. auto: double for a small model on a processor, else as it was saved.",
)
@click.option("--device", default="auto", show_default=True, help="Where the model runs, such as cpu or cuda.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors; with --json, JSON and no progress bar.")
@click.pass_context
def run(context: click.Context, /, **given: Any) -> int:
    """Play a policy by a plan: every task greedily, and sampled with the same seeds for each task.

    \b
    The untrained tiny model, then a heuristic to compare with:
      molforge-eval run --policy hf:molforge_train/models/tiny/base --observation-length compact \\
          --max-new-tokens 24 --max-completion-length 600 --out before.json
      molforge-eval run --policy scripted:heuristic --seeds 1
    \b
    Variants that training never plays:
      molforge-eval run --policy hf:Qwen/Qwen3-0.6B+runs/a/adapters --suite holdout
    \b
    A model by the plan of a run, so that the two can be compared:
      molforge-eval run --policy hf:Qwen/Qwen3-0.6B+runs/a/adapters --plan runs/a/eval_plan.json --out after.json

    Exit code 0: every planned episode was completed. 1: some broke in the environment and are averaged nowhere.
    """
    from molforge_eval.cli import evaluation_text
    from molforge_eval.policies import Loading, open_policy, parse_policy

    spec = parse_policy(given["policy"], adapter=given["adapter"])
    out: Path | None = given["out"]
    plan = _plan_of(context, given)
    if out is not None:
        evaluation_text.check_target(out, force=given["force"])
    loading = Loading(dtype=given["dtype"], device=given["device"], batch_size=given["batch_size"])
    player = open_policy(spec, loading)
    evaluation = evaluation_text.play_with_bar(plan, player, given["label"], is_quiet=given["quiet"])
    if out is not None:
        evaluation_text.write_evaluation(evaluation, out)
    _print(evaluation, out, given)
    return 1 if any(summary.completed < summary.planned for summary in evaluation.summaries) else 0


def _plan_of(context: click.Context, given: dict[str, Any]) -> EvaluationPlan:
    from molforge_env.errors import UsageError
    from molforge_eval.plan import Limits, read_plan, standard_plan

    making = ("suite", "seeds", "observation_length", "max_new_tokens", "max_completion_length", "turn_limit",
              "temperature", "top_p", "top_k")  # fmt: skip
    if given["plan_file"] is None:
        limits = Limits(given["max_new_tokens"], given["max_completion_length"], given["turn_limit"])
        return standard_plan(
            suite=given["suite"],
            seeds=given["seeds"],
            observation_length=given["observation_length"],
            limits=limits,
            temperature=given["temperature"],
            top_p=given["top_p"],
            top_k=given["top_k"],
        )
    set_too = [name for name in making if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    if set_too:
        raise UsageError(
            f"--plan and --{set_too[0].replace('_', '-')} were given, and the plan says it already",
            where="command line",
            mend="Leave one of them out.",
        )
    return read_plan(given["plan_file"])


def _print(evaluation: Evaluation, out: Path | None, given: dict[str, Any]) -> None:
    from molforge_eval.canonical import file_bytes
    from molforge_eval.cli import evaluation_text

    if given["as_json"]:
        click.echo(file_bytes(evaluation_text.summary_of(evaluation)).decode(), nl=False)
    elif not given["quiet"]:
        click.echo(evaluation_text.summary_text(evaluation))
        if out is not None:
            click.echo(f"written: {out}")


def main() -> None:
    """Run the program."""
    run_command(cli)


if __name__ == "__main__":
    main()
