"""The numbers of an evaluation of format version 0, computed again from its episodes (rule R4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.comparability import is_of_other_side
from molforge_eval.checks.old_claims import check_claims, counted
from molforge_eval.checks.old_episodes import PATHS, error_of
from molforge_eval.checks.quantities import quantity_of
from molforge_eval.checks.rounding import agrees, mean_of, number_of
from molforge_eval.findings import Finding
from molforge_eval.records.old import OldEpisode, OldEvaluation
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import escape_step

_PLANNED = re.compile(r"(^|_)(planned|expected|requested|target)(_|$)")
_COUNTS = frozenset({"", "episode", "episodes", "sample", "samples", "total"})
"""Of what a count at the top may be, to be the number of the episodes."""
_TOTALS = frozenset({"total", "total_episodes", "episodes_total", "episode_total", "samples"})
_VALID = frozenset({"n_valid", "valid", "num_valid", "valid_episodes", "completed", "episodes_counted", "counted"})
_UNPLAYED = re.compile(
    r"^(is_)?(projected|projection|estimated|simulated|synthetic|placeholder|mocked|mock|dummy|fake)$"
)
_COPIES_FROM = 3
"""Episodes of a task from which copies are told. Fewer than in version 1, where a plan says that the episodes were
sampled and a sure model may repeat itself in a task, so that five of every task have to be alike. Here nothing says how
they were made, and a reader takes three rows for three."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compute the numbers of both evaluations again."""
    if run.old is None:
        return
    played = run.old.evaluations()
    for name, evaluation in played:
        episodes = evaluation.episodes or ()
        yield from _check_place(name, evaluation)
        yield from _check_counts(PATHS[name], evaluation, episodes)
        yield from _check_means(PATHS[name], evaluation, episodes)
        mean = evaluation.average_final_score
        yield from check_claims(PATHS[name], evaluation.model_extra or {}, episodes, mean=mean)
    if not is_constant([episode for _, evaluation in played for episode in evaluation.episodes or ()]):
        for name, evaluation in played:
            yield from _check_copies(PATHS[name], evaluation.episodes or ())


def is_constant(episodes: Sequence[OldEpisode]) -> bool:
    """Tell whether ten episodes or more over several tasks have one and the same score."""
    scores = {episode.final_score for episode in counted(episodes)}
    return len(counted(episodes)) >= 10 and len(scores) == 1 and len({e.scenario_id for e in episodes}) > 1


def _check_place(name: str, evaluation: OldEvaluation) -> Iterator[Finding]:
    if is_of_other_side(evaluation.label or "", name):
        what = f"the label is {seen(evaluation.label)}, the file is the {name} evaluation"
        yield finding("EVALUATIONS_SWAPPED", what, file=PATHS[name], pointer="/label")
    if evaluation.skipped:
        what = f"skipped is true, and the file holds {len(evaluation.episodes or ())} episodes"
        yield finding("EVALUATION_UNPLAYED", what, file=PATHS[name], pointer="/skipped")
    for key, value in (evaluation.model_extra or {}).items():
        if value is True and _UNPLAYED.fullmatch(key.lower()):
            what = f"{key} is true: the file says of itself that its numbers were not played"
            yield finding("EVALUATION_UNPLAYED", what, file=PATHS[name], pointer=f"/{escape_step(key)}")


def _check_counts(path: str, evaluation: OldEvaluation, episodes: Sequence[OldEpisode]) -> Iterator[Finding]:
    valid, planned = len(counted(episodes)), len(episodes)
    for key, told in (evaluation.model_extra or {}).items():
        value = number_of(told)
        if value is None or value != round(value):
            continue
        if _PLANNED.search(key.lower()):
            planned = max(planned, round(value))
        said = quantity_of(key)
        is_count = (said.kind == "count" and said.subject in _COUNTS) or key in _TOTALS
        is_wrong = is_count and not _PLANNED.search(key.lower()) and value not in (len(episodes), valid)
        if is_wrong or (key in _VALID and value != valid):
            what = f"{key} is {value:g}, the file holds {len(episodes)} episodes, {valid} of them counted"
            yield finding("SUMMARY_DIFFERS", what, file=path, pointer=f"/{escape_step(key)}")
    if not valid:
        recorded = evaluation.average_final_score
        mean = "" if recorded is None else f", and their mean is given as {seen(recorded)}"
        error = next((own for episode in episodes if (own := error_of(episode)) is not None), None)
        why = "no episode has a score" if error is None else f"the first error is {seen(error)}"
        what = f"0 of {planned} episodes counted{mean}; {why}"
        yield finding("EVALUATION_FAILED", what, file=path, pointer="/episodes")
    elif valid < planned:
        what = f"{valid} of {planned} episodes counted"
        yield finding("EVALUATION_PARTIAL", what, file=path, pointer="/episodes")
    elif all(error_of(episode) is not None for episode in episodes):
        what = f"the model ended all {len(episodes)} episodes by an error of its own, the first is "
        yield finding("EVALUATION_UNFINISHED", what + seen(error_of(episodes[0])), file=path, pointer="/episodes")


def _check_means(path: str, evaluation: OldEvaluation, episodes: Sequence[OldEpisode]) -> Iterator[Finding]:
    own = counted(episodes)
    mean = mean_of(episode.final_score for episode in own if episode.final_score is not None)
    recorded = evaluation.average_final_score
    if recorded is None and (mean is None or "average_final_score" not in evaluation.model_fields_set):
        return
    if mean is not None and not agrees(recorded, mean):
        what = f"average_final_score is {seen(recorded)}, the {len(own)} episodes give {seen(mean)}"
        yield finding("SUMMARY_DIFFERS", what, file=path, pointer="/average_final_score")


def _check_copies(path: str, episodes: Sequence[OldEpisode]) -> Iterator[Finding]:
    """Copies of one deterministic episode are one: they may be averaged, and they cannot be counted."""
    by_task: dict[str, list[OldEpisode]] = {}
    for episode in counted(episodes):
        by_task.setdefault(episode.scenario_id, []).append(episode)
    for task, own in sorted(by_task.items()):
        played = {(episode.final_score, repr(episode.trace)) for episode in own}
        if len(own) >= _COPIES_FROM and len(played) == 1:
            what = f"n={len(own)}, distinct=1: all episodes of {seen(task)} are one, with final_score"
            yield finding("EPISODES_COPIED", f"{what} {seen(own[0].final_score)}", file=path, pointer="/episodes")
