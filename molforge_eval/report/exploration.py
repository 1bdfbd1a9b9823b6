"""Where the policy went among the 256 molecules: visited in training, submitted before and after, and the ceiling.

A molecule counts as visited when a line of the rollout log left it on the bench, and as submitted when the episode
ended by `submit` with it. The ceiling's molecule is the one that the exact search submits; another one may tie with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from molforge_env.ceiling import official_ceilings
from molforge_env.molecules import MOLECULES
from molforge_env.tools import ToolSession
from molforge_eval import layout
from molforge_eval.records.evaluation import Evaluation, PartName
from molforge_eval.report.evidence import CurveNote
from molforge_eval.report.learning import trend_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import percent, whole
from molforge_eval.report.scores import Sides, task_label
from molforge_eval.report.section_evidence import CeilingMolecule, Exploration, MoleculeCell
from molforge_eval.report.series import Curve, Point, thinned, thirds

ARMS = {"before": layout.BEFORE, "after": layout.AFTER}
_LOG = (layout.ROLLOUTS, "column molecule")
_NO_LOG = "the rollout log names no molecule"
_NO_SUBMISSION = "no episode of an official task submitted"


def explore(book: NumberBook, rollouts: pl.DataFrame, sides: Sides | None) -> Exploration:
    """Put down how much of the space was seen, and return every molecule that something is said of."""
    rollouts = rollouts.select("trainer_step", "molecule", "action_type", "ended_by")
    known = rollouts.filter(pl.col("molecule").is_in(list(MOLECULES)))
    visits = _counts(known)
    trained = _counts(known.filter((pl.col("ended_by") == "submit") & (pl.col("action_type") == "submit")))
    _put_visits(book, rollouts, known)
    _put(book, "explore.trained", len(trained) if len(known) else None, (layout.ROLLOUTS, "columns molecule, ended_by"))
    part: PartName = "sampled" if sides is None else sides.plan.decision.part
    submitted = {arm: _put_arm(book, arm, None if sides is None else getattr(sides, arm), part) for arm in ARMS}
    ceilings = tuple(
        CeilingMolecule(task=task, label=task_label(task), code=code) for task, code in ceiling_molecules().items()
    )
    codes = sorted({*visits, *trained, *submitted["before"], *submitted["after"], *(c.code for c in ceilings)})
    return Exploration(
        part=part,
        cells=tuple(
            MoleculeCell(
                code=code,
                visits=visits[code],
                trained=trained[code],
                before=submitted["before"][code],
                after=submitted["after"][code],
                ceiling_of=tuple(ceiling.label for ceiling in ceilings if ceiling.code == code),
            )
            for code in codes
        ),
        ceilings=ceilings,
        top_before=_top(submitted["before"]),
        top_after=_top(submitted["after"]),
    )


def visited_curve(rollouts: pl.DataFrame) -> tuple[CurveNote, ...]:
    """Return how many molecules had been visited up to each optimizer step; nothing without a log."""
    firsts = (
        rollouts.select("trainer_step", "molecule")
        .filter(pl.col("molecule").is_in(list(MOLECULES)))
        .group_by("molecule")
        .agg(pl.col("trainer_step").min())["trainer_step"]
        .drop_nulls()
        .to_list()
    )
    steps = rollouts["trainer_step"].drop_nulls().unique().sort().to_list()
    new = Counter(firsts)
    points, seen = [], 0
    for step in steps:
        seen += new[step]
        points.append(Point(0, step, float(seen), float(seen), 0))
    curve = Curve(column="visited", points=tuple(points), gaps=0)
    return (CurveNote(name="visited", curve=thinned(curve), trend=trend_of(curve)),) if firsts else ()


@cache
def ceiling_molecules() -> Mapping[str, str]:
    """Return the molecule that the exact search submits, by official task."""
    found = {}
    for task, ceiling in official_ceilings().items():
        session = ToolSession(observation_length="compact")
        session.start(ceiling.scenario)
        for tool, arguments in ceiling.calls:
            session.call(tool, arguments)
        found[task] = session.outcomes[-1].molecule
    return found


def submissions(evaluation: Evaluation | None, part: PartName) -> list[tuple[str, str]]:
    """Return task and molecule of each episode of a part that ended by `submit`."""
    episodes = () if evaluation is None else evaluation.episodes
    return [
        (episode.scenario_id, episode.steps[-1].molecule)
        for episode in episodes
        if episode.part == part and episode.ended_by == "submit" and episode.steps
    ]


def _put_visits(book: NumberBook, rollouts: pl.DataFrame, known: pl.DataFrame) -> None:
    for name, lines in zip(("visited_early", "visited_late"), thirds(rollouts), strict=True):
        seen = lines["molecule"].filter(lines["molecule"].is_in(list(MOLECULES))).n_unique()
        # A third without a molecule is none where the log names some; fewer than three steps have no last third.
        reason = _NO_LOG if not len(known) else "the log has fewer than three steps"
        _put(book, f"explore.{name}", seen if len(known) and len(lines) else None, _LOG, reason)
    first = known.filter(pl.col("molecule").is_in([*set(ceiling_molecules().values())]))["trainer_step"].min()
    step = first if isinstance(first, int) else None
    reason = "no line of the log left the ceiling's molecule on the bench" if len(known) else _NO_LOG
    book.put("explore.ceiling_step", step, whole(step), _LOG, reason=reason)


def _put_arm(book: NumberBook, arm: str, evaluation: Evaluation | None, part: PartName) -> Counter[str]:
    pairs = submissions(evaluation, part)
    counts = Counter(code for _, code in pairs if code in MOLECULES)
    source = (ARMS[arm], "/episodes/*/steps")
    gone = None if evaluation is None else len(pairs)
    missing = f"the evaluation {arm} training is missing"
    _put(book, f"explore.{arm}_submissions", gone, source, missing)
    _put(book, f"explore.{arm}_molecules", None if gone is None else len(counts), source, missing)
    top = _top(counts)
    most = None if top is None else counts[top]
    reason = missing if evaluation is None else "no episode of the deciding part submitted"
    _put(book, f"explore.{arm}_top", most, source, reason)
    best = ceiling_molecules()
    judged = [(task, code) for task, code in pairs if task in best]
    share = _share([code == best[task] for task, code in judged])
    reason = missing if evaluation is None else _NO_SUBMISSION
    book.put(f"explore.{arm}_at_ceiling", share, percent(share), source, reason=reason)
    return counts


def _top(counts: Counter[str]) -> str | None:
    return min(counts, key=lambda code: (-counts[code], code), default=None)


def _counts(lines: pl.DataFrame) -> Counter[str]:
    return Counter(dict(lines.group_by("molecule").len().iter_rows()))


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _put(book: NumberBook, number_id: str, value: int | None, source: Any, reason: str = _NO_LOG) -> None:
    book.put(number_id, value, whole(value), source, reason=reason)
