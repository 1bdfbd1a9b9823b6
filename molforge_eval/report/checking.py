"""A run checked, hashed and judged: what a packet and a comparison begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.catalogue import printable
from molforge_eval.ladder import ladder, ladder_of
from molforge_eval.limits import DEFAULT_LIMITS
from molforge_eval.records.identity import ArtifactChecksum
from molforge_eval.regeneration_models import Wish
from molforge_eval.replay import verify_loaded
from molforge_eval.report.assembly import Checked
from molforge_eval.run_directory import RunDirectory
from molforge_eval.run_files import list_run
from molforge_eval.sealing import checksum_of, root_of
from molforge_eval.validate import validate_loaded
from molforge_eval.verdict import decide

CheckStage = Literal["check", "play", "judge"]
OnCheckStage = Callable[[CheckStage], None]
OnEpisodes = Callable[[int, int], None]
State = Mapping[str, tuple[int, int, int]]
"""File number, size and time of change of each record."""


def check_run(
    run: RunDirectory,
    *,
    replay: bool = True,
    wish: Wish | None = None,
    on_stage: OnCheckStage | None = None,
    on_episodes: OnEpisodes | None = None,
) -> Checked:
    """Validate a run, play its episodes again, and judge it by its plan.

    Args:
        run: The run as it was read, without the files of an older packet: see `without_packet`.
        replay: Play every episode again; a run of format version 0 has none that could be.
        wish: Have the run's model play again; means nothing without `replay`.
        on_stage: Called when a stage begins.
        on_episodes: Called with episodes played again and episodes in all.

    Raises:
        MissingDependencyError: RDKit cannot be imported.
        UsageError: The memory does not hold the model.
    """
    tell = on_stage or (lambda _stage: None)
    is_replayed = replay and run.format_version == 1
    tell("play" if is_replayed else "check")
    result = verify_loaded(run, wish=wish, on_progress=on_episodes) if is_replayed else validate_loaded(run)
    tell("judge")
    files = _hash_records(run)
    rungs = ladder() if run.plan is None else ladder_of(run.plan)
    verdict = None
    if run.plan is not None:
        verdict = decide(run.before, run.after, run.plan, result.findings, ladder=rungs)
    return Checked(
        run=run,
        files=files,
        root_sha256=root_of(files) if files else None,
        result=result,
        replayed=is_replayed,
        verdict=verdict,
        ladder=rungs,
    )


def state_of(path: Path) -> State:
    """Note what the records of a run look like from outside, or the file that holds it.

    Args:
        path: A run directory, an archive or a packet PDF; one that is not there has no state.
    """
    if path.is_dir():
        listed = list_run(path, DEFAULT_LIMITS).sizes
        names = [name for name in listed if layout.is_record(name) or name == layout.CHECKSUMS]
    else:
        names = [""]
    state = {}
    for name in names:
        with suppress(OSError):
            found = (path / name).lstat()
            state[name] = (found.st_ino, found.st_size, found.st_mtime_ns)
    return state


def refuse_change(path: Path, earlier: State) -> None:
    """Refuse a run that has changed since: its numbers would be of one state, and its hashes of another.

    Args:
        path: As for `state_of`.
        earlier: Its state before it was read.

    Raises:
        UnreadableError: It has.
    """
    now = state_of(path)
    changed = sorted(name for name in earlier.keys() | now.keys() if earlier.get(name) != now.get(name))
    if changed:
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UnreadableError(
            f"the run changed while it was read: {printable(changed[0] or path.name)}{more}",
            where=printable(str(path)),
            mend="Run it again when nothing writes there any more.",
        )


def without_packet(run: RunDirectory) -> RunDirectory:
    """Look away from an older packet: it will be replaced, and must not leave a trace in the new one.

    One that is itself the input is evidence, and is checked with the rest.
    """
    if run.is_packet:
        return run
    sizes = {path: size for path, size in run.files.sizes.items() if path not in layout.PACKET_FILES}
    return replace(run, files=replace(run.files, sizes=sizes))


def _hash_records(run: RunDirectory) -> tuple[ArtifactChecksum, ...]:
    entries = []
    for path in sorted(run.files.sizes):
        if layout.is_record(path):
            try:
                entries.append(checksum_of(run.files, path))
            except OSError:
                # Validation has named it; a file that cannot be read has no hash to print.
                continue
    if run.is_packet and run.checksums is not None:
        # What a packet does not carry stands in its seal alone.
        entries += [entry for entry in run.checksums.files if entry.path not in run.files and run.may_lack(entry.path)]
    return tuple(sorted(entries, key=lambda entry: entry.path))
