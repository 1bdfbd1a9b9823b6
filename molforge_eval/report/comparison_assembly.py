"""Assemble the evidence of a comparison: every number put down once, nothing drawn or worded.

Equal runs named in equal order give equal evidence: no clock, and no random draw beyond those the rule has seeded.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from molforge_env import __version__
from molforge_env.suites import SCENARIO_IDS
from molforge_eval import layout
from molforge_eval.decision import interval_of
from molforge_eval.ladder import Ladder
from molforge_eval.pairing import pair_scores, score_table
from molforge_eval.records.fields import Sha256
from molforge_eval.report.comparison_evidence import (
    ComparedRun,
    ComparedTask,
    ComparisonEvidence,
    ComparisonOutcome,
    Method,
    Pair,
    UnlikeKey,
)
from molforge_eval.report.duels import FEWEST_SEEDS, RULE, Duel, hold_duels, list_short, note_of, smallest_p_of
from molforge_eval.report.leagues import APART, UNTESTED, find_all_ties, find_leagues, letters_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, percent, probability, whole
from molforge_eval.report.old_evidence import LACKS
from molforge_eval.report.old_provenance import identify_old
from molforge_eval.report.old_scores import is_official
from molforge_eval.report.provenance import UNKNOWN, identify
from molforge_eval.report.quoting import quote
from molforge_eval.report.rivals import Rival
from molforge_eval.report.scores import MEAN, RUNGS, put_rung, task_label
from molforge_eval.report.unlike_settings import MOST_SETTINGS, find_unlike, show_value
from molforge_eval.statistics import Interval, mean_of

DEFAULT_TITLE = "Which run scores higher?"
METHODS = (
    Method(name="pairing", source="R. A. Fisher, The Design of Experiments, 1935, chapter III"),
    Method(name="difference", source="the plan of a run: molforge_eval.pairing"),
    Method(name="interval", source="B. Efron, Annals of Statistics 7, 1979; percentiles, seeds resampled in each task"),
    Method(name="test", source="R. A. Fisher, 1935; exact up to 2^20 sign patterns, else 100,000 drawn"),
    Method(name="adjustment", source="S. Holm, Scandinavian Journal of Statistics 6, 1979"),
    Method(name="letters", source="H.-P. Piepho, Journal of Computational and Graphical Statistics 13, 2004"),
)
_WITHHELD = "withheld"
_SAFE_KEY = re.compile(r"[A-Za-z0-9_:-]{1,80}")


def assemble_comparison(rivals: Sequence[Rival], ladder: Ladder, *, title: str = DEFAULT_TITLE) -> ComparisonEvidence:
    """Compute everything that the page says.

    Args:
        rivals: The runs in the order in which they were named; at least two.
        ladder: Reference policies.
        title: Title of the page.
    """
    duels = hold_duels(rivals)
    able = [rival.key for rival in rivals if rival.is_compared()]
    leagues = find_leagues(able, duels)
    ties = find_all_ties(leagues, duels)
    book = NumberBook(_hashes(rivals))
    tasks = _list_tasks(rivals)
    keys = {task: compared.key for task, compared in tasks.items()}
    has_ladder = _is_on_ladder(rivals)
    for rung in RUNGS:
        put_rung(book, MEAN, rung, ladder.mean(rung) if has_ladder else None)
    for rival in rivals:
        _put_run(book, rival, keys)
    for duel in duels:
        _put_pair(book, duel, keys)
    _put_counts(book, rivals, duels)
    unlike = find_unlike(rivals)
    differing = {"differing": len(unlike), "listed": min(len(unlike), MOST_SETTINGS)}
    for name, count in differing.items():
        book.put(f"settings.{name}", count, whole(count), ("manifests and evaluations of the runs", "all"))
    letters = letters_of(ties)
    homes = {run: number for number, league in enumerate(leagues) for run in league}
    return ComparisonEvidence(
        comparison_version=1,
        product_version=__version__,
        title=quote(title, 200),
        date=_last_day(rivals),
        outcome=_outcome(duels),
        note=note_of(duels),
        short_pairs=list_short(duels),
        runs=tuple(_state_run(rival, letters.get(rival.key, ""), homes.get(rival.key)) for rival in rivals),
        tasks=tuple(tasks.values()),
        pairs=tuple(_state_pair(duel, keys) for duel in duels),
        ties=ties,
        settings=unlike[:MOST_SETTINGS],
        omitted_settings=max(0, len(unlike) - MOST_SETTINGS),
        has_ladder=has_ladder,
        methods=METHODS,
        numbers=book.numbers,
    )


def _outcome(duels: Sequence[Duel]) -> ComparisonOutcome:
    tested = [duel for duel in duels if duel.meeting not in UNTESTED]
    apart = [duel for duel in tested if duel.meeting in APART]
    if not tested:
        return "nothing compared"
    if not apart:
        return "not told apart"
    return "told apart" if len(apart) == len(duels) else "partly told apart"


def _hashes(rivals: Sequence[Rival]) -> Mapping[str, Sha256]:
    return {
        f"{rival.key}/{entry.path}": entry.sha256
        for rival in rivals
        if rival.checked is not None
        for entry in rival.checked.files
    }


def _list_tasks(rivals: Sequence[Rival]) -> Mapping[str, ComparedTask]:
    names: dict[str, None] = {}
    for rival in rivals:
        plan = rival.plan
        if plan is not None and rival.is_compared():
            names |= {task: None for block in plan.parts if block.name == plan.decision.part for task in block.tasks}
    return name_tasks(tuple(names))


def name_tasks(tasks: Sequence[str]) -> Mapping[str, ComparedTask]:
    """Give every task a key of its own: its name where an id can hold it, else a number that no name takes."""
    own = {task for task in tasks if _SAFE_KEY.fullmatch(task) and task != MEAN}
    free = (key for number in itertools.count() if (key := f"task-{number}") not in own)
    return {task: ComparedTask(key=task if task in own else next(free), label=task_label(task)) for task in tasks}


def _is_on_ladder(rivals: Sequence[Rival]) -> bool:
    """Tell whether every score that is shown is of the three official tasks."""
    shown = [_is_official(rival) for rival in rivals if rival.state in {"compared", "unpaired"}]
    return bool(shown) and all(shown)


def _is_official(rival: Rival) -> bool:
    if rival.arms is not None:
        return is_official(rival.arms)
    plan = rival.plan
    block = None if plan is None else next((b for b in plan.parts if b.name == plan.decision.part), None)
    return block is not None and block.suite == "official" and set(block.tasks) == set(SCENARIO_IDS)


def _put_run(book: NumberBook, rival: Rival, tasks: Mapping[str, str]) -> None:
    """Put the scores of one run down; those of one that is withheld, repeated, incomplete or unread stay unsaid."""
    at = f"run.{rival.key}"
    why = {
        "withheld": _WITHHELD,
        "repeated": f"it repeats {rival.same_as}",
        "incomplete": "the run is incomplete: too little of its evaluation after training was counted",
        "unreadable": "it cannot be read",
    }
    hidden = why.get(rival.state)
    result = None if rival.checked is None else rival.checked.result
    for severity in ("error", "warning"):
        count = None if result is None else len([f for f in result.findings if f.severity == severity])
        book.put(f"{at}.{severity}s", count, whole(count), ("molforge-eval verify", "findings"), reason=hidden)
    sides = {side: (f"{rival.key}/{file}", "/episodes/*/final_score") for side, file in _FILES.items()}
    verdict = None if rival.checked is None else rival.checked.verdict
    values: dict[str, float | None] = dict.fromkeys(_FIELDS)
    seeds = None
    reason = hidden or "the evaluation is missing, or a task has no counted episode"
    if hidden is None and rival.arms is not None:
        values |= {arm.name: arm.mean() for arm in rival.arms}
        reason = "format version 0 records no seed: there is nothing to resample and nothing to pair"
    elif hidden is None and verdict is not None:
        sampled = verdict.sampled
        values |= {"before": sampled.before_mean, "after": sampled.after_mean, "difference": sampled.difference}
        bounds = {"before_": sampled.before_interval, "after_": sampled.after_interval, "": sampled.interval}
        for prefix, bound in bounds.items():
            if bound is not None:
                values |= {f"{prefix}low": bound.low, f"{prefix}high": bound.high}
        seeds = sampled.seeds_paired
        reason = sampled.interval_reason or reason
    for field, value in values.items():
        is_signed = field in {"difference", "low", "high"}
        sources = [sides[side] for side in sides if is_signed or field.startswith(side)]
        book.put(f"{at}.{field}", value, decimal(value, signed=is_signed), *sources, reason=reason)
    book.put(f"{at}.seeds", seeds, whole(seeds), *sides.values(), reason=reason)
    _put_task_scores(book, rival, tasks, hidden)


_FILES = {"before": layout.BEFORE, "after": layout.AFTER}
_FIELDS = ("before", "before_low", "before_high", "after", "after_low", "after_high", "difference", "low", "high")


def _put_task_scores(book: NumberBook, rival: Rival, tasks: Mapping[str, str], hidden: str | None) -> None:
    """Put the mean after training of every task down, with its interval over the task's seeds."""
    evaluation, plan = rival.after, rival.plan
    source = (f"{rival.key}/{layout.AFTER}", "/episodes/*/final_score")
    for task, key in tasks.items():
        mean, interval = None, None
        if hidden is None and evaluation is not None and plan is not None:
            pairing = pair_scores(None, evaluation, plan, plan.decision.part)
            seeds = tuple(seed for seed in pairing.seeds if (task, seed) in pairing.after)
            if seeds:
                table = score_table(pairing.after, (task,), seeds)
                mean, interval = mean_of(table[:, 0]), interval_of(table, RULE, f"after {task}")
        at = f"run.{rival.key}.{key}"
        book.put(f"{at}.after", mean, decimal(mean), source, reason=hidden or "no episode of the task was counted")
        for end in ("low", "high"):
            value: float | None = None if interval is None else getattr(interval, end)
            book.put(f"{at}.{end}", value, decimal(value), source, reason=hidden or "the task's seeds show no spread")


def _put_pair(book: NumberBook, duel: Duel, tasks: Mapping[str, str]) -> None:
    sources = tuple((f"{key}/{layout.AFTER}", "/episodes/*/final_score") for key in (duel.first, duel.second))
    reason = "refused" if duel.meeting == "refused" else duel.reason or "the paired seeds show no spread"
    at = f"pair.{duel.key}.{MEAN}"
    _put_difference(book, at, duel.difference, duel.interval, sources, reason)
    for name, p_value in (("p", duel.p_value), ("holm", duel.holm)):
        book.put(f"{at}.{name}", p_value, probability(p_value), *sources, reason=reason)
    book.put(f"{at}.seeds", duel.seeds, whole(duel.seeds), *sources)
    book.put(f"{at}.common", duel.seeds_common, whole(duel.seeds_common), *sources)
    book.put(f"{at}.barriers", len(duel.barriers), whole(len(duel.barriers)), *sources)
    for task in duel.tasks:
        under = f"pair.{duel.key}.{tasks[task.task]}"
        why = "no seed of the task was counted on both sides" if not task.seeds else reason
        _put_difference(book, under, task.difference, task.interval, sources, why)
        for name, p_value in (("p", task.p_value), ("holm", task.holm)):
            book.put(f"{under}.{name}", p_value, probability(p_value), *sources, reason=why)
        book.put(f"{under}.seeds", task.seeds, whole(task.seeds), *sources)


def _put_difference(
    book: NumberBook,
    at: str,
    difference: float | None,
    interval: Interval | None,
    sources: Sequence[tuple[str, str]],
    reason: str,
) -> None:
    book.put(f"{at}.difference", difference, decimal(difference, signed=True), *sources, reason=reason)
    for end in ("low", "high"):
        value: float | None = None if interval is None else getattr(interval, end)
        book.put(f"{at}.{end}", value, decimal(value, signed=True), *sources, reason=reason)


def _put_counts(book: NumberBook, rivals: Sequence[Rival], duels: Sequence[Duel]) -> None:
    source = ("the runs as they were named", "all")
    tested = [duel for duel in duels if duel.meeting not in UNTESTED]
    counts = {
        "runs.named": len(rivals),
        "runs.compared": len([rival for rival in rivals if rival.is_compared()]),
        "pairs.listed": len(duels),
        "pairs.tested": len(tested),
        "pairs.apart": len([duel for duel in tested if duel.meeting in APART]),
        "pairs.alike": len([duel for duel in tested if duel.meeting == "alike"]),
        "pairs.refused": len([duel for duel in duels if duel.meeting == "refused"]),
        "pairs.cells": len([task for duel in tested for task in duel.tasks if task.p_value is not None]),
    }
    for number_id, count in counts.items():
        book.put(number_id, count, whole(count), source)
    fewest = min((duel.seeds for duel in tested), default=None)
    most = max((duel.seeds for duel in tested), default=None)
    for name, seeds in (("fewest", fewest), ("most", most)):
        book.put(f"pairs.seeds_{name}", seeds, whole(seeds), source, reason="no pair was tested")
    least = smallest_p_of(duels)
    book.put("pairs.smallest_p", least, probability(least), source, reason="no pair was tested")
    rule = ("the standard decision rule of the product", "all")
    book.put("compared_by.fewest_seeds", FEWEST_SEEDS, whole(FEWEST_SEEDS), rule)
    book.put("compared_by.alpha", RULE.alpha, decimal(RULE.alpha), rule)
    book.put("compared_by.margin", RULE.margin, decimal(RULE.margin), rule)
    book.put("compared_by.confidence", RULE.confidence, percent(RULE.confidence), rule)


def _state_run(rival: Rival, letters: str, league: int | None) -> ComparedRun:
    checked = rival.checked
    run = None if checked is None else checked.run
    identity = None
    if checked is not None and run is not None:
        name = identify_old if run.format_version == 0 else identify
        identity = name(run, checked.root_sha256, rival.label)
    errors = () if checked is None else (f for f in checked.result.findings if f.severity == "error")
    return ComparedRun(
        key=rival.key,
        label=rival.label,
        run_id=rival.run_id,
        run_format=None if run is None else run.format_version,
        state=rival.state,
        reasons=rival.reasons,
        lacks=LACKS if run is not None and run.format_version == 0 else (),
        level=None if checked is None else checked.result.level,
        level_reason="it cannot be read" if checked is None else checked.result.level_reason,
        replayed=checked is not None and checked.replayed,
        outcome=rival.outcome,
        error_codes=tuple(sorted({finding.code for finding in errors})),
        same_as=rival.same_as,
        league=league,
        letters=letters,
        model=UNKNOWN if identity is None else identity.model,
        root_sha256=None if checked is None else checked.root_sha256,
        output_adapter_sha256=None if identity is None else identity.output_adapter_sha256,
    )


def _state_pair(duel: Duel, tasks: Mapping[str, str]) -> Pair:
    return Pair(
        key=duel.key,
        first=duel.first,
        second=duel.second,
        meeting=duel.meeting,
        reason=duel.reason,
        differing=tuple(
            UnlikeKey(key=quote(d.key, 80), first=show_value(d.before), second=show_value(d.after))
            for d in duel.barriers
        ),
        tasks_apart=tuple(tasks[t.task] for t in duel.tasks if t.holm is not None and t.holm < RULE.alpha),
    )


def _last_day(rivals: Sequence[Rival]) -> str:
    days = [
        manifest.ended_at or manifest.started_at
        for manifest in (None if rival.checked is None else rival.checked.run.manifest for rival in rivals)
        if manifest is not None
    ]
    return f"{max(days).day} {max(days):%B %Y}" if days else UNKNOWN
