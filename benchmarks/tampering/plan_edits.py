"""Tampering with the plan: another rule, other seeds, other tasks, another play than planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence_builder import edit_json, read_json, write

from benchmarks.tampering.operator import Operator, UnfitRunError, need, put, record_edit
from molforge_eval import layout
from molforge_eval.canonical import digest, file_bytes


def _plan_part(place: int, change: Callable[[Any], Any], *paths: str) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        need(root, *layout.EVALUATIONS)
        for path in paths:
            value = read_json(root, path)
            parts = value["parts"] if path == layout.PLAN else value["plan"]["parts"]
            if len(parts) <= place:
                raise UnfitRunError
            change(parts[place])
            if path != layout.PLAN:
                value["plan_sha256"] = digest(value["plan"])
            write(root, path, file_bytes(value))

    return edit


def _pick_seed(root: Path) -> None:
    """Keep the sampled seed that speaks best for training, as if no other had been planned."""
    need(root, *layout.EVALUATIONS)
    before, after = (read_json(root, path)["episodes"] for path in layout.EVALUATIONS)
    seeds = sorted({episode["seed"] for episode in after if episode["part"] == "sampled"})
    if len(seeds) < 2 or seeds[-1] == 0:
        raise UnfitRunError

    def gain(seed: int) -> float:
        sides = [
            [e["final_score"] or 0.0 for e in side if e["seed"] == seed and e["part"] == "sampled"]
            for side in (before, after)
        ]
        return sum(sides[1]) - sum(sides[0])

    best = max(seeds[1:], key=gain)
    edit_json(root, layout.PLAN, lambda plan: plan["parts"][1].update(seeds=[best]))
    edit_json(root, layout.MANIFEST, lambda value: value["configuration"].update(eval_seeds=1))
    for path in layout.EVALUATIONS:
        edit_json(
            root,
            path,
            lambda value: value.update(
                episodes=[e for e in value["episodes"] if e["part"] == "greedy" or e["seed"] == best]
            ),
        )


def _drop_task(root: Path) -> None:
    """Leave the hardest task out of plan and evaluations."""
    need(root, *layout.EVALUATIONS)
    hardest = "level_2_hard"

    def edit(plan: Any) -> None:
        for part in plan["parts"]:
            part["tasks"] = [task for task in part["tasks"] if task != hardest]

    edit_json(root, layout.PLAN, edit)
    for path in layout.EVALUATIONS:
        edit_json(
            root,
            path,
            lambda value: value.update(
                episodes=[episode for episode in value["episodes"] if episode["scenario_id"] != hardest]
            ),
        )


_EASIER = "an easier test"
OPERATORS: tuple[Operator, ...] = (
    Operator("evaluation: best seed picked", "one lucky seed decides", _pick_seed),
    Operator("evaluation: hardest task left out", _EASIER, _drop_task),
    Operator(
        "plan: wider margin", "more is called no change", record_edit(put("decision", "margin", value=0.5), layout.PLAN)
    ),
    Operator(
        "plan: other statistics seed",
        "draws tried until they fit",
        record_edit(put("decision", "statistics_seed", value=7), layout.PLAN),
    ),
    Operator(
        "plan: greedy part decides",
        "three copies carry a verdict",
        record_edit(put("decision", "part", value="greedy"), layout.PLAN),
    ),
    Operator(
        "plan: variants are evaluated", _EASIER, _plan_part(0, lambda p: p.update(suite="randomized"), layout.PLAN)
    ),
    Operator(
        "plan: another one was played",
        "the plan was chosen afterwards",
        _plan_part(1, lambda p: p["seeds"].reverse(), layout.PLAN),
        ("plan",),
    ),
    Operator(
        "plan: cooler after",
        "the after was played greedily",
        _plan_part(1, lambda p: p["decoding"].update(temperature=0.1), layout.AFTER),
        ("plan",),
    ),
    Operator(
        "plan: longer turns after",
        "the after had more room",
        _plan_part(0, lambda p: p["decoding"].update(max_new_tokens=999), layout.AFTER),
        ("plan",),
    ),
    Operator(
        "plan: changed after the run",
        "another rule",
        record_edit(put("decision", "alpha", value=0.01), layout.PLAN),
        ("plan",),
    ),
)
