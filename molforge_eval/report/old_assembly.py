"""Assemble the evidence of a run of format version 0: numbers, claims, and what is missing."""

from __future__ import annotations

import polars as pl

from molforge_eval import layout
from molforge_eval.log_tables import TRAINER_HEAD
from molforge_eval.report.action_shift import put_shift
from molforge_eval.report.assembly import (
    DEFAULT_TITLE,
    LONGEST_TITLE,
    MOST_FINDINGS,
    Checked,
    omitted_findings,
    put_checks,
)
from molforge_eval.report.chart_index import with_charts
from molforge_eval.report.evidence import CurveNote, Evidence, LevelStatement, Sentinel
from molforge_eval.report.learning import TRAINER_COLUMNS, first_and_last, put_curves, trend_of
from molforge_eval.report.metrics import put_metrics
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, scientific, whole
from molforge_eval.report.old_arms import Arm, arms_of, refusal
from molforge_eval.report.old_conduct import put_calls, put_log
from molforge_eval.report.old_evidence import LACKS, LoggedColumn, OldStatement
from molforge_eval.report.old_provenance import identify_old, list_old_commands, list_old_settings
from molforge_eval.report.old_scores import MOST_TASKS, is_official, metrics_of, put_unpaired
from molforge_eval.report.old_statement import absence_of, bar_of, judge_old, list_missing, state_arm, weigh_old_claims
from molforge_eval.report.old_traces import MOST_SCENARIOS, read_traces
from molforge_eval.report.provenance import list_artifacts
from molforge_eval.report.quoting import quote
from molforge_eval.report.series import Curve, curve_of, trainer_rows

MOST_COLUMNS = 30
LONGEST_COLUMN = 60


def assemble_old_evidence(checked: Checked, *, title: str = DEFAULT_TITLE) -> Evidence:
    """Compute everything that the packet of a run of format version 0 says.

    Args:
        checked: The run and its validation; its verdict is not asked, for there is no plan to judge by.
        title: Title of the packet.
    """
    run, findings = checked.run, checked.result.findings
    arms = arms_of(run)
    barred = bar_of(findings)
    book = NumberBook({entry.path: entry.sha256 for entry in checked.files})
    tasks = put_unpaired(book, arms, checked.ladder, barred=barred)
    metrics = put_metrics(book, metrics_of(arms), refused=refusal(*arms), barred=barred)
    source = layout.TRAINER_LOG if run.old is None or run.old.trainer_source is None else run.old.trainer_source
    learned = put_curves(book, run.trainer_log, run.rollouts, trainer_file=source)
    curves = (*learned, *put_log(book, run.rollouts))
    phases = put_calls(book, arms, run.rollouts)
    _put_steps(book, checked, source)
    columns = _put_columns(book, run.trainer_log, source)
    sentinel = _watch(book, curves, arms, source)
    level = LevelStatement(level=checked.result.level, reason=checked.result.level_reason, replayed=False)
    put_checks(book, checked.result)
    statement = judge_old(run, arms, findings, checked.ladder)
    listed = {task for arm in arms for task in arm.tasks()}
    evidence = Evidence(
        evidence_version=1,
        identity=identify_old(run, checked.root_sha256, quote(title, LONGEST_TITLE)),
        level=level,
        verdict=statement,
        sentinel=sentinel,
        claims=weigh_old_claims(statement.outcome, level, sentinel, has_rows=bool(len(run.trainer_log))),
        tasks=(),
        metrics=metrics,
        seeds=(),
        seed_table=None,
        curves=curves,
        phases=phases,
        shift=put_shift(book, phases),
        paid=(),
        exploration=None,
        transcripts=(),
        settings=list_old_settings(None if run.old is None else run.old.manifest),
        packages=(),
        surroundings=(),
        findings=findings[:MOST_FINDINGS],
        omitted_findings=omitted_findings(checked.result),
        artifacts=list_artifacts(book, checked.files),
        commands=list_old_commands(run),
        old=OldStatement(
            arms=(state_arm(arms[0]), state_arm(arms[1])),
            absences=tuple(words for arm in arms for words in absence_of(arm)),
            tasks=tasks,
            omitted_tasks=max(0, len(listed) - MOST_TASKS),
            traces=read_traces(book, arms),
            omitted_scenarios=max(0, len(listed) - MOST_SCENARIOS),
            columns=columns,
            lacks=LACKS,
            missing_files=list_missing(run, arms),
            difference_reason=refusal(*arms) or barred,
            is_official=is_official(arms),
            is_once_each=all(count <= 1 for arm in arms for count in arm.counts().values()),
        ),
        numbers=book.numbers,
    )
    return with_charts(evidence)


def _put_steps(book: NumberBook, checked: Checked, source: str) -> None:
    old = checked.run.old
    manifest = None if old is None else old.manifest
    state = None if old is None else old.trainer_state
    steps = checked.run.trainer_log.filter(pl.col("type") == "train")["step"].drop_nulls().to_list()
    last = max(steps, default=None)
    book.put("log.last_step", last, whole(last), (source, "column step"), reason="no training row names a step")
    planned, place = None if manifest is None else manifest.rl_max_steps, (layout.MANIFEST, "/rl_max_steps")
    if planned is None and state is not None and state.max_steps is not None and state.max_steps > 0:
        planned, place = state.max_steps, (source, "/max_steps")
    book.put("log.steps_planned", planned, whole(planned), place, reason="no record says how many were asked for")


def _put_columns(book: NumberBook, trainer_log: pl.DataFrame, source: str) -> tuple[LoggedColumn, ...]:
    """Put the ends of every numeric column down that has no chart of its own."""
    rows = trainer_rows(trainer_log)
    found: list[LoggedColumn] = []
    names = [
        name
        for name, kind in trainer_log.schema.items()
        if kind == pl.Float64 and name not in TRAINER_HEAD and name not in TRAINER_COLUMNS
    ]
    for name in sorted(names):
        curve = curve_of(rows, name)
        ends = first_and_last(curve)
        if ends is None or len(found) == MOST_COLUMNS:
            continue
        key = f"c{len(found)}"
        label = quote(name, LONGEST_COLUMN)
        place = (source, f"column {label}")
        values = [point.value for point in curve.points if point.value is not None]
        book.put(f"column.{key}.points", len(values), whole(len(values)), place)
        known = {"first": ends[0], "last": ends[1], "lowest": min(values), "peak": max(values)}
        for field, value in known.items():
            book.put(f"column.{key}.{field}", value, scientific(value), place)
        found.append(LoggedColumn(key=key, label=label))
    return tuple(found)


def _watch(book: NumberBook, curves: tuple[CurveNote, ...], arms: tuple[Arm, Arm], source: str) -> Sentinel:
    """Watch the trainer's reward against the scores of the log and of the evaluations."""
    found = {note.name: note.curve for note in curves}
    reward, score = found.get("reward"), found.get("call_score")
    for name, curve, place in (
        ("reward_change", reward, (source, "column reward")),
        ("score_change", score, (layout.ROLLOUTS, "column final_score")),
    ):
        change = _change(curve)
        text = decimal(change, signed=True)
        book.put(f"watch.{name}", change, text, place, reason="no row has the number")
    trends = trend_of(reward), trend_of(score)
    before, after = arms[0].mean(), arms[1].mean()
    return Sentinel(
        reward=trends[0],
        score=trends[1],
        flagged=trends[0] == "rose" and trends[1] in {"fell", "flat"},
        evaluation_fell=trends[0] == "rose" and before is not None and after is not None and after < before,
    )


def _change(curve: Curve | None) -> float | None:
    ends = None if curve is None else first_and_last(curve)
    return None if ends is None else ends[1] - ends[0]
