from __future__ import annotations

from datetime import UTC, datetime

import pytest

from benchmarks.learning import HEAD, Played, noise_of, plan_of, row_of, summary_of, table_text
from molforge_env.suites import SUITES
from molforge_eval.play import run_evaluation
from molforge_eval.policies import Loading, PolicySpec, open_policy
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan
from molforge_train.config import resolve

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = resolve("tiny-cpu", {"eval_seeds": "3"}, {}, now=NOW).configuration


def play(name: str, plan: EvaluationPlan) -> Evaluation:
    return run_evaluation(plan, open_policy(PolicySpec("scripted", name, None), Loading()), name, clock=lambda: NOW)


def test_the_same_player_over_disjoint_seeds_is_the_noise_floor() -> None:
    plans = [plan_of(SETTINGS, "official", seeds=range(first, first + 3)) for first in (0, 3)]
    noise = noise_of(*(play("random_valid", plan) for plan in plans))

    assert [part.seeds for part in plans[1].parts if part.name == "sampled"] == [(3, 4, 5)]
    assert noise["difference"] == pytest.approx(noise["after"] - noise["before"])
    assert noise["difference"] != 0.0
    assert noise["interval"][0] < noise["interval"][1]


def test_a_row_has_both_sides_of_every_suite_and_the_table_a_cell_for_each() -> None:
    plans = {suite: plan_of(SETTINGS, suite, seeds=range(3)) for suite in SUITES}
    suites = {
        suite: row_of(Played(play("random_valid", plan), play("heuristic", plan))) for suite, plan in plans.items()
    }
    row = {"seed": 1, "training_seconds": 100.4, "suites": suites}
    noise = {
        "seed": "A/A",
        "training_seconds": None,
        "suites": {
            suite: noise_of(play("random_valid", plan), play("random_valid", plan)) for suite, plan in plans.items()
        },
    }
    lines = table_text([noise, row]).splitlines()
    summary = summary_of([row])

    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {len(HEAD) + 1}
    assert "| 100 |" in lines[3]
    assert summary["sampled_after_mean"] == summary["sampled_after_least"] == suites["official"]["after"] > 0.85
    assert suites["holdout"]["gap_closed"] < suites["official"]["gap_closed"]
