"""The sound runs that operators are tried on: played for real by scripted policies, and one of a model."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from evidence_builder import build_run, edit_json

from benchmarks.tampering.forger import forge
from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet

_SAMPLE = Path(__file__).resolve().parents[2] / "tests" / "data" / "sample_run.tar.gz"


class SoundRun(NamedTuple):
    """A run that is what it says."""

    name: str
    folder: Path
    codes: frozenset[str] = frozenset()
    """What must be said of it all the same: a run that was cut short is said to be."""


def sound_runs(scratch: Path) -> tuple[SoundRun, ...]:
    """Make the runs, a small one first."""
    improved = build_run(scratch / "improved")
    with tarfile.open(_SAMPLE) as archive:
        archive.extractall(scratch, filter="data")
    regressed = build_run(scratch / "regressed", before="heuristic", after="random_valid")
    wide = build_run(scratch / "wide", steps=6, prompts=1, generations=8, seeds=3)
    greedy = build_run(scratch / "greedy", before="immediate_submit", seeds=0, plots=False)
    packed = build_run(scratch / "packed", seeds=3)
    build_packet(packed, options=PacketOptions(html=False, pdf=False, pack=False))
    return (
        SoundRun("improved", improved),
        SoundRun("of the tiny model", scratch / "sample"),
        SoundRun("regressed", regressed),
        SoundRun("wide groups", wide),
        SoundRun("with a packet", packed),
        SoundRun("interrupted", interrupted(scratch), frozenset({"EVALUATION_MISSING", "RUN_INCOMPLETE"})),
        SoundRun("greedy, no pictures", greedy, frozenset({"ARTIFACT_MISSING"})),
    )


def interrupted(scratch: Path) -> Path:
    """A run that a signal ended after its last step and before its last evaluation."""
    run = build_run(scratch / "interrupted", before="do_nothing")
    (run / layout.AFTER).unlink()
    facts: Mapping[str, object] = {"status": "interrupted", "status_reason": "SIGINT"}
    edit_json(run, layout.MANIFEST, lambda value: value.update(facts))
    edit_json(run, layout.MANIFEST, lambda value: value["configuration"].update(max_steps=8))
    forge(run)
    return run
