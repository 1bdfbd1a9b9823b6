"""One flaw or more for each thing that a run of the public script can have wrong: the edit, and what must be found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from evidence_builder import write
from old_layout import change_json, change_lines, put_json, reseal_old, summarise_old

from molforge_eval import layout

BASE = frozenset({"FORMAT_OLD", "SEEDS_ABSENT"})
"""What every sound old run is told: no error, no warning."""
_UNPLAYED = frozenset({"SEEDS_ABSENT"})


class OldFlaw(NamedTuple):
    """An edit of an old run, and what it must give beside the two infos."""

    code: str
    name: str
    edit: Callable[[Path], Any]
    file: str | None = None
    pointer: str | None = None
    line: int | None = None
    also: tuple[str, ...] = ()
    """Codes that cannot but come with it."""
    lost: frozenset[str] = frozenset()
    """Infos of a sound old run that it no longer gives."""
    severity: str | None = None
    """That of the code in this format version, where it is stated."""

    @property
    def title(self) -> str:
        """Name of the flaw in a test."""
        return f"{self.code}-{self.name}"


def prepare(root: Path) -> None:
    """Take away what a sound old run is warned of: the folder of the host trainer."""
    shutil.rmtree(root / layout.TRAINER_FOLDER)


def top(path: str, **changes: Any) -> Callable[[Path], None]:
    """Set keys at the top of a JSON file."""
    return lambda root: change_json(root, path, lambda value: value.update(changes))


def both(**changes: Any) -> Callable[[Path], None]:
    """Set keys at the top of both evaluations."""
    return lambda root: [top(path, **changes)(root) for path in layout.EVALUATIONS] and None


def episodes(change: Callable[[list[dict[str, Any]]], Any], *paths: str, again: bool = True) -> Callable[[Path], None]:
    """Change the episodes of evaluations; `again` computes their means and the summary anew."""

    def edit(root: Path) -> None:
        for path in paths or layout.EVALUATIONS:
            change_json(root, path, lambda value: change(value["episodes"]))
        if again:
            reseal_old(root)

    return edit


def lines(change: Callable[[list[dict[str, Any]]], Any], path: str = layout.ROLLOUTS) -> Callable[[Path], None]:
    """Change lines of a log, and let the summary and the table follow."""

    def edit(root: Path) -> None:
        change_lines(root, path, change)
        summarise_old(root)

    return edit


def rows(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path], None]:
    """Change rows of the trainer's log, and let the summary follow."""
    return lines(change, layout.TRAINER_LOG)


def each(**changes: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Set keys in every object."""
    return lambda entries: [entry.update(changes) for entry in entries] and None


def at(number: int, **changes: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Set keys in one object."""
    return lambda entries: entries[number].update(changes)


def file(path: str, text: str) -> Callable[[Path], None]:
    """Write a file, and compute nothing again."""
    return lambda root: write(root, path, text.encode())


def after_is(value: Any) -> Callable[[Path], None]:
    """Put something else in the place of the after evaluation, and say so in the summary."""

    def edit(root: Path) -> None:
        put_json(root, layout.AFTER, value)
        (root / "plots/eval_before_after.png").unlink()
        summarise_old(root)

    return edit


def _log_in_its_place(root: Path) -> None:
    write(root, layout.AFTER, b"step 1 loss 0.2\nstep 2 loss 0.1\n")
    (root / "plots/eval_before_after.png").unlink()
    top(layout.SUMMARY, eval_after=None)(root)


def _copy_before(root: Path) -> None:
    shutil.copy(root / layout.BEFORE, root / layout.AFTER)
    top(layout.AFTER, label="after_rl")(root)
    reseal_old(root)


def _forty(root: Path) -> None:
    def fill(entries: list[dict[str, Any]]) -> None:
        scores = {"final_score": 0.5, "submission_score": 0.5, "progress_score": 0.6}
        for entry in entries:
            entry.update(scores)
            entry["trace"][-1]["action_type"] = "submit"
        entries[:] = [dict(entries[number % 3]) for number in range(40)]

    episodes(fill)(root)


def _five_alike(root: Path) -> None:
    def fill(entries: list[dict[str, Any]]) -> None:
        entries[:] = [entries[0]] * 5 + [dict(entry) for entry in entries[1:]]

    episodes(fill)(root)
    both(temperature=0.0)(root)


def _many_tasks(root: Path) -> None:
    def before(entries: list[dict[str, Any]]) -> None:
        entries[:] = [dict(entry) for entry in entries for _ in range(2)]

    episodes(before, layout.BEFORE)(root)


def _other_seeds(root: Path) -> None:
    for path, first in ((layout.BEFORE, 0), (layout.AFTER, 5)):
        change_json(
            root, path, lambda value, first=first: [e.update(seed=first + n) for n, e in enumerate(value["episodes"])]
        )


def _break(count: int) -> Callable[[list[dict[str, Any]]], None]:
    def change(entries: list[dict[str, Any]]) -> None:
        for entry in entries[:count]:
            entry.update(final_score=0.0, submission_score=0.0, progress_score=0.0)
            entry["trace"] = [{"step": 0, "error": "ConnectionError: connection refused"}]

    return change


def _break_one(root: Path) -> None:
    episodes(_break(1), layout.AFTER)(root)
    change_json(root, layout.AFTER, lambda value: value.update(average_final_score=_mean(value["episodes"][1:])))
    summarise_old(root)


def _mean(entries: list[dict[str, Any]]) -> float:
    return sum(entry["final_score"] for entry in entries) / len(entries)


def _give_up(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        entry.update(final_score=0.0, submission_score=0.0, progress_score=0.0)
        entry["trace"] = [{"step": 0, "error": "parse_failed"}]


def _late_key(entries: list[dict[str, Any]]) -> None:
    for entry in entries[99:]:
        entry["latency"] = 0.5


def _never_done(entries: list[dict[str, Any]]) -> None:
    entries[:] = entries[:30]
    for entry in entries:
        entry.update(
            done=False, reward=0.0, transition_reward=0.0, final_score=0.0, submission_score=0.0, progress_score=0.0
        )


def _overlap(entries: list[dict[str, Any]]) -> None:
    entries[2]["step"] = 1


def _older_summary(root: Path) -> None:
    whole = (root / layout.ROLLOUTS).read_bytes()
    change_lines(root, layout.ROLLOUTS, lambda entries: entries.__delitem__(slice(100, None)))
    summarise_old(root)
    write(root, layout.ROLLOUTS, whole)


def _table_without_row(root: Path) -> None:
    data = (root / layout.METRICS_TABLE).read_bytes().splitlines(keepends=True)
    write(root, layout.METRICS_TABLE, b"".join([*data[:5], *data[6:]]))


def _table_with_row(root: Path) -> None:
    data = (root / layout.METRICS_TABLE).read_bytes().splitlines(keepends=True)
    row = data[5].replace(b",2,", b",3,", 1).replace(b"17", b"18", 1)
    write(root, layout.METRICS_TABLE, b"".join([*data[:5], row, *data[5:]]))


def _cell(root: Path) -> None:
    data = (root / layout.METRICS_TABLE).read_bytes().splitlines(keepends=True)
    data[3] = data[3].replace(b",False,", b",True,", 1)
    write(root, layout.METRICS_TABLE, b"".join(data))


def _column(root: Path) -> None:
    data = (root / layout.METRICS_TABLE).read_bytes()
    write(root, layout.METRICS_TABLE, data.replace(b"governance_status", b"governance", 1))


def _six_metrics(root: Path) -> None:
    up = {"valid_calls": 0.4}
    down = {"evidence": 0.5, "margin": 0.5, "coordination": 0.5, "parsed_calls": 0.5}
    top(layout.BEFORE, **{key: value + 0.2 for key, value in down.items()}, valid_calls=0.1)(root)
    top(layout.AFTER, **up, **down)(root)


def _stopped_at(root: Path, asked: int) -> None:
    change_lines(root, layout.TRAINER_LOG, lambda entries: entries.pop())
    top(layout.MANIFEST, rl_max_steps=asked)(root)
    summarise_old(root)


def _days_later(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        entry["time"] -= 7 * 86_400


def _before_state(root: Path) -> None:
    """The rows in the host's own state, with one that learned nothing."""
    found = [json.loads(line) for line in (root / layout.TRAINER_LOG).read_text().splitlines()]
    (root / layout.TRAINER_LOG).unlink()
    history = [{key: row[key] for key in row if key != "time"} for row in found]
    put_json(root, f"{layout.TRAINER_FOLDER}/{layout.TRAINER_STATE}", {"global_step": 4, "log_history": history})


OLD_FLAWS: tuple[OldFlaw, ...] = (
    # --- presence ---
    OldFlaw("ARTIFACT_MISSING", "manifest", lambda root: (root / layout.MANIFEST).unlink(), layout.MANIFEST),
    OldFlaw(
        "FIELD_ABSENT", "manifest", file(layout.MANIFEST, '{"run_name": "built", "rl_max_steps": 4}'), layout.MANIFEST
    ),
    OldFlaw(
        "FIELD_ABSENT", "trace", episodes(lambda own: [entry.pop("trace") for entry in own], layout.AFTER), layout.AFTER
    ),
    OldFlaw("SCHEMA_UNMET", "a line lacks a key", lines(lambda own: own[4].pop("done")), layout.ROLLOUTS, None, 5),
    OldFlaw("TRAINER_LOG_REPLACED", "state", _before_state, "trainer/trainer_state.json"),
    OldFlaw(
        "EVALUATION_MISSING",
        "skipped",
        lambda root: (
            after_is({"label": "after_rl", "skipped": True, "reason": "RUN_AFTER_EVAL=false"})(root),
            top(layout.MANIFEST, run_after_eval=False)(root),
        ),
        layout.AFTER,
        lost=_UNPLAYED,
    ),
    OldFlaw("EVALUATION_MISSING", "trained", after_is({"trained": None}), layout.AFTER, lost=_UNPLAYED),
    OldFlaw("EVALUATION_MISSING", "projected", after_is({"projected": True}), layout.AFTER, lost=_UNPLAYED),
    OldFlaw("EVALUATION_MISSING", "empty", after_is({}), layout.AFTER, lost=_UNPLAYED),
    OldFlaw(
        "EVALUATION_MISSING", "a log text", _log_in_its_place, layout.AFTER, also=("JSON_UNREADABLE",), lost=_UNPLAYED
    ),
    OldFlaw(
        "AVERAGE_UNSUPPORTED",
        "no episodes",
        after_is({"label": "after_rl", "average_final_score": 0.89}),
        layout.AFTER,
        "/average_final_score",
        also=("EVALUATION_MISSING", "HEADLINE_DIFFERS"),
        lost=_UNPLAYED,
    ),
    OldFlaw(
        "CONFIGURATION_DIFFERS",
        "not asked for",
        top(layout.MANIFEST, run_after_eval=False),
        layout.MANIFEST,
        "/run_after_eval",
    ),
    OldFlaw("FILE_STRAY", "notes", file("notes.txt", "x"), "notes.txt"),
    OldFlaw("PICKLE_PRESENT", "arguments", file("adapters/training_args.bin", "x"), "adapters/training_args.bin"),
    # --- episodes ---
    OldFlaw(
        "TASK_UNKNOWN", "name", episodes(at(0, scenario_id="level_9", difficulty="easy")), layout.AFTER, "/episodes"
    ),
    OldFlaw(
        "SCENARIO_DIFFERS",
        "difficulty",
        episodes(at(0, difficulty="hard"), layout.AFTER),
        layout.AFTER,
        "/episodes/0/difficulty",
        severity="warning",
    ),
    OldFlaw(
        "NUMBER_IMPOSSIBLE",
        "score",
        episodes(at(0, final_score=1.02, submission_score=1.02), layout.AFTER),
        layout.AFTER,
        "/episodes/0/final_score",
    ),
    OldFlaw(
        "SCORE_DIFFERS",
        "raised",
        episodes(at(0, final_score=0.95), layout.AFTER),
        layout.AFTER,
        "/episodes/0/final_score",
        severity="warning",
    ),
    OldFlaw(
        "SCORE_DIFFERS",
        "unsubmitted",
        episodes(at(0, final_score=0.9), layout.BEFORE),
        layout.BEFORE,
        "/episodes/0/final_score",
        severity="warning",
    ),
    OldFlaw(
        "SCORE_DIFFERS",
        "after an error",
        episodes(lambda own: own[0]["trace"].append({"step": 7, "error": "parse_failed"}), layout.AFTER),
        layout.AFTER,
        "/episodes/0/final_score",
        severity="warning",
    ),
    OldFlaw(
        "SCORE_DIFFERS",
        "no submit",
        episodes(lambda own: own[0]["trace"][-1].update(action_type="defer"), layout.AFTER),
        layout.AFTER,
        "/episodes/0/submission_score",
        severity="warning",
    ),
    OldFlaw(
        "STEP_MISCOUNTED",
        "gap",
        episodes(lambda own: own[0]["trace"].pop(1), layout.AFTER),
        layout.AFTER,
        "/episodes/0/trace/1/step",
        severity="warning",
    ),
    OldFlaw(
        "STEP_MISCOUNTED",
        "too many",
        episodes(
            lambda own: own[0]["trace"].extend(
                {"step": 8 + n, "action_type": "submit", "reward": 0.1} for n in range(4)
            ),
            layout.BEFORE,
        ),
        layout.BEFORE,
        "/episodes/0/trace",
        severity="warning",
    ),
    # --- evaluations ---
    OldFlaw(
        "SUMMARY_DIFFERS",
        "mean",
        lambda root: (top(layout.AFTER, average_final_score=-0.003)(root), summarise_old(root)),
        layout.AFTER,
        "/average_final_score",
    ),
    OldFlaw(
        "SUMMARY_DIFFERS", "stated mean", top(layout.AFTER, mean_final_score=0.99), layout.AFTER, "/mean_final_score"
    ),
    OldFlaw("SUMMARY_DIFFERS", "stated count", top(layout.AFTER, num_episodes=8), layout.AFTER, "/num_episodes"),
    OldFlaw("EVALUATION_PARTIAL", "planned", both(episodes_planned=8), layout.AFTER, "/episodes"),
    OldFlaw("EVALUATION_PARTIAL", "broken", _break_one, layout.AFTER, "/episodes"),
    OldFlaw(
        "EVALUATION_FAILED",
        "broken",
        episodes(_break(3), layout.AFTER),
        layout.AFTER,
        "/episodes",
    ),
    OldFlaw("EVALUATION_UNFINISHED", "parse_failed", episodes(_give_up, layout.BEFORE), layout.BEFORE, "/episodes"),
    OldFlaw(
        "EVALUATION_UNPLAYED",
        "projected",
        top(layout.AFTER, projected=True),
        layout.AFTER,
        "/projected",
        also=("BEFORE_AFTER_UNLIKE",),
    ),
    OldFlaw("EVALUATIONS_SWAPPED", "label", top(layout.BEFORE, label="after_rl"), layout.BEFORE, "/label"),
    OldFlaw("NUMBER_IMPOSSIBLE", "spread of one", both(reward={"n": 1, "std": 0.01}), layout.AFTER, "/reward/std"),
    OldFlaw("NUMBER_IMPOSSIBLE", "min above mean", both(steps={"min": 4, "mean": 3}), layout.AFTER, "/steps/min"),
    OldFlaw(
        "NUMBER_IMPOSSIBLE",
        "rate above one",
        both(success_rate=1.2),
        layout.AFTER,
        "/success_rate",
        also=("METRICS_UNLISTED",),
    ),
    OldFlaw(
        "NUMBER_IMPOSSIBLE",
        "half of three",
        both(n=3, success_rate=0.5),
        layout.AFTER,
        "/success_rate",
        also=("METRICS_UNLISTED",),
    ),
    OldFlaw("EPISODES_COPIED", "five", _five_alike, layout.AFTER, "/episodes"),
    # --- comparability ---
    OldFlaw("BEFORE_AFTER_UNLIKE", "tasks", _many_tasks, layout.AFTER, "/episodes"),
    OldFlaw("BEFORE_AFTER_UNLIKE", "seeds", _other_seeds, layout.AFTER, "/episodes", lost=_UNPLAYED),
    OldFlaw(
        "BEFORE_AFTER_UNLIKE",
        "settings",
        lambda root: (
            top(layout.BEFORE, max_turns=3, temperature=0.0)(root),
            top(layout.AFTER, max_turns=2, temperature=0.7)(root),
        ),
        layout.AFTER,
        "/max_turns",
    ),
    OldFlaw(
        "BEFORE_AFTER_UNLIKE",
        "nested",
        lambda root: (top(layout.BEFORE, config={"n_ctx": 3})(root), top(layout.AFTER, config={"n_ctx": 2})(root)),
        layout.AFTER,
        "/config/n_ctx",
    ),
    OldFlaw("EVALUATIONS_EQUAL", "copy", _copy_before, layout.AFTER, "/episodes"),
    OldFlaw("SCORE_CONSTANT", "forty", _forty, layout.AFTER, "/episodes"),
    # --- summary ---
    OldFlaw("RUN_ID_DIFFERS", "name", top(layout.SUMMARY, run_name="another"), layout.SUMMARY, "/run_name"),
    OldFlaw("SUMMARY_DIFFERS", "base", top(layout.SUMMARY, base_model="another"), layout.SUMMARY, "/base_model"),
    OldFlaw("SUMMARY_DIFFERS", "reward", top(layout.SUMMARY, max_tool_reward=9.9), layout.SUMMARY, "/max_tool_reward"),
    OldFlaw("SUMMARY_DIFFERS", "calls", top(layout.SUMMARY, num_tool_calls=9_000), layout.SUMMARY, "/num_tool_calls"),
    OldFlaw(
        "SUMMARY_DIFFERS",
        "row",
        lambda root: change_json(
            root, layout.SUMMARY, lambda value: value["latest_trainer_log"].update(train_loss=0.001)
        ),
        layout.SUMMARY,
        "/latest_trainer_log/train_loss",
    ),
    OldFlaw("SNAPSHOT_OUTDATED", "summary", _older_summary, layout.SUMMARY, "/num_tool_calls"),
    OldFlaw(
        "LOG_MISSING",
        "calls",
        lambda root: [
            (root / path).unlink() for path in (layout.ROLLOUTS, layout.METRICS_TABLE, "plots/action_distribution.png")
        ],
        layout.ROLLOUTS,
        also=("ARTIFACT_MISSING",),
    ),
    OldFlaw("HEADLINE_DIFFERS", "number", top(layout.SUMMARY, eval_after=0.89), layout.SUMMARY, "/eval_after"),
    OldFlaw(
        "HEADLINE_DIFFERS",
        "object",
        top(layout.SUMMARY, eval_after={"average_final_score": 0.89}),
        layout.SUMMARY,
        "/eval_after/average_final_score",
    ),
    OldFlaw("HEADLINE_DIFFERS", "headline", top(layout.SUMMARY, headline=0.89), layout.SUMMARY, "/headline"),
    OldFlaw("HEADLINE_DIFFERS", "improvement", top(layout.SUMMARY, improvement=0.95), layout.SUMMARY, "/improvement"),
    OldFlaw("HEADLINE_DIFFERS", "side", top(layout.SUMMARY, score_before=0.89), layout.SUMMARY, "/score_before"),
    OldFlaw(
        "HEADLINE_DIFFERS", "nested", top(layout.SUMMARY, results={"after": 0.89}), layout.SUMMARY, "/results/after"
    ),
    OldFlaw("METRICS_UNLISTED", "six", _six_metrics, layout.SUMMARY),
    # --- identity ---
    OldFlaw(
        "RUN_ID_DIFFERS",
        "lines",
        lines(each(run_name="another")),
        layout.ROLLOUTS,
        "/run_name",
        1,
        also=("TABLE_COLUMN_MISSING",),
    ),
    OldFlaw("RUN_ID_DIFFERS", "rows", rows(each(run_name="another")), layout.TRAINER_LOG, "/run_name", 1),
    OldFlaw("RUN_ID_DIFFERS", "evaluation", top(layout.AFTER, run_name="another"), layout.AFTER, "/run_name"),
    OldFlaw("SCHEMA_UNMET", "created", top(layout.MANIFEST, created_at="yesterday"), layout.MANIFEST, "/created_at"),
    OldFlaw("SCHEMA_UNMET", "moment", lines(each(timestamp="yesterday")), layout.ROLLOUTS, "/timestamp", 1),
    # --- training ---
    OldFlaw("RUN_INCOMPLETE", "stopped", lambda root: _stopped_at(root, 800), layout.MANIFEST, "/rl_max_steps"),
    OldFlaw("STEPS_DIFFER", "beyond", top(layout.MANIFEST, rl_max_steps=3), layout.MANIFEST, "/rl_max_steps"),
    OldFlaw(
        "SCHEDULE_DIFFERS", "rate", top(layout.MANIFEST, learning_rate=1e-6), layout.TRAINER_LOG, "/learning_rate", 1
    ),
    OldFlaw(
        "KL_MISSING",
        "beta",
        lambda root: (
            rows(lambda own: [row.pop("kl", None) for row in own])(root),
            top(layout.MANIFEST, beta=0.1)(root),
        ),
        layout.TRAINER_LOG,
        "/kl",
        1,
    ),
    OldFlaw(
        "TRAINING_NOT_FINITE", "grad_norm", rows(at(2, grad_norm=float("nan"))), layout.TRAINER_LOG, "/grad_norm", 3
    ),
    OldFlaw(
        "METRIC_NOT_FINITE",
        "part",
        rows(at(1, **{"rewards/a/mean": float("nan"), "rewards/b/mean": 0.7})),
        layout.TRAINER_LOG,
        "/rewards~1a~1mean",
        2,
    ),
    OldFlaw("STEPS_OVERLAP", "back", rows(at(2, step=1)), layout.TRAINER_LOG, "/step", 3),
    OldFlaw("STEP_REPEATED", "twice", rows(at(2, step=2)), layout.TRAINER_LOG, "/step", 3),
    OldFlaw(
        "SIGNAL_ABSENT",
        "flat",
        rows(lambda own: each(reward_std=0.0, grad_norm=0.0, frac_reward_zero_std=1.0)(own[:-1])),
        layout.TRAINER_LOG,
        None,
        1,
    ),
    OldFlaw(
        "COMPLETIONS_CUT",
        "all",
        rows(lambda own: each(**{"completions/clipped_ratio": 1.0})(own[:-1])),
        layout.TRAINER_LOG,
        "/completions~1clipped_ratio",
        1,
    ),
    OldFlaw(
        "NUMBER_IMPOSSIBLE",
        "share",
        rows(at(1, frac_reward_zero_std=1.4)),
        layout.TRAINER_LOG,
        "/frac_reward_zero_std",
        2,
    ),
    OldFlaw(
        "TIME_REVERSED",
        "calls",
        lines(lambda own: own[0].update(timestamp=own[0]["timestamp"] + 3_600)),
        layout.ROLLOUTS,
        "/timestamp",
        2,
    ),
    OldFlaw("LOGS_APART", "days", rows(_days_later), layout.ROLLOUTS, "/timestamp", 1),
    # --- rollouts ---
    OldFlaw("REWARD_DIFFERS", "raised", lines(at(3, reward=2.09)), layout.ROLLOUTS, "/reward", 4),
    OldFlaw(
        "ACTION_UNKNOWN",
        "tool",
        lines(lambda own: own[2].update(action_type="explode")),
        layout.ROLLOUTS,
        "/action_type",
        3,
        severity="warning",
    ),
    OldFlaw(
        "STEP_MISCOUNTED", "step", lines(at(2, step_index=90)), layout.ROLLOUTS, "/step_index", 3, severity="warning"
    ),
    OldFlaw(
        "SCENARIO_DIFFERS",
        "line",
        lines(at(2, difficulty="expert")),
        layout.ROLLOUTS,
        "/difficulty",
        3,
        severity="warning",
    ),
    OldFlaw(
        "NUMBER_IMPOSSIBLE",
        "score of a line",
        lines(lambda own: next(entry for entry in own if entry["done"]).update(progress_score=1.02)),
        layout.ROLLOUTS,
        "/progress_score",
    ),
    OldFlaw("EPISODES_UNFINISHED", "never done", lines(_never_done), layout.ROLLOUTS, None, 1),
    OldFlaw(
        "FALLBACK_RULES",
        "most",
        lines(each(source="fallback")),
        layout.ROLLOUTS,
        "/source",
        1,
        also=("TABLE_COLUMN_MISSING",),
    ),
    OldFlaw(
        "ENVIRONMENT_BROKEN",
        "all",
        lines(each(error="ConnectionError")),
        layout.ROLLOUTS,
        None,
        1,
        also=("TABLE_COLUMN_MISSING",),
    ),
    OldFlaw(
        "CALL_UNREAD",
        "two blocks",
        lines(at(0, raw_completion="<tool_call>{}</tool_call><tool_call>{}</tool_call>")),
        layout.ROLLOUTS,
        "/raw_completion",
        1,
        also=("TABLE_COLUMN_MISSING",),
    ),
    OldFlaw(
        "NUMBER_NOT_FINITE",
        "reward",
        lambda root: change_lines(root, layout.ROLLOUTS, at(9, summary=float("nan"))),
        layout.ROLLOUTS,
        "/summary",
        10,
        also=("TABLE_ROW_DIFFERS",),
    ),
    # --- table and pictures ---
    OldFlaw("TABLE_COLUMN_MISSING", "late key", lines(_late_key), layout.METRICS_TABLE, "latency", 1),
    OldFlaw("TABLE_ROW_MISSING", "dropped", _table_without_row, layout.METRICS_TABLE, None, 6),
    OldFlaw("TABLE_ROW_SURPLUS", "added", _table_with_row, layout.METRICS_TABLE, None, 6),
    OldFlaw("TABLE_ROW_DIFFERS", "cell", _cell, layout.METRICS_TABLE, "done", 4),
    OldFlaw("TABLE_HEADER_DIFFERS", "column", _column, layout.METRICS_TABLE, None, 1),
    OldFlaw("PLOT_UNREADABLE", "text", file("plots/loss_curve.png", "no picture"), "plots/loss_curve.png"),
    OldFlaw(
        "PLOT_UNSOURCED",
        "gradient",
        lambda root: (
            rows(lambda own: [row.pop("grad_norm", None) for row in own])(root),
            shutil.copy(root / "plots/loss_curve.png", root / "plots/grad_norm_curve.png"),
        ),
        "plots/grad_norm_curve.png",
    ),
)
