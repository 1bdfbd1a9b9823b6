from __future__ import annotations

import pytest

from molforge_eval.report.assembly import assemble_evidence
from molforge_eval.report.metrics import SideMeans, put_metrics
from molforge_eval.report.number_book import NumberBook


def test_every_grader_score_is_listed_the_headline_first(check, plan, random_evaluation, heuristic_evaluation) -> None:
    evidence = assemble_evidence(check(random_evaluation, heuristic_evaluation, plan))
    rows = {row.key: row for row in evidence.metrics}
    graded = next(episode.scores for episode in heuristic_evaluation.episodes if episode.scores)

    assert set(rows) == set(graded)
    assert len(rows) == 14
    assert [row.key for row in evidence.metrics][:3] == ["final_score", "submission_score", "progress_score"]
    assert [row.key for row in evidence.metrics if row.is_primary] == ["final_score"]
    assert evidence.number("metric.final_score.before").value == pytest.approx(
        evidence.number("score.mean.before").value
    )


def test_errors_bar_every_difference_and_the_way_that_a_metric_went(evidence_of) -> None:
    evidence = evidence_of("withheld")

    assert {evidence.number(f"metric.{row.key}.difference").value for row in evidence.metrics} == {None}
    assert {row.direction for row in evidence.metrics} == {"unknown"}


def test_a_missing_side_leaves_every_metric_unknown(evidence_of) -> None:
    evidence = evidence_of("incomplete")

    assert {row.direction for row in evidence.metrics} == {"unknown"}
    assert evidence.number("metrics.unknown").value == evidence.number("metrics.listed").value == 14


@pytest.mark.parametrize(("after", "direction"), [(0.6, "up"), (0.4, "down"), (0.5, "equal"), (None, "unknown")])
def test_a_metric_goes_by_the_sign_of_its_difference(after, direction) -> None:
    sides = (SideMeans("before", "a.json", {"x y": 0.5}), SideMeans("after", "b.json", {"x y": after}))
    (row,) = put_metrics(NumberBook({}), sides, refused=None, barred=None)

    assert (row.key, row.label, row.direction) == ("metric-0", "x y", direction)


def test_sides_that_cannot_be_compared_have_no_direction() -> None:
    sides = (SideMeans("before", "a.json", {"x": 0.5}), SideMeans("after", "b.json", {"x": 0.9}))
    book = NumberBook({})
    (row,) = put_metrics(book, sides, refused="other tasks", barred=None)

    assert row.direction == "unknown"
    assert {number.reason for number in book.numbers if number.id == "metric.x.difference"} == {"other tasks"}
