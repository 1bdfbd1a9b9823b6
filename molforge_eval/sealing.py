"""Sealing: the hashes and counts that make a later change show.

The trainer seals last; whatever it wrote before is then named, counted and hashed. A packet made later carries the root
hash and is itself no record.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.canonical import chain_of, chain_start, digest, file_bytes, plain, sha256_hex
from molforge_eval.limits import DEFAULT_LIMITS
from molforge_eval.records.fields import FORMAT_VERSION
from molforge_eval.records.identity import ArtifactChecksum, Checksums, EvaluationSeal, LogSeal
from molforge_eval.records.training import RolloutLine
from molforge_eval.run_files import RunFiles, list_run

_CHUNK = 2**20


class RolloutChains:
    """The chain of each open episode of a rollout log, for the one that writes it."""

    def __init__(self) -> None:
        """Start without an episode."""
        self._last: dict[str, str] = {}

    def seal(self, line: RolloutLine) -> RolloutLine:
        """Return the line with its chain value, and remember it for the episode's next line.

        Args:
            line: The line with any value as its chain.
        """
        previous = self._last.get(line.episode_id) or chain_start(line.run_id, line.episode_id)
        chain = chain_of(previous, plain(line))
        self._last[line.episode_id] = chain
        return line.model_copy(update={"chain": chain})


def seal_run(run_dir: Path) -> Checksums:
    """Hash and count the records of a run and write `checksums.json`.

    Files that are no records (packets, caches, anything unknown) are left out.

    Args:
        run_dir: A run directory whose records are all written.

    Raises:
        UnreadableError: The directory or its manifest cannot be read.
    """
    files = list_run(run_dir)
    checksums = compute_checksums(files, _run_id(files))
    write_whole(run_dir / layout.CHECKSUMS, file_bytes(checksums))
    return checksums


def compute_checksums(files: RunFiles, run_id: str) -> Checksums:
    """Compute the seal of a run as it stands on disk; nothing is written.

    Raises:
        OSError: A record cannot be read.
    """
    entries = tuple(checksum_of(files, path) for path in sorted(files.sizes) if layout.is_record(path))
    return Checksums(
        format_version=FORMAT_VERSION,
        run_id=run_id,
        files=entries,
        logs=tuple(_log_seal(files, path) for path in layout.LOGS if path in files),
        evaluations=tuple(_evaluation_seal(files, path) for path in layout.EVALUATIONS if path in files),
        root_sha256=root_of(entries),
    )


def root_of(entries: Sequence[ArtifactChecksum]) -> str:
    """Return the root hash over a list of files, in the list's order."""
    return digest([[entry.path, entry.sha256, entry.size] for entry in entries])


def checksum_of(files: RunFiles, path: str) -> ArtifactChecksum:
    """Hash one file; a second question is answered from the first.

    Raises:
        OSError: The file cannot be read.
    """
    if path in files.hashes:
        sha256, size = files.hashes[path]
        return ArtifactChecksum(path=path, sha256=sha256, size=size)
    running = hashlib.sha256()
    size = 0
    with files.open(path) as handle:
        while chunk := handle.read(_CHUNK):
            running.update(chunk)
            size += len(chunk)
    files.hashes[path] = (running.hexdigest(), size)
    return ArtifactChecksum(path=path, sha256=running.hexdigest(), size=size)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old bytes or the new ones; a link is replaced, never followed."""
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)
    try:
        with draft.open("xb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def last_line_chain(raw: bytes) -> str:
    """Return the chain value that a log ends in: the line's own `chain`, else the digest of its bytes.

    Args:
        raw: The last line that is not blank, without its line end.
    """
    try:
        value: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = None
    chain = value.get("chain") if isinstance(value, Mapping) else None
    return chain if isinstance(chain, str) else sha256_hex(raw)


class LogEnd(NamedTuple):
    """How many lines a log has, and the chain value that it ends in; `None` for an empty log."""

    lines: int
    chain: str | None


def end_of_log(files: RunFiles, path: str, *, line_bytes: int = DEFAULT_LIMITS.line_bytes) -> LogEnd:
    """Count the lines of a log that are not blank and read where it ends.

    Args:
        files: The run.
        path: A log that the run has.
        line_bytes: Bound on what is kept of one line; of a longer one the first part counts.

    Raises:
        OSError: The log cannot be read.
    """
    lines = 0
    last = b""
    is_start = True
    with files.open(path) as handle:
        while block := handle.read(_CHUNK) + handle.readline(line_bytes):
            begun = io.BytesIO(block).readlines()[0 if is_start else 1 :]
            texts = [text for text in map(bytes.strip, begun) if text]
            lines += len(texts)
            last = texts[-1][:line_bytes] if texts else last
            is_start = block.endswith(b"\n")
    return LogEnd(lines, last_line_chain(last) if lines else None)


def _log_seal(files: RunFiles, path: str) -> LogSeal:
    end = end_of_log(files, path)
    episodes = None
    if path == layout.ROLLOUTS:
        with files.open(path) as handle:
            episodes = len({orjson.loads(raw)["episode_id"] for raw in handle if raw.strip()})
    return LogSeal(path=path, lines=end.lines, chain=end.chain, episodes=episodes)


def _evaluation_seal(files: RunFiles, path: str) -> EvaluationSeal:
    with files.open(path) as handle:
        return EvaluationSeal(path=path, episodes=len(orjson.loads(handle.read())["episodes"]))


def _run_id(files: RunFiles) -> str:
    try:
        with files.open(layout.MANIFEST) as handle:
            return str(orjson.loads(handle.read())["run_id"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UnreadableError(
            f"the run has no readable manifest: {error}",
            where=str(files.root / layout.MANIFEST),
            mend="Write run_manifest.json before sealing the run.",
        ) from error
