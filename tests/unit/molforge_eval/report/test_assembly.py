from __future__ import annotations

import dataclasses
import math

import polars as pl
import pytest

from molforge_eval.report.assembly import Checked, assemble_evidence

CASES = ("improved", "no change shown", "regressed", "inconclusive", "incomplete", "withheld", "copies", "no plan")
OUTCOMES = {"copies": "inconclusive", "no plan": "incomplete"}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_run_has_its_outcome(evidence_of, case) -> None:
    assert evidence_of(case).verdict.outcome == OUTCOMES.get(case, case)


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_finite_or_unknown_with_a_reason(evidence_of, case) -> None:
    numbers = evidence_of(case).numbers

    assert all(number.reason for number in numbers if number.value is None)
    assert all(math.isfinite(number.value) for number in numbers if number.value is not None)
    assert all(number.formula and number.sources and number.text for number in numbers)


def test_a_number_of_a_file_carries_the_hash_of_that_file(evidence_of, loaded_run) -> None:
    hashes = {entry.path: entry.sha256 for entry in loaded_run.checksums.files}
    sources = [source for number in evidence_of("improved").numbers for source in number.sources]

    assert {source.file for source in sources if source.sha256} >= {"eval_plan.json", "run_manifest.json"}
    assert all(source.sha256 == hashes.get(source.file) for source in sources)


def test_a_missing_evaluation_leaves_numbers_unknown_and_none_zero(evidence_of) -> None:
    evidence = evidence_of("incomplete")
    gone = [number for number in evidence.numbers if ".after" in number.id and number.id.startswith("score.")]

    assert gone
    assert {number.value for number in gone} == {None}
    assert evidence.number("score.mean.after").reason == "the evaluation after training is missing"
    assert evidence.number("score.mean.difference").value is None


def test_errors_withhold_every_difference_and_leave_the_means(evidence_of) -> None:
    evidence = evidence_of("withheld")
    differences = [number for number in evidence.numbers if number.id.endswith((".difference", ".p", ".holm", ".gap"))]

    assert {number.value for number in differences} == {None}
    assert evidence.number("score.mean.after").value == pytest.approx(0.8, abs=0.05)


def test_copies_of_one_episode_give_no_interval(evidence_of) -> None:
    evidence = evidence_of("copies")

    assert not evidence.verdict.has_interval
    assert evidence.number("score.mean.low").value is None
    assert "copies" in (evidence.number("score.mean.low").reason or "")


def test_the_evidence_survives_its_own_json(evidence_of) -> None:
    evidence = evidence_of("improved")

    assert type(evidence).model_validate_json(evidence.model_dump_json()) == evidence


def test_one_changed_score_moves_the_numbers_that_depend_on_it_and_no_other(check, plan, random_evaluation, rescored):
    after = rescored(random_evaluation, {})
    changed = rescored(after, {("greedy", "level_1_medium", 0): 0.123})
    first = assemble_evidence(check(random_evaluation, after, plan))
    second = assemble_evidence(check(random_evaluation, changed, plan))
    moved = {number.id for number in first.numbers if second.number(number.id).value != number.value}

    assert moved == {
        "score.level_1_medium.greedy_after",
        "score.level_1_medium.greedy_difference",
        "score.mean.greedy_after",
        "score.mean.greedy_difference",
    } | ({"greedy.p"} & moved)


def test_one_vetoed_line_of_training_moves_its_phase_alone(
    check, plan, random_evaluation, heuristic_evaluation
) -> None:
    checked: Checked = check(random_evaluation, heuristic_evaluation, plan)
    free = checked.run.rollouts.filter(pl.col("governance_status") == "executed")["line"][0]
    vetoed = checked.run.rollouts.with_columns(
        pl.when(pl.col("line") == free)
        .then(pl.lit("policy_veto"))
        .otherwise(pl.col("governance_status"))
        .alias("governance_status")
    )
    first = assemble_evidence(checked)
    second = assemble_evidence(checked._replace(run=dataclasses.replace(checked.run, rollouts=vetoed)))
    moved = {number.id for number in first.numbers if second.number(number.id).value != number.value}

    assert moved == {"conduct.early.vetoed", "curve.vetoed.first"}


def test_the_first_hundred_findings_are_not_all_listed_and_the_others_are_counted(
    check, plan, random_evaluation
) -> None:
    from molforge_eval.catalogue import finding

    many = tuple(finding("SCORE_DIFFERS", f"score {number}", file="a.json") for number in range(100))
    evidence = assemble_evidence(check(random_evaluation, random_evaluation, plan, many, "E1"))

    assert len(evidence.findings) == 60
    assert evidence.omitted_findings == {"SCORE_DIFFERS": 40}
    assert evidence.number("findings.error").value == 100


STRANGE = ("mean", "two words", '"><script>alert(1)</script>', "x" * 300, "\N{RIGHT-TO-LEFT OVERRIDE}", "a.b")


def test_a_plan_with_strange_task_names_is_shown_and_breaks_nothing(check, plan, random_evaluation) -> None:
    parts = tuple(part.model_copy(update={"tasks": STRANGE}) for part in plan.parts)
    evidence = assemble_evidence(check(random_evaluation, random_evaluation, plan.model_copy(update={"parts": parts})))

    assert [row.task for row in evidence.tasks] == [f"task-{number}" for number in range(len(STRANGE))]
    assert evidence.number("score.task-1.heuristic").reason == "the task is not on the ladder"
    assert max(len(row.label) for row in evidence.tasks) < 70


def test_a_plan_without_a_sampled_part_shows_its_greedy_episodes(check, plan, random_evaluation) -> None:
    from molforge_eval.plan import standard_plan

    evidence = assemble_evidence(check(random_evaluation, random_evaluation, standard_plan(seeds=0)))

    assert evidence.verdict.outcome == "incomplete"
    assert len(evidence.tasks) == 3
    assert evidence.number("score.level_0_easy.greedy_before").value is not None
    assert evidence.number("score.level_0_easy.before").value is None


def test_records_with_strange_texts_are_quoted_and_break_nothing(check, plan, random_evaluation) -> None:
    first = random_evaluation.episodes[-1]
    strange = "\N{RIGHT-TO-LEFT OVERRIDE}</td>" * 500
    scenario = first.scenario.model_copy(update={"start_molecule": strange, "max_budget": 0})
    steps = tuple(
        step.model_copy(update={"tool": strange, "vetoes": (strange,) * 50, "error_code": strange, "response": strange})
        for step in first.steps
    )
    poisoned = first.model_copy(update={"scenario": scenario, "steps": steps, "final_score": 1.0})
    after = random_evaluation.model_copy(update={"episodes": (*random_evaluation.episodes[:-1], poisoned)})
    evidence = assemble_evidence(check(random_evaluation, after, plan))
    best = next(script for script in evidence.transcripts if script.key == "best")

    assert best.start is None
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in evidence.model_dump_json()
    assert len(evidence.model_dump_json()) < 500_000
