from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from molforge_env import RULES_VERSION
from molforge_env.errors import UsageError
from molforge_env.fingerprint import backend_fingerprint
from molforge_env.policies import POLICIES, play_scripted
from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool
from molforge_eval.canonical import digest, file_bytes, seal_of
from molforge_eval.plan import Limits, plan_digest, standard_plan
from molforge_eval.play import is_seed_honoured, run_evaluation
from molforge_eval.played import total_reward
from molforge_eval.records.evaluation import Evaluation
from molforge_eval.scripted_player import ScriptedPlayer


def _clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_scores_what_it_scores_outside_of_an_evaluation(name: str, plan: Any) -> None:
    evaluation = run_evaluation(plan, ScriptedPlayer(name), "x", clock=_clock)

    for episode in evaluation.episodes:
        session = play_scripted(name, episode.scenario, episode.seed)
        assert episode.final_score == session.scores["final_score"]
        assert [step.reward for step in episode.steps] == [outcome.reward for outcome in session.outcomes]


def test_a_recorded_episode_played_again_from_its_steps_is_the_same(random_evaluation: Evaluation) -> None:
    for episode in random_evaluation.episodes:
        session = ToolSession(observation_length=random_evaluation.plan.observation_length)
        session.start(episode.scenario, reward_mode=episode.reward_mode)
        for step in episode.steps:
            result = call_tool(session, step.tool, step.arguments)
            assert result.outcome is not None
            assert (result.text, result.outcome.observation_sha256) == (step.response, step.observation_sha256)
        assert session.scores == episode.scores


def test_every_episode_is_sealed_and_names_its_policy(random_evaluation: Evaluation) -> None:
    for episode in random_evaluation.episodes:
        assert episode.seal == seal_of(episode)
        assert episode.policy_sha256 == digest(random_evaluation.policy)


def test_the_evaluation_carries_plan_rules_and_chemistry(plan: Any, random_evaluation: Evaluation) -> None:
    assert random_evaluation.plan == plan
    assert random_evaluation.plan_sha256 == plan_digest(plan)
    assert random_evaluation.rules_version == RULES_VERSION
    assert random_evaluation.backend_fingerprint == backend_fingerprint().property_table_sha256
    assert random_evaluation.seed_honoured
    assert len(random_evaluation.episodes) == 27


def test_the_evaluation_survives_json(random_evaluation: Evaluation) -> None:
    assert Evaluation.model_validate_json(file_bytes(random_evaluation)) == random_evaluation


def test_times_come_from_the_clock_that_was_handed_in(plan: Any) -> None:
    moments = iter([_clock(), _clock() + timedelta(seconds=5)])
    evaluation = run_evaluation(plan, ScriptedPlayer("heuristic"), "x", clock=lambda: next(moments))

    assert evaluation.ended_at - evaluation.started_at == timedelta(seconds=5)


def test_the_caller_hears_of_every_episode(plan: Any) -> None:
    heard: list[str] = []
    evaluation = run_evaluation(
        plan, ScriptedPlayer("heuristic"), "x", clock=_clock, on_episode=lambda record: heard.append(record.episode_id)
    )

    assert sorted(heard) == sorted(episode.episode_id for episode in evaluation.episodes)


def test_a_scripted_turn_has_the_text_that_was_read_and_no_words(heuristic_evaluation: Evaluation) -> None:
    episode = heuristic_evaluation.episodes[0]

    assert len(episode.turns) == len(episode.steps) == 7
    assert episode.turns[1].prompt == episode.steps[0].response
    assert {turn.raw_completion for turn in episode.turns} == {""}
    assert episode.turns[0].prompt_ids_sha256 is None
    assert episode.completion_tokens == 0


def test_the_horizon_of_turns_holds_for_scripted_policies_too() -> None:
    plan = standard_plan(seeds=0, limits=Limits(turn_limit=3))
    evaluation = run_evaluation(plan, ScriptedPlayer("heuristic"), "x", clock=_clock)

    assert {episode.ended_by for episode in evaluation.episodes} == {"turn_limit"}
    assert {episode.final_score for episode in evaluation.episodes} == {0.0}
    assert {episode.scores for episode in evaluation.episodes} == {None}
    assert evaluation.average_final_score == 0.0


def test_what_the_environment_broke_is_counted_apart_and_averaged_nowhere(
    plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ToolSession.call
    calls = [0]

    def sometimes(session: ToolSession, tool: str, arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            raise ConnectionError("gone")
        return own(session, tool, arguments)

    # The embedded laboratory does not fail by itself; a remote one may.
    monkeypatch.setattr(ToolSession, "call", sometimes)
    evaluation = run_evaluation(plan, ScriptedPlayer("heuristic"), "x", clock=_clock)
    broken = evaluation.episodes[0]

    assert (broken.ended_by, broken.error) == ("env_error", "ConnectionError: gone")
    assert broken.final_score is broken.scores is broken.total_reward is None
    assert evaluation.summaries[0].errored == 1
    assert evaluation.average_final_score is None
    assert evaluation.summaries[0].reason == "no counted episode of level_0_easy"


def test_a_laboratory_that_draws_by_itself_is_found_out(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(range(2_000, 4_000))

    def careless(**names: Any) -> Any:
        return resolve_scenario(**names).model_copy(update={"max_budget": next(drawn)})

    assert is_seed_honoured(plan)
    monkeypatch.setattr("molforge_eval.play.resolve_scenario", careless)
    assert not is_seed_honoured(plan)


def test_variants_are_played_as_they_were_drawn() -> None:
    official = standard_plan(seeds=2)
    part = official.parts[1].model_copy(update={"suite": "randomized"})
    plan = official.model_copy(update={"parts": (part,)})
    evaluation = run_evaluation(plan, ScriptedPlayer("heuristic"), "x", clock=_clock)

    assert {episode.suite for episode in evaluation.episodes} == {"randomized"}
    assert all(episode.scenario.draw is not None for episode in evaluation.episodes)


def test_rewards_are_added_as_the_laboratory_rounds_them(heuristic_evaluation: Evaluation) -> None:
    episode = heuristic_evaluation.episodes[0]
    session = play_scripted("heuristic", episode.scenario)

    assert episode.total_reward == total_reward(episode.steps) == session.episode.reward_total


def test_a_plan_that_cannot_be_played_is_refused_before_anything_is_played(plan: Any) -> None:
    with pytest.raises(UsageError, match="repeat a name"):
        run_evaluation(
            plan.model_copy(update={"parts": plan.parts[:1] * 2}), ScriptedPlayer("heuristic"), "x", clock=_clock
        )


def test_an_unknown_scripted_policy_is_named() -> None:
    with pytest.raises(UsageError, match="'grandmaster' is not known"):
        ScriptedPlayer("grandmaster")
