"""Plays the reference policies as a model is played: the same tools, records and endings, and no tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from molforge_env.interface import prompt_text
from molforge_env.policies import find_policy
from molforge_env.seeding import stream
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool, step_record
from molforge_eval.endings import laboratory_ending
from molforge_eval.plan import PlannedEpisode
from molforge_eval.played import PlayedEpisode
from molforge_eval.records.evaluation import EvaluationPlan, PolicyIdentity, StepRecord, TurnRecord
from molforge_eval.records.fields import EndedBy


class ScriptedPlayer:
    """A reference policy.

    Args:
        name: One of `molforge_env.policies.POLICIES`.

    Raises:
        UsageError: No policy has this name.
    """

    def __init__(self, name: str) -> None:
        self._policy = find_policy(name)

    @property
    def identity(self) -> PolicyIdentity:
        """Who plays."""
        return PolicyIdentity(
            kind="scripted",
            name=self._policy.name,
            base_model=None,
            base_model_sha256=None,
            adapter=None,
            adapter_sha256=None,
            tokenizer_sha256=None,
            chat_template_sha256=None,
            dtype=None,
            adapter_merged=None,
        )

    def play(self, planned: Sequence[PlannedEpisode], plan: EvaluationPlan) -> Iterator[PlayedEpisode]:
        """Play episodes one after another; decoding means nothing here."""
        for episode in planned:
            yield self._play_one(episode, plan)

    def _play_one(self, planned: PlannedEpisode, plan: EvaluationPlan) -> PlayedEpisode:
        began = time.perf_counter()
        scenario = resolve_scenario(suite=planned.suite, scenario_id=planned.scenario_id, seed=planned.seed)
        session = ToolSession(observation_length=plan.observation_length)
        read = prompt_text(plan.observation_length) + session.start(scenario, reward_mode=plan.reward_mode)
        rng = stream(planned.seed, "scripted", self._policy.name, scenario.suite, scenario.scenario_id)
        steps: list[StepRecord] = []
        turns: list[TurnRecord] = []
        ended_by: EndedBy | None = None
        error: str | None = None
        while ended_by is None:
            turns.append(_turn(len(turns), read))
            if len(turns) > plan.turn_limit:
                ended_by = "turn_limit"
                break
            try:
                tool, arguments = self._policy.act(session, rng)
                result = call_tool(session, tool, arguments)
            except Exception as broken:  # noqa: BLE001 - the episode's boundary: a broken laboratory costs one episode, not all
                ended_by, error = "env_error", f"{type(broken).__name__}: {broken}"
                break
            steps.append(step_record(session, tool, result, turn=len(turns) - 1))
            read = result.text
            if result.outcome is not None and result.outcome.done:
                ended_by = laboratory_ending(result.outcome)
        return PlayedEpisode(
            planned=planned,
            scenario=scenario,
            steps=tuple(steps),
            turns=tuple(turns),
            ended_by=ended_by,
            error=error,
            scores=session.scores if session.done else None,
            prompt_tokens=0,
            completion_tokens=0,
            wall_time_seconds=time.perf_counter() - began,
        )


def _turn(number: int, read: str) -> TurnRecord:
    return TurnRecord(
        turn=number,
        prompt=read,
        raw_completion="",
        prompt_tokens=0,
        completion_tokens=0,
        prompt_ids_sha256=None,
    )
