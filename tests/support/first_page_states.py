"""Runs whose first pages must each read right, every one made as a stranger makes it: played, edited, sealed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evidence_builder import build_run
from evidence_cases.building import Corpus
from evidence_cases.registry import make_edit
from evidence_cases.seals import SEALS

Maker = Callable[[Corpus, Path], Path]
_SEEDS = 8
_BROKEN = ["total_reward", "scores", "final_score", "submission_score", "progress_score"]
_FAILED_TASK = {
    "op": "keys",
    "file": "eval_after_training.json",
    "at": "/episodes/*",
    "where": {"scenario_id": "level_2_hard"},
    "set": {"ended_by": "env_error", "error": "ConnectionError: gone"},
    "null": _BROKEN,
}
_RAISED_TOTAL = {
    "op": "keys",
    "file": "eval_after_training.json",
    "at": "/episodes/2",
    "set": {"total_reward": 99.0},
}


def _played(**arguments: Any) -> Maker:
    return lambda _corpus, root: build_run(root, **{"seeds": _SEEDS, **arguments})


def _taken(name: str) -> Maker:
    return lambda corpus, root: corpus.copy(name, root)


def _spoiled(edit: Mapping[str, Any]) -> Maker:
    def make(_corpus: Corpus, root: Path) -> Path:
        build_run(root, seeds=_SEEDS)
        make_edit(root, edit)
        SEALS["all"](root)
        return root

    return make


STATES: Mapping[str, Maker] = {
    "improved": _played(),
    "no change": _played(before="random_valid+do_nothing", after="do_nothing+random_valid"),
    "regressed": _played(before="heuristic", after="random_valid"),
    "inconclusive": _played(before="random_valid+heuristic", after="heuristic+random_valid"),
    "evaluation missing": _taken("interrupted"),
    "task failed": _spoiled(_FAILED_TASK),
    "no interval": _played(seeds=1),
    "version 0": _taken("old"),
    "error findings": _spoiled(_RAISED_TOTAL),
}
"""By name: what makes the run, given the sound runs and a folder to make."""


def make_state(name: str, corpus: Corpus, root: Path) -> Path:
    """Make the run of one state in a folder, which is made anew."""
    shutil.rmtree(root, ignore_errors=True)
    return STATES[name](corpus, root)
