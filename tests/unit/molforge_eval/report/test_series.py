from __future__ import annotations

import polars as pl

from molforge_eval.report.series import action_shares, curve_of, curve_over_steps, thinned, thirds


def row(step: int, line: int, **values) -> dict:
    return {"type": "train", "step": step, "line": line, "non_finite": "{}", **values}


def test_a_number_that_is_not_finite_is_a_gap_and_is_counted() -> None:
    rows = [row(1, 1, loss=0.5), row(2, 2, loss=None, non_finite='{"loss": "NaN"}'), row(3, 3, loss=0.1)]
    curve = curve_of(rows, "loss")

    assert [point.value for point in curve.points] == [0.5, None, 0.1]
    assert [point.average for point in curve.points] == [0.5, None, 0.3]
    assert curve.gaps == 1


def test_a_step_without_the_key_is_no_point_and_no_gap() -> None:
    rows = [row(1, 1, reward=0.5), row(2, 2), row(3, 3, reward=0.7)]
    curve = curve_of(rows, "reward")

    assert [point.step for point in curve.points] == [1, 3]
    assert curve.gaps == 0


def test_the_average_is_over_the_last_points_of_the_window() -> None:
    rows = [row(step, step, loss=float(step)) for step in range(1, 6)]

    assert [point.average for point in curve_of(rows, "loss", window=2).points] == [1.0, 1.5, 2.5, 3.5, 4.5]


def test_a_curve_does_not_join_a_step_to_an_earlier_one() -> None:
    rows = [row(step, step, loss=1.0) for step in (38, 39, 40, 30, 31)]

    assert [point.segment for point in curve_of(rows, "loss").points] == [0, 0, 0, 1, 1]


def test_a_resume_row_begins_a_segment_and_its_average() -> None:
    rows = [row(1, 1, loss=1.0), {**row(1, 2), "type": "resume"}, row(2, 3, loss=3.0)]

    assert [(point.segment, point.average) for point in curve_of(rows, "loss").points] == [(0, 1.0), (1, 3.0)]


def test_summary_and_evaluation_rows_are_never_points() -> None:
    rows = [row(1, 1, loss=1.0), {**row(1, 2, loss=9.0), "type": "eval"}, {**row(1, 3, loss=9.0), "type": "summary"}]

    assert [point.value for point in curve_of(rows, "loss").points] == [1.0]


def test_text_and_flags_under_a_key_are_no_numbers() -> None:
    assert curve_of([row(1, 1, loss="0.3"), row(2, 2, loss=True)], "loss").points == ()


def test_values_of_one_step_are_averaged_and_unknown_ones_left_out() -> None:
    curve = curve_over_steps([2, 0, 0, 2], [0.4, 0.1, 0.3, None], "score")

    assert [(point.step, point.value) for point in curve.points] == [(0, 0.2), (2, 0.4)]


def test_a_long_curve_is_thinned_and_keeps_its_gaps_and_its_last_point() -> None:
    rows = [row(step, step, loss=float(step)) for step in range(1, 101)]
    rows[36] |= {"loss": None, "non_finite": '{"loss": "Infinity"}'}
    thin = thinned(curve_of(rows, "loss"), most=20)

    assert thin.kept_every == 5
    assert len(thin.points) <= 23
    assert thin.points[-1].step == 100
    assert [point.step for point in thin.points if point.value is None] == [37]


def test_shares_add_up_to_one_and_an_empty_phase_has_none() -> None:
    shares = action_shares("before", ["edit", "edit", "submit", "none"])

    assert {share.action: share.calls for share in shares if share.calls} == {"edit": 2, "submit": 1, "none": 1}
    assert sum(share.share for share in shares) == 1.0
    assert action_shares("after", []) == ()


def test_the_first_and_the_last_third_of_the_steps_do_not_overlap() -> None:
    rollouts = pl.DataFrame({"trainer_step": [0, 0, 2, 4, 6, 8, 10]})
    early, late = thirds(rollouts)

    assert (early["trainer_step"].to_list(), late["trainer_step"].to_list()) == ([0, 0, 2], [8, 10])


def test_with_two_steps_there_is_no_late_phase() -> None:
    early, late = thirds(pl.DataFrame({"trainer_step": [0, 2]}))

    assert (len(early), len(late)) == (2, 0)
