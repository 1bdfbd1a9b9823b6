"""What strangers' runs of format version 0 look like: each case changes a sound one in place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from old_layout import change_json, change_lines, put_json, summarise_old

from molforge_eval import layout

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"> <link rel=attachment href=file:///etc/passwd> "
    "{{ 7*7 }} \N{RIGHT-TO-LEFT OVERRIDE}gnp.exe " + "W" * 10_000
)
EASY, MEDIUM, HARD = "level_0_easy", "level_1_medium", "level_2_hard"
Change = Callable[[Path], Any]


def without(*paths: str) -> Change:
    """Take files or folders away."""

    def change(root: Path) -> None:
        for path in paths:
            found = root / path
            shutil.rmtree(found) if found.is_dir() else found.unlink()
        if all((root / path).exists() for path in (layout.MANIFEST, *layout.LOGS)):
            summarise_old(root)

    return change


def holding(path: str, data: bytes) -> Change:
    """Put other bytes into a file."""
    return lambda root: (root / path).write_bytes(data)


def only(*paths: str) -> Change:
    """Keep some files and nothing else."""

    def change(root: Path) -> None:
        for found in sorted(root.rglob("*"), reverse=True):
            if found.is_file() and found.relative_to(root).as_posix() not in paths:
                found.unlink()

    return change


def each_episode(path: str, change: Callable[[dict[str, Any]], Any]) -> Change:
    """Change every episode of an evaluation."""
    return lambda root: change_json(root, path, lambda value: [change(entry) for entry in value["episodes"]])


def played(path: str, plan: Sequence[tuple[str, int]]) -> Change:
    """Let an evaluation list each scenario so many times, always the same episode of it."""

    def change(value: dict[str, Any]) -> None:
        first = {entry["scenario_id"]: entry for entry in value["episodes"]}
        value["episodes"] = [first[task] for task, count in plan for _ in range(count)]
        scores = [entry["final_score"] for entry in value["episodes"]]
        value["average_final_score"] = sum(scores) / len(scores)

    return lambda root: (change_json(root, path, change), summarise_old(root))


def all_of(*changes: Change) -> Change:
    """Make several changes."""
    return lambda root: [change(root) for change in changes]


def _break_every_episode(value: dict[str, Any]) -> None:
    value["episodes"] = [
        {**value["episodes"][number % 3], "final_score": 0.0, "trace": [{"step": 0, "error": "ConnectionError"}]}
        for number in range(45)
    ]
    value["average_final_score"] = 0.0


def _poison_evaluation(value: dict[str, Any]) -> None:
    value["label"] = HOSTILE
    for entry in value["episodes"]:
        entry["scenario_id"] = f"{HOSTILE}{entry['scenario_id']}"
        entry["difficulty"] = HOSTILE
        entry[HOSTILE] = 0.5
        for step in entry["trace"]:
            step["action_type"] = HOSTILE
        entry["trace"].append({"step": 99, "error": HOSTILE})


def _poison_lines(lines: list[dict[str, Any]]) -> None:
    for line in lines[:20]:
        line.update(scenario_id=HOSTILE, action_type=HOSTILE, summary=HOSTILE, fragment=HOSTILE)


def _poison_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        row[HOSTILE] = 0.1
        row["rewards/<b>/mean"] = 0.2


def _poison_manifest(value: dict[str, Any]) -> None:
    value.update({"run_name": HOSTILE, "base_model": HOSTILE, HOSTILE: HOSTILE, "nested": {"a": None, "b": [HOSTILE]}})


def _five_fall(entry: dict[str, Any]) -> None:
    entry.update(submission_score=0.2, progress_score=0.3, validity=0.1, novelty=0.1, synthesis=0.1)


def _five_stand(entry: dict[str, Any]) -> None:
    entry.update(submission_score=0.6, progress_score=0.6, validity=0.6, novelty=0.6, synthesis=0.6)


CASES: dict[str, Change] = {
    "sound": lambda _root: None,
    "after missing": without(layout.AFTER),
    "before missing": without(layout.BEFORE),
    "both missing": without(layout.BEFORE, layout.AFTER),
    "after skipped": lambda root: put_json(
        root, layout.AFTER, {"label": "after_rl", "skipped": True, "reason": "RUN_AFTER_EVAL=0"}
    ),
    "after cut": holding(layout.AFTER, b'{"label": "after_rl", "episodes": [{'),
    "after null": holding(layout.AFTER, b'{"trained": null}'),
    "after projected": holding(layout.AFTER, b'{"projected": true}'),
    "after a log": holding(layout.AFTER, b"INFO step 12 reward 0.81\n"),
    "after empty": holding(layout.AFTER, b""),
    "after a list": holding(layout.AFTER, b"[]"),
    "no episodes": lambda root: change_json(root, layout.AFTER, lambda value: value.update(episodes=[])),
    "all errors": lambda root: change_json(root, layout.AFTER, _break_every_episode),
    "no scores": each_episode(layout.AFTER, lambda entry: entry.update(final_score=None, trace=None)),
    "unequal counts": all_of(
        played(layout.BEFORE, [(EASY, 3), (MEDIUM, 3), (HARD, 3)]), played(layout.AFTER, [(EASY, 8), (MEDIUM, 1)])
    ),
    "copies": all_of(played(layout.BEFORE, [(EASY, 5)]), played(layout.AFTER, [(EASY, 5)])),
    "six metrics": all_of(each_episode(layout.BEFORE, _five_stand), each_episode(layout.AFTER, _five_fall)),
    "huge scores": each_episode(layout.AFTER, lambda entry: entry.update(final_score=1e308)),
    "manifest missing": without(layout.MANIFEST),
    "manifest cut": holding(layout.MANIFEST, b'{"run_name": '),
    "logs empty": all_of(
        without(layout.TRAINER_FOLDER), holding(layout.ROLLOUTS, b""), holding(layout.TRAINER_LOG, b"")
    ),
    "logs missing": without(layout.TRAINER_FOLDER, layout.ROLLOUTS, layout.TRAINER_LOG),
    "trainer state only": without(layout.TRAINER_LOG),
    "short logs": all_of(
        lambda root: change_lines(root, layout.TRAINER_LOG, lambda rows: rows.__delitem__(slice(2, None))),
        lambda root: change_lines(root, layout.ROLLOUTS, lambda lines: lines.__delitem__(slice(2, None))),
    ),
    "before alone": only(layout.BEFORE),
    "rollouts alone": only(layout.ROLLOUTS),
    "other scenarios": all_of(
        *(
            each_episode(path, lambda entry: entry.update(scenario_id=f"my_{entry['scenario_id']}"))
            for path in layout.EVALUATIONS
        )
    ),
    "surrogate": lambda root: (root / layout.AFTER).write_bytes(
        (root / layout.AFTER).read_bytes().replace(b'"after_rl"', b'"after \\ud800"')
    ),
    "hostile": all_of(
        lambda root: change_json(root, layout.MANIFEST, _poison_manifest),
        lambda root: change_json(root, layout.BEFORE, _poison_evaluation),
        lambda root: change_json(root, layout.AFTER, _poison_evaluation),
        lambda root: change_lines(root, layout.ROLLOUTS, _poison_lines),
        lambda root: change_lines(root, layout.TRAINER_LOG, _poison_rows),
    ),
}
