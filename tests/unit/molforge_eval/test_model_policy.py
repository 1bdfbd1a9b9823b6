"""The tiny model plays: whatever the batch, the same episodes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from molforge_env.errors import UsageError
from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool
from molforge_eval.canonical import digest
from molforge_eval.model_policy import chat_form, open_model
from molforge_eval.plan import Limits, standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.policies import Loading, parse_policy
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan
from molforge_eval.weights import base_model_digest, read_adapter

ROOT = Path(__file__).resolve().parents[3]
POLICY = "hf:molforge_train/models/tiny/base+molforge_train/models/tiny/sft_adapter"
FREE = {"wall_time_seconds", "seal"}


@pytest.fixture(scope="module")
def plan() -> EvaluationPlan:
    return standard_plan(observation_length="compact", limits=Limits(24, 600, 11), seeds=4)


@pytest.fixture(scope="module")
def evaluations(plan: EvaluationPlan) -> dict[int, Evaluation]:
    """The same plan played with one, five and all episodes at a time."""
    found = {}
    for size in (1, 5, 48):
        player = open_model(parse_policy(POLICY), Loading(batch_size=size))
        found[size] = run_evaluation(plan, player, "x", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return found


def _facts(evaluation: Evaluation) -> list[Any]:
    return [episode.model_dump(exclude=FREE) for episode in evaluation.episodes]


@pytest.mark.parametrize("size", [5, 48])
def test_how_many_episodes_play_together_changes_nothing(evaluations: dict[int, Evaluation], size: int) -> None:
    assert _facts(evaluations[size]) == _facts(evaluations[1])


def test_every_planned_episode_is_played_and_counted(evaluations: dict[int, Evaluation]) -> None:
    evaluation = evaluations[48]

    assert len(evaluation.episodes) == 3 + 12
    assert [summary.completed for summary in evaluation.summaries] == [3, 12]
    assert all(episode.final_score is not None for episode in evaluation.episodes)


def test_sampled_seeds_play_unlike_episodes(evaluations: dict[int, Evaluation]) -> None:
    sampled = [episode for episode in evaluations[48].episodes if episode.part == "sampled"]

    assert len({tuple(turn.raw_completion for turn in episode.turns) for episode in sampled}) > 8


def test_the_identity_is_made_of_contents(evaluations: dict[int, Evaluation]) -> None:
    identity = evaluations[1].policy
    tiny = ROOT / "molforge_train" / "models" / "tiny"

    assert identity == evaluations[48].policy
    assert identity.name == POLICY
    assert identity.base_model_sha256 == base_model_digest(tiny / "base")
    assert identity.adapter_sha256 == read_adapter(tiny / "sft_adapter").sha256
    assert (identity.dtype, identity.adapter_merged) == ("float64", True)
    assert {episode.policy_sha256 for episode in evaluations[1].episodes} == {digest(identity)}


def test_a_folder_of_this_machine_leaves_its_name_only() -> None:
    base = ROOT / "molforge_train" / "models" / "tiny" / "base"
    identity = open_model(parse_policy(f"hf:{base}"), Loading()).identity

    assert (identity.name, identity.base_model, identity.adapter) == ("hf:base", "base", None)
    assert identity.adapter_merged is None


def test_a_recorded_episode_can_be_played_again_without_the_model(evaluations: dict[int, Evaluation]) -> None:
    for episode in evaluations[48].episodes:
        session = ToolSession(observation_length="compact")
        session.start(episode.scenario, reward_mode=episode.reward_mode)
        for step in episode.steps:
            assert call_tool(session, step.tool, step.arguments).text == step.response
        assert episode.scores == (session.scores or None)


def test_an_unfinished_episode_scores_zero_and_has_no_grader_scores(evaluations: dict[int, Evaluation]) -> None:
    unfinished = [
        episode
        for episode in evaluations[48].episodes
        if episode.ended_by in ("no_call", "malformed_call", "turn_limit", "length_limit")
    ]

    assert unfinished
    assert {episode.final_score for episode in unfinished} == {0.0}
    assert {episode.scores for episode in unfinished} == {None}


def test_turns_hold_the_whole_way_of_tokens(evaluations: dict[int, Evaluation]) -> None:
    for episode in evaluations[48].episodes:
        assert episode.turns[0].prompt.startswith("<|im_start|>system")
        assert all(turn.completion_tokens <= 24 for turn in episode.turns)
        assert episode.completion_tokens == sum(turn.completion_tokens for turn in episode.turns)
        lengths = [turn.prompt_tokens for turn in episode.turns]
        assert lengths == sorted(set(lengths))


def test_a_template_that_the_trainer_does_not_know_is_refused() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(ROOT / "molforge_train" / "models" / "tiny" / "base")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"

    with pytest.raises(UsageError, match="does not know this chat template, so it cannot read its tool calls"):
        chat_form(None, tokenizer, "full")


def test_a_batch_that_the_memory_does_not_hold_says_what_to_try(
    plan: EvaluationPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    player = open_model(parse_policy(POLICY), Loading(batch_size=48))
    # A test machine cannot be filled to the brim, so the step that allocates says that it is.
    monkeypatch.setattr("molforge_eval.lock_step.LockStep.advance", full)
    with pytest.raises(UsageError) as refusal:
        run_evaluation(plan, player, "x", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    assert str(refusal.value).splitlines() == [
        "out of memory with 48 episodes at a time",
        "  where: model evaluation",
        "  mend:  Run it again with --batch-size 24.",
    ]
