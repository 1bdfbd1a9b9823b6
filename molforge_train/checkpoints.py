"""Checkpoints of the host trainer, and which of them a run may go on from.

They hold optimizer state and pickles, so they are no evidence and stand beside the run directory. A process can be
killed while one is written: only a checkpoint with our mark, written last, is whole.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env.errors import UnreadableError
from molforge_eval.canonical import file_bytes
from molforge_eval.sealing import write_whole
from molforge_eval.weights import hash_file

MARK = "molforge_checkpoint.json"
"""Stands in a checkpoint that is whole."""
_WEIGHTS = "adapter_model.safetensors"


class Checkpoint(NamedTuple):
    """A whole checkpoint."""

    folder: Path
    step: int
    """Optimizer steps done."""


def checkpoint_folder(run: Path) -> Path:
    """Name the folder of a run's checkpoints."""
    return run.with_name(f"{run.name}.checkpoints")


def mark_whole(checkpoints: Path, step: int, run_id: str) -> None:
    """Mark the checkpoint of a step as whole, with the hash of its adapter."""
    folder = checkpoints / f"checkpoint-{step}"
    mark = {"run_id": run_id, "step": step, "adapter_sha256": hash_file(folder / _WEIGHTS)}
    write_whole(folder / MARK, file_bytes(mark))


def latest_whole(checkpoints: Path, run_id: str) -> Checkpoint | None:
    """Find the last whole checkpoint of a run; `None` when it has none.

    Raises:
        UnreadableError: The adapter of that checkpoint is not the one that was saved.
    """
    found = []
    for mark in checkpoints.glob(f"checkpoint-*/{MARK}"):
        told = orjson.loads(mark.read_bytes())
        if told["run_id"] == run_id:
            found.append((told["step"], mark.parent, told["adapter_sha256"]))
    if not found:
        return None
    step, folder, sha256 = max(found)
    if not (folder / _WEIGHTS).is_file() or hash_file(folder / _WEIGHTS) != sha256:
        raise UnreadableError(
            "the adapter of the checkpoint is not the one that was saved",
            where=f"{checkpoints.name}/{folder.name}/{_WEIGHTS}",
            mend="Remove this checkpoint to go on from the one before it.",
        )
    return Checkpoint(folder, step)


def remove_checkpoints(checkpoints: Path) -> None:
    """Remove them; a complete run has no use for them. What a tracker keeps there stays."""
    for path in checkpoints.glob("checkpoint-*"):
        shutil.rmtree(path, ignore_errors=True)
    (checkpoints / "README.md").unlink(missing_ok=True)
    with suppress(OSError):
        checkpoints.rmdir()


def check_loaded(model: Any, checkpoint: Checkpoint) -> None:
    """Hold the adapter that training goes on with to that of the checkpoint, tensor by tensor.

    Raises:
        UnreadableError: The host has loaded another adapter, or none.
    """
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import load_file

    saved = load_file(checkpoint.folder / _WEIGHTS)
    loaded = get_peft_model_state_dict(model, adapter_name="default")
    unlike = sorted(set(saved) ^ set(loaded)) or [
        name for name, tensor in saved.items() if not torch.equal(tensor, loaded[name].cpu().to(tensor.dtype))
    ]
    if unlike:
        raise UnreadableError(
            f"{len(unlike)} tensors of the adapter are not those of the checkpoint, first {unlike[0]}",
            where=f"{checkpoint.folder.name}/{_WEIGHTS}",
            mend="Install the versions of constraints.txt, with which the run began.",
        )
