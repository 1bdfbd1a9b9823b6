from __future__ import annotations

import pytest

from molforge_eval.report.surroundings import list_surroundings


@pytest.fixture(scope="module")
def facts(loaded_run):
    return {(row.group, row.key): row.value for row in list_surroundings(loaded_run.manifest, loaded_run.plan)}


def test_machine_model_and_laboratory_are_those_of_the_manifest(facts, loaded_run) -> None:
    manifest = loaded_run.manifest

    assert facts["machine", "processors"] == str(manifest.hardware.cpu_count)
    assert facts["machine", "accelerator"] == (manifest.hardware.accelerator or "none")
    assert facts["model", "output_adapter_sha256"] == manifest.output_adapter.sha256
    assert facts["laboratory", "property_table"] == manifest.backend.property_table_sha256
    assert facts["laboratory", "rules"] == "molforge-rules/1"


def test_the_evaluation_is_told_part_by_part_as_the_plan_has_it(facts) -> None:
    tasks = "level_0_easy, level_1_medium, level_2_hard"

    assert facts["evaluation", "part_greedy"] == f"suite official: {tasks}; 1 seed each, greedy"
    assert facts["evaluation", "part_sampled"].startswith(f"suite official: {tasks}; ")
    assert facts["evaluation", "part_sampled"].endswith("sampled at temperature 1.00, top-p 1.00")
    assert facts["evaluation", "test"] == "two-sided paired sign-flip, level 0.05, margin 0.05"


def test_what_is_not_recorded_has_no_value_and_what_is_absent_is_not_listed(loaded_run) -> None:
    hardware = loaded_run.manifest.hardware.model_copy(update={"memory_bytes": None})
    manifest = loaded_run.manifest.model_copy(update={"hardware": hardware, "output_adapter": None, "ended_at": None})
    facts = {row.key: row.value for row in list_surroundings(manifest, None)}

    assert facts["memory"] is None
    assert facts["ended"] is None
    assert (facts["output_adapter"], facts["output_adapter_sha256"]) == ("none", None)
    assert "test" not in facts
    assert list_surroundings(None, None) == ()


def test_hostile_names_are_cut_and_printable(loaded_run) -> None:
    strange = "\N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 5000
    hardware = loaded_run.manifest.hardware.model_copy(update={"platform": strange})
    manifest = loaded_run.manifest.model_copy(update={"hardware": hardware, "git_commit": strange})
    plan = loaded_run.plan
    many = tuple(part.model_copy(update={"tasks": tuple(f"task {n}" for n in range(50))}) for part in plan.parts)
    facts = list_surroundings(manifest, plan.model_copy(update={"parts": many}))

    assert max(len(row.value or "") for row in facts) < 220
    assert not any("\N{RIGHT-TO-LEFT OVERRIDE}" in (row.value or "") for row in facts)
    assert "and 44 more" in next(row.value for row in facts if row.key == "part_greedy")
