"""Fine-tuning from a file: conversations in, an adapter folder with its provenance out.

The folder is what `grpo --sft-adapter-path` takes. It appears when everything is in it.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from molforge_env import RULES_VERSION, __version__
from molforge_env.errors import MolForgeError, UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval.canonical import digest, file_bytes, plain
from molforge_eval.conversations import ConversationFile, read_conversations
from molforge_eval.model_loading import find_held, is_out_of_memory
from molforge_eval.records.manifest import AdapterIdentity
from molforge_eval.weights import base_model_digest
from molforge_train.checkpoints import MARK, checkpoint_folder, latest_whole, remove_checkpoints
from molforge_train.config import shipped_path
from molforge_train.delivery import identify_adapter
from molforge_train.policy import Place, load_base
from molforge_train.preflight import check_base
from molforge_train.progress import warn
from molforge_train.provenance import packages, scrubbed
from molforge_train.sft import Saving, SftRecipe, can_mark_assistant, reproducible, save_adapter, train_adapter

RECORD_NAME = "sft_record.json"
SAVE_STEPS = 20
Show = Callable[[int, str], None]
"""Step, figures."""


class DataIdentity(FrozenModel):
    """The conversations that an adapter was tuned on."""

    name: str
    sha256: str
    conversations: int
    teachers: dict[str, int]
    seeds: tuple[int, ...]
    observation_lengths: tuple[str, ...]


class SftRecord(FrozenModel):
    """What was made, from what, on what; written as `sft_record.json`."""

    format_version: int = 1
    product_version: str = __version__
    rules_version: str = RULES_VERSION
    recipe: SftRecipe
    seed: int
    data: DataIdentity
    base_model: str
    base_model_sha256: str | None
    base_model_sha256_reason: str | None
    assistant_only_loss: bool
    """Whether the assistant's turns alone carried the loss; else the chat template has no marks for them."""
    adapter: AdapterIdentity
    first_loss: float
    last_loss: float
    device: str
    dtype: str
    packages: dict[str, str]


class FinetuningError(MolForgeError):
    """Fine-tuning broke off; nothing was written."""


def finetune(
    data: Path,
    base_model: str,
    folder: Path,
    recipe: SftRecipe,
    *,
    seed: int,
    place: Place,
    show: Show,
    save_steps: int = SAVE_STEPS,
) -> SftRecord:
    """Tune an adapter on a file of conversations.

    What was stopped goes on when it is called again with the same arguments: its checkpoints stand beside the folder
    until that is there.

    Args:
        data: From `molforge-train data`.
        base_model: Folder or hub name.
        folder: Must not exist.
        recipe: Rank, steps and learning rate.
        seed: First weights of the adapter and order of the conversations.
        place: Device and number type.
        show: Called after each step.
        save_steps: Steps between two checkpoints.

    Raises:
        UsageError: The folder exists, checkpoints of another fine-tuning stand beside it, the data has faults, or the
            model's chat template is none that can be used.
        FinetuningError: Memory ran out, or a loss was not finite.
    """
    if folder.exists():
        raise UsageError(f"the folder {folder.name} exists", where="--out", mend="Name a folder that does not exist.")
    file = _read_data(data)
    check_base(base_model)
    losses: list[float] = []
    saving = _find_saving(folder, [plain(recipe), seed, file.sha256, base_model, place.dtype], save_steps)

    def report(line: dict[str, Any]) -> None:
        losses.append(line["loss"])
        if not math.isfinite(line["loss"]):
            remove_checkpoints(saving.folder)
            what = f"the loss of step {line['step']} is not finite"
            raise FinetuningError(what, where="recipe, learning_rate", mend="Set --learning-rate lower.")
        if saving.start is None or line["step"] > saving.start.step:
            show(line["step"], f"loss {line['loss']:.3f}")

    model, tokenizer = load_base(base_model, place.dtype, side="right")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch,
        reproducible(1, place.device),
    ):
        made = Path(scratch) / "made"
        with _explained(recipe, losses, saving):
            adapter = train_adapter(
                model, tokenizer, file.conversations, recipe, seed=seed, saving=saving, report=report, place=place
            )
        save_adapter(adapter, made, base_name=scrubbed(base_model))
        found = find_held(shipped_path(base_model))
        record = SftRecord(
            recipe=recipe,
            seed=seed,
            data=_identify(data, file),
            base_model=scrubbed(base_model),
            base_model_sha256=None if found is None else base_model_digest(found),
            base_model_sha256_reason="the files of the model are not at hand" if found is None else None,
            assistant_only_loss=can_mark_assistant(tokenizer),
            adapter=identify_adapter(made, folder.name),
            first_loss=losses[0],
            last_loss=losses[-1],
            device=place.accelerator or place.device,
            dtype=place.dtype,
            packages=packages(),
        )
        (made / RECORD_NAME).write_bytes(file_bytes(record))
        for path in made.iterdir():
            # The weights' writer lets nobody else read them.
            path.chmod(0o644)
        shutil.move(made, folder)
    remove_checkpoints(saving.folder)
    return record


def _find_saving(folder: Path, settings: list[Any], every: int) -> Saving:
    checkpoints, identity = checkpoint_folder(folder), f"sft-{digest(settings)[:12]}"
    start = latest_whole(checkpoints, identity)
    if start is None and any(checkpoints.glob(f"*/{MARK}")):
        raise UsageError(
            "checkpoints of a fine-tuning with other settings stand beside the folder",
            where=str(checkpoints),
            mend="Call it with the data, base and settings of that one to go on, or remove the checkpoints.",
        )
    if start is not None:
        warn(f"goes on from step {start.step}, which stands in {checkpoints.name}")
    return Saving(checkpoints, every, identity, start)


@contextmanager
def _explained(recipe: SftRecipe, losses: Sequence[float], saving: Saving) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "num_samples" not in str(error):
            raise
        # The host drops a conversation of which nothing of the assistant is left, and then has none.
        what = f"no conversation has a turn of the assistant within {recipe.max_length} tokens"
        raise FinetuningError(what, where="recipe, max_length", mend="Set --max-length higher.") from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        mend = "Set --max-length lower, or --batch-size 1 with --gradient-accumulation raised by as much."
        what = f"out of memory after step {len(losses)} of {recipe.steps}"
        raise FinetuningError(what, where=f"recipe, batch_size {recipe.batch_size}", mend=mend) from error
    finally:
        if not any(saving.folder.glob(f"*/{MARK}")):
            remove_checkpoints(saving.folder)


def _read_data(path: Path) -> ConversationFile:
    file = read_conversations(path)
    errors = [item for item in file.ledger.findings() if item.severity == "error"]
    if errors:
        first = errors[0]
        raise UsageError(
            f"the data has {len(errors)} findings, first {first.code}: {first.what}",
            where=first.where.text(),
            mend=f"`molforge-eval validate {path.name}` shows them all; make it again with `molforge-train data`.",
        )
    return file


def _identify(path: Path, file: ConversationFile) -> DataIdentity:
    played = file.conversations
    return DataIdentity(
        name=path.name,
        sha256=file.sha256,
        conversations=len(played),
        teachers=dict(sorted(Counter(item.teacher for item in played).items())),
        seeds=tuple(sorted({item.seed for item in played})),
        observation_lengths=tuple(sorted({item.observation_length for item in played})),
    )
