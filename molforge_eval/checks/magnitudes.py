"""Numbers that no run can have (rule R4): shares beyond 1, counters that go back, times longer than the run.

A statistic that records determine is computed again elsewhere; here stands what its name, its neighbours and the clock
rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.bounds import contradictions
from molforge_eval.findings import Finding
from molforge_eval.records import Configuration, EpisodeRecord, Evaluation, RunManifest
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_CODE = "NUMBER_IMPOSSIBLE"
_HEAD = frozenset({"line", "run_id", "type", "step", "time", "non_finite"})
_RISING = ("epoch", "num_tokens", "elapsed_seconds")
"""Counters of the host that only a resumed run starts again."""
_POSITIVE = ("step_time", "train_runtime")
_CLOCK_ROOM = 2.0
"""Seconds; moments are written without their fractions."""
_SPEED_ROOM = 0.0006
"""The host rounds steps a second to three decimals."""
_RUNTIME_ROOM = 0.00006
"""And seconds to four, which shows in a run of less than a second."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the trainer log, the manifest, the rollout log and both evaluations."""
    yield from _check_rows(run)
    yield from check_course(run.every_trainer_row)
    yield from _check_budget(run.every_rollout)
    if run.manifest is not None:
        yield from _check_manifest(run.manifest)
        yield from _check_settings(run.manifest.configuration)
        yield from _check_durations(run, run.manifest)
    for path, evaluation in run.evaluations():
        yield from _check_evaluation(path, evaluation)


def _check_rows(run: RunDirectory) -> Iterator[Finding]:
    """Judge each row of the trainer log by itself."""
    limit = None if run.manifest is None else run.manifest.configuration.max_completion_length
    for row in run.every_trainer_row.iter_rows(named=True):
        values = {key: value for key, value in row.items() if key not in _HEAD and value is not None}
        for key, what in contradictions(values):
            yield _in_row(what, row["line"], key)
        for key in _POSITIVE:
            if values.get(key) == 0.0:
                yield _in_row(f"{key} is 0, and something was done", row["line"], key)
        tokens = values.get("num_tokens")
        if isinstance(tokens, float) and (tokens != round(tokens) or (row["type"] == "train" and tokens == 0.0)):
            yield _in_row(f"num_tokens is {tokens:g}, which is no count of tokens", row["line"], "num_tokens")
        longest = values.get("completions/max_length")
        if limit and isinstance(longest, float) and longest > limit:
            what = f"a completion has {longest:g} tokens, max_completion_length is {limit}"
            yield _in_row(what, row["line"], "completions/max_length")


def check_course(log: pl.DataFrame) -> Iterator[Finding]:
    """Hold each row to the one before: counters rise, and no step takes longer than the time that went by."""
    latest: dict[str, float] = {}
    step, elapsed = 0, 0.0
    for row in log.iter_rows(named=True):
        if row["type"] == "resume" or (row["type"] == "train" and row["step"] <= step):
            # Steps that go back are named by another check; what follows is another course.
            latest.clear()
            step, elapsed = row["step"], row["elapsed_seconds"]
            continue
        for key in _RISING:
            value = row.get(key)
            if not isinstance(value, float):
                continue
            if value < latest.get(key, value) - 1e-9:
                yield _in_row(f"{key} is {value:g} after {latest[key]:g}", row["line"], key)
            latest[key] = value
        if row["type"] != "train" or row["elapsed_seconds"] is None or elapsed is None:
            # Rows of the host's own file have no time of ours.
            continue
        each, steps = row.get("step_time"), row["step"] - step
        room = (row["elapsed_seconds"] - elapsed) * 1.05 + _CLOCK_ROOM
        if isinstance(each, float) and steps > 0 and each * steps > room:
            what = f"step_time is {each:g} s over {steps} steps, {row['elapsed_seconds'] - elapsed:g} s went by"
            yield _in_row(what, row["line"], "step_time")
        step, elapsed = row["step"], row["elapsed_seconds"]


def _in_row(what: str, line: int, key: str) -> Finding:
    return finding(_CODE, what, file=layout.TRAINER_LOG, line=line, pointer=f"/{escape_step(key)}")


def _check_budget(lines: pl.DataFrame) -> Iterator[Finding]:
    """Nothing gives a budget back."""
    risen = lines.with_columns(before=pl.col("remaining_budget").shift(1).over("episode_id")).filter(
        pl.col("remaining_budget") > pl.col("before")
    )
    for row in risen.select("line", "episode_id", "step_index", "remaining_budget", "before").iter_rows():
        line, episode, step, budget, before = row
        what = f"remaining_budget is {budget} after {before}"
        place: dict[str, Any] = {"line": line, "episode": episode, "step": step}
        yield finding(_CODE, what, file=layout.ROLLOUTS, pointer="/remaining_budget", **place)


def _check_manifest(manifest: RunManifest) -> Iterator[Finding]:
    seconds, total, own = manifest.training_seconds, manifest.total_parameters, manifest.trainable_parameters
    if seconds is not None and (seconds < 0.0 or (seconds == 0.0 and manifest.steps_completed)):
        what = f"{manifest.steps_completed} steps took {seconds:g} s"
        yield _in_manifest(what, "training_seconds")
    if total is not None and own is not None and own > total:
        yield _in_manifest(f"{own} parameters were trainable of {total}", "trainable_parameters")


def _check_settings(settings: Configuration) -> Iterator[Finding]:
    """Settings with which nothing can be trained."""
    ranges: Mapping[str, tuple[float, float | None]] = {
        "learning_rate": (0.0, None),
        "beta": (0.0, None),
        "temperature": (0.0, None),
        "max_grad_norm": (0.0, None),
        "top_p": (0.0, 1.0),
        "adam_beta2": (0.0, 1.0),
        "num_generations": (1, None),
        "turn_limit": (1, None),
        "max_completion_length": (1, None),
        "max_new_tokens": (1, settings.max_completion_length or None),
    }
    for key, (low, high) in ranges.items():
        value = getattr(settings, key)
        if value < low or (high is not None and value > high):
            reach = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
            yield _in_manifest(f"{key} is {seen(value)}, it can be {reach}", f"configuration/{key}")


def _in_manifest(what: str, key: str) -> Finding:
    return finding(_CODE, what, file=layout.MANIFEST, pointer=f"/{key}")


def _check_durations(run: RunDirectory, manifest: RunManifest) -> Iterator[Finding]:
    """Nothing within a run takes longer than the run."""
    rows = run.every_trainer_row
    seconds = manifest.training_seconds
    if manifest.ended_at is not None and seconds is not None:
        whole = (manifest.ended_at - manifest.started_at).total_seconds()
        # A run that ends before it starts is named as that; no duration follows from it.
        if seconds > whole + _CLOCK_ROOM and whole >= 0.0:
            yield _in_manifest(f"training took {seconds:g} s, the run {whole:g} s", "training_seconds")
    has_resumed = bool(len(rows.filter(pl.col("type") == "resume")))
    for row in rows.filter(pl.col("type") == "summary").iter_rows(named=True):
        runtime, speed = row.get("train_runtime"), row.get("train_steps_per_second")
        if not isinstance(runtime, float) or has_resumed:
            continue
        if seconds is not None and runtime > seconds + _CLOCK_ROOM:
            what = f"train_runtime is {runtime:g} s, the manifest says training took {seconds:g} s"
            yield _in_row(what, row["line"], "train_runtime")
        steps = (manifest.steps_completed, manifest.configuration.max_steps)
        if isinstance(speed, float) and all(
            abs(speed * runtime - count) > _SPEED_ROOM * runtime + _RUNTIME_ROOM * speed + 1e-6 * count
            for count in steps
        ):
            what = f"{speed:g} steps a second for {runtime:g} s make no {steps[0]} steps"
            yield _in_row(what, row["line"], "train_steps_per_second")
    for line, spent, text in rows.select("line", "elapsed_seconds", "time").iter_rows():
        since = _seconds_since(manifest.started_at, text)
        if has_resumed or since is None or spent is None:
            continue
        if since >= 0.0 and spent > since + _CLOCK_ROOM:
            what = f"elapsed_seconds is {spent:g}, {since:g} s went by since the start of the run"
            yield _in_row(what, line, "elapsed_seconds")
            return


def _seconds_since(start: datetime, text: str) -> float | None:
    try:
        return (datetime.fromisoformat(text) - start).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def _check_evaluation(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    if evaluation.ended_at < evaluation.started_at:
        # Named as reversed; no duration follows from it.
        return
    whole = (evaluation.ended_at - evaluation.started_at).total_seconds()
    spent = sum(episode.wall_time_seconds for episode in evaluation.episodes)
    if spent > whole * 1.05 + _CLOCK_ROOM:
        what = f"the episodes took {spent:g} s together, the evaluation {whole:g} s"
        yield finding(_CODE, what, file=path, pointer="/episodes")
    limits = {part.name: part.decoding for part in evaluation.plan.parts}
    most = evaluation.plan.turn_limit + 1
    for index, episode in enumerate(evaluation.episodes):
        place: dict[str, Any] = {"file": path, "episode": episode.episode_id}
        decoding = limits.get(episode.part)
        if len(episode.turns) > most:
            # The one beyond the limit is the completion whose calls are not carried out.
            what = f"the episode has {len(episode.turns)} turns, the plan allows {most}"
            yield finding(_CODE, what, pointer=f"/episodes/{index}/turns", **place)
        for pointer, what in _episode_faults(episode):
            yield finding(_CODE, what, pointer=f"/episodes/{index}{pointer}", **place)
        if evaluation.policy.kind != "hf" or decoding is None:
            # A script reads and writes no tokens.
            continue
        for pointer, what in _token_faults(episode, decoding.max_new_tokens, decoding.max_completion_length):
            yield finding(_CODE, what, pointer=f"/episodes/{index}{pointer}", **place)


def _episode_faults(episode: EpisodeRecord) -> Iterator[tuple[str, str]]:
    budget = episode.scenario.max_budget
    for place, step in enumerate(episode.steps):
        if step.remaining_budget > budget:
            yield f"/steps/{place}/remaining_budget", f"remaining_budget is {step.remaining_budget} after {budget}"
        budget = step.remaining_budget
    for key, value in (episode.scores or {}).items():
        if not 0.0 <= value <= 1.0:
            yield f"/scores/{escape_step(key)}", f"{key} is {value:g}, a score lies in 0 to 1"


def _token_faults(episode: EpisodeRecord, turn_limit: int, episode_limit: int) -> Iterator[tuple[str, str]]:
    for place, turn in enumerate(episode.turns):
        if turn.completion_tokens > turn_limit:
            what = f"the completion has {turn.completion_tokens} tokens, max_new_tokens is {turn_limit}"
            yield f"/turns/{place}/completion_tokens", what
        if turn.raw_completion and not turn.completion_tokens:
            yield f"/turns/{place}/completion_tokens", "the completion has words and 0 tokens"
        if turn.completion_tokens and not turn.prompt_tokens:
            yield f"/turns/{place}/prompt_tokens", "the completion follows a context of 0 tokens"
    if episode.completion_tokens > episode_limit:
        what = f"the episode has {episode.completion_tokens} tokens, max_completion_length is {episode_limit}"
        yield "/completion_tokens", what
