"""The manifest of a run in progress: written before step 0 as `running`, and again whenever more is known."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from molforge_env import RULES_VERSION, __version__
from molforge_env.errors import UnreadableError, UsageError
from molforge_env.fingerprint import backend_fingerprint
from molforge_eval import layout
from molforge_eval.canonical import digest, file_bytes, plain
from molforge_eval.records.fields import FORMAT_VERSION, utc_text
from molforge_eval.records.manifest import Configuration, RunManifest
from molforge_eval.sealing import write_whole
from molforge_train.config import Resolved
from molforge_train.policy import Place
from molforge_train.provenance import git_commit, hardware, packages, scrubbed

SCRIPT = "molforge-train grpo"


class RunRecord:
    """The manifest of one run and the file that it stands in."""

    def __init__(self, folder: Path, manifest: RunManifest) -> None:
        """Keep the manifest; nothing is written before `update`."""
        self._folder = folder
        self.manifest = manifest

    @classmethod
    def read(cls, folder: Path) -> RunRecord:
        """Read the manifest of a run that was begun.

        Raises:
            UnreadableError: There is none, or it is none of this version.
        """
        try:
            return cls(folder, RunManifest.model_validate_json((folder / layout.MANIFEST).read_bytes()))
        except (OSError, ValidationError) as error:
            raise UnreadableError(
                "the run has no manifest that can be read",
                where=str(folder / layout.MANIFEST),
                mend="Name the directory of a run that `molforge-train grpo` began.",
            ) from error

    def update(self, **fields: Any) -> RunManifest:
        """Set fields and write the whole file, so that a reader never sees a half of it."""
        changed = {**dict(self.manifest), **fields}
        self.manifest = RunManifest.model_validate(changed)
        write_whole(self._folder / layout.MANIFEST, file_bytes(self.manifest))
        return self.manifest


@contextmanager
def writing_alone(folder: Path) -> Iterator[None]:
    """Keep every other process from writing a run while the block runs.

    Raises:
        UsageError: Another one writes it now.
        UnreadableError: There is no such folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UnreadableError(
            f"there is no folder {folder}", where=str(folder), mend="Name a run directory."
        ) from error
    try:
        # The lock goes with the process, however it ends.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            mend = "Wait for it, or stop it first."
            raise UsageError("another process writes this run", where=str(folder), mend=mend) from error
        yield
    finally:
        os.close(descriptor)


def run_id_of(configuration: Configuration, started_at: datetime) -> str:
    """Derive the id of a run from its settings and the second in which it began."""
    return f"run-{digest([plain(configuration), utc_text(started_at)])[:12]}"


def recorded(configuration: Configuration) -> Configuration:
    """Take home folder, host name and tokens out of the settings that a record shows."""
    texts = {name: scrubbed(value) for name, value in dict(configuration).items() if isinstance(value, str)}
    return configuration.model_copy(update=texts)


def first_manifest(
    resolved: Resolved, place: Place, *, run_id: str, started_at: datetime, plan_sha256: str
) -> RunManifest:
    """Describe a run that has just begun.

    Args:
        resolved: Settings, device and number type settled, and where each came from.
        place: The device.
        run_id: From [`run_id_of`][molforge_train.run_record.run_id_of].
        started_at: In UTC.
        plan_sha256: Digest of the evaluation plan.
    """
    commit = git_commit()
    return RunManifest(
        format_version=FORMAT_VERSION,
        run_id=run_id,
        run_name=resolved.configuration.run_name,
        product_version=__version__,
        rules_version=RULES_VERSION,
        script=SCRIPT,
        status="running",
        status_reason=None,
        started_at=started_at,
        ended_at=None,
        configuration=recorded(resolved.configuration),
        configuration_sources=resolved.sources,
        seeds={"training": resolved.configuration.seed},
        git_commit=commit.id,
        git_commit_reason=commit.reason,
        packages=packages(),
        hardware=hardware(place.accelerator),
        backend=backend_fingerprint(),
        plan_sha256=plan_sha256,
        base_model_sha256=None,
        input_adapter=None,
        output_adapter=None,
        trainable_parameters=None,
        total_parameters=None,
        steps_completed=0,
        training_seconds=None,
        non_finite_steps=0,
    )
