"""Runs of the public script are read whole: records of their own, logs as the tables of this version."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from evidence_builder import read_json, read_lines, write
from old_layout import change_json, change_lines, put_json

from molforge_eval import layout
from molforge_eval.log_tables import TRAINER_HEAD
from molforge_eval.rollout_table import ROLLOUT_SCHEMA
from molforge_eval.run_directory import load


def test_records_of_an_old_run_are_read_into_models_of_their_own(old_run: Path) -> None:
    run = load(old_run)

    assert (run.format_version, run.manifest, run.before, run.summary) == (0, None, None, None)
    assert run.old is not None
    assert run.old.manifest is not None
    assert run.old.manifest.rl_max_steps == 4
    assert [(name, found.label) for name, found in run.old.evaluations()] == [
        ("before", "before_rl"),
        ("after", "after_rl"),
    ]
    assert run.old.after is not None
    assert run.old.after.episodes is not None
    first = run.old.after.episodes[0]
    assert (first.scenario_id, first.trace[-1].action_type) == ("level_0_easy", "submit")
    assert run.old.summary is not None
    assert run.old.summary.num_tool_calls == len(run.rollouts) == len(read_lines(old_run))
    assert {item.code for item in run.findings} == {"FORMAT_OLD"}


def test_a_run_of_this_version_has_no_old_records(built_run: Path) -> None:
    assert load(built_run).old is None


def test_old_logs_are_tables_of_this_version_with_nulls_where_they_have_no_such_field(
    old_run: Path, built_run: Path
) -> None:
    old, new = load(old_run), load(built_run)
    calls = new.rollouts.filter(pl.col("tool").is_not_null())

    assert dict(old.rollouts.schema) == dict(ROLLOUT_SCHEMA)
    for column in ("reward", "final_score", "tool", "slot", "step_index", "timestamp", "done", "summary"):
        assert old.rollouts[column].equals(calls[column]), column
    for column in ("episode_id", "seed", "trainer_step", "ended_by", "chain_holds", "status", "source"):
        assert old.rollouts[column].null_count() == len(old.rollouts), column
    assert old.trainer_log.columns[: len(TRAINER_HEAD)] == list(TRAINER_HEAD)
    for column in ("type", "step", "time", "loss", "reward", "non_finite"):
        assert old.trainer_log[column].equals(new.trainer_log[column]), column


def test_an_old_run_without_logs_and_summary_is_read(old_copy: Path) -> None:
    for path in (layout.ROLLOUTS, layout.TRAINER_LOG, layout.SUMMARY, f"trainer/checkpoint-4/{layout.TRAINER_STATE}"):
        (old_copy / path).unlink()
    run = load(old_copy)

    assert run.old is not None
    assert (len(run.rollouts), len(run.trainer_log), run.old.trainer_source, run.old.summary) == (0, 0, None, None)


def test_an_evaluation_that_was_skipped_keeps_its_reason(old_copy: Path) -> None:
    put_json(old_copy, layout.AFTER, {"label": "after_rl", "skipped": True, "reason": "RUN_AFTER_EVAL=false"})
    run = load(old_copy)

    assert run.old is not None
    assert run.old.after is not None
    assert (run.old.after.episodes, run.old.after.reason) == (None, "RUN_AFTER_EVAL=false")
    assert [name for name, _ in run.old.evaluations()] == ["before"]


def test_a_line_that_cannot_be_used_is_named_and_counted_and_costs_no_other(old_copy: Path) -> None:
    change_lines(old_copy, layout.ROLLOUTS, lambda lines: lines[2].update(reward="much"))
    lines = (old_copy / layout.ROLLOUTS).read_bytes().splitlines(keepends=True)
    write(old_copy, layout.ROLLOUTS, b"".join([*lines[:4], b"{broken\n", *lines[4:]]))
    run = load(old_copy)

    assert run.old is not None
    assert run.old.lines_left_out == 2
    assert len(run.rollouts) == len(lines) - 1
    assert {(item.code, item.where.line) for item in run.findings if item.code != "FORMAT_OLD"} == {
        ("SCHEMA_UNMET", 3),
        ("JSON_UNREADABLE", 5),
    }


def test_a_repeated_row_in_the_summary_does_not_name_a_gap_twice(old_copy: Path) -> None:
    def spoil(row: dict[str, float]) -> None:
        row["loss"] = float("nan")

    change_lines(old_copy, layout.TRAINER_LOG, lambda rows: spoil(rows[1]))
    change_json(old_copy, layout.SUMMARY, lambda value: spoil(value["latest_trainer_log"]))
    run = load(old_copy)

    assert [item.code for item in run.findings] == ["FORMAT_OLD"]
    assert run.trainer_log["non_finite"][1] == '{"loss":"NaN"}'
    assert run.trainer_log["loss"][1] is None


def test_keys_of_a_strangers_own_are_kept(old_copy: Path) -> None:
    change_json(old_copy, layout.AFTER, lambda value: value.update(temperature=0.7, std=0.1))
    change_lines(old_copy, layout.ROLLOUTS, lambda lines: lines[0].update(source="fallback", seed=7, status=3))
    run = load(old_copy)

    assert run.old is not None
    assert run.old.after is not None
    assert run.old.after.model_extra == {"temperature": 0.7, "std": 0.1}
    assert run.rollouts.select("source", "seed", "status").row(0) == ("fallback", 7, None)
    assert read_json(old_copy, layout.AFTER)["temperature"] == 0.7
