from __future__ import annotations

from typing import Any

from molforge_eval.comparability import list_differences


def _changed(evaluation: Any, **plan_changes: Any) -> Any:
    return evaluation.model_copy(update={"plan": evaluation.plan.model_copy(update=plan_changes)})


def test_the_same_plan_and_rules_are_comparable(random_evaluation: Any, heuristic_evaluation: Any) -> None:
    assert list_differences(random_evaluation, heuristic_evaluation) == ()


def test_every_differing_key_is_listed_with_both_values(heuristic_evaluation: Any) -> None:
    greedy, sampled = heuristic_evaluation.plan.parts
    colder = sampled.model_copy(update={"decoding": sampled.decoding.model_copy(update={"temperature": 0.7})})
    other = _changed(heuristic_evaluation, turn_limit=2, parts=(greedy, colder))
    found = list_differences(heuristic_evaluation, other)

    assert [difference.key for difference in found] == ["plan.turn_limit", "plan.parts.sampled.decoding.temperature"]
    assert found[0].text() == "plan.turn_limit: 11 before, 2 after"
    assert (found[1].before, found[1].after) == (1.0, 0.7)


def test_other_tasks_and_seeds_are_listed(heuristic_evaluation: Any) -> None:
    greedy, sampled = heuristic_evaluation.plan.parts
    part = sampled.model_copy(update={"tasks": sampled.tasks[:2], "seeds": (5, 6)})
    found = list_differences(heuristic_evaluation, _changed(heuristic_evaluation, parts=(greedy, part)))

    assert {difference.key for difference in found} == {"plan.parts.sampled.tasks", "plan.parts.sampled.seeds"}


def test_a_part_that_only_one_side_has_is_listed_key_by_key(heuristic_evaluation: Any) -> None:
    other = _changed(heuristic_evaluation, parts=heuristic_evaluation.plan.parts[:1])
    found = list_differences(other, heuristic_evaluation)

    assert {difference.before for difference in found} == {None}
    assert "plan.parts.sampled.seeds" in {difference.key for difference in found}


def test_rules_chemistry_mode_and_texts_count(heuristic_evaluation: Any) -> None:
    other = _changed(heuristic_evaluation, reward_mode="dense", observation_length="compact").model_copy(
        update={"rules_version": "molforge-rules/2", "backend_fingerprint": "0" * 64}
    )

    assert {difference.key for difference in list_differences(heuristic_evaluation, other)} == {
        "rules_version",
        "backend_fingerprint",
        "plan.reward_mode",
        "plan.observation_length",
    }


def test_another_base_model_counts_and_another_adapter_does_not(heuristic_evaluation: Any) -> None:
    def played_by(**policy: Any) -> Any:
        return heuristic_evaluation.model_copy(update={"policy": heuristic_evaluation.policy.model_copy(update=policy)})

    bare = played_by(kind="hf", base_model_sha256="1" * 64)
    tuned = played_by(kind="hf", base_model_sha256="1" * 64, adapter_sha256="2" * 64, adapter_merged=True)
    unmerged = played_by(kind="hf", base_model_sha256="1" * 64, adapter_sha256="2" * 64, adapter_merged=False)
    other = played_by(kind="hf", base_model_sha256="3" * 64)

    assert list_differences(bare, tuned) == ()
    assert [difference.key for difference in list_differences(bare, other)] == ["policy.base_model_sha256"]
    assert [difference.key for difference in list_differences(tuned, unmerged)] == ["policy.adapter_unmerged"]


def test_seeds_that_were_not_honoured_make_the_same_seeds_an_empty_phrase(heuristic_evaluation: Any) -> None:
    careless = heuristic_evaluation.model_copy(update={"seed_honoured": False})

    assert [difference.key for difference in list_differences(careless, heuristic_evaluation)] == ["seed_honoured"]
    assert [difference.key for difference in list_differences(careless, careless)] == ["seed_honoured"]


def test_another_run_is_no_other_measure(heuristic_evaluation: Any) -> None:
    other = _changed(heuristic_evaluation, run_id="run-0123456789ab")

    assert list_differences(heuristic_evaluation, other) == ()
