"""The episodes of an evaluation of format version 0, each held to the rules as far as its trace tells what was done.

There are no arguments and no seeds, so nothing can be played again; but scores are tied to each other and to the trace.
How a stranger's script fills a trace is not known in full: what is unusual is a warning, once a file, with a count.
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
LEAST, MOST = 0.0, 1.0
"""No score is outside of these. The grader keeps within 0.0001 and 0.9999, and a script may round what it gives."""
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
        unusual: dict[str, list[Finding]] = {}
        for index, episode in enumerate(episodes):
            place = f"/episodes/{index}"
            yield from _check_range(PATHS[name], place, episode)
            first: dict[str, Finding] = {}
            for item in _check_episode(PATHS[name], place, episode):
                first.setdefault(item.code, item)
            for code, item in first.items():
                unusual.setdefault(code, []).append(item)
        for own in unusual.values():
            what = f"{own[0].what}; so in {len(own)} of {len(episodes)} episodes" if len(own) > 1 else own[0].what
            yield own[0].model_copy(update={"what": what})


def error_of(episode: OldEpisode) -> str | None:
    """Return the error that ended an episode, from its trace or from a key of its own."""
    told = [step.error for step in episode.trace or () if step.error is not None]
    own = (episode.model_extra or {}).get("error")
    if told:
        return told[-1]
    return str(own) if own else None


def is_broken(episode: OldEpisode) -> bool:
    """Tell whether the environment ended an episode, so that it has no score: it is then averaged nowhere."""
    error = error_of(episode)
    return error is not None and not episode.final_score and not _MODEL_ERRORS.search(error)


def _check_range(path: str, place: str, episode: OldEpisode) -> Iterator[Finding]:
    for key, what in impossible_scores(_scores_of(episode)):
        yield finding("NUMBER_IMPOSSIBLE", what, file=path, pointer=f"{place}/{key}")


def _scores_of(episode: OldEpisode) -> dict[str, float | None]:
    return {key: getattr(episode, key) for key in SCORES}


def _check_episode(path: str, place: str, episode: OldEpisode) -> Iterator[Finding]:
    def wrong(code: str, what: str, key: str) -> Finding:
        return finding(code, what, file=path, pointer=f"{place}{key}")

    scenario = SCENARIOS.get(episode.scenario_id)
    if scenario is not None and (episode.difficulty or scenario.difficulty).lower() != scenario.difficulty:
        what = f"difficulty is {seen(episode.difficulty)}, {episode.scenario_id} is {scenario.difficulty}"
        yield wrong("SCENARIO_DIFFERS", what, "/difficulty")
    ended = episode.trace[-1].error if episode.trace else None
    if ended is not None:
        # An episode that broke has no score, and the script spells that as 0.0; so it does for one that was given up.
        for key, score in _scores_of(episode).items():
            if score:
                what = f"the episode ended in the error {seen(ended)}, {key} is {seen(score)}"
                yield wrong("SCORE_DIFFERS", what, f"/{key}")
    elif not any(impossible_scores(_scores_of(episode))):
        for key, what in untied_scores(episode.final_score, episode.submission_score, episode.progress_score):
            yield wrong("SCORE_DIFFERS", what, f"/{key}")
    if episode.trace is not None:
        yield from _check_trace(path, place, episode, episode.trace, None if scenario is None else scenario.max_steps)


def impossible_scores(scores: dict[str, float | None]) -> Iterator[tuple[str, str]]:
    """Find scores that the grader cannot give: key and reason of each."""
    for key, score in scores.items():
        if score is not None and not LEAST <= score <= MOST:
            yield key, f"{key} is {seen(score)}, a score is never below {LEAST:g} or above {MOST:g}"


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
    begun = 0 if actions and actions[0][1].step == 0 else 1
    for number, (index, step) in enumerate(actions, begun):
        if step.step not in (None, number):
            what = f"step is {step.step}, it is action {number + 1 - begun} of the episode"
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
