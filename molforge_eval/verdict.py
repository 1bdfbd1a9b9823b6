"""What a before and an after together say, by the rule that the plan stated before the run.

The rule reads `final_score` and nothing else. Per-task values are shown and decide nothing; a difference that cannot
be trusted is not computed, and the reasons say why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_eval.comparability import Difference, list_differences
from molforge_eval.comparison import (
    GreedyComparison,
    SampledComparison,
    Scale,
    TaskComparison,
    compare_greedy,
    compare_sampled,
    compare_tasks,
    place_on_ladder,
)
from molforge_eval.decision import Judgement, judge, lies_inside
from molforge_eval.findings import Finding
from molforge_eval.ladder import Ladder, ladder_of
from molforge_eval.pairing import Pairing, difference_table, pair_scores, played_copies
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan
from molforge_eval.records.fields import Count
from molforge_eval.statistics import fewest_units, smallest_sign_flip_p, spell_p_value

Outcome = Literal["improved", "regressed", "no change shown", "inconclusive", "incomplete", "withheld"]

LEAST_COUNTED_SHARE = 0.5
"""An evaluation with fewer of its planned episodes counted has failed: what is left is no sample of the plan."""
_MOST_TASKS = 3


class Verdict(FrozenModel):
    """The outcome with every number behind it."""

    outcome: Outcome
    reasons: tuple[str, ...]
    primary_metric: Literal["final_score"]
    alpha: float = Field(gt=0.0, lt=1.0)
    margin: float = Field(gt=0.0)
    confidence: float = Field(gt=0.0, lt=1.0)
    differing: tuple[Difference, ...]
    """Keys in which the two evaluations are not comparable."""
    error_findings: Count
    sampled: SampledComparison
    greedy: GreedyComparison
    tasks: tuple[TaskComparison, ...]
    scale: Scale


def decide(
    before: Evaluation | None,
    after: Evaluation | None,
    plan: EvaluationPlan,
    findings: Sequence[Finding] = (),
    *,
    ladder: Ladder | None = None,
) -> Verdict:
    """Judge two evaluations by the decision rule of the plan.

    Args:
        before: Evaluation before training; `None` when it is missing.
        after: Evaluation after training; `None` when it is missing.
        plan: The plan of the run, whose rule is applied.
        findings: Everything that validation found; one of severity error withholds the verdict.
        ladder: Reference policies; those of the plan's suite when it is not given.

    Returns:
        The outcome with its reasons and numbers. A number that must not be claimed is `None`.
    """
    part = plan.decision.part
    pairing = pair_scores(before, after, plan, part)
    differing = list_differences(before, after) if before is not None and after is not None else ()
    errors = tuple(finding for finding in findings if finding.severity == "error")
    absent = tuple(_absences(before, after))
    barred = tuple(_bars(differing, errors))
    failed = () if absent else tuple(_failures(pairing))
    claim = not (absent or barred or failed)
    copies = played_copies(before, part) and played_copies(after, part)
    judgement = judge(difference_table(pairing), plan.decision) if claim and not copies else None
    sampled = compare_sampled(pairing, plan.decision, judgement, claim=claim)
    notes = (
        tuple(_notes(pairing, sampled, judgement, alpha=plan.decision.alpha, margin=plan.decision.margin))
        if claim
        else ()
    )
    return Verdict(
        outcome=_outcome(judgement, incomplete=bool(absent), withheld=bool(barred), failed=bool(failed)),
        reasons=(*absent, *barred, *failed, *notes),
        primary_metric=plan.decision.primary_metric,
        alpha=plan.decision.alpha,
        margin=plan.decision.margin,
        confidence=plan.decision.confidence,
        differing=differing,
        error_findings=len(errors),
        sampled=sampled,
        greedy=compare_greedy(before, after, plan, claim=not barred),
        tasks=compare_tasks(before, after, plan, claim=not barred and not copies),
        scale=place_on_ladder(sampled, ladder_of(plan) if ladder is None else ladder),
    )


def _outcome(judgement: Judgement | None, *, incomplete: bool, withheld: bool, failed: bool) -> Outcome:
    if incomplete:
        return "incomplete"
    if withheld:
        return "withheld"
    if failed:
        return "incomplete"
    return "inconclusive" if judgement is None else judgement.outcome


def _absences(before: Evaluation | None, after: Evaluation | None) -> Iterator[str]:
    if before is None:
        yield "the evaluation before training is missing"
    if after is None:
        yield "the evaluation after training is missing"


def _bars(differing: Sequence[Difference], errors: Sequence[Finding]) -> Iterator[str]:
    for difference in differing:
        yield f"before and after are not comparable: {difference.text()}"
    if errors:
        codes = ", ".join(sorted({finding.code for finding in errors}))
        yield f"findings of severity error: {len(errors)} ({codes})"


def _failures(pairing: Pairing) -> Iterator[str]:
    planned = len(pairing.tasks) * len(pairing.seeds)
    if planned == 0:
        yield "the plan has no part that decides"
        return
    for side, cells in (("before", pairing.before), ("after", pairing.after)):
        if len(cells) < planned * LEAST_COUNTED_SHARE:
            yield f"the evaluation {side} training failed: {len(cells)} of {planned} planned episodes counted"
    if not pairing.paired_seeds:
        lost = " and ".join(islice(_lost_tasks(pairing), _MOST_TASKS))
        what = f"of {len(pairing.seeds)} planned seeds none was counted in every task on both sides"
        yield f"{what}; no seed was counted of {lost}" if lost else what


def _lost_tasks(pairing: Pairing) -> Iterator[str]:
    for side, cells in (("before", pairing.before), ("after", pairing.after)):
        counted = {task for task, _ in cells}
        yield from (f"{task} {side} training" for task in pairing.tasks if task not in counted)


def _notes(
    pairing: Pairing, sampled: SampledComparison, judgement: Judgement | None, *, alpha: float, margin: float
) -> Iterator[str]:
    paired, planned = len(pairing.paired_seeds), len(pairing.seeds)
    if paired < planned:
        yield f"{paired} of {planned} planned seeds could be paired"
    if judgement is None:
        yield f"on both sides the {planned} seeds are copies of one deterministic episode a task: nothing to test"
        return
    told = spell_p_value(judgement.test.p_value)
    yield (
        f"two-sided sign-flip test over {paired} paired seeds: p {told if told.startswith('<') else f'= {told}'} "
        f"({judgement.test.method}, {judgement.test.flips} sign patterns)"
    )
    least = smallest_sign_flip_p(paired)
    if least >= alpha:
        yield (
            f"{paired} paired seeds cannot show a difference: their least p-value is {spell_p_value(least)}, "
            f"at level {alpha}"
        )
    wanted = fewest_units(alpha)
    if judgement.outcome == "inconclusive" and paired < wanted and lies_inside(judgement.interval, margin):
        yield (
            f"the interval lies within the margin of {margin}, but no change is shown only by {wanted} or more "
            f"paired seeds, and there are {paired}"
        )
    if judgement.outcome == "inconclusive" and sampled.minimum_detectable_difference is not None:
        yield (
            f"{paired} seeds of this spread show a difference of {sampled.minimum_detectable_difference:.3f} in four "
            f"runs of five; one as small as the margin of {margin} needs "
            f"{sampled.episodes_needed} episodes a side"
        )
