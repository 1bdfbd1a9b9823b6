"""What the policy did: action mix, vetoes, invalid calls, unfinished episodes and budget, phase by phase.

Phases are the evaluation before, the first and the last third of training, and the evaluation after. A completion
without a call counts as a call of kind `none`, in every phase alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.records.evaluation import Evaluation
from molforge_eval.report.evidence import CurveNote, PhaseRow
from molforge_eval.report.learning import episode_ends, put_ends, trend_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, percent, whole
from molforge_eval.report.series import ActionShare, action_shares, curve_over_steps, thinned, thirds

UNFINISHED = frozenset({"no_call", "malformed_call", "turn_limit", "length_limit"})
PHASES = {"before": "before", "early": "early training", "late": "late training", "after": "after"}
_COLUMNS = {
    "vetoed": "columns trainer_step, governance_status",
    "invalid": "columns trainer_step, status",
    "unfinished": "columns trainer_step, ended_by",
    "budget_left": "columns trainer_step, remaining_budget, scenario",
}
_OF_A_PHASE = (
    "trainer_step",
    "episode_id",
    "action_type",
    "governance_status",
    "status",
    "ended_by",
    "remaining_budget",
)
_NO_EPISODE = "the phase has no episode"
_NO_CALL = "the phase has no call"


class Conduct(NamedTuple):
    """The calls and episodes of one phase."""

    actions: tuple[str, ...]
    vetoed: int
    invalid: int
    endings: tuple[str, ...]
    budget_left: tuple[float, ...]
    """Share of the budget that was left at the end of each episode."""


def put_conduct(
    book: NumberBook, before: Evaluation | None, after: Evaluation | None, rollouts: pl.DataFrame
) -> tuple[PhaseRow, ...]:
    """Put the numbers of every phase down, and return the phases that have an episode."""
    early, late = thirds(rollouts.select(_OF_A_PHASE))
    budgets = episode_budgets(rollouts)
    conducts = {
        "before": (_of_evaluation(before), layout.BEFORE),
        "early": (_of_rollouts(early, budgets), layout.ROLLOUTS),
        "late": (_of_rollouts(late, budgets), layout.ROLLOUTS),
        "after": (_of_evaluation(after), layout.AFTER),
    }
    rows = []
    for phase, (conduct, file) in conducts.items():
        _put_phase(book, phase, conduct, file)
        if conduct.endings:
            shares = action_shares(PHASES[phase], conduct.actions)
            put_shares(book, f"conduct.{phase}", shares, _calls_of(file))
            rows.append(PhaseRow(phase=phase, label=PHASES[phase], actions=shares))
    return tuple(rows)


def put_training_counts(book: NumberBook, rollouts: pl.DataFrame) -> None:
    """Put down how much was played in training."""
    episodes = rollouts["episode_id"].n_unique()
    calls = int((rollouts["action_type"] != "none").sum())
    visited = rollouts["molecule"].drop_nulls().n_unique()
    book.put("training.episodes", episodes, whole(episodes), (layout.ROLLOUTS, "column episode_id"))
    book.put("training.calls", calls, whole(calls), (layout.ROLLOUTS, "column action_type"))
    book.put("training.lines", len(rollouts), whole(len(rollouts)), (layout.ROLLOUTS, "lines"))
    book.put("training.visited", visited, whole(visited), (layout.ROLLOUTS, "column molecule"))


def conduct_curves(book: NumberBook, rollouts: pl.DataFrame) -> tuple[CurveNote, ...]:
    """Return the shares of vetoed, invalid and unfinished, and the budget left, over optimizer steps.

    Where each began and where it ended is put down as `curve.<name>.first` and `curve.<name>.last`.
    """
    steps = rollouts["trainer_step"].to_list()
    # Flags and not numbers: of a flag there is one object, of a number one a line.
    vetoed = (rollouts["governance_status"] == "policy_veto").fill_null(value=False).to_list()
    invalid = (rollouts["status"] == "invalid").to_list()
    ends = episode_ends(rollouts.select("trainer_step", "episode_id", "ended_by", "remaining_budget"))
    budgets = episode_budgets(rollouts)
    unfinished = [float(ending in UNFINISHED) for ending in ends["ended_by"]]
    left = _budget_left(ends, budgets)
    curves = (
        curve_over_steps(steps, vetoed, "vetoed"),
        curve_over_steps(steps, invalid, "invalid"),
        curve_over_steps(ends["trainer_step"].to_list(), unfinished, "unfinished"),
        curve_over_steps(ends["trainer_step"].to_list(), left, "budget_left"),
    )
    notes = []
    for curve in curves:
        if curve.points:
            put_ends(book, curve.column, curve, (layout.ROLLOUTS, _COLUMNS[curve.column]), percent)
            notes.append(CurveNote(name=curve.column, curve=thinned(curve), trend=trend_of(curve)))
    return tuple(notes)


def episode_budgets(rollouts: pl.DataFrame) -> dict[str, int]:
    """Return the whole budget of each training episode, from the scenario on its first line."""
    first = rollouts.select("episode_id", "max_budget").filter(pl.col("max_budget").is_not_null())
    return dict(zip(first["episode_id"], first["max_budget"], strict=True))


def _of_evaluation(evaluation: Evaluation | None) -> Conduct:
    episodes = () if evaluation is None else evaluation.episodes
    steps = [step for episode in episodes for step in episode.steps]
    silent = [episode for episode in episodes if episode.ended_by in {"no_call", "malformed_call"}]
    return Conduct(
        actions=(*(step.action_type for step in steps), *("none" for _ in silent)),
        vetoed=len([step for step in steps if step.governance_status == "policy_veto"]),
        invalid=len([step for step in steps if step.status == "invalid"]),
        endings=tuple(episode.ended_by for episode in episodes),
        budget_left=tuple(
            (episode.steps[-1].remaining_budget if episode.steps else episode.scenario.max_budget)
            / episode.scenario.max_budget
            for episode in episodes
            if episode.scenario.max_budget > 0
        ),
    )


def _of_rollouts(lines: pl.DataFrame, budgets: dict[str, int]) -> Conduct:
    ends = episode_ends(lines)
    return Conduct(
        actions=tuple(lines["action_type"].to_list()),
        vetoed=int((lines["governance_status"] == "policy_veto").sum()),
        invalid=int((lines["status"] == "invalid").sum()),
        endings=tuple(ends["ended_by"].to_list()),
        budget_left=tuple(left for left in _budget_left(ends, budgets) if left is not None),
    )


def _budget_left(ends: pl.DataFrame, budgets: dict[str, int]) -> list[float | None]:
    return [
        left / budgets[episode] if budgets.get(episode) else None
        for episode, left in zip(ends["episode_id"], ends["remaining_budget"], strict=True)
    ]


def put_shares(book: NumberBook, at: str, shares: Sequence[ActionShare], source: tuple[str, str]) -> None:
    """Put the share of every action of a phase down as `<at>.share_<action>`."""
    for share in shares:
        book.put(f"{at}.share_{share.action}", share.share, percent(share.share), source)


def _calls_of(file: str) -> tuple[str, str]:
    return file, "/episodes/*/steps" if file != layout.ROLLOUTS else "columns action_type, status, governance_status"


def _put_phase(book: NumberBook, phase: str, conduct: Conduct, file: str) -> None:
    calls, episodes = len(conduct.actions), len(conduct.endings)
    steps = _calls_of(file)
    ends = (file, "/episodes/*/ended_by" if file != layout.ROLLOUTS else "column ended_by")
    book.put(f"conduct.{phase}.calls", calls, whole(calls), steps)
    book.put(f"conduct.{phase}.episodes", episodes, whole(episodes), ends)
    for name, count in (("vetoed", conduct.vetoed), ("invalid", conduct.invalid)):
        _put_share(book, f"conduct.{phase}.{name}", count, calls, steps, _NO_CALL)
    unfinished = len([ending for ending in conduct.endings if ending in UNFINISHED])
    _put_share(book, f"conduct.{phase}.no_call", unfinished, episodes, ends, _NO_EPISODE)
    _put_share(book, f"conduct.{phase}.submitted", conduct.endings.count("submit"), episodes, ends, _NO_EPISODE)
    errored = conduct.endings.count("env_error")
    book.put(f"conduct.{phase}.errored", errored, whole(errored), ends)
    left = _mean(conduct.budget_left)
    book.put(f"conduct.{phase}.budget_left", left, percent(left), ends, reason=_NO_EPISODE)
    length = calls / episodes if episodes else None
    book.put(f"conduct.{phase}.steps", length, decimal(length, 1), steps, reason=_NO_EPISODE)


def _put_share(book: NumberBook, number_id: str, count: int, total: int, source: tuple[str, str], reason: str) -> None:
    share = count / total if total else None
    book.put(number_id, share, percent(share, 1), source, reason=reason)


def _mean(values: Sequence[float]) -> float | None:
    total = 0.0
    for value in values:
        total += value
    return total / len(values) if values else None
