"""Opening a run that was stopped, so that it can go on: the seal goes, the logs are mended, a row marks the place.

Only what was never reported as written is taken out of a log: a line that breaks off, an episode whose batch was not
yet on disk. Whatever was played after the checkpoint stays and is marked as superseded.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env import __version__
from molforge_env.errors import UsageError
from molforge_eval import layout
from molforge_eval.metrics_table import table_bytes
from molforge_eval.records.manifest import RunManifest
from molforge_eval.records.training import RolloutLine
from molforge_eval.resumes import MARKS
from molforge_eval.sealing import write_whole
from molforge_eval.weights import hash_file
from molforge_train.checkpoints import Checkpoint, checkpoint_folder, latest_whole
from molforge_train.recording import read_clock
from molforge_train.run_record import RunRecord
from molforge_train.trainer_log import TrainerLog


class Reopened(NamedTuple):
    """Where a run goes on."""

    start: Checkpoint | None
    """`None` begins training with the start adapter, or is after training."""
    resumes: int
    """How often training went on, this time included; 0 when it had not begun."""
    superseded: int
    """Episodes that give way."""
    is_trained: bool
    """Training is over, and what comes after it is left to do."""


def reopen(folder: Path, record: RunRecord) -> Reopened:
    """Open a run that was stopped, and that `check_open` has passed.

    Args:
        folder: The run directory; nobody else writes it.
        record: Its manifest; brought back to `running`.

    Raises:
        UnreadableError: Its last checkpoint is damaged.
    """
    start = latest_whole(checkpoint_folder(folder), record.manifest.run_id)
    is_trained = _is_trained(folder, record.manifest)
    # The seal goes first: without it no file can contradict it.
    for path in (layout.CHECKSUMS, layout.SUMMARY, *layout.PACKET_FILES):
        (folder / path).unlink(missing_ok=True)
    folder.with_name(f"{folder.name}.zip").unlink(missing_ok=True)
    shutil.rmtree(folder / "plots", ignore_errors=True)
    _remove_drafts(folder)
    if is_trained:
        record.update(status="running", status_reason=None, ended_at=None)
        return Reopened(None, 0, 0, is_trained=True)
    record.update(status="running", status_reason=None, ended_at=None, output_adapter=None)
    shutil.rmtree(folder / layout.ADAPTER_FOLDER, ignore_errors=True)
    (folder / layout.AFTER).unlink(missing_ok=True)
    if not (folder / layout.ROLLOUTS).exists():
        return Reopened(None, 0, 0, is_trained=False)
    step = 0 if start is None else start.step
    lines = mend_rollouts(folder)
    rows = mend_rows(folder)
    superseded = len({line["episode_id"] for line in lines if line["trainer_step"] >= step})
    log = TrainerLog(folder / layout.TRAINER_LOG, record.manifest.run_id, read_clock)
    log.mark_resume(step, dict(zip(MARKS, (len(lines), superseded), strict=True)))
    record.update(steps_completed=step, non_finite_steps=log.non_finite_steps)
    return Reopened(start, 1 + sum(row["type"] == "resume" for row in rows), superseded, is_trained=False)


def mend_rollouts(folder: Path) -> list[dict[str, Any]]:
    """Take what was not reported as written from the end of the rollout log, and write its table anew."""
    path = folder / layout.ROLLOUTS
    whole = path.read_bytes().split(b"\n")[:-1]
    lines = [orjson.loads(line) for line in whole]
    while lines and lines[-1]["ended_by"] is None:
        lines.pop()
    write_whole(path, b"".join(line + b"\n" for line in whole[: len(lines)]))
    write_whole(folder / layout.METRICS_TABLE, table_bytes(RolloutLine.model_validate(line) for line in lines))
    return lines


def mend_rows(folder: Path) -> list[dict[str, Any]]:
    """Take a row that breaks off from the end of the trainer log."""
    path = folder / layout.TRAINER_LOG
    if not path.exists():
        return []
    whole = path.read_bytes().split(b"\n")[:-1]
    write_whole(path, b"".join(line + b"\n" for line in whole))
    return [orjson.loads(line) for line in whole]


def is_finished(folder: Path, manifest: RunManifest) -> bool:
    """Tell whether a run is complete and sealed."""
    return manifest.status == "complete" and (folder / layout.CHECKSUMS).exists()


def check_open(folder: Path, manifest: RunManifest) -> None:
    """Refuse a run that there is nothing left to do for, or that this version cannot go on with.

    Args:
        folder: The run directory.
        manifest: Its manifest.

    Raises:
        UsageError: The run is complete, or another version began it.
    """
    where = f"{folder.name}/{layout.MANIFEST}"
    if is_finished(folder, manifest):
        mend = f"Build its packet: molforge-report build {folder}"
        if manifest.configuration.drive_output_dir or manifest.configuration.hf_output_repo:
            mend += f"; then bring it to where its settings say: molforge-train deliver {folder}"
        raise UsageError("the run is complete", where=where, mend=mend)
    if manifest.product_version != __version__:
        raise UsageError(
            f"version {manifest.product_version} began the run, this is {__version__}",
            where=where,
            mend=f"Install the version that began it: pip install molforge-evidence=={manifest.product_version}",
        )


def _is_trained(folder: Path, manifest: RunManifest) -> bool:
    made = manifest.output_adapter
    weights = folder / layout.ADAPTER_WEIGHTS
    is_whole = made is not None and weights.is_file() and hash_file(weights) == made.sha256
    return is_whole and manifest.steps_completed == manifest.configuration.max_steps


def _remove_drafts(folder: Path) -> None:
    for draft in [*folder.rglob(".*.part")]:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
