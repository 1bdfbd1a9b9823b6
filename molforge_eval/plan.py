"""The evaluation plan: what will be played and how it will be judged, fixed before the first optimizer step.

The same plan is played before and after. Its digest enters the manifest, so a plan that was changed afterwards shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from molforge_env.errors import UnreadableError, UsageError
from molforge_env.interface import DEFAULT_TURN_LIMIT
from molforge_env.suites import SCENARIO_IDS, SuiteName
from molforge_eval.canonical import digest
from molforge_eval.records.evaluation import DecisionRule, Decoding, EvaluationPart, EvaluationPlan, PartName
from molforge_eval.records.fields import FORMAT_VERSION, ObservationLength, RunId

DEFAULT_SEEDS = 16
"""Sampled episodes a task."""
GREEDY_SEED = 0
"""Greedy episodes draw nothing; the seed is recorded all the same, and names the variant where there are some."""
MOST_PLAN_BYTES = 1_000_000


class Limits(NamedTuple):
    """How long a turn and an episode may be, in tokens, and how many turns of calls are executed."""

    max_new_tokens: int = 256
    max_completion_length: int = 4096
    turn_limit: int = DEFAULT_TURN_LIMIT


class PlannedEpisode(NamedTuple):
    """One cell of the plan."""

    episode_id: str
    part: PartName
    suite: SuiteName
    scenario_id: str
    seed: int
    decoding: Decoding


def standard_plan(
    *,
    run_id: RunId | None = None,
    suite: SuiteName = "official",
    seeds: int = DEFAULT_SEEDS,
    observation_length: ObservationLength = "full",
    limits: Limits | None = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
) -> EvaluationPlan:
    """Plan the tasks of a suite: greedy once each, and sampled with the same seeds for each.

    In the suites of variants each seed is another variant, the same before and after.

    Args:
        run_id: Run that the evaluation belongs to, if any.
        suite: Family of the tasks.
        seeds: Sampled episodes a task; 0 plans the greedy part alone, which cannot carry a verdict.
        observation_length: Length of the texts that the model reads.
        limits: Token and turn limits; the defaults suit an instruction model of a hub.
        temperature: Of the sampled part.
        top_p: Of the sampled part.
        top_k: Of the sampled part; 0 keeps every token.

    Raises:
        UsageError: A number is out of range, or the limits contradict each other.
    """
    limits = Limits() if limits is None else limits
    if seeds < 0:
        raise UsageError(f"{seeds} seeds a task", where="seeds", mend="Give 0 or more; 16 is the standard.")
    length = {"max_new_tokens": limits.max_new_tokens, "max_completion_length": limits.max_completion_length}
    try:
        greedy = Decoding(method="greedy", temperature=0.0, **length)
        sampled = Decoding(method="sampled", temperature=temperature, top_p=top_p, top_k=top_k, **length)
        parts = [EvaluationPart(name="greedy", suite=suite, tasks=SCENARIO_IDS, seeds=(GREEDY_SEED,), decoding=greedy)]
        if seeds:
            parts.append(
                EvaluationPart(
                    name="sampled", suite=suite, tasks=SCENARIO_IDS, seeds=tuple(range(seeds)), decoding=sampled
                )
            )
        plan = EvaluationPlan(
            format_version=FORMAT_VERSION,
            run_id=run_id,
            reward_mode="assay_gated",
            interface="tools",
            observation_length=observation_length,
            turn_limit=limits.turn_limit,
            parts=tuple(parts),
            decision=DecisionRule(),
        )
    except ValidationError as error:
        raise UsageError(_first_fault(error), where="evaluation plan", mend="Give a value in that range.") from error
    check_plan(plan)
    return plan


def check_plan(plan: EvaluationPlan) -> None:
    """Refuse a plan that cannot be played as it says.

    Raises:
        UsageError: An unknown task, a repeated part, task or seed, or a limit that contradicts another.
    """
    names = [part.name for part in plan.parts]
    if len(set(names)) != len(names):
        raise UsageError(f"parts {names} repeat a name", where="plan $.parts", mend="Give each part its own name.")
    for part in plan.parts:
        where = f"plan $.parts[{part.name}]"
        unknown = [task for task in part.tasks if task not in SCENARIO_IDS]
        if unknown:
            raise UsageError(
                f"task {unknown[0]!r} is not known", where=where, mend=f"Choose from {', '.join(SCENARIO_IDS)}."
            )
        for field, values in (("tasks", part.tasks), ("seeds", part.seeds)):
            if not values or len(set(values)) != len(values):
                raise UsageError(
                    f"{field} {list(values)} are empty or repeat one", where=where, mend="Name each one once."
                )
        if part.decoding.max_new_tokens > part.decoding.max_completion_length:
            raise UsageError(
                f"max_new_tokens {part.decoding.max_new_tokens} is more than max_completion_length "
                f"{part.decoding.max_completion_length}",
                where=where,
                mend="Lower max_new_tokens: a turn cannot be longer than its episode.",
            )
        if part.decoding.method == "sampled" and part.decoding.temperature == 0.0:
            raise UsageError(
                "sampled at temperature 0", where=where, mend='Use method "greedy", or a temperature above 0.'
            )


def plan_digest(plan: EvaluationPlan) -> str:
    """Return the digest that the manifest and both evaluations carry."""
    return digest(plan)


def planned_episodes(plan: EvaluationPlan) -> Iterator[PlannedEpisode]:
    """Yield every episode of the plan: parts in their order, then tasks, then seeds."""
    for part in plan.parts:
        for task in part.tasks:
            for seed in part.seeds:
                yield PlannedEpisode(f"{part.name}:{task}:{seed}", part.name, part.suite, task, seed, part.decoding)


def read_plan(path: Path) -> EvaluationPlan:
    """Read a plan file.

    Raises:
        UnreadableError: The file is absent, too large, or no plan.
        UsageError: The plan cannot be played.
    """
    mend = "Give the eval_plan.json of a run, or leave the option out for the standard plan."
    try:
        if path.stat().st_size > MOST_PLAN_BYTES:
            raise UnreadableError(f"the plan is larger than {MOST_PLAN_BYTES} bytes", where=str(path), mend=mend)
        plan = EvaluationPlan.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UnreadableError(f"the plan cannot be read: {error.strerror}", where=str(path), mend=mend) from error
    except ValidationError as error:
        raise UnreadableError(f"no evaluation plan: {_first_fault(error)}", where=str(path), mend=mend) from error
    check_plan(plan)
    return plan


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the whole"
    return f"{place}: {first['msg']} (value {first.get('input')!r:.80})"
