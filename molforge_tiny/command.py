"""`molforge-train warmstart`: make the built-in model again, from nothing.

The heavy modules are imported when the command runs, so that `--help` answers at once.
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("warmstart", short_help="Make the built-in tiny model from nothing.")
@click.option("--preset", default="tiny-cpu", show_default=True, help="Recipe to follow.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="New folder for the model.  [default: models/PRESET]", metavar="DIR"
)
@click.option("--seed", type=click.IntRange(min=0), help="In place of the recipe's own seed.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def command(preset: str, out: Path | None, seed: int | None, *, quiet: bool) -> None:
    """Make the tokenizer, base model and SFT adapter from nothing.

    Teachers play training variants of the laboratory, never an official task; a base model reads their transcripts and
    an adapter is fine-tuned on them. The folder gets weights, log and `recipe.json` with every seed, version and hash.
    """
    from molforge_tiny.warmstart import make_warmstart, read_recipe
    from molforge_train.host_libraries import FINETUNING, check_libraries
    from molforge_train.progress import Progress

    recipe = read_recipe(preset, seed=seed)
    check_libraries(FINETUNING)
    bars = {
        "base": Progress(recipe.base.steps, quiet=quiet),
        "sft": Progress(recipe.sft.steps, quiet=quiet),
    }
    folder = Path("models") / preset if out is None else out
    record = make_warmstart(
        preset, recipe, folder, show=lambda stage, step, _steps, figures: bars[stage].show(step, f"{stage}  {figures}")
    )
    click.echo(f"model    {folder}\nweights  {record.parameters:,} base, {record.trainable_parameters:,} adapter")
    for name, identity in record.files.items():
        click.echo(f"{identity.sha256[:16]}  {identity.bytes:>9,}  {name}")
