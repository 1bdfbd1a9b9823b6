from __future__ import annotations

import math

import pytest
from old_cases import CASES

from molforge_eval.report.evidence import Evidence

INCOMPLETE = {
    "after missing", "before missing", "both missing", "after skipped", "after cut", "after null", "after projected",
    "after a log", "after empty", "after a list", "no episodes", "all errors", "no scores", "before alone",
    "rollouts alone",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_no_run_of_this_layout_is_ever_said_to_have_improved(old_evidence_of, case) -> None:
    evidence = old_evidence_of(case)
    standings = {claim.standing for claim in evidence.claims}

    assert evidence.verdict.outcome in {"inconclusive", "incomplete", "withheld"}
    assert (evidence.verdict.outcome == "incomplete") == (case in INCOMPLETE)
    assert "supported" not in standings
    assert evidence.level.level is None or evidence.level.level <= "E2"


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_finite_or_unknown_with_a_reason(old_evidence_of, case) -> None:
    numbers = old_evidence_of(case).numbers

    assert all(number.reason for number in numbers if number.value is None)
    assert all(math.isfinite(number.value) for number in numbers if number.value is not None)
    assert all(number.formula and number.sources and number.text for number in numbers)


@pytest.mark.parametrize("case", CASES)
def test_the_evidence_survives_its_own_json_and_stays_small(old_evidence_of, case) -> None:
    evidence = old_evidence_of(case)
    written = evidence.model_dump_json()

    assert Evidence.model_validate_json(written) == evidence
    assert len(written) < 1_000_000
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in written


@pytest.mark.parametrize("case", sorted(INCOMPLETE - {"before alone", "rollouts alone", "before missing"}))
def test_an_evaluation_that_is_not_there_has_no_mean_and_the_reason_names_it(old_evidence_of, case) -> None:
    evidence = old_evidence_of(case)
    after = evidence.number("unpaired.mean.after")

    assert after.value is None
    assert after.reason.startswith("the evaluation after training ")
    assert any("evaluation after training" in reason for reason in evidence.verdict.reasons)
    assert evidence.number("unpaired.mean.difference").value is None


def test_the_means_stand_with_their_n_and_an_unpaired_difference(old_evidence_of) -> None:
    evidence = old_evidence_of("sound")
    before, after = (evidence.number(f"unpaired.mean.{arm}").value for arm in ("before", "after"))

    assert evidence.number("unpaired.mean.difference").value == pytest.approx(after - before)
    assert evidence.number("unpaired.mean.before_episodes").value == 3
    assert evidence.verdict.has_interval is False
    assert "no seed" in evidence.verdict.reasons[-1]


def test_forty_five_broken_episodes_are_no_mean_of_nought(old_evidence_of) -> None:
    evidence = old_evidence_of("all errors")

    assert evidence.number("unpaired.mean.after").value is None
    assert evidence.number("unpaired.mean.after_episodes").value == 0
    assert evidence.number("unpaired.mean.after_listed").value == 45
    assert "the evaluation after training failed: of 45 listed episodes none counts" in evidence.verdict.reasons


def test_unequal_counts_refuse_the_difference_and_show_each_task(old_evidence_of) -> None:
    evidence = old_evidence_of("unequal counts")

    assert evidence.number("unpaired.mean.difference").value is None
    assert "equally often" in evidence.old.difference_reason
    assert evidence.number("unpaired.level_0_easy.after").value is not None
    counts = [evidence.number(f"unpaired.level_0_easy.{arm}_episodes").value for arm in ("before", "after")]
    assert counts == [3, 8]


def test_five_copies_are_one_distinct_score(old_evidence_of) -> None:
    evidence = old_evidence_of("copies")

    assert evidence.number("unpaired.mean.after_episodes").value == 5
    assert evidence.number("unpaired.mean.after_distinct").value == 1
    assert not evidence.old.is_once_each


def test_every_listed_metric_is_there_and_one_up_five_down_is_counted(old_evidence_of) -> None:
    evidence = old_evidence_of("six metrics")
    rows = {row.key: row for row in evidence.metrics}

    assert list(rows)[:3] == ["final_score", "submission_score", "progress_score"]
    assert set(rows) == {"final_score", "submission_score", "progress_score", "validity", "novelty", "synthesis"}
    assert [row.key for row in rows.values() if row.is_primary] == ["final_score"]
    assert (evidence.number("metrics.up").value, evidence.number("metrics.down").value) == (1, 5)
    assert {key: row.direction for key, row in rows.items()} == {
        "final_score": "up",
        **dict.fromkeys(("submission_score", "progress_score", "validity", "novelty", "synthesis"), "down"),
    }
    assert evidence.verdict.outcome != "improved"


def test_scenarios_of_ones_own_have_no_reference_policy_beside_them(old_evidence_of) -> None:
    evidence = old_evidence_of("other scenarios")

    assert not evidence.old.is_official
    assert evidence.number("score.mean.ceiling").value is None
    assert evidence.number("score.my_level_0_easy.heuristic").value is None
    assert evidence.verdict.before_against_floor is None


def test_a_finding_of_severity_error_withholds_every_difference_and_leaves_the_means(old_evidence_of) -> None:
    evidence = old_evidence_of("manifest cut")
    differences = [number for number in evidence.numbers if number.id.endswith(".difference")]

    assert evidence.verdict.outcome == "withheld"
    assert {number.value for number in differences} == {None}
    assert evidence.number("unpaired.mean.after").value is not None


def test_what_the_run_lacks_is_listed_file_by_file(old_evidence_of) -> None:
    states = {file.path: file.state for file in old_evidence_of("before alone").old.missing_files}

    assert states["eval_after_training.json"] == states["run_manifest.json"] == "absent"
    assert "eval_before_training.json" not in states
    assert {file.path: file.state for file in old_evidence_of("after null").old.missing_files} == {
        "eval_after_training.json": "hollow"
    }
    assert old_evidence_of("sound").old.missing_files == ()


def test_rows_of_a_trainer_state_are_as_good_as_a_log_and_their_file_is_named(old_evidence_of) -> None:
    evidence = old_evidence_of("trainer state only")

    assert evidence.number("curve.reward.points").value == old_evidence_of("sound").number("curve.reward.points").value
    assert evidence.number("curve.reward.first").sources[0].file.endswith("trainer_state.json")


def test_a_run_without_logs_has_no_curve_and_no_phase_of_training(old_evidence_of) -> None:
    for case in ("logs missing", "logs empty"):
        evidence = old_evidence_of(case)

        assert evidence.curves == ()
        assert [phase.phase for phase in evidence.phases] == ["before", "after"]
        assert evidence.number("log.last_step").value is None


def test_columns_without_a_chart_are_told_in_numbers(old_evidence_of) -> None:
    labels = [column.label for column in old_evidence_of("hostile").old.columns]

    assert "rewards/<b>/mean" in labels
    assert all(len(label) < 120 for label in labels)


def test_a_reward_that_rises_over_scores_that_do_not_is_flagged(old_run, tmp_path) -> None:
    import shutil

    from old_layout import change_lines

    from molforge_eval import layout
    from molforge_eval.report.build import PacketOptions, build_packet

    folder = tmp_path / "run"
    shutil.copytree(old_run, folder)
    rows = [{"step": step, "loss": 0.1, "reward": 0.1 * step + 0.01 * (step % 2)} for step in range(1, 13)]
    change_lines(folder, layout.TRAINER_LOG, lambda found: found.__setitem__(slice(None), rows))
    change_lines(folder, layout.ROLLOUTS, lambda lines: [line.update(done=True, final_score=0.2) for line in lines])
    evidence = build_packet(folder, options=PacketOptions(html=False, pdf=False, pack=False)).evidence

    assert evidence.sentinel.flagged
    assert {claim.key: claim.standing for claim in evidence.claims}["reward_tracks_score"] == "contradicted"
