"""`molforge-train sft`: a LoRA adapter for any base model, from a file of conversations.

The heavy modules are imported when the command runs, so that `--help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("sft", short_help="Tune a LoRA adapter on conversations.")
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--base-model",
    required=True,
    metavar="MODEL",
    help="Folder or hub name, such as unsloth/Qwen3.5-2B or Qwen/Qwen3-1.7B.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="New folder.")
@click.option(
    "--preset",
    default="lora",
    show_default=True,
    metavar="NAME|FILE",
    help="Recipe: lora (a model of some billion parameters on a GPU), tiny-cpu (the built-in one), or a TOML file.",
)
@click.option("--steps", type=int, metavar="N", help="Optimizer steps, in place of the recipe's.")
@click.option("--learning-rate", type=float, metavar="X", help="Peak, in place of the recipe's.")
@click.option("--rank", type=int, metavar="N", help="Of the adapter, in place of the recipe's.")
@click.option("--batch-size", type=int, metavar="N", help="Conversations a batch, in place of the recipe's.")
@click.option("--gradient-accumulation", type=int, metavar="N", help="Batches a step, in place of the recipe's.")
@click.option("--max-length", type=int, metavar="N", help="Tokens of a conversation, in place of the recipe's.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Of every draw.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True,
              help="Where to train.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["auto", "float32", "bfloat16"]), default="auto", show_default=True,
              help="Number type of the weights.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def command(data: Path, base_model: str, out: Path, preset: str, *, quiet: bool, **given: Any) -> None:
    """Tune a LoRA adapter on conversations, so that training starts from a model that can speak to the laboratory.

    DATA is a file that `molforge-train data` wrote; each of its conversations is played again first, and one that is
    not sound is refused. Only the assistant's turns carry the loss where TRL can mark them in the chat template. The
    folder gets the adapter and sft_record.json: hash of the data, identity of the base, settings, versions. A
    fine-tuning that was stopped goes on when the same command is given again.

    \b
    molforge-train data --out sft.jsonl
    molforge-train sft sft.jsonl --base-model unsloth/Qwen3.5-2B --out sft_adapter
    molforge-train grpo --base-model unsloth/Qwen3.5-2B --sft-adapter-path sft_adapter

    With the built-in model, in a minute on two CPU cores:

    \b
    molforge-train data --out sft.jsonl --observation-length compact
    molforge-train sft sft.jsonl --base-model molforge_train/models/tiny/base --preset tiny-cpu --out sft_adapter
    molforge-train grpo --preset tiny-cpu --sft-adapter-path sft_adapter
    """
    from molforge_train.finetuning import finetune
    from molforge_train.host_libraries import FINETUNING, check_libraries
    from molforge_train.policy import choose_place
    from molforge_train.progress import Progress
    from molforge_train.recipes import read_recipe
    from molforge_train.sft import SftRecipe

    seed, device, dtype = given.pop("seed"), given.pop("device"), given.pop("dtype")
    recipe = read_recipe("sft", preset, SftRecipe, given)
    check_libraries(FINETUNING)
    place = choose_place(device, dtype)
    where = f"{place.accelerator or place.device}, {place.dtype}"
    click.echo(f"model          {base_model}\npreset         {preset}, seed {seed}\ndevice         {where}")
    progress = Progress(recipe.steps, quiet=quiet)
    record = finetune(data, base_model, out, recipe, seed=seed, place=place, show=progress.show)
    loss = "the assistant's turns" if record.assistant_only_loss else "whole conversations (the template has no marks)"
    click.echo(f"loss           {record.first_loss:.3f} to {record.last_loss:.3f}, over {loss}")
    click.echo(f"adapter        {out}  {record.adapter.sha256[:16]}, {record.adapter.parameters:,} weights")
    click.echo(f"next           molforge-train grpo --base-model {base_model} --sft-adapter-path {out}")
