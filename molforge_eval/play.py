"""Plays a plan with a policy and writes the evaluation down.

Every planned episode ends up in the record with the way it ended. What the environment broke is counted apart and
averaged nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from molforge_env import RULES_VERSION
from molforge_env.fingerprint import backend_fingerprint
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_env.views import digest_of
from molforge_eval.canonical import digest
from molforge_eval.plan import check_plan, plan_digest, planned_episodes
from molforge_eval.played import Player, seal_episode
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation, EvaluationPlan
from molforge_eval.records.fields import FORMAT_VERSION, RunId
from molforge_eval.summaries import average_final_score, summarise


def run_evaluation(
    plan: EvaluationPlan,
    policy: Player,
    label: str,
    run_id: RunId | None = None,
    *,
    clock: Callable[[], datetime],
    on_episode: Callable[[EpisodeRecord], None] | None = None,
) -> Evaluation:
    """Play every episode of a plan.

    Args:
        plan: What to play.
        policy: Who plays, from `molforge_eval.policies.open_policy`.
        label: Name of the evaluation, such as `before training`.
        run_id: Run that the evaluation belongs to, if any.
        clock: Tells the time in UTC.
        on_episode: Called with each record as it is sealed; episodes come in no fixed order.

    Returns:
        The evaluation, episodes in the order of the plan whatever the order of play.

    Raises:
        UsageError: The plan cannot be played as it says.
        UnreadableError: The model cannot be run, for lack of memory or otherwise.
    """
    check_plan(plan)
    planned = tuple(planned_episodes(plan))
    policy_sha256 = digest(policy.identity)
    started_at = clock()
    records: dict[str, EpisodeRecord] = {}
    for played in policy.play(planned, plan):
        record = seal_episode(played, reward_mode=plan.reward_mode, policy_sha256=policy_sha256)
        records[record.episode_id] = record
        if on_episode is not None:
            on_episode(record)
    episodes = tuple(records[episode.episode_id] for episode in planned)
    summaries = summarise(plan, episodes)
    return Evaluation(
        format_version=FORMAT_VERSION,
        run_id=run_id,
        label=label,
        plan=plan,
        plan_sha256=plan_digest(plan),
        policy=policy.identity,
        rules_version=RULES_VERSION,
        backend_fingerprint=backend_fingerprint().property_table_sha256,
        seed_honoured=is_seed_honoured(plan),
        started_at=started_at,
        ended_at=clock(),
        average_final_score=average_final_score(summaries),
        summaries=summaries,
        episodes=episodes,
    )


def is_seed_honoured(plan: EvaluationPlan) -> bool:
    """Probe whether two resets with one seed give one observation, for every task of the plan."""
    for part in plan.parts:
        for task in part.tasks:
            seen = set()
            for session in (ToolSession(), ToolSession()):
                session.start(
                    resolve_scenario(suite=part.suite, scenario_id=task, seed=part.seeds[0]),
                    reward_mode=plan.reward_mode,
                )
                seen.add(digest_of(session.observation))
            if len(seen) > 1:
                return False
    return True
