"""Whether the plan can be played, and whether it is the standard one: picked seeds or another rule must be seen."""

from __future__ import annotations

from collections.abc import Iterator

from molforge_env.errors import UsageError
from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.comparability import plan_facts, pointer_in_plan
from molforge_eval.findings import Finding
from molforge_eval.plan import Limits, check_plan, standard_plan
from molforge_eval.records import EvaluationPlan
from molforge_eval.run_directory import RunDirectory


def check(run: RunDirectory) -> Iterator[Finding]:
    """Hold the plan to the standard one of its size."""
    if run.plan is None:
        return
    try:
        check_plan(run.plan)
    except UsageError as error:
        yield finding("PLAN_UNPLAYABLE", f"{error.what}, at {error.where}", file=layout.PLAN, pointer="/parts")
        return
    own, standard = dict(plan_facts(run.plan)), dict(plan_facts(_standard_of(run.plan)))
    for key in dict.fromkeys([*standard, *own]):
        if own.get(key) != standard.get(key):
            what = f"{key} is {seen(own.get(key))}, the standard plan has {seen(standard.get(key))}"
            yield finding("PLAN_UNUSUAL", what, file=layout.PLAN, pointer=pointer_in_plan(key, run.plan))


def _standard_of(plan: EvaluationPlan) -> EvaluationPlan:
    """Make the standard plan with the same limits, sampling and number of seeds.

    The holdout suite has one of its own: it is harder than the official tasks, so nothing is gained by choosing it.
    """
    parts = {part.name: part for part in plan.parts}
    sampled = parts.get("sampled")
    decoding = (sampled or plan.parts[0]).decoding if plan.parts else None
    limits = Limits(turn_limit=plan.turn_limit)
    if decoding is not None:
        limits = Limits(decoding.max_new_tokens, decoding.max_completion_length, plan.turn_limit)
    free = {} if sampled is None else {key: getattr(sampled.decoding, key) for key in ("temperature", "top_p", "top_k")}
    return standard_plan(
        run_id=plan.run_id,
        suite="holdout" if {part.suite for part in plan.parts} == {"holdout"} else "official",
        seeds=0 if sampled is None else len(sampled.seeds),
        observation_length=plan.observation_length,
        limits=limits,
        **free,
    )
