"""What may be said of a run of format version 0: never that it improved, and of each claim only what its files carry.

Nothing in the layout names a plan, a seed or an adapter's hash. Two means are two means; whether training made the
difference cannot be told from them, so the outcome is at best `inconclusive`.
"""

from __future__ import annotations

from collections.abc import Iterator

from molforge_eval import layout
from molforge_eval.comparison import SAME_SCORE
from molforge_eval.findings import Finding
from molforge_eval.ladder import Ladder
from molforge_eval.report.evidence import Claim, Floor, LevelStatement, Sentinel, Standing, VerdictStatement
from molforge_eval.report.old_arms import Arm, absence, refusal
from molforge_eval.report.old_evidence import ArmStatement, FileState, MissingFile
from molforge_eval.report.old_scores import is_official
from molforge_eval.report.quoting import quote
from molforge_eval.run_directory import RunDirectory
from molforge_eval.verdict import Outcome

LONGEST_REASON = 160
MOST_CODES = 3
NO_INTERVAL = "unpaired: the layout records no seed"
_UNPAIRED = "the layout records no plan and no seed, so nothing can be paired and no test can be made"


def bar_of(findings: tuple[Finding, ...]) -> str | None:
    """Say why the records may not be compared at all; `None` when no finding of severity error stands against it."""
    errors = len([finding for finding in findings if finding.severity == "error"])
    return f"findings of severity error: {errors}" if errors else None


def judge_old(
    run: RunDirectory, arms: tuple[Arm, Arm], findings: tuple[Finding, ...], ladder: Ladder
) -> VerdictStatement:
    """State the outcome: `incomplete`, `withheld` or `inconclusive`, with its reasons."""
    absent = tuple(reason for arm in arms for reason in absence_of(arm))
    barred = _bar_with_codes(findings)
    outcome: Outcome = "incomplete" if absent else "withheld" if barred else "inconclusive"
    refused = None if absent else refusal(*arms)
    reasons = (*absent, *((refused,) if refused else ()), *((barred,) if barred else ()), _UNPAIRED)
    floor = ladder.mean("do_nothing") if is_official(arms) else None
    before, after = arms
    return VerdictStatement(
        outcome=outcome,
        reasons=reasons,
        before_against_floor=_against(before.mean(), floor),
        after_against_floor=_against(after.mean(), floor),
        has_interval=False,
        interval_reason=NO_INTERVAL,
        trained_on_official=_trained_on_official(run),
        missing=(*(arm.name for arm in arms if arm.state != "listed"), "plan"),
        differing=(),
    )


def weigh_old_claims(
    outcome: Outcome, level: LevelStatement, sentinel: Sentinel, *, has_rows: bool
) -> tuple[Claim, ...]:
    """Say how each claim stands; nothing is supported, because nothing could be tested or played again."""
    by_outcome: Standing = {"withheld": "withheld", "incomplete": "not tested"}.get(outcome, "unclear")  # type: ignore[assignment] # a closed choice of standings
    is_sound = level.level is not None and level.level >= "E2"
    rows: Standing = "partly" if has_rows and is_sound else "withheld" if has_rows else "not tested"
    farmed: Standing = "not tested" if "unknown" in {sentinel.reward, sentinel.score} else "unclear"
    return (
        Claim(key="score_rose", standing=by_outcome),
        Claim(key="every_task_rose", standing=by_outcome),
        Claim(key="reward_tracks_score", standing="contradicted" if sentinel.flagged else farmed),
        Claim(key="training_happened", standing=rows),
        Claim(key="scores_replayed", standing="not tested"),
        Claim(key="unseen_tasks", standing="not tested"),
        Claim(key="other_seeds", standing="not tested"),
        Claim(key="adapter_regenerates", standing="not tested"),
    )


def absence_of(arm: Arm) -> Iterator[str]:
    """Yield what became of an evaluation that gives no score, with the reason that the run gives for it."""
    words = absence(arm)
    if words is not None:
        yield words + (f" ({quote(arm.reason, LONGEST_REASON)})" if arm.state == "skipped" and arm.reason else "")


def state_arm(arm: Arm) -> ArmStatement:
    """Say what became of one evaluation."""
    return ArmStatement(
        name=arm.name,
        file=arm.file,
        state=arm.state,
        reason=None if not arm.reason else quote(arm.reason, LONGEST_REASON),
        label=None if not arm.label else quote(arm.label, LONGEST_REASON),
    )


def list_missing(run: RunDirectory, arms: tuple[Arm, Arm]) -> tuple[MissingFile, ...]:
    """List the files of the layout that this run does not hold in a form that can be used."""
    old = run.old
    source = None if old is None else old.trainer_source
    states: dict[str, tuple[FileState, str | None] | None] = {
        layout.MANIFEST: _record_state(run, layout.MANIFEST, is_read=old is not None and old.manifest is not None),
        **{arm.file: _arm_state(arm) for arm in arms},
        source or layout.TRAINER_LOG: _log_state(run, source or layout.TRAINER_LOG, len(run.trainer_log)),
        layout.ROLLOUTS: _log_state(run, layout.ROLLOUTS, len(run.rollouts)),
        layout.SUMMARY: _record_state(run, layout.SUMMARY, is_read=old is not None and old.summary is not None),
        layout.METRICS_TABLE: _record_state(run, layout.METRICS_TABLE, is_read=True),
        layout.ADAPTER_WEIGHTS: _record_state(run, layout.ADAPTER_WEIGHTS, is_read=True),
    }
    return tuple(
        MissingFile(path=quote(path, LONGEST_REASON), state=state[0], reason=state[1])
        for path, state in states.items()
        if state is not None
    )


def _bar_with_codes(findings: tuple[Finding, ...]) -> str | None:
    words = bar_of(findings)
    codes = sorted({finding.code for finding in findings if finding.severity == "error"})
    more = f" and {len(codes) - MOST_CODES} more" if len(codes) > MOST_CODES else ""
    return None if words is None else f"{words} ({', '.join(codes[:MOST_CODES])}{more})"


def _against(mean: float | None, floor: float | None) -> Floor | None:
    if mean is None or floor is None:
        return None
    if abs(mean - floor) <= SAME_SCORE:
        return "at"
    return "under" if mean < floor else "above"


def _trained_on_official(run: RunDirectory) -> bool | None:
    """Tell whether the log names the official scenarios; a run without a log does not say."""
    from molforge_env.suites import SCENARIO_IDS

    named = set(run.rollouts["scenario_id"].drop_nulls().to_list())
    return bool(named & set(SCENARIO_IDS)) if named else None


def _record_state(run: RunDirectory, path: str, *, is_read: bool) -> tuple[FileState, str | None] | None:
    if path not in run.files:
        return "absent", None
    return None if is_read else ("unusable", None)


def _arm_state(arm: Arm) -> tuple[FileState, str | None] | None:
    if arm.state == "listed" or arm.state == "failed":  # noqa: PLR1714 # spelled out, it narrows the type
        return None
    return arm.state, None if not arm.reason else quote(arm.reason, LONGEST_REASON)


def _log_state(run: RunDirectory, path: str, rows: int) -> tuple[FileState, str | None] | None:
    if rows:
        return None
    if path not in run.files:
        return "absent", None
    return ("empty" if run.files.sizes[path] == 0 else "unusable"), None
