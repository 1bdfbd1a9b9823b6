from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from molforge_env.suites import SCENARIO_IDS
from molforge_eval.findings import Finding, Place
from molforge_eval.plan import standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.records.evaluation import Evaluation
from molforge_eval.scripted_player import ScriptedPlayer
from molforge_eval.verdict import Verdict, decide

EASY, MEDIUM, HARD = SCENARIO_IDS


def _sampled(scores: Any) -> dict[tuple[str, str, int], float | None]:
    return {
        ("sampled", task, seed): scores[seed][place] for place, task in enumerate(SCENARIO_IDS) for seed in range(8)
    }


@pytest.fixture
def shaken(random_evaluation: Evaluation, rescored: Any) -> Any:
    """The random evaluation with sampled scores moved by some amount with some spread, as if a model had played."""
    rng = np.random.default_rng(11)
    base = rng.uniform(0.3, 0.6, size=(8, 3))

    def shake(shift: float, spread: float = 0.0) -> Evaluation:
        moved = np.clip(base + shift + rng.uniform(-1, 1, size=(8, 3)) * spread, 0, 1)
        return rescored(random_evaluation, _sampled(moved.tolist()))

    return shake


def _finding(severity: Any) -> Finding:
    return Finding(code="TOTAL_DIFFERS", severity=severity, where=Place(file="x.json"), what="x", mend="y")


def test_a_clear_rise_is_improved_with_every_number_behind_it(plan: Any, shaken: Any) -> None:
    verdict = decide(shaken(0.0), shaken(0.3, 0.1), plan)
    sampled = verdict.sampled

    assert verdict.outcome == "improved"
    assert sampled.seeds_paired == 8
    assert sampled.p_value == 2 / 2**8
    assert sampled.p_flips == 256
    assert sampled.interval is not None
    assert sampled.interval.low > 0.2
    assert sampled.difference == pytest.approx(sampled.after_mean - sampled.before_mean)
    assert sampled.interval.low < sampled.difference < sampled.interval.high
    assert sampled.minimum_detectable_difference is not None
    assert sampled.episodes_needed == 3 * sampled.seeds_needed
    assert "p = 0.0078 (exact, 256 sign patterns)" in verdict.reasons[0]


def test_a_clear_fall_is_regressed(plan: Any, shaken: Any) -> None:
    assert decide(shaken(0.3, 0.1), shaken(0.0), plan).outcome == "regressed"


def test_a_small_shake_is_no_change_shown(plan: Any, shaken: Any) -> None:
    verdict = decide(shaken(0.0), shaken(0.0, 0.03), plan)

    assert verdict.outcome == "no change shown"
    assert verdict.sampled.interval.low >= -verdict.margin


def test_a_small_shake_of_five_seeds_is_inconclusive_and_says_why(
    plan: Any, random_evaluation: Evaluation, rescored: Any, shaken: Any
) -> None:
    lost = {("sampled", task, seed): None for task in SCENARIO_IDS for seed in range(5, 8)}
    verdict = decide(rescored(shaken(0.0), lost), rescored(shaken(0.0, 0.03), lost), plan)

    assert verdict.sampled.seeds_paired == 5
    assert verdict.outcome == "inconclusive"
    assert any(
        reason.startswith("the interval lies within the margin of 0.05, but no change is shown only by 6 or more")
        for reason in verdict.reasons
    )


def test_an_inconclusive_run_says_what_it_could_have_seen(plan: Any, shaken: Any) -> None:
    verdict = decide(shaken(0.0), shaken(0.0, 0.4), plan)

    assert verdict.outcome == "inconclusive"
    assert f"{verdict.sampled.minimum_detectable_difference:.3f}" in verdict.reasons[1]
    assert f"needs {verdict.sampled.episodes_needed} episodes" in verdict.reasons[1]


def test_the_same_inputs_give_the_same_verdict(plan: Any, shaken: Any) -> None:
    before, after = shaken(0.0), shaken(0.1, 0.3)

    assert decide(before, after, plan) == decide(before, after, plan)
    assert Verdict.model_validate_json(decide(before, after, plan).model_dump_json()) == decide(before, after, plan)


def test_per_task_values_are_holm_adjusted_and_decide_nothing(plan: Any, random_evaluation: Any, rescored: Any) -> None:
    before = rescored(random_evaluation, _sampled([[0.5, 0.5, 0.5]] * 8))
    rng = np.random.default_rng(3)
    moved = np.column_stack([rng.uniform(0.7, 0.9, 8), rng.uniform(0.1, 0.4, 8), rng.uniform(0.3, 0.7, 8)])
    verdict = decide(before, rescored(random_evaluation, _sampled(moved.tolist())), plan)
    easy, medium, hard = verdict.tasks

    assert verdict.outcome in ("inconclusive", "no change shown")
    assert easy.p_value == medium.p_value == 2 / 2**8
    assert easy.holm_p_value == 3 * easy.p_value
    assert easy.difference > 0 > medium.difference
    assert hard.holm_p_value == hard.p_value
    assert (easy.before_counted, easy.after_counted, easy.pairs) == (8, 8, 8)


def test_the_greedy_episodes_stand_beside_with_their_bound(
    plan: Any, random_evaluation: Any, heuristic_evaluation: Any
) -> None:
    verdict = decide(random_evaluation, heuristic_evaluation, plan)

    assert verdict.greedy.tasks == 3
    assert verdict.greedy.p_value == verdict.greedy.smallest_p_value == 0.25
    assert verdict.greedy.after_mean == pytest.approx(0.8773)
    assert [task.greedy_after for task in verdict.tasks] == [0.8703, 0.8733, 0.8883]


@pytest.mark.parametrize("missing", ["before", "after", "both"])
def test_a_missing_evaluation_makes_the_verdict_incomplete_without_a_difference(
    missing: str, plan: Any, random_evaluation: Any
) -> None:
    before = None if missing in ("before", "both") else random_evaluation
    after = None if missing in ("after", "both") else random_evaluation
    verdict = decide(before, after, plan)

    assert verdict.outcome == "incomplete"
    assert f"the evaluation {'before' if before is None else 'after'} training is missing" in verdict.reasons
    assert verdict.sampled.difference is verdict.sampled.p_value is verdict.greedy.difference is None
    assert all(task.difference is None for task in verdict.tasks)
    assert verdict.scale.gap_reason == "no difference is claimed"


def test_an_evaluation_that_broke_in_half_of_its_episodes_has_failed(
    plan: Any, random_evaluation: Any, shaken: Any, rescored: Any
) -> None:
    broken = rescored(
        random_evaluation, {("sampled", task, seed): None for task in SCENARIO_IDS for seed in range(3, 8)}
    )
    verdict = decide(shaken(0.0), broken, plan)

    assert verdict.outcome == "incomplete"
    assert verdict.reasons == ("the evaluation after training failed: 9 of 24 planned episodes counted",)
    assert verdict.sampled.difference is None


def test_an_evaluation_whose_seeds_all_lack_a_task_is_incomplete(
    plan: Any, random_evaluation: Any, shaken: Any, rescored: Any
) -> None:
    broken = rescored(random_evaluation, {("sampled", HARD, seed): None for seed in range(8)})
    verdict = decide(shaken(0.0), broken, plan)

    assert verdict.outcome == "incomplete"
    (reason,) = verdict.reasons
    assert reason.startswith("of 8 planned seeds none was counted in every task on both sides; ")
    assert reason.endswith("; no seed was counted of level_2_hard after training")
    assert verdict.sampled.after_mean is None
    assert verdict.sampled.after_interval is None
    assert verdict.scale.after_against_floor is None


def test_a_few_broken_episodes_are_left_out_pair_by_pair_and_said(plan: Any, shaken: Any, rescored: Any) -> None:
    after = rescored(shaken(0.3, 0.1), {("sampled", EASY, 0): None})
    verdict = decide(shaken(0.0), after, plan)

    assert verdict.outcome == "improved"
    assert verdict.reasons[0] == "7 of 8 planned seeds could be paired"
    assert (verdict.sampled.seeds_paired, verdict.sampled.after_counted) == (7, 23)


def test_findings_of_severity_error_withhold_the_verdict(plan: Any, shaken: Any) -> None:
    verdict = decide(shaken(0.0), shaken(0.3, 0.1), plan, [_finding("error"), _finding("error")])

    assert verdict.outcome == "withheld"
    assert verdict.reasons == ("findings of severity error: 2 (TOTAL_DIFFERS)",)
    assert verdict.error_findings == 2
    assert verdict.sampled.difference is verdict.sampled.interval is verdict.greedy.p_value is None
    assert verdict.sampled.before_mean is not None


def test_warnings_withhold_nothing(plan: Any, shaken: Any) -> None:
    verdict = decide(shaken(0.0), shaken(0.3, 0.1), plan, [_finding("warning"), _finding("info")])

    assert verdict.outcome == "improved"


def test_evaluations_that_are_not_comparable_get_no_difference(plan: Any, shaken: Any) -> None:
    after = shaken(0.3, 0.1)
    other = after.model_copy(update={"plan": after.plan.model_copy(update={"turn_limit": 2})})
    verdict = decide(shaken(0.0), other, plan)

    assert verdict.outcome == "withheld"
    assert verdict.reasons == ("before and after are not comparable: plan.turn_limit: 11 before, 2 after",)
    assert [difference.key for difference in verdict.differing] == ["plan.turn_limit"]
    assert verdict.sampled.difference is None


def test_a_missing_evaluation_is_incomplete_even_with_errors(plan: Any, random_evaluation: Any) -> None:
    verdict = decide(random_evaluation, None, plan, [_finding("error")])

    assert verdict.outcome == "incomplete"
    assert len(verdict.reasons) == 2


def test_copies_of_one_episode_are_not_tested(plan: Any, heuristic_evaluation: Any) -> None:
    verdict = decide(heuristic_evaluation, heuristic_evaluation, plan)

    assert verdict.outcome == "inconclusive"
    assert "copies of one deterministic episode" in verdict.reasons[0]
    assert verdict.sampled.p_value is None
    assert verdict.sampled.difference == 0.0
    assert "copies" in verdict.sampled.interval_reason
    assert all(task.p_value is None for task in verdict.tasks)
    assert (verdict.sampled.before_distinct, verdict.sampled.before_counted) == (3, 24)


def test_one_paired_seed_is_said_to_be_one(rescored: Any) -> None:
    single = standard_plan(seeds=1)
    before = run_evaluation(
        single, ScriptedPlayer("random_valid"), "before training", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )
    verdict = decide(before, rescored(before, _sampled([[0.8, 0.8, 0.8]] * 8)), single)

    assert verdict.outcome == "inconclusive"
    assert verdict.sampled.interval_reason == "one paired seed says nothing about spread"


def test_equal_differences_have_a_test_and_no_interval(plan: Any, random_evaluation: Any, rescored: Any) -> None:
    before = rescored(random_evaluation, _sampled([[0.0, 0.0, 0.0]] * 8))
    after = rescored(random_evaluation, _sampled([[0.8, 0.8, 0.8]] * 8))
    verdict = decide(before, after, plan)

    assert verdict.outcome == "improved"
    assert verdict.sampled.interval is None
    assert verdict.sampled.interval_reason.startswith("every paired seed gave the same difference")
    assert verdict.sampled.before_interval is verdict.sampled.minimum_detectable_difference is None


def test_identical_sampled_scores_are_inconclusive_without_a_plan_for_more(
    plan: Any, random_evaluation: Any, rescored: Any
) -> None:
    same = rescored(random_evaluation, _sampled([[0.4, 0.4, 0.4]] * 8))
    verdict = decide(same, same, plan)

    assert verdict.outcome == "inconclusive"
    assert len(verdict.reasons) == 1


def test_a_plan_without_the_deciding_part_is_incomplete(plan: Any, heuristic_evaluation: Any) -> None:
    greedy_only = plan.model_copy(update={"parts": plan.parts[:1]})
    verdict = decide(heuristic_evaluation, heuristic_evaluation, greedy_only)

    assert verdict.outcome == "incomplete"
    assert verdict.reasons == ("the plan has no part that decides",)
    assert verdict.sampled.before_mean is None


def test_a_plan_without_greedy_episodes_leaves_that_part_empty(plan: Any, shaken: Any) -> None:
    sampled_only = plan.model_copy(update={"parts": plan.parts[1:]})
    verdict = decide(shaken(0.0), shaken(0.3, 0.1), sampled_only)

    assert verdict.outcome == "improved"
    assert verdict.greedy.tasks == 0
    assert verdict.greedy.before_mean is verdict.greedy.difference is verdict.tasks[0].greedy_before is None


def test_the_gap_closed_is_the_share_of_what_was_left(
    plan: Any, random_evaluation: Any, heuristic_evaluation: Any
) -> None:
    verdict = decide(random_evaluation, heuristic_evaluation, plan)
    left = verdict.scale.ceiling - verdict.sampled.before_mean

    assert verdict.scale.gap_closed == pytest.approx(verdict.sampled.difference / left)
    assert verdict.scale.before_against_floor == "above"


def test_a_before_at_or_under_the_floor_is_said(plan: Any, random_evaluation: Any, shaken: Any, rescored: Any) -> None:
    under = rescored(random_evaluation, _sampled([[0.0, 0.0, 0.01]] * 8))
    at = rescored(random_evaluation, _sampled([[0.0833, 0.1167, 0.08]] * 8))

    assert decide(under, shaken(0.0), plan).scale.before_against_floor == "under"
    assert decide(at, shaken(0.0), plan).scale.before_against_floor == "at"


def test_nothing_is_left_to_gain_at_the_ceiling(plan: Any, random_evaluation: Any, shaken: Any, rescored: Any) -> None:
    top = rescored(random_evaluation, _sampled([[0.878, 0.8926, 0.9032]] * 8))
    verdict = decide(top, shaken(0.0), plan)

    assert verdict.scale.gap_closed is None
    assert "ceiling" in verdict.scale.gap_reason
