"""The run directory of a case: a sound run copied, edited, sealed again, packed."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from evidence_builder import build_run
from old_layout import make_bare_old_run, make_old_run

from evidence_cases import archives, papers
from evidence_cases.cases import EXAMPLES, SOUND, Case, read_case
from evidence_cases.registry import make_edit
from evidence_cases.seals import SEALS
from molforge_env.interface import ObservationLength
from molforge_eval.canonical import line_bytes
from molforge_train.transcripts import TranscriptRecipe, generate_transcripts

DEFAULT_BASE = "built"
CONVERSATIONS = "conversations.jsonl"
SAMPLE = EXAMPLES.parent.parent / "data" / "sample_run.tar.gz"


def unpack_sample(root: Path) -> Path:
    """Unpack the committed run of the tiny model."""
    holder = root.parent / f"{root.name}-unpacking"
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(holder, filter="data")
    (found,) = holder.iterdir()
    found.rename(root)
    holder.rmdir()
    return root


def write_conversations(root: Path, *, count: int = 3, observation_length: ObservationLength = "compact") -> Path:
    """Write a file of conversations into a folder of its own."""
    root.mkdir()
    recipe = TranscriptRecipe(
        conversations=count, mixture={"expert": 0.5, "random": 0.5}, observation_length=observation_length
    )
    lines = [line_bytes(item.line()) for item in generate_transcripts(recipe, seed=3)]
    (root / CONVERSATIONS).write_bytes(b"".join(lines))
    return root


MAKERS: Mapping[str, Callable[..., Path]] = {
    "build_run": build_run,
    "unpack_sample": unpack_sample,
    "write_conversations": write_conversations,
}
REMAKERS: Mapping[str, Callable[[Path, Path], Path]] = {
    "make_bare_old_run": make_bare_old_run,
    "make_old_run": make_old_run,
}
"""Makers that make a run in another layout from one of this."""


class Corpus:
    """The sound runs, each made once and copied for each case."""

    def __init__(self, folder: Path) -> None:
        """Keep runs in a folder, which is empty."""
        self._folder = folder

    def copy(self, name: str, target: Path) -> Path:
        """Copy a sound run, made now if nobody has asked for it before."""
        return Path(shutil.copytree(self.find(name), target, symlinks=True))

    def find(self, name: str) -> Path:
        """Find a sound run, which is not to be changed."""
        kept = self._folder / name / "run"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            case = read_case(EXAMPLES / SOUND / f"{name}.toml").case
            make_case(case, self, kept)
        return kept


def make_case(case: Case, corpus: Corpus, root: Path) -> Path:
    """Make what a case says.

    Args:
        case: The case.
        corpus: Where its base is from.
        root: The folder to make.

    Returns:
        What is to be judged: the folder, or the archive beside it.

    Raises:
        CaseError: An edit cannot be made.
    """
    if case.make is not None and case.make in REMAKERS:
        REMAKERS[case.make](corpus.find(case.base or DEFAULT_BASE), root)
    elif case.make is not None:
        MAKERS[case.make](root, **case.arguments)
    else:
        corpus.copy(case.base or DEFAULT_BASE, root)
    for change in case.edits:
        make_edit(root, change)
    if case.edits and case.seal != "nothing":
        SEALS[case.seal](root)
    if case.paper is not None:
        return papers.put_on_paper(root, case.paper)
    return root if case.pack is None else archives.pack(root, case.pack)
