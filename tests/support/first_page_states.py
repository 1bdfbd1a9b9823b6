"""Runs whose first pages must each read right, every one made as a stranger makes it: played, edited, sealed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evidence_builder import build_run, edit_json, reseal
from evidence_cases.building import Corpus

from molforge_eval import layout

Maker = Callable[[Corpus, Path], Path]
_SEEDS = 8
_BROKEN = dict.fromkeys(("total_reward", "scores", "final_score", "submission_score", "progress_score"))
_STEPS_BEFORE_FAULT = 2


def _lose_a_task(root: Path) -> None:
    """Let the environment break in every episode of one task after training."""

    def lose(value: Any) -> None:
        for episode in value["episodes"]:
            if episode["scenario_id"] == "level_2_hard":
                turns = episode["turns"][: _STEPS_BEFORE_FAULT + 1]
                episode.update(_BROKEN, ended_by="env_error", error="ConnectionError: gone", turns=turns)
                episode.update(steps=episode["steps"][:_STEPS_BEFORE_FAULT])
                episode.update(completion_tokens=sum(turn["completion_tokens"] for turn in turns))
                episode.update(prompt_tokens=turns[-1]["prompt_tokens"] - 12 * (len(turns) - 1))

    edit_json(root, layout.AFTER, lose)


def _raise_a_total(root: Path) -> None:
    def raise_it(value: Any) -> None:
        value["episodes"][2]["total_reward"] = 99.0

    edit_json(root, layout.AFTER, raise_it)


def _played(**arguments: Any) -> Maker:
    return lambda _corpus, root: build_run(root, **{"seeds": _SEEDS, "plots": False, **arguments})


def _taken(name: str) -> Maker:
    return lambda corpus, root: corpus.copy(name, root)


def _changed(change: Callable[[Path], None]) -> Maker:
    def make(_corpus: Corpus, root: Path) -> Path:
        build_run(root, seeds=_SEEDS, plots=False)
        change(root)
        reseal(root)
        return root

    return make


STATES: Mapping[str, Maker] = {
    "improved": _played(),
    "no change": _played(before="random_valid+do_nothing", after="do_nothing+random_valid"),
    "regressed": _played(before="heuristic", after="random_valid"),
    "inconclusive": _played(before="random_valid+heuristic", after="heuristic+random_valid"),
    "evaluation missing": _taken("interrupted"),
    "task failed": _changed(_lose_a_task),
    "no interval": _played(seeds=1),
    "version 0": _taken("old"),
    "error findings": _changed(_raise_a_total),
}
"""By name: what makes the run, given the sound runs and a folder to make."""


def make_state(name: str, corpus: Corpus, root: Path) -> Path:
    """Make the run of one state in a folder, which is made anew."""
    shutil.rmtree(root, ignore_errors=True)
    return STATES[name](corpus, root)
