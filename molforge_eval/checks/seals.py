"""Whether the files are those that were sealed (rule R7): hashes, sizes, counts, chains, episode seals."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from molforge_eval import layout
from molforge_eval.canonical import seal_of
from molforge_eval.catalogue import finding, short
from molforge_eval.findings import Finding
from molforge_eval.records import ArtifactChecksum, Checksums, LogSeal
from molforge_eval.run_directory import RunDirectory
from molforge_eval.sealing import checksum_of, end_of_log, root_of


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare the files of a run with its seal."""
    yield from _check_chains(run)
    yield from _check_episodes(run)
    if run.checksums is not None:
        yield from _check_files(run, run.checksums)
        for log in run.checksums.logs:
            yield from _check_log(run, log)
        yield from _check_evaluations(run, run.checksums)
        yield from _check_counts(run, run.checksums)


def _check_counts(run: RunDirectory, checksums: Checksums) -> Iterator[Finding]:
    """Every log and evaluation that is there has its counts in the seal, once."""
    for key, paths, entries in (
        ("logs", layout.LOGS, [entry.path for entry in checksums.logs]),
        ("evaluations", layout.EVALUATIONS, [entry.path for entry in checksums.evaluations]),
    ):
        for path in paths:
            if path in run.files and entries.count(path) != 1:
                what = f"{path} stands {entries.count(path)} times among the sealed {key}"
                yield finding("SEAL_INCOMPLETE", what, file=layout.CHECKSUMS, pointer=f"/{key}")


def _check_files(run: RunDirectory, checksums: Checksums) -> Iterator[Finding]:
    for index, entry in enumerate(checksums.files):
        if run.may_lack(entry.path) and entry.path not in run.files:
            continue
        if entry.path not in run.files:
            what = f"{entry.path} was sealed and is gone"
            yield finding("SEALED_FILE_MISSING", what, file=layout.CHECKSUMS, pointer=f"/files/{index}/path")
        else:
            yield from _check_file(run, entry)
    sealed = {entry.path for entry in checksums.files}
    for path in run.files.sizes:
        if layout.is_record(path) and path not in sealed:
            yield finding("FILE_UNSEALED", "the record is not in checksums.json: it was added after sealing", file=path)
    root = root_of(checksums.files)
    if checksums.root_sha256 != root:
        what = f"the list of files has root {short(root)}, root_sha256 says {short(checksums.root_sha256)}"
        yield finding("ROOT_DIFFERS", what, file=layout.CHECKSUMS, pointer="/root_sha256")


def _check_file(run: RunDirectory, entry: ArtifactChecksum) -> Iterator[Finding]:
    try:
        actual = checksum_of(run.files, entry.path)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=entry.path)
        return
    if actual != entry:
        size = "" if actual.size == entry.size else f", {actual.size} bytes in place of {entry.size}"
        what = f"the file has SHA-256 {short(actual.sha256)}, sealed was {short(entry.sha256)}{size}"
        yield finding("CHECKSUM_DIFFERS", what, file=entry.path)


def _check_log(run: RunDirectory, sealed: LogSeal) -> Iterator[Finding]:
    if sealed.path not in layout.LOGS or sealed.path not in run.files:
        return
    try:
        end = end_of_log(run.files, sealed.path, line_bytes=run.limits.line_bytes)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=sealed.path)
        return
    table = run.every_rollout if sealed.path == layout.ROLLOUTS else run.every_trainer_row
    last = table["line"][-1] if len(table) else None
    episode = step = None
    if sealed.path == layout.ROLLOUTS and len(table):
        episode, step = table["episode_id"][-1], table["step_index"][-1]
    if end.lines != sealed.lines:
        what = f"the log has {end.lines} lines, {sealed.lines} were sealed"
        yield finding("LOG_COUNT_DIFFERS", what, file=sealed.path, line=last, episode=episode, step=step)
    if end.chain != sealed.chain:
        what = "the last line is not the one that was sealed"
        yield finding("LOG_END_DIFFERS", what, file=sealed.path, line=last, episode=episode, step=step)
    if sealed.episodes is not None:
        count = table["episode_id"].n_unique()
        if count != sealed.episodes:
            what = f"the log has {count} episodes, {sealed.episodes} were sealed"
            yield finding("EPISODE_COUNT_DIFFERS", what, file=sealed.path)


def _check_evaluations(run: RunDirectory, checksums: Checksums) -> Iterator[Finding]:
    sealed = {entry.path: entry.episodes for entry in checksums.evaluations}
    for path, evaluation in run.evaluations():
        count = len(evaluation.episodes)
        if sealed.get(path, count) != count:
            what = f"the evaluation has {count} episodes, {sealed[path]} were sealed"
            yield finding("EPISODE_COUNT_DIFFERS", what, file=path, pointer="/episodes")


def _check_chains(run: RunDirectory) -> Iterator[Finding]:
    broken = run.every_rollout.filter(~pl.col("chain_holds")).select("line", "episode_id", "step_index")
    for line, episode, step in broken.iter_rows():
        what = "the line is not chained to the one before it: it was changed, or a line before it was dropped or moved"
        yield finding(
            "CHAIN_BROKEN", what, file=layout.ROLLOUTS, line=line, pointer="/chain", episode=episode, step=step
        )


def _check_episodes(run: RunDirectory) -> Iterator[Finding]:
    for path, evaluation in run.evaluations():
        for index, episode in enumerate(evaluation.episodes):
            own = seal_of(episode)
            if episode.seal != own:
                what = f"the record has digest {short(own)}, its seal is {short(episode.seal)}"
                place = f"/episodes/{index}"
                yield finding("EPISODE_SEAL_DIFFERS", what, file=path, pointer=place, episode=episode.episode_id)
