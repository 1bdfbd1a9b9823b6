"""Assemble the evidence of a run: every number put down once, every claim weighed, nothing drawn or worded.

Equal runs give equal evidence: no clock, no random draw beyond those the plan has seeded.
"""

from __future__ import annotations

from typing import NamedTuple

from molforge_eval.catalogue import entry_of
from molforge_eval.ladder import Ladder
from molforge_eval.records.identity import ArtifactChecksum
from molforge_eval.report.action_shift import put_shift
from molforge_eval.report.chart_index import with_charts
from molforge_eval.report.claims import weigh_claims
from molforge_eval.report.conduct import conduct_curves, put_conduct, put_training_counts
from molforge_eval.report.evidence import Evidence, LevelStatement, MetricRow, MissingPart, VerdictStatement
from molforge_eval.report.exploration import explore, visited_curve
from molforge_eval.report.learning import put_curves
from molforge_eval.report.metrics import put_metrics, sides_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import whole
from molforge_eval.report.paid import put_paid
from molforge_eval.report.provenance import (
    identify,
    list_artifacts,
    list_commands,
    list_packages,
    list_settings,
    put_manifest,
)
from molforge_eval.report.quoting import quote
from molforge_eval.report.resumptions import put_resumptions
from molforge_eval.report.reviews import put_reviews
from molforge_eval.report.scores import Sides, put_scores, put_seeds
from molforge_eval.report.seed_table import put_seed_table
from molforge_eval.report.sentinel import watch_reward
from molforge_eval.report.surroundings import list_surroundings
from molforge_eval.report.transcripts import read_transcripts
from molforge_eval.run_directory import RunDirectory
from molforge_eval.validation_result import ValidationResult
from molforge_eval.verdict import Verdict

DEFAULT_TITLE = "Did training raise the score?"
MOST_FINDINGS = 60
LONGEST_TITLE = 200
LONGEST_REASON = 500
LONGEST_KEY = 300
DIFFERING = "episodes_differing"
REGENERATED = "evaluations_regenerated"
_CHECK_FILE = "molforge-eval verify"


class Checked(NamedTuple):
    """A run with everything that was found out about it."""

    run: RunDirectory
    files: tuple[ArtifactChecksum, ...]
    """Hashes of the records as they stand on disk."""
    root_sha256: str | None
    result: ValidationResult
    replayed: bool
    verdict: Verdict | None
    """`None` when the run has no plan to judge by."""
    ladder: Ladder


def assemble_evidence(checked: Checked, *, title: str = DEFAULT_TITLE) -> Evidence:
    """Compute everything that the packet says.

    Args:
        checked: The run, its validation, its verdict.
        title: Title of the packet.
    """
    run, verdict = checked.run, checked.verdict
    book = NumberBook({entry.path: entry.sha256 for entry in checked.files})
    put_manifest(book, run.manifest)
    sides = None if run.plan is None else Sides(run.before, run.after, run.plan)
    tasks = () if sides is None or verdict is None else put_scores(book, sides, verdict, checked.ladder)
    seeds = () if sides is None or verdict is None else put_seeds(book, sides, verdict)
    metrics = () if sides is None or verdict is None else _put_metrics(book, sides, verdict)
    curves = (
        *put_curves(book, run.trainer_log, run.rollouts, findings=run.findings),
        *conduct_curves(book, run.rollouts),
        *visited_curve(run.rollouts),
    )
    put_training_counts(book, run.rollouts)
    phases = put_conduct(book, run.before, run.after, run.rollouts)
    put_reviews(book, run.before, run.after, run.rollouts)
    sentinel = watch_reward(book, curves, run.rollouts, verdict)
    level = LevelStatement(
        level=checked.result.level,
        reason=checked.result.level_reason,
        replayed=checked.replayed,
        regenerated=checked.result.counts.get(REGENERATED),
    )
    put_checks(book, checked.result)
    statement = _state_verdict(checked)
    findings = checked.result.findings
    evidence = Evidence(
        evidence_version=1,
        identity=identify(run, checked.root_sha256, quote(title, LONGEST_TITLE)),
        level=level,
        verdict=statement,
        sentinel=sentinel,
        claims=weigh_claims(
            statement=statement,
            verdict=verdict,
            level=level,
            differences=checked.result.counts.get(DIFFERING) if checked.replayed else None,
            is_foreign=any(item.severity == "error" and entry_of(item.code).level == "E4" for item in findings),
            sentinel=sentinel,
            manifest=run.manifest,
            gaps=_gaps(book),
        ),
        tasks=tasks,
        metrics=metrics,
        seeds=seeds,
        seed_table=None if sides is None or verdict is None else put_seed_table(book, sides, verdict),
        curves=curves,
        resumes=put_resumptions(book, run),
        phases=phases,
        shift=put_shift(book, phases),
        paid=put_paid(book, run.rollouts),
        exploration=explore(book, run.rollouts, sides),
        transcripts=() if sides is None else read_transcripts(book, sides),
        settings=list_settings(run.manifest),
        packages=list_packages(run.manifest),
        surroundings=list_surroundings(run.manifest, run.plan),
        findings=findings[:MOST_FINDINGS],
        omitted_findings=omitted_findings(checked.result),
        artifacts=list_artifacts(book, checked.files),
        commands=list_commands(run, is_regenerated=level.level == "E4"),
        numbers=book.numbers,
    )
    return with_charts(evidence)


def _put_metrics(book: NumberBook, sides: Sides, verdict: Verdict) -> tuple[MetricRow, ...]:
    """List every metric; without a claimed difference none is claimed of a diagnostic either, nor its direction."""
    barred = "no difference is claimed" if verdict.sampled.difference is None else None
    refused = quote(verdict.differing[0].text(), LONGEST_KEY) if verdict.differing else barred
    return put_metrics(book, sides_of(sides), refused=refused, barred=barred)


def _state_verdict(checked: Checked) -> VerdictStatement:
    run, verdict = checked.run, checked.verdict
    needed: tuple[tuple[MissingPart, object], ...] = (("before", run.before), ("after", run.after), ("plan", run.plan))
    missing = tuple(name for name, found in needed if found is None)
    if verdict is None:
        return VerdictStatement(
            outcome="withheld" if checked.result.has_errors() and not missing else "incomplete",
            reasons=("the run has no evaluation plan to judge by",),
            before_against_floor=None,
            after_against_floor=None,
            has_interval=False,
            interval_reason="nothing was judged",
            trained_on_official=None,
            missing=missing,
            differing=(),
        )
    return VerdictStatement(
        outcome=verdict.outcome,
        reasons=tuple(quote(reason, LONGEST_REASON) for reason in verdict.reasons),
        before_against_floor=verdict.scale.before_against_floor,
        after_against_floor=verdict.scale.after_against_floor,
        has_interval=verdict.sampled.interval is not None,
        interval_reason=verdict.sampled.interval_reason,
        trained_on_official=None if run.manifest is None else run.manifest.configuration.canonical_share > 0,
        suite=checked.ladder.suite,
        missing=missing,
        differing=tuple(quote(difference.text(), LONGEST_KEY) for difference in verdict.differing),
    )


def put_checks(book: NumberBook, result: ValidationResult) -> None:
    """Put down how much was looked at and how many findings of each severity there are."""
    for name, count in sorted(result.counts.items()):
        book.put(f"check.{name}", count, whole(count), (_CHECK_FILE, name))
    for severity in ("error", "warning", "info"):
        count = len([finding for finding in result.findings if finding.severity == severity])
        book.put(f"findings.{severity}", count, whole(count), (_CHECK_FILE, "findings"))


def omitted_findings(result: ValidationResult) -> dict[str, int]:
    """Count the findings that the packet does not list, by code."""
    left_out: dict[str, int] = dict(result.omitted)
    for finding in result.findings[MOST_FINDINGS:]:
        left_out[finding.code] = left_out.get(finding.code, 0) + 1
    return dict(sorted(left_out.items()))


def _gaps(book: NumberBook) -> int:
    found = next(number for number in book.numbers if number.id == "training.non_finite")
    return int(found.value or 0)
