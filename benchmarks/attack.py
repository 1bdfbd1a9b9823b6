"""The validator attacks itself: every operator makes a sound run look better, and must be found.

`python -m benchmarks.attack` tries each operator naively (the lie alone) and forged (everything that follows from the
lie computed again) and prints what was found. Codes of hashes, counts and chains do not count against a forger. The
last line is `operators=N detected=N false_alarms=N`; the exit code is 0 when all are found and nothing sound is.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from benchmarks.tampering import (
    artifact_edits,
    believed_edits,
    evaluation_edits,
    plan_edits,
    record_edits,
    rollout_edits,
    trainer_edits,
)
from benchmarks.tampering.corpus import SoundRun, sound_runs
from benchmarks.tampering.forger import forge
from benchmarks.tampering.operator import Operator, UnfitRunError
from molforge_eval.catalogue import entry_of
from molforge_eval.replay import verify
from molforge_eval.validate import validate

OPERATORS: tuple[Operator, ...] = (
    *rollout_edits.OPERATORS,
    *trainer_edits.OPERATORS,
    *evaluation_edits.OPERATORS,
    *plan_edits.OPERATORS,
    *record_edits.OPERATORS,
    *artifact_edits.OPERATORS,
)
SEAL_CODES = frozenset(
    {"CHAIN_BROKEN", "CHECKSUM_DIFFERS", "EPISODE_COUNT_DIFFERS", "EPISODE_SEAL_DIFFERS", "FILE_UNSEALED"}
    | {"LOG_COUNT_DIFFERS", "LOG_END_DIFFERS", "ROOT_DIFFERS", "SEALED_FILE_MISSING"}
)
"""Codes that a forger avoids by sealing again."""


class Attempt(NamedTuple):
    """What was found of one operator on one run."""

    run: str
    naive: frozenset[str]
    forged: frozenset[str] | None
    """`None` where the lie is the seal: sealed again, the run is sound again."""

    @property
    def own(self) -> frozenset[str]:
        """Codes that a forger cannot avoid by sealing again."""
        return self.naive if self.forged is None else self.forged - SEAL_CODES

    @property
    def is_found(self) -> bool:
        """Whether the lie is found, naive and forged."""
        return bool(self.naive) and bool(self.own)


def codes_of(path: Path, *, plays: bool = True) -> frozenset[str]:
    """Verify a run and return the codes of its errors and warnings.

    Args:
        path: The run.
        plays: Play the episodes again even where validation alone finds something.
    """
    result = verify(path, workers=1) if plays else validate(path)
    found = frozenset(item.code for item in result.findings if item.severity != "info")
    return found if found or plays else codes_of(path)


def attempt(operator: Operator, run: SoundRun, scratch: Path) -> Attempt:
    """Try an operator on a run.

    Raises:
        UnfitRunError: The run has nothing that the operator could change.
        AssertionError: The operator changed nothing.
    """
    found = []
    is_seal = operator.kept == ("seal",) and operator.name.startswith("seal")
    for forged in (False, True):
        if forged and is_seal:
            found.append(None)
            break
        folder = scratch / "run"
        shutil.copytree(run.folder, folder)
        try:
            operator.edit(folder)
            if fingerprint(folder) == fingerprint(run.folder):
                raise AssertionError(f"{operator.name} changed nothing in {run.name}")
            if forged:
                forge(folder, operator.kept)
            if fingerprint(folder) == fingerprint(run.folder):
                raise AssertionError(f"{operator.name}, forged, changed nothing in {run.name}")
            path = folder if operator.finish is None else operator.finish(folder)
            found.append(codes_of(path, plays=forged) - run.codes)
        finally:
            for entry in scratch.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return Attempt(run.name, found[0], found[1])


def fingerprint(folder: Path) -> str:
    """Hash what lies in a folder."""
    running = hashlib.sha256()
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        running.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return running.hexdigest()


def attempts(operator: Operator, runs: Iterable[SoundRun], scratch: Path, *, most: int = 2) -> list[Attempt]:
    """Try an operator on the first runs that have what it changes."""
    made: list[Attempt] = []
    for run in runs:
        try:
            made.append(attempt(operator, run, scratch))
        except UnfitRunError:
            continue
        if len(made) == most:
            break
    if not made:
        raise AssertionError(f"no run fits {operator.name}")
    return made


def level_of(codes: Iterable[str]) -> str:
    """Name the lowest level that finds one of some codes: what validates is E2, what plays again is E3."""
    levels = {entry_of(code).level for code in codes}
    return "E3" if levels == {"E3"} else "E2"


def false_alarms(runs: Iterable[SoundRun]) -> Iterator[tuple[str, str]]:
    """Name what is found in sound runs and should not be."""
    for run in runs:
        yield from ((run.name, code) for code in sorted(codes_of(run.folder) - run.codes))


def main(wanted: Sequence[str]) -> int:
    """Print the tables; names given are parts of the names of the operators that are wanted."""
    with tempfile.TemporaryDirectory() as holder:
        sound, scratch = Path(holder) / "sound", Path(holder) / "scratch"
        sound.mkdir()
        scratch.mkdir()
        corpus = sound_runs(sound)
        alarms = list(false_alarms(corpus))
        for name, code in alarms:
            print(f"false alarm: {name} {code}")
        chosen = [entry for entry in OPERATORS if not wanted or any(word in entry.name for word in wanted)]
        first, *rest = corpus
        # Each on the small run and on one of the others in turn.
        turns = [(first, *rest[turn % len(rest) :], *rest[: turn % len(rest)]) for turn in range(len(chosen))]
        detected = sum(_show(entry, attempts(entry, runs, scratch)) for entry, runs in zip(chosen, turns, strict=True))
        untrue = _show_beliefs(corpus[:2], scratch, wanted)
    print(f"operators={len(chosen)} detected={detected} false_alarms={len(alarms)}")
    return 0 if detected == len(chosen) and not alarms and not untrue else 1


def _show(operator: Operator, made: Sequence[Attempt]) -> bool:
    is_found = all(entry.is_found for entry in made)
    own = frozenset.intersection(*(entry.own for entry in made)) or frozenset.union(*(entry.own for entry in made))
    naive = frozenset.union(*(entry.naive for entry in made))
    missed = [entry.run for entry in made if not entry.is_found]
    cells = [operator.name, operator.gain, f"naive: {_words(naive)}", f"resealed: {_words(own)}", level_of(own)]
    print(" | ".join(cells + [f"MISSED on {run}" for run in missed]), flush=True)
    return is_found


def _words(codes: Iterable[str]) -> str:
    return " ".join(sorted(codes)) or "-"


def _show_beliefs(runs: Sequence[SoundRun], scratch: Path, wanted: Sequence[str]) -> int:
    """Print what cannot be found; returns how many of these claims are not true."""
    print("\nnot detectable")
    untrue = 0
    for belief in believed_edits.BELIEFS:
        operator = belief.operator
        if wanted and not any(word in operator.name for word in wanted):
            continue
        found = frozenset.union(*(entry.forged or frozenset() for entry in attempts(operator, runs, scratch)))
        untrue += bool(found)
        cells = [operator.name, operator.gain, f"resealed: {_words(found)}", f"shown by {belief.shown_by}"]
        print(" | ".join(cells), flush=True)
    return untrue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
