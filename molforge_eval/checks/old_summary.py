"""The summary of a run of format version 0, computed again (rule R4); a headline must be an evaluation's number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.bounds import contradictions_within
from molforge_eval.checks.old_claims import check_claims, counted
from molforge_eval.checks.old_comparability import settings_of
from molforge_eval.checks.old_headlines import check_headlines
from molforge_eval.checks.rounding import agrees, mean_of
from molforge_eval.findings import Finding
from molforge_eval.records.old import OldEvaluation, OldRun, OldSummary
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_PATH = layout.SUMMARY
_SIDES = ("before", "after")
_NAMES = {"run_name": "RUN_ID_DIFFERS", "base_model": "SUMMARY_DIFFERS", "sft_adapter_path": "SUMMARY_DIFFERS"}
"""What the manifest says, too. The name is all that ties the files of an old run to each other."""
_MEAN = re.compile(r"(mean|average|avg)(_(final_)?score)?|final_score")
"""Other names of the one mean that every evaluation states."""
_METRICS = re.compile(r"(eval_)?(metrics|results|scores|aggregates?)")
"""Objects that hold results by name."""
_NO_METRICS = re.compile(
    r"(^|_)(n|num|count|counts|episodes|planned|valid|total|min|max|std|stdev|stddev|var|variance|time|seconds|step)(_|$)"
)


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compute the summary again."""
    if run.old is None or run.old.summary is None:
        return
    yield from _check_names(run.old, run.old.summary)
    yield from _check_calls(run, run.old, run.old.summary)
    means = {name: _mean_of(run.old, name) for name in _SIDES}
    for name in _SIDES:
        yield from _check_side(run, run.old, name, getattr(run.old.summary, f"eval_{name}"), means[name])
    yield from _check_claims(run.old, run.old.summary)
    yield from _check_metrics(run.old, run.old.summary)


def _check_names(old: OldRun, summary: OldSummary) -> Iterator[Finding]:
    if old.manifest is None:
        return
    for key, code in _NAMES.items():
        own, named = getattr(summary, key), getattr(old.manifest, key)
        if None not in (own, named) and own != named:
            yield finding(code, f"{key} is {seen(own)}, the manifest says {seen(named)}", file=_PATH, pointer=f"/{key}")


def count_calls(lines: pl.DataFrame) -> dict[str, Any]:
    """Count and average the lines of an old rollout log, as its script does; a mean of nothing is `None`."""
    rewards = lines["reward"].drop_nulls().to_list()
    return {
        "num_tool_calls": len(lines),
        "mean_tool_reward": mean_of(rewards),
        "max_tool_reward": max(rewards) if rewards else None,
        "action_counts": dict(sorted(lines["action_type"].value_counts().iter_rows())),
    }


def _check_calls(run: RunDirectory, old: OldRun, summary: OldSummary) -> Iterator[Finding]:
    recorded = {key: getattr(summary, key) for key in count_calls(run.rollouts)}
    calls = summary.num_tool_calls
    if layout.ROLLOUTS not in run.files:
        if calls:
            what = f"the summary counts {calls} tool calls and the run has no {layout.ROLLOUTS}"
            yield finding("LOG_MISSING", what, file=layout.ROLLOUTS)
    elif old.lines_left_out:
        most = len(run.rollouts) + old.lines_left_out
        # A log that is one text is one line that could not be used, and nobody knows how many calls it holds.
        is_counted = len(run.rollouts) > 0 or most > 1
        if calls is not None and is_counted and not len(run.rollouts) <= calls <= most:
            what = f"num_tool_calls is {calls}, the log has {len(run.rollouts)} good lines of {most}"
            yield finding("SUMMARY_DIFFERS", what, file=_PATH, pointer="/num_tool_calls")
    else:
        unlike = dict(_unlike(recorded, count_calls(run.rollouts)))
        if unlike and _is_of_first(calls, run.rollouts, recorded):
            what = f"the summary is that of the first {calls} of {len(run.rollouts)} tool calls"
            yield finding("SNAPSHOT_OUTDATED", what, file=_PATH, pointer="/num_tool_calls")
            unlike = {}
        for key, value in unlike.items():
            what = f"{key} is {seen(recorded[key])}, the log gives {seen(value)}"
            yield finding("SUMMARY_DIFFERS", what, file=_PATH, pointer=f"/{key}")
    yield from _check_latest(run, old, summary.latest_trainer_log)


def _is_of_first(calls: int | None, lines: pl.DataFrame, recorded: Mapping[str, Any]) -> bool:
    """Tell whether a summary is that of an earlier moment, when the log had as many lines as it counts."""
    return calls is not None and calls < len(lines) and not dict(_unlike(recorded, count_calls(lines.head(calls))))


def _unlike(recorded: Mapping[str, Any], computed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Find keys whose recorded value is not the computed one; an absent key claims nothing."""
    for key, value in computed.items():
        own = recorded[key]
        if own is None or (not computed["num_tool_calls"] and not own):
            # Of nothing the script writes 0.0, or leaves the key out.
            continue
        if isinstance(own, dict):
            if {name: count for name, count in own.items() if count} != value:
                yield key, value
        elif not agrees(float(own), None if value is None else float(value)):
            yield key, value


def _check_latest(run: RunDirectory, old: OldRun, recorded: Mapping[str, Any] | None) -> Iterator[Finding]:
    if not recorded:
        return
    pointer = "/latest_trainer_log"
    if old.trainer_source is None:
        what = "the summary repeats a row of the trainer and the run has no trainer log"
        yield finding("LOG_MISSING", what, file=layout.TRAINER_LOG)
        return
    latest = run.latest_trainer_row
    if latest is None or _is_row(recorded, latest, whole=old.trainer_source == layout.TRAINER_LOG):
        return
    log = run.trainer_log
    step = recorded.get("step")
    same = log.filter(pl.col("step") == step) if isinstance(step, int) else log.clear()
    numbers = {key: value for key, value in recorded.items() if log.schema.get(key) == pl.Float64}
    for row in same.iter_rows(named=True):
        if numbers and all(value == row[key] for key, value in numbers.items()):
            what = f"the summary repeats the row of step {step}, the last one is of step {seen(latest.get('step'))}"
            yield finding("SNAPSHOT_OUTDATED", what, file=_PATH, pointer=pointer)
            return
    for key, value in recorded.items():
        if key in latest and value != latest[key] and key != "time":
            what = f"{key} is {seen(value)}, the last row of the trainer has {seen(latest[key])}"
            yield finding("SUMMARY_DIFFERS", what, file=_PATH, pointer=f"{pointer}/{escape_step(key)}")
            return
    what = f"the row has the keys {seen(sorted(recorded))}, the last row of the trainer has {seen(sorted(latest))}"
    yield finding("SUMMARY_DIFFERS", what, file=_PATH, pointer=pointer)


def _is_row(recorded: Mapping[str, Any], row: Mapping[str, Any], *, whole: bool) -> bool:
    if whole:
        return dict(recorded) == dict(row)
    # A state holds no times of its own.
    return all(value == row[key] for key, value in recorded.items() if key in row)


def _mean_of(old: OldRun, name: str) -> float | None:
    found: OldEvaluation | None = getattr(old, name)
    scores = [] if found is None else [episode.final_score for episode in counted(found.episodes or ())]
    return mean_of(score for score in scores if score is not None)


def _check_side(
    run: RunDirectory, old: OldRun, name: str, recorded: float | Mapping[str, Any] | None, mean: float | None
) -> Iterator[Finding]:
    """Compare what the summary says of an evaluation: a mean, an object with a mean, or the evaluation whole."""
    found: OldEvaluation | None = getattr(old, name)
    key = f"eval_{name}"
    pointer = f"/{key}/average_final_score" if isinstance(recorded, Mapping) else f"/{key}"
    value = recorded.get("average_final_score") if isinstance(recorded, Mapping) else recorded
    if isinstance(value, bool) or not isinstance(value, int | float):
        is_as_in_file = found is not None and found.average_final_score is None
        if value is not None:
            what = f"the mean of the {name} evaluation is given as {seen(value)}, which is no number"
            yield finding("SCHEMA_UNMET", what, file=_PATH, pointer=pointer)
        elif mean is not None and not is_as_in_file and old.summary is not None and key in old.summary.model_fields_set:
            what = f"the summary has no mean of the {name} evaluation, which has been played since"
            yield finding("SNAPSHOT_OUTDATED", what, file=_PATH, pointer=pointer)
        return
    if found is None and _path_of(name) in run.files:
        # What could not be read is named where it stands; nothing follows from it here.
        return
    if mean is None and found is not None and found.episodes and value == found.average_final_score:
        # Of an evaluation that failed the mean is named where it stands.
        return
    if mean is None:
        what = f"the mean of the {name} evaluation is given as {seen(value)}, and no episode stands behind it"
        yield finding("HEADLINE_DIFFERS", what, file=_PATH, pointer=pointer)
    elif not agrees(value, mean) and (found is None or value != found.average_final_score):
        what = f"the mean of the {name} evaluation is given as {seen(value)}, its episodes give {seen(mean)}"
        yield finding("HEADLINE_DIFFERS", what + _origin(run, value), file=_PATH, pointer=pointer)
    elif isinstance(recorded, Mapping) and found is not None:
        yield from _check_copy(name, recorded, found)


def _path_of(name: str) -> str:
    return layout.BEFORE if name == "before" else layout.AFTER


def _origin(run: RunDirectory, value: float) -> str:
    """Say where else a headline may come from."""
    rewards = run.rollouts["reward"].drop_nulls()
    rows = run.trainer_log.filter(pl.col("type") == "train")
    logged = rows["reward"].drop_nulls() if rows.schema.get("reward") == pl.Float64 else rewards.clear()
    for series, words in ((logged, "reward of the trainer"), (rewards, "tool reward")):
        if len(series) and agrees(value, float(series[-1])):
            return f"; it is the last {words}"
        if len(series) and agrees(value, float(series.max())):  # type: ignore[arg-type] # a number
            return f"; it is the highest {words}"
    return ""


def _check_copy(name: str, recorded: Mapping[str, Any], found: OldEvaluation) -> Iterator[Finding]:
    """An evaluation that the summary repeats whole is the one of its file."""
    original = found.model_dump(mode="json", exclude_unset=True)
    for key, value in recorded.items():
        if key in original and key != "average_final_score" and value != original[key]:
            what = f"{key} is not that of {_path_of(name)}"
            yield finding("HEADLINE_DIFFERS", what, file=_PATH, pointer=f"/eval_{name}/{escape_step(key)}")


def _check_claims(old: OldRun, summary: OldSummary) -> Iterator[Finding]:
    """Hold numbers beyond the public ones to what can be, and headlines to the evaluations."""
    extra = summary.model_extra or {}
    for pointer, what in contradictions_within(extra):
        yield finding("NUMBER_IMPOSSIBLE", what, file=_PATH, pointer=pointer)
    for name in _SIDES:
        told: float | Mapping[str, Any] | None = getattr(summary, f"eval_{name}")
        if isinstance(told, Mapping):
            found: OldEvaluation | None = getattr(old, name)
            episodes = () if found is None else found.episodes or ()
            beside = {key: value for key, value in told.items() if key not in OldEvaluation.model_fields}
            mean = told.get("average_final_score")
            mean = float(mean) if isinstance(mean, int | float) and not isinstance(mean, bool) else None
            yield from check_claims(_PATH, beside, episodes, pointer=f"/eval_{name}", mean=mean)
    yield from check_headlines(old, extra)


def _check_metrics(old: OldRun, summary: OldSummary) -> Iterator[Finding]:
    """Of several metrics that both evaluations have, a summary that lists some has chosen them."""
    if len(old.evaluations()) < len(_SIDES):
        return
    sides = [_metrics_of(evaluation) for _, evaluation in old.evaluations()]
    shared = [key for key in sides[0] if key in sides[1]]
    listed = set(summary.model_dump(exclude_unset=True))
    for name in _SIDES:
        value = getattr(summary, f"eval_{name}")
        listed |= {"average_final_score"} if isinstance(value, int | float) else set(value or {})
    missing = [key for key in shared if key not in listed]
    if missing:
        up = sum(sides[1][key] > sides[0][key] for key in shared)
        down = sum(sides[1][key] < sides[0][key] for key in shared)
        what = f"{len(shared)} metrics, {up} up and {down} down; the summary does not list {', '.join(missing)}"
        yield finding("METRICS_UNLISTED", what, file=_PATH)


def _metrics_of(evaluation: OldEvaluation) -> dict[str, float]:
    """Collect what an evaluation states as its results, each by its key; counts, spreads and settings are none."""
    settings = settings_of(evaluation)
    found = {} if evaluation.average_final_score is None else {"average_final_score": evaluation.average_final_score}
    for key, value in (evaluation.model_extra or {}).items():
        inner = value if isinstance(value, Mapping) and _METRICS.fullmatch(key.lower()) else {key: value}
        for name, number in inner.items():
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            is_named = _NO_METRICS.search(name.lower()) or _MEAN.fullmatch(name.lower()) or name in settings
            if is_number and not is_named:
                found[name] = float(number)
    return found
