"""What the name of a statistic rules out, and what it does not."""

from __future__ import annotations

import pytest

from molforge_eval.checks.bounds import contradictions, contradictions_within


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"n": 1, "score_std": 0.01}, "score_std"),
        ({"min": 0.4, "mean": 0.3}, "min"),
        ({"mean_reward": 0.4, "max_reward": 0.3}, "mean_reward"),
        ({"success_rate": 1.2}, "success_rate"),
        ({"n": 3, "success_rate": 0.5}, "success_rate"),
        ({"rewards/a/std": -0.1}, "rewards/a/std"),
        ({"frac_reward_zero_std": -0.5}, "frac_reward_zero_std"),
        ({"entropy": -0.1}, "entropy"),
        ({"completions/min_length": -1}, "completions/min_length"),
        ({"a_min": 0.4, "a_max": 0.5, "a_std": 0.2}, "a_std"),
    ],
)
def test_c120_a_statistic_that_no_data_can_have_is_named(values: dict[str, float], key: str) -> None:
    assert [found for found, _ in contradictions(values)] == [key]


@pytest.mark.parametrize(
    "values",
    [
        {"n": 1, "score_std": 0.0, "success_rate": 1.0},
        {"n": 3, "success_rate": 0.3333},
        {"n": 0, "success_rate": None},
        {"min": 0.3, "mean": 0.3, "max": 0.3, "std": 0.0},
        {"a/min": 0.0, "a/max": 1.0, "a/std": 0.7071},
        {"learning_rate": 2.0, "reward": -3.0, "loss": -0.1, "sampling/importance_sampling_ratio/mean": 1.4},
        {"completions/mean_terminated_length": 0.0, "completions/max_terminated_length": 0.0},
        {"clip_ratio/low_min": 0.0, "clip_ratio/low_mean": 0.01, "kl": -1e-7},
        {"success_rate": True, "std": "high"},
    ],
)
def test_a_statistic_that_data_can_have_is_left_alone(values: dict[str, object]) -> None:
    assert list(contradictions(values)) == []


def test_objects_within_objects_are_judged_each_by_itself() -> None:
    value = {"arms": [{"n": 8, "success_rate": 0.5}, {"a/b": {"n": 1, "std": 0.2}}]}

    assert [pointer for pointer, _ in contradictions_within(value)] == ["/arms/1/a~1b/std"]
