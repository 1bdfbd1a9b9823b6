"""Faults that were seen in published run folders, on the smallest run that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evidence_builder import edit_json, edit_line, read_lines, reseal, write, write_lines

from molforge_eval import layout
from molforge_eval.findings import Finding
from molforge_eval.validate import validate

LOG = layout.TRAINER_LOG


def found(run: Path, code: str) -> list[Finding]:
    reseal(run)
    return [item for item in validate(run).findings if item.code == code]


def codes(run: Path) -> set[str]:
    reseal(run)
    return {item.code for item in validate(run).findings}


def train_rows(run: Path, **changes: Any) -> None:
    *rows, last = read_lines(run, LOG)
    end = {**last, "train_loss": changes.get("loss", last["train_loss"])}
    write_lines(run, [*({**row, **changes} for row in rows), end], LOG)


def test_c001_a_gradient_that_is_nan_is_named_by_line_and_key(run_copy: Path) -> None:
    edit_line(run_copy, 3, LOG, grad_norm=None, non_finite={"grad_norm": "NaN"})
    edit_json(run_copy, layout.MANIFEST, lambda value: value.update(non_finite_steps=1))
    (item,) = found(run_copy, "TRAINING_NOT_FINITE")

    assert (item.where.file, item.where.line, item.where.pointer) == (LOG, 3, "/grad_norm")


def test_c002_a_reward_that_is_partly_absent_is_a_warning(run_copy: Path) -> None:
    edit_line(run_copy, 2, LOG, **{"rewards/a/mean": None, "non_finite": {"rewards/a/mean": "NaN"}})
    edit_json(run_copy, layout.MANIFEST, lambda value: value.update(non_finite_steps=1))
    (item,) = found(run_copy, "METRIC_NOT_FINITE")

    assert item.severity == "warning"


def test_c004_no_kl_is_fine_when_beta_is_0(run_copy: Path) -> None:
    write_lines(run_copy, [{k: v for k, v in row.items() if k != "kl"} for row in read_lines(run_copy, LOG)], LOG)
    assert codes(run_copy) == {"KL_MISSING"}
    edit_json(run_copy, layout.MANIFEST, lambda value: value["configuration"].update(beta=0.0))

    assert codes(run_copy) == set()


def test_c005_a_loss_of_0_with_a_gradient_is_clean(run_copy: Path) -> None:
    train_rows(run_copy, loss=0.0, grad_norm=0.1)
    assert codes(run_copy) == set()
    train_rows(run_copy, loss=0.0, grad_norm=0.0, reward_std=0.0)

    # The episodes of the rows had a spread.
    assert codes(run_copy) == {"SIGNAL_ABSENT", "TRAINER_MEAN_DIFFERS"}


def test_c007_two_types_may_share_a_step_and_one_type_may_not(run_copy: Path) -> None:
    rows = read_lines(run_copy, LOG)
    evaluated = {**rows[1], "type": "eval", "eval_loss": 0.5}
    write_lines(run_copy, [*rows[:2], evaluated, *rows[2:]], LOG)
    assert codes(run_copy) == set()
    write_lines(run_copy, [*rows[:2], evaluated, evaluated, *rows[2:]], LOG)

    assert codes(run_copy) == {"STEP_REPEATED"}


def test_c008_the_steps_that_were_done_twice_are_named(run_copy: Path) -> None:
    rows = read_lines(run_copy, LOG)
    again = [{**row, "time": rows[-1]["time"]} for row in rows[1:-1]]
    write_lines(run_copy, [*rows[:-1], *again, rows[-1]], LOG)
    (item,) = found(run_copy, "STEPS_OVERLAP")

    assert (item.where.line, item.severity) == (5, "error")
    assert "steps 2 to 4 overlap" in item.what


def test_c041_a_run_that_was_cut_says_how_many_rows_are_good(run_copy: Path) -> None:
    data = (run_copy / layout.ROLLOUTS).read_bytes()
    count = len(data.splitlines())
    write(run_copy, layout.ROLLOUTS, data[:-300])
    (item,) = [item for item in validate(run_copy).findings if item.code == "LINE_CUT"]

    assert item.where.line == count
    assert f"{count - 1} good rows stand before it" in item.what


def test_c045_a_moment_that_is_none_is_an_error(run_copy: Path) -> None:
    edit_json(run_copy, layout.MANIFEST, lambda value: value.update(started_at="yesterday"))
    items = [item for item in validate(run_copy).findings if item.code == "SCHEMA_UNMET"]

    assert [(item.what, item.where.pointer) for item in items] == [('value "yesterday" is no date-time', "/started_at")]
    assert items[0].where.line is not None


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"1e400"])
def test_c046_a_number_that_is_not_finite_is_found_before_the_schema_sees_it(run_copy: Path, token: bytes) -> None:
    data = (run_copy / layout.MANIFEST).read_bytes()
    write(run_copy, layout.MANIFEST, data.replace(b'"learning_rate": 0.001', b'"learning_rate": ' + token))
    items = [item for item in validate(run_copy).findings if item.code == "NUMBER_NOT_FINITE"]

    assert [item.where.pointer for item in items] == ["/configuration/learning_rate"]


def test_c107_a_headline_that_is_a_training_reward_is_an_error(run_copy: Path) -> None:
    edit_json(run_copy, layout.SUMMARY, lambda value: value["eval_after"].update(sampled_mean_final_score=0.89))
    items = [item for item in validate(run_copy).findings if item.code == "HEADLINE_DIFFERS"]

    assert [item.where.pointer for item in items] == ["/eval_after/sampled_mean_final_score"]


def test_c116_every_key_that_differs_is_listed(run_copy: Path) -> None:
    def loosen(value: Any) -> None:
        value["plan"]["turn_limit"] = 2
        value["plan"]["parts"][1]["decoding"]["temperature"] = 0.7

    edit_json(run_copy, layout.AFTER, loosen)
    items = found(run_copy, "BEFORE_AFTER_UNLIKE")

    assert [item.where.pointer for item in items] == [
        "plan.parts.sampled.decoding.temperature",
        "plan.turn_limit",
    ]


def test_c117_a_mean_of_no_counted_episode_is_none_and_the_evaluation_failed(run_copy: Path) -> None:
    def break_all(value: Any) -> None:
        for entry in value["episodes"]:
            entry.update(ended_by="env_error", error="gone", scores=None, total_reward=None)
            entry.update(final_score=None, submission_score=None, progress_score=None)

    edit_json(run_copy, layout.AFTER, break_all)
    assert len(found(run_copy, "EVALUATION_FAILED")) == 2
    edit_json(run_copy, layout.AFTER, lambda value: value["summaries"][0].update(mean_final_score=0.0))
    items = [item for item in validate(run_copy).findings if item.code == "SUMMARY_DIFFERS"]

    assert "/summaries/0/mean_final_score" in [item.where.pointer for item in items]


@pytest.mark.parametrize("data", [b'{"trained": null}', b'{"projected": true}', b"step 3", b"", b"null", b"[]"])
def test_c118_something_else_in_place_of_an_evaluation_is_named(run_copy: Path, data: bytes) -> None:
    write(run_copy, layout.AFTER, data)
    items = [item for item in validate(run_copy).findings if item.where.file == layout.AFTER]

    assert {item.code for item in items} & {"SCHEMA_UNMET", "JSON_UNREADABLE"}


def test_c119_a_mean_may_be_rounded_to_four_decimals_and_not_be_another(run_copy: Path) -> None:
    def rounded(value: Any) -> None:
        value["summaries"][1]["mean_final_score"] = round(value["summaries"][1]["mean_final_score"], 4)

    edit_json(run_copy, layout.AFTER, rounded)
    assert [item for item in validate(run_copy).findings if item.code == "SUMMARY_DIFFERS"] == []
    edit_json(run_copy, layout.AFTER, lambda value: value["summaries"][1].update(mean_final_score=0.003))

    assert [item.where.pointer for item in validate(run_copy).findings if item.code == "SUMMARY_DIFFERS"][:1] == [
        "/summaries/1/mean_final_score"
    ]


def test_c124_a_run_that_stopped_early_says_how_far_it_came(run_copy: Path) -> None:
    def stop(value: Any) -> None:
        value.update(status="interrupted", status_reason="SIGTERM")
        value["configuration"]["max_steps"] = 800

    edit_json(run_copy, layout.MANIFEST, stop)
    (item,) = found(run_copy, "RUN_INCOMPLETE")

    assert "4 of 800 steps" in item.what
    assert item.severity == "warning"
