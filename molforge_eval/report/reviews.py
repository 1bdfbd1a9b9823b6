"""What the reviewers said: who vetoed in each phase, and in the evaluations to how many calls one of them objected.

Vetoes are recorded with each call. Objections that did not block are recorded nowhere; for the evaluations they are
taken from playing the recorded calls again, of so many episodes as can be played in a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from molforge_env.errors import UsageError
from molforge_env.models import REVIEWERS
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval import layout
from molforge_eval.calls import call_tool
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import percent, whole
from molforge_eval.report.seed_table import evenly
from molforge_eval.report.series import thirds

MOST_PLAYED = 200
MOST_STEPS = 64
_NO_CALL = "the phase has no call"
_NOT_LOGGED = "the rollout log does not record it"
_NOT_PLAYED = "no episode could be played again"


class Vetoes(NamedTuple):
    """How often each reviewer blocked a call of one phase."""

    calls: int
    by_role: Counter[str]


class Objections(NamedTuple):
    """How many calls of some episodes a reviewer objected to."""

    episodes: int
    calls: int
    objected: int


def put_reviews(book: NumberBook, before: Evaluation | None, after: Evaluation | None, rollouts: pl.DataFrame) -> None:
    """Put down vetoes by reviewer and objections for each of the four phases."""
    early, late = thirds(rollouts.select("trainer_step", "vetoes"))
    files = {"before": layout.BEFORE, "early": layout.ROLLOUTS, "late": layout.ROLLOUTS, "after": layout.AFTER}
    vetoes = {
        "before": vetoes_of_evaluation(before),
        "early": vetoes_of_lines(early),
        "late": vetoes_of_lines(late),
        "after": vetoes_of_evaluation(after),
    }
    played = {"before": play_objections(before), "early": None, "late": None, "after": play_objections(after)}
    for phase, found in vetoes.items():
        is_log = files[phase] == layout.ROLLOUTS
        source = (files[phase], "column vetoes" if is_log else "/episodes/*/steps/*/vetoes")
        for role in REVIEWERS:
            share = found.by_role[role] / found.calls if found.calls else None
            book.put(f"conduct.{phase}.veto_{role}", share, percent(share, 1), source, reason=_NO_CALL)
        objections = played[phase]
        share = objections.objected / objections.calls if objections is not None and objections.calls else None
        reason = _NOT_LOGGED if is_log else _NOT_PLAYED
        steps = (files[phase], "columns" if is_log else "/episodes/*/steps, played again")
        book.put(f"conduct.{phase}.objected", share, percent(share, 1), steps, reason=reason)
        count = objections.episodes if objections is not None and objections.episodes else None
        book.put(f"conduct.{phase}.objected_episodes", count, whole(count), steps, reason=reason)


def vetoes_of_evaluation(evaluation: Evaluation | None) -> Vetoes:
    """Count the vetoes of an evaluation; a completion without a call counts as a call."""
    episodes = () if evaluation is None else evaluation.episodes
    steps = [step for episode in episodes for step in episode.steps]
    silent = len([episode for episode in episodes if episode.ended_by in {"no_call", "malformed_call"}])
    return Vetoes(len(steps) + silent, Counter(role for step in steps for role in set(step.vetoes)))


def vetoes_of_lines(lines: pl.DataFrame) -> Vetoes:
    """Count the vetoes of some lines of the rollout log."""
    counts = lines.select(pl.col("vetoes").list.unique()).explode("vetoes").drop_nulls().group_by("vetoes").len()
    return Vetoes(len(lines), Counter(dict(counts.iter_rows())))


def play_objections(evaluation: Evaluation | None) -> Objections:
    """Play the calls of some episodes again, and count those that a reviewer objected to."""
    episodes = () if evaluation is None else evaluation.episodes
    return _sum(_play(episode) for episode in evenly(episodes, MOST_PLAYED))


def _play(episode: EpisodeRecord) -> Objections:
    try:
        scenario = resolve_scenario(suite=episode.suite, scenario_id=episode.scenario_id, seed=episode.seed)
    except UsageError:
        # The check of the run names an unknown scenario.
        return Objections(0, 0, 0)
    session = ToolSession(observation_length="compact")
    session.start(scenario, reward_mode=episode.reward_mode)
    calls = objected = 0
    for step in episode.steps[:MOST_STEPS]:
        outcome = call_tool(session, step.tool, step.arguments).outcome
        calls += 1
        objected += outcome is not None and bool(outcome.objections)
    return Objections(1, calls, objected)


def _sum(parts: Iterable[Objections]) -> Objections:
    total = Objections(0, 0, 0)
    for part in parts:
        total = Objections(*(left + right for left, right in zip(total, part, strict=True)))
    return total
