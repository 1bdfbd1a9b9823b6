"""`molforge-train data`: conversations for fine-tuning, played by teachers on training variants.

The heavy modules are imported when the command runs, so that `--help` answers at once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from molforge_env.errors import UsageError

if TYPE_CHECKING:
    from molforge_train.teachers import TeacherName


@click.command("data", short_help="Write conversations that teach the laboratory.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE", help="New file, .jsonl."
)
@click.option("--conversations", type=click.IntRange(min=1), default=480, show_default=True, help="Lines of the file.")
@click.option(
    "--teachers",
    default="expert=0.45,habit=0.30,random=0.25",
    show_default=True,
    metavar="NAME=SHARE,...",
    help="Who plays: expert (scripted, plays to win), habit (cheap assays, early submission, now and then a slip), "
    "random (any call that has a meaning). A teacher is drawn for each conversation.",
)
@click.option(
    "--observation-length",
    type=click.Choice(["full", "compact"]),
    default="full",
    show_default=True,
    help="Length of the texts; the run that goes on from the adapter has the same.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Of every draw.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def command(out: Path, conversations: int, teachers: str, observation_length: str, seed: int, *, quiet: bool) -> None:
    """Write conversations that teach a model how the laboratory is spoken to.

    Each line is one episode as chat messages with tool calls (schemas/conversation.schema.json): a teacher plays a
    training variant to its end. Official tasks are never played, and a line holds nothing but what a player sees. The
    same options give the same bytes; each line names its seed and its place in the draws.

    A mixture that only plays well leaves reinforcement learning nothing to do, one that only plays badly gives it
    nothing to find: some of both is best.

    \b
    molforge-train data --out sft.jsonl
    molforge-eval validate sft.jsonl                 every conversation is played again
    molforge-train sft sft.jsonl --base-model MODEL --out adapter
    molforge-train grpo --base-model MODEL --sft-adapter-path adapter
    """
    from molforge_eval.canonical import line_bytes, sha256_hex
    from molforge_eval.sealing import write_whole
    from molforge_train.progress import Progress
    from molforge_train.transcripts import TranscriptRecipe, generate_transcripts

    if out.exists():
        raise UsageError(f"the file {out.name} exists", where="--out", mend="Name a file that does not exist yet.")
    if out.suffix != ".jsonl":
        raise UsageError(f"{out.name} does not end in .jsonl", where="--out", mend=f"Write {out.stem}.jsonl.")
    recipe = TranscriptRecipe(
        conversations=conversations,
        mixture=_mixture(teachers),
        observation_length="full" if observation_length == "full" else "compact",
    )
    progress = Progress(conversations, quiet=quiet, unit="conversation")
    lines: list[bytes] = []
    played: Counter[str] = Counter()
    for place, item in enumerate(generate_transcripts(recipe, seed=seed), start=1):
        lines.append(line_bytes(item.line()))
        played[item.teacher] += 1
        progress.show(place, f"{len(item.messages) // 2 - 1} calls by {item.teacher}")
    data = b"".join(lines)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, data)
    except OSError as error:
        what = f"{out.name} cannot be written: {error.strerror or error}"
        raise UsageError(what, where="--out", mend="Name a place that is open to writing.") from error
    shares = ", ".join(f"{count} by {name}" for name, count in sorted(played.items()))
    click.echo(f"file           {out}\nconversations  {conversations}: {shares}\nsha256         {sha256_hex(data)}")


def _mixture(text: str) -> dict[TeacherName, float]:
    from molforge_train.teachers import TEACHERS

    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (word.strip() for word in part.partition("="))
        if name in shares:
            raise UsageError(f"{name} has two shares", where="--teachers", mend="Give each teacher one share.")
        try:
            shares[name] = float(share)
        except ValueError:
            shares[name] = -1.0
        if name not in TEACHERS or not 0 <= shares[name] <= 1e6:
            mend = f"Give NAME=SHARE with one of {', '.join(sorted(TEACHERS))}, such as expert=0.5,random=0.5."
            raise UsageError(f"{part.strip()!r} is no share of a teacher", where="--teachers", mend=mend)
    if not sum(shares.values()):
        raise UsageError("no teacher has a share", where="--teachers", mend="Give one of them a share above 0.")
    return {name: shares[name] for name in TEACHERS if name in shares}
