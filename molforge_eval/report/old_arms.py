"""The two evaluations of a run of format version 0, brought to one shape: episodes with their metrics and traces.

An episode counts when it has a `final_score` and its trace is not made of errors alone: a score that was written for an
episode that never ran is no score. Nothing is paired, because nothing names a seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from molforge_eval import layout
from molforge_eval.records.old import OldEpisode, OldEvaluation
from molforge_eval.report.metrics import DIAGNOSTICS, PRIMARY
from molforge_eval.report.old_evidence import ArmName, ArmState
from molforge_eval.run_directory import RunDirectory
from molforge_eval.statistics import distinct_count

PUBLIC_METRICS = (PRIMARY, *DIAGNOSTICS)
_NO_METRICS = ("time", "seconds", "temperature", "top_p", "learning_rate")
"""Parts of the names of numbers that are clocks or settings."""


class ListedStep(NamedTuple):
    """One entry of a trace."""

    step: int | None
    action: str | None
    reward: float | None
    error: str | None


class ListedEpisode(NamedTuple):
    """One episode as the file lists it."""

    number: int
    """Place in the file."""
    task: str
    difficulty: str | None
    metrics: Mapping[str, float]
    """Every finite number of the episode, by its key."""
    trace: tuple[ListedStep, ...]

    def has_error(self) -> bool:
        """Tell whether an entry of the trace is an error."""
        return any(step.error is not None for step in self.trace)

    def is_counted(self) -> bool:
        """Tell whether the episode enters a mean."""
        is_all_errors = bool(self.trace) and all(step.error is not None for step in self.trace)
        return PRIMARY in self.metrics and not is_all_errors


class Arm(NamedTuple):
    """One evaluation."""

    name: ArmName
    file: str
    state: ArmState
    reason: str | None
    label: str | None
    stated_mean: float | None
    """The mean that the file writes down itself."""
    episodes: tuple[ListedEpisode, ...]

    def counted(self) -> tuple[ListedEpisode, ...]:
        """Return the episodes that enter a mean."""
        return tuple(episode for episode in self.episodes if episode.is_counted())

    def tasks(self) -> tuple[str, ...]:
        """Return the scenarios in the order of the file."""
        return tuple(dict.fromkeys(episode.task for episode in self.episodes))

    def counts(self) -> Mapping[str, int]:
        """Count the episodes that enter a mean, by scenario."""
        return Counter(episode.task for episode in self.counted())

    def task_mean(self, task: str, metric: str = PRIMARY) -> float | None:
        """Return the mean of a metric over the counted episodes of a scenario; `None` when none has it."""
        values = [e.metrics[metric] for e in self.counted() if e.task == task and metric in e.metrics]
        return _mean(values)

    def mean(self, metric: str = PRIMARY) -> float | None:
        """Return the mean over scenarios of their means; `None` when a listed scenario has none."""
        means = [self.task_mean(task, metric) for task in self.tasks()]
        known = [mean for mean in means if mean is not None]
        return _mean(known) if len(known) == len(means) else None

    def distinct(self) -> int:
        """Count unlike scores among the counted episodes."""
        return distinct_count(tuple(episode.metrics[PRIMARY] for episode in self.counted()))


def _mean(values: Sequence[float]) -> float | None:
    # Each is divided before it is added: a sum of huge numbers would leave the range of floats.
    return math.fsum(value / len(values) for value in values) if values else None


def arms_of(run: RunDirectory) -> tuple[Arm, Arm]:
    """Read the evaluations before and after from a run of format version 0."""
    old = run.old
    before, after = (None, None) if old is None else (old.before, old.after)
    return _arm_of(run, "before", layout.BEFORE, before), _arm_of(run, "after", layout.AFTER, after)


def _arm_of(run: RunDirectory, name: ArmName, file: str, found: OldEvaluation | None) -> Arm:
    if found is None:
        state: ArmState = "unusable" if file in run.files else "absent"
        return Arm(name, file, state, None, None, None, ())
    episodes = tuple(_episode_of(number, episode) for number, episode in enumerate(found.episodes or ()))
    arm = Arm(name, file, "listed", found.reason, found.label, found.average_final_score, episodes)
    if found.skipped or (found.reason is not None and not episodes):
        return arm._replace(state="skipped", episodes=())
    if not episodes:
        return arm._replace(state="hollow")
    return arm if arm.counted() else arm._replace(state="failed")


def _episode_of(number: int, episode: OldEpisode) -> ListedEpisode:
    named = {key: getattr(episode, key) for key in PUBLIC_METRICS}
    trace = tuple(ListedStep(step.step, step.action_type, step.reward, step.error) for step in episode.trace or ())
    metrics = dict(_numbers({**named, **(episode.model_extra or {})}))
    return ListedEpisode(number, episode.scenario_id, episode.difficulty, metrics, trace)


def _numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the scores among some values: fractions, and the public ones however they are written."""
    for key, value in values.items():
        if isinstance(value, Mapping) and not prefix:
            yield from _numbers(value, f"{key}.")
        is_score = isinstance(value, float) and not any(word in key for word in _NO_METRICS)
        is_public = key in PUBLIC_METRICS and isinstance(value, int) and not isinstance(value, bool)
        if (is_score or is_public) and math.isfinite(value):
            yield f"{prefix}{key}", float(value)


def absence(arm: Arm) -> str | None:
    """Say what became of an evaluation that gives no score; `None` for one that lists episodes that count."""
    words = {
        "absent": "is missing",
        "unusable": "is missing: its file cannot be used",
        "hollow": "is missing: its file lists no episode",
        "skipped": "was skipped",
        "failed": f"failed: of {len(arm.episodes)} listed episodes none counts",
    }
    return f"the evaluation {arm.name} training {words[arm.state]}" if arm.state in words else None


def refusal(before: Arm, after: Arm) -> str | None:
    """Say why no difference of the means may be stated, even an unpaired one; `None` when it may."""
    for arm in (before, after):
        if arm.mean() is None:
            return absence(arm) or f"a scenario of the evaluation {arm.name} training has no episode that counts"
    if before.counts() != after.counts():
        return "before and after did not count the same scenarios equally often"
    return None
