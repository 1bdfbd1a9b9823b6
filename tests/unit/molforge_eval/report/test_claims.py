from __future__ import annotations

import pytest


def standings(evidence) -> dict:
    return {claim.key: claim.standing for claim in evidence.claims}


@pytest.mark.parametrize(
    ("case", "standing"),
    [
        ("improved", "supported"),
        ("no change shown", "not shown"),
        ("regressed", "contradicted"),
        ("inconclusive", "unclear"),
        ("incomplete", "not tested"),
        ("withheld", "withheld"),
    ],
)
def test_the_first_claim_stands_by_the_verdict(evidence_of, case, standing) -> None:
    assert standings(evidence_of(case))["score_rose"] == standing


def test_what_was_not_looked_at_is_not_tested_and_never_left_out(evidence_of) -> None:
    found = standings(evidence_of("improved"))

    assert len(found) == 8
    assert {found[key] for key in ("unseen_tasks", "other_seeds", "adapter_regenerates")} == {"not tested"}


def test_replay_without_a_difference_supports_the_scores_and_no_replay_supports_nothing(evidence_of) -> None:
    assert standings(evidence_of("improved"))["scores_replayed"] == "supported"
    assert standings(evidence_of("withheld"))["scores_replayed"] == "not tested"


def test_a_rise_of_every_task_is_a_claim_of_its_own(evidence_of) -> None:
    assert standings(evidence_of("improved"))["every_task_rose"] == "supported"
    assert standings(evidence_of("regressed"))["every_task_rose"] == "contradicted"
    assert standings(evidence_of("incomplete"))["every_task_rose"] == "not tested"


def test_a_rise_of_every_task_is_unclear_when_one_task_was_not_counted(
    check, plan, random_evaluation, rescored
) -> None:
    from molforge_eval.report.assembly import assemble_evidence

    after = rescored(
        random_evaluation,
        {
            ("sampled", task, seed): None if task == "level_2_hard" else 0.9
            for task in plan.parts[-1].tasks
            for seed in plan.parts[-1].seeds
        },
    )
    found = standings(assemble_evidence(check(random_evaluation, after, plan)))

    assert found["score_rose"] == "not tested"
    assert found["every_task_rose"] == "unclear"


@pytest.mark.parametrize("key", ["sha256", "tensors_sha256"])
def test_an_adapter_that_did_not_change_contradicts_training(check, plan, random_evaluation, key: str) -> None:
    import dataclasses

    from molforge_eval.report.assembly import assemble_evidence

    checked = check(random_evaluation, random_evaluation, plan)
    manifest = checked.run.manifest
    same = {key: getattr(manifest.input_adapter, key)}
    unchanged = manifest.model_copy(update={"output_adapter": manifest.output_adapter.model_copy(update=same)})
    evidence = assemble_evidence(checked._replace(run=dataclasses.replace(checked.run, manifest=unchanged)))

    assert standings(evidence)["training_happened"] == "contradicted"


def test_records_that_do_not_agree_support_no_claim(evidence_of) -> None:
    found = standings(evidence_of("withheld"))

    assert found["training_happened"] == "withheld"
    assert "supported" not in found.values()
