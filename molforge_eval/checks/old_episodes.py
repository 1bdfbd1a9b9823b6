"""The episodes of an evaluation of format version 0, each held to the rules as far as its trace tells what was done.

There are no arguments and no seeds, so nothing can be played again; but scores are tied to each other and to the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from molforge_env.scenarios import SCENARIOS
from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.rounding import agrees
from molforge_eval.findings import Finding
from molforge_eval.records.old import OldEpisode, OldTraceStep
from molforge_eval.run_directory import RunDirectory

PATHS = {"before": layout.BEFORE, "after": layout.AFTER}
SCORES = ("final_score", "submission_score", "progress_score")
LEAST, MOST = 0.0001, 0.9999
"""The grader's scores are never outside of these; 0.0 is written where it gave none."""
UNSUBMITTED_SHARE = 0.35
"""Of its progress score an episode without a submission gets at most this."""
_ROOM = 1e-4
_MODEL_ERRORS = re.compile(r"pars|json|malform|invalid|schema|no_?(tool_?)?call|length|trunc|turn_limit", re.IGNORECASE)
"""Errors of a trace that are the model's own doing; such an episode counts, with a score of 0.0."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at every episode of both evaluations."""
    if run.old is None:
        return
    for name, evaluation in run.old.evaluations():
        episodes = evaluation.episodes or ()
        unknown = sorted({episode.scenario_id for episode in episodes} - SCENARIOS.keys())
        if unknown:
            what = f"{', '.join(seen(task) for task in unknown)}: no task of the rules has this name"
            yield finding("TASK_UNKNOWN", what, file=PATHS[name], pointer="/episodes")
        for index, episode in enumerate(episodes):
            yield from _check_episode(PATHS[name], f"/episodes/{index}", episode)


def error_of(episode: OldEpisode) -> str | None:
    """Return the error that ended an episode, from its trace or from a key of its own."""
    told = [step.error for step in episode.trace or () if step.error is not None]
    own = (episode.model_extra or {}).get("error")
    if told:
        return told[-1]
    return str(own) if own else None


def is_broken(episode: OldEpisode) -> bool:
    """Tell whether the environment ended an episode: it is then averaged nowhere."""
    error = error_of(episode)
    return error is not None and not _MODEL_ERRORS.search(error)


def _check_episode(path: str, place: str, episode: OldEpisode) -> Iterator[Finding]:
    def wrong(code: str, what: str, key: str) -> Finding:
        return finding(code, what, file=path, pointer=f"{place}{key}")

    scenario = SCENARIOS.get(episode.scenario_id)
    if scenario is not None and episode.difficulty not in (None, scenario.difficulty):
        what = f"difficulty is {seen(episode.difficulty)}, {episode.scenario_id} is {scenario.difficulty}"
        yield wrong("SCENARIO_DIFFERS", what, "/difficulty")
    possible = True
    for key, what in impossible_scores({key: getattr(episode, key) for key in SCORES}):
        possible = False
        yield wrong("NUMBER_IMPOSSIBLE", what, f"/{key}")
    if error_of(episode) is not None:
        # A broken episode has no score, and the script spells that as 0.0; so it does for one that was given up.
        for key in SCORES:
            score = getattr(episode, key)
            if score:
                what = f"the episode ended in the error {seen(error_of(episode))}, {key} is {seen(score)}"
                yield wrong("SCORE_DIFFERS", what, f"/{key}")
    elif possible:
        for key, what in untied_scores(episode.final_score, episode.submission_score, episode.progress_score):
            yield wrong("SCORE_DIFFERS", what, f"/{key}")
    if episode.trace is not None:
        yield from _check_trace(path, place, episode, episode.trace, None if scenario is None else scenario.max_steps)


def impossible_scores(scores: dict[str, float | None]) -> Iterator[tuple[str, str]]:
    """Find scores that the grader cannot give: key and reason of each."""
    for key, score in scores.items():
        if score is not None and score != 0.0 and not LEAST <= score <= MOST:
            yield key, f"{key} is {seen(score)}, the grader gives {LEAST} to {MOST}, or 0.0 for none"


def untied_scores(final: float | None, submission: float | None, progress: float | None) -> Iterator[tuple[str, str]]:
    """Find scores of one ended episode that do not belong together: key and reason of each.

    A submitted episode is worth its submission; any other at most a share of its progress.
    """
    if final is None or submission is None:
        return
    if submission > 0.0 and not agrees(final, submission):
        yield "final_score", f"final_score is {seen(final)}, submission_score of the episode is {seen(submission)}"
    if submission == 0.0 and progress is not None and final > UNSUBMITTED_SHARE * progress + _ROOM:
        what = f"final_score is {seen(final)} without a submission, progress_score {seen(progress)} allows"
        yield "final_score", f"{what} {UNSUBMITTED_SHARE * progress:.4f} at most"


def _check_trace(
    path: str, place: str, episode: OldEpisode, trace: Sequence[OldTraceStep], horizon: int | None
) -> Iterator[Finding]:
    def wrong(code: str, what: str, key: str, step: int | None = None) -> Finding:
        return finding(code, what, file=path, pointer=f"{place}/trace{key}", step=step)

    actions = [(index, step) for index, step in enumerate(trace) if step.error is None]
    for number, (index, step) in enumerate(actions, 1):
        if step.step not in (None, number):
            what = f"step is {step.step}, it is action {number} of the episode"
            yield wrong("STEP_MISCOUNTED", what, f"/{index}/step", step.step)
            break
    if horizon is not None and len(actions) > horizon:
        yield wrong("STEP_MISCOUNTED", f"the episode has {len(actions)} steps, its task ends after {horizon}", "")
    early = [index for index, step in enumerate(trace[:-1]) if step.error is not None]
    if early:
        yield wrong("STEP_MISCOUNTED", "the trace goes on after the error that ended the episode", f"/{early[0]}/error")
    last: Any = actions[-1][1].action_type if actions else None
    if error_of(episode) is None and last not in (None, "submit") and episode.submission_score:
        what = f"submission_score is {seen(episode.submission_score)}, the last action is {seen(last)}"
        yield finding("SCORE_DIFFERS", what, file=path, pointer=f"{place}/submission_score")
    if not actions and error_of(episode) is None and episode.final_score:
        what = f"final_score is {seen(episode.final_score)}, and no action was taken"
        yield finding("SCORE_DIFFERS", what, file=path, pointer=f"{place}/final_score")
