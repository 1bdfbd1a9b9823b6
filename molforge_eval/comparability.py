"""Whether a before and an after measure the same thing: every key that differs is listed, or there is none.

Tasks, seeds, budget, turn limit, reward mode, rules, decoding, prompt and interface must agree. The adapter may differ:
it is what the comparison is about. The run may differ: whether an evaluation belongs to a run is another question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from molforge_env.frozen import FrozenModel
from molforge_eval.canonical import plain
from molforge_eval.catalogue import seen
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan

POLICY_KEYS = ("kind", "base_model_sha256", "tokenizer_sha256", "chat_template_sha256", "dtype")
UNMERGED = "policy.adapter_unmerged"
_FREE_PLAN_KEYS = frozenset({"run_id", "format_version"})
_SCORED_BY = ("rules_version", "backend_fingerprint", "seed_honoured")


class Difference(FrozenModel):
    """One key with the two values that it has."""

    key: str
    before: Any
    after: Any

    def text(self) -> str:
        """Spell the key with both values."""
        return f"{self.key}: {seen(self.before)} before, {seen(self.after)} after"


def list_differences(before: Evaluation, after: Evaluation) -> tuple[Difference, ...]:
    """List every key in which two evaluations are not comparable, in a fixed order.

    A key that only one of them has counts as different, with `None` for the other. Seeds that were not honoured
    make "the same seeds" an empty phrase, so they are listed even where both sides say so.
    """
    left, right = dict(_facts(before)), dict(_facts(after))
    keys = [*left, *(key for key in right if key not in left)]
    found = [
        Difference(key=key, before=left.get(key), after=right.get(key))
        for key in keys
        if left.get(key) != right.get(key)
    ]
    if not (before.seed_honoured or after.seed_honoured):
        found.append(Difference(key="seed_honoured", before=False, after=False))
    return tuple(found)


def list_barriers(first: Evaluation, second: Evaluation) -> tuple[Difference, ...]:
    """List every key in which evaluations of two runs do not measure the same thing, in a fixed order.

    Whom they measure may differ. Of one base model the texts and number format that it was given have to be the same;
    of another they are a part of it. Seeds may differ: the same ones are paired, and the others are left out. A rule of
    decision measures nothing, so only the part that it reads counts.
    """
    left, right = dict(_measured(first)), dict(_measured(second))
    if first.policy.base_model_sha256 == second.policy.base_model_sha256:
        left |= dict(_spoken(first))
        right |= dict(_spoken(second))
    found = [
        Difference(key=key, before=left.get(key), after=right.get(key))
        for key in dict.fromkeys((*left, *right))
        if left.get(key) != right.get(key)
    ]
    if not (first.seed_honoured or second.seed_honoured):
        found.append(Difference(key="seed_honoured", before=False, after=False))
    return tuple(found)


def _measured(evaluation: Evaluation) -> Iterator[tuple[str, Any]]:
    for key in _SCORED_BY:
        yield key, getattr(evaluation, key)
    part = evaluation.plan.decision.part
    yield "plan.decision.part", part
    for key, value in plan_facts(evaluation.plan):
        is_of_part = key.startswith(f"plan.parts.{part}.") and key != f"plan.parts.{part}.seeds"
        if is_of_part or not key.startswith(("plan.parts.", "plan.decision.")):
            yield key, value


def _spoken(evaluation: Evaluation) -> Iterator[tuple[str, Any]]:
    policy = plain(evaluation.policy)
    for key in POLICY_KEYS:
        if key not in {"kind", "base_model_sha256"}:
            yield f"policy.{key}", policy[key]
    yield UNMERGED, evaluation.policy.adapter_merged is False


def _facts(evaluation: Evaluation) -> Iterator[tuple[str, Any]]:
    for key in _SCORED_BY:
        yield key, getattr(evaluation, key)
    yield from plan_facts(evaluation.plan)
    policy = plain(evaluation.policy)
    for key in POLICY_KEYS:
        yield f"policy.{key}", policy[key]
    # A base model alone has no adapter to merge, so only an adapter that was left unmerged is another way to play.
    yield UNMERGED, evaluation.policy.adapter_merged is False


def plan_facts(plan: EvaluationPlan) -> Iterator[tuple[str, Any]]:
    """List the keys of a plan that decide what is measured, with their values."""
    facts = {key: value for key, value in plain(plan).items() if key not in _FREE_PLAN_KEYS}
    # By name, so that a part that is missing or moved is named as itself.
    facts["parts"] = {part["name"]: part for part in facts["parts"]}
    yield from _leaves("plan", facts)


def pointer_in_plan(key: str, plan: EvaluationPlan) -> str:
    """Turn a key of `plan_facts`, which has parts by their names, into a JSON pointer."""
    _, *steps = key.split(".")
    names = [part.name for part in plan.parts]
    if steps[0] == "parts":
        steps[1:] = [str(names.index(steps[1])), *steps[2:]] if steps[1] in names else []
    return "".join(f"/{step}" for step in steps)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield path, list(value)
    else:
        yield path, value
