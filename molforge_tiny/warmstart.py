"""The warm start: tokenizer, base model and SFT adapter from nothing, by a recipe that is written down beside them.

Two stages that can be used alone, transcripts and fine-tuning, are played twice: a random teacher's transcripts teach
the base what the laboratory says, a mixed teacher's transcripts teach the adapter to speak valid calls and to play
badly. Equal recipe, seed, thread count, packages and kind of processor give equal files.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from molforge_env import RULES_VERSION
from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_env.interface import INTERFACE_NAME
from molforge_env.seeding import stream_seed
from molforge_eval.canonical import digest, file_bytes, line_bytes, sha256_hex
from molforge_eval.records.conversations import Conversation
from molforge_tiny.base_model import BaseRecipe, build_model, train_base
from molforge_tiny.tokenizer import train_tokenizer
from molforge_train import recipes
from molforge_train.provenance import packages
from molforge_train.sft import Saving, SftRecipe, reproducible, save_adapter, train_adapter
from molforge_train.transcripts import TranscriptRecipe, generate_transcripts

LOG_NAME = "warmstart_log.jsonl"
RECIPE_NAME = "recipe.json"
_PLAYED = {"teacher", "scenario", "observation_length", "messages"}
_TORCH_SEED_BITS = 32
_FOLDER_MODE = 0o755
_FILE_MODE = 0o644

Show = Callable[[str, int, int, str], None]
"""Stage, step, steps of the stage, figures."""


class WarmstartRecipe(FrozenModel):
    """Everything that decides the files."""

    name: str
    """What the adapter calls its base model."""
    seed: int
    threads: int
    """Sums on several threads are folded in another order, so the number belongs to the recipe."""
    vocabulary: int
    base_transcripts: TranscriptRecipe
    base: BaseRecipe
    sft_transcripts: TranscriptRecipe
    sft: SftRecipe


class FileIdentity(FrozenModel):
    """A produced file, by content."""

    bytes: int
    sha256: str


class WarmstartRecord(FrozenModel):
    """What was made, from what, on what; written as `recipe.json`."""

    format_version: int = 1
    preset: str
    recipe: WarmstartRecipe
    rules_version: str
    interface: str
    packages: dict[str, str]
    parameters: int
    """Weights of the base model."""
    trainable_parameters: int
    """Weights of the adapter."""
    transcripts_sha256: dict[str, str]
    """Stage to digest of its conversations."""
    files: dict[str, FileIdentity]
    """Path within the folder to what stands there."""
    seconds: dict[str, float]
    """Stage to wall time; the one part that two runs do not share."""


class _Made(NamedTuple):
    parameters: int
    trainable: int
    transcripts: dict[str, str]


def read_recipe(preset: str, *, seed: int | None = None) -> WarmstartRecipe:
    """Read a shipped recipe.

    Args:
        preset: Name without the prefix `warmstart-`, such as `tiny-cpu`.
        seed: In place of the recipe's own.

    Raises:
        UsageError: No recipe has this name.
    """
    return recipes.read_recipe("warmstart", preset, WarmstartRecipe, {"seed": seed})


def make_warmstart(preset: str, recipe: WarmstartRecipe, folder: Path, *, show: Show) -> WarmstartRecord:
    """Make the files of a recipe in a new folder.

    Args:
        preset: Name of the recipe, for the record.
        recipe: What to make.
        folder: Must not exist; it appears when everything is in it.
        show: Called after each step.

    Raises:
        UsageError: The folder exists, or the vocabulary is too small.
    """
    if folder.exists():
        raise UsageError(
            f"the folder {folder.name!r} exists", where="--out", mend="Name a folder that does not exist yet."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename within one file system.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        work = Path(scratch) / "made"
        work.mkdir()
        seconds: dict[str, float] = {}
        with reproducible(recipe.threads), (work / LOG_NAME).open("wb") as log:
            made = _make(recipe, work, Path(scratch) / "trainer", _Recorder(log.write, show, recipe), seconds)
        record = WarmstartRecord(
            preset=preset,
            recipe=recipe,
            rules_version=RULES_VERSION,
            interface=INTERFACE_NAME,
            packages=packages(),
            parameters=made.parameters,
            trainable_parameters=made.trainable,
            transcripts_sha256=made.transcripts,
            files=identify_files(work),
            seconds=seconds,
        )
        (work / RECIPE_NAME).write_bytes(file_bytes(record))
        for path in work.rglob("*"):
            # The weights' writer lets nobody else read them.
            path.chmod(_FOLDER_MODE if path.is_dir() else _FILE_MODE)
        shutil.move(work, folder)
    return record


def identify_files(folder: Path) -> dict[str, FileIdentity]:
    """Hash what a recipe has made, the record itself and prose left out.

    Returns:
        Path within the folder to size and hash, in alphabetical order.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in (RECIPE_NAME, "README.md"):
            data = path.read_bytes()
            found[name] = FileIdentity(bytes=len(data), sha256=sha256_hex(data))
    return found


class _Recorder:
    """Writes each step to the log and shows it."""

    def __init__(self, write: Callable[[bytes], Any], show: Show, recipe: WarmstartRecipe) -> None:
        self._write = write
        self._show = show
        self._steps = {"base": recipe.base.steps, "sft": recipe.sft.steps}

    def step(self, line: dict[str, Any]) -> None:
        self._write(line_bytes(line))
        self._show(line["stage"], line["step"], self._steps[line["stage"]], f"loss {line['loss']:.3f}")

    def transcripts(self, stage: str, conversations: list[Conversation]) -> str:
        teachers = Counter(item.teacher for item in conversations)
        sha256 = digest([item.model_dump(mode="json", include=_PLAYED) for item in conversations])
        line = {"stage": stage, "conversations": len(conversations), "teachers": dict(sorted(teachers.items()))}
        self._write(line_bytes({**line, "sha256": sha256}))
        return sha256


def _make(recipe: WarmstartRecipe, work: Path, scratch: Path, recorder: _Recorder, seconds: dict[str, float]) -> _Made:
    with _timed("transcripts", seconds):
        first = list(generate_transcripts(recipe.base_transcripts, seed=stream_seed(recipe.seed, "base_transcripts")))
        second = list(generate_transcripts(recipe.sft_transcripts, seed=stream_seed(recipe.seed, "sft_transcripts")))
    digests = {
        "base_transcripts": recorder.transcripts("base_transcripts", first),
        "sft_transcripts": recorder.transcripts("sft_transcripts", second),
    }
    texts = render(first)
    with _timed("tokenizer", seconds):
        tokenizer = train_tokenizer(texts, vocabulary=recipe.vocabulary, context_length=recipe.base.context_length)
        tokenizer.save_pretrained(work / "base")
    with _timed("base", seconds):
        model = build_model(recipe.base, tokenizer, seed=_torch_seed(recipe.seed, "base"))
        train_base(model, tokenizer, texts, recipe.base, seed=recipe.seed, report=recorder.step)
        model.save_pretrained(work / "base")
        parameters = model.num_parameters()
    with _timed("sft", seconds):
        seed = _torch_seed(recipe.seed, "sft")
        adapter = train_adapter(
            model, tokenizer, second, recipe.sft, seed=seed, saving=Saving(scratch), report=recorder.step
        )
        save_adapter(adapter, work / "sft_adapter", base_name=recipe.name)
    trainable = sum(weight.numel() for weight in adapter.parameters() if weight.requires_grad)
    return _Made(parameters, trainable, digests)


def render(conversations: list[Conversation]) -> list[str]:
    """Write conversations as the chat template gives them, tools and all."""
    from transformers.utils.chat_template_utils import render_jinja_template
    from trl.chat_template_utils import qwen3_instruct_2507_chat_template

    chats = [item.chat() for item in conversations]
    tools: list[Any] = list(conversations[0].tools)
    return list(render_jinja_template(chats, tools=tools, chat_template=qwen3_instruct_2507_chat_template)[0])


def _torch_seed(seed: int, name: str) -> int:
    return stream_seed(seed, name) >> (64 - _TORCH_SEED_BITS)


@contextmanager
def _timed(stage: str, seconds: dict[str, float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - began, 1)
