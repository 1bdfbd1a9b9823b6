"""A run directory is read as far as it can be, and says what could not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from evidence_builder import RUN_ID, edit_json, edit_line, read_lines, write, write_lines

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.limits import Limits
from molforge_eval.log_tables import TRAINER_HEAD
from molforge_eval.rollout_table import ROLLOUT_SCHEMA
from molforge_eval.run_directory import load


def test_a_sound_run_is_read_whole(built_run: Path) -> None:
    run = load(built_run)
    records = (run.manifest, run.plan, run.before, run.after, run.summary, run.checksums, run.plot_table)

    assert all(record is not None and record.run_id == RUN_ID for record in records)
    assert run.findings == ()
    assert dict(run.rollouts.schema) == {name: _kind(kind) for name, kind in ROLLOUT_SCHEMA.items()}
    assert run.trainer_log.columns[: len(TRAINER_HEAD)] == list(TRAINER_HEAD)
    assert run.rollouts["chain_holds"].all()


def _kind(kind: object) -> object:
    return kind() if isinstance(kind, type) else kind


def test_a_table_row_is_the_line_that_it_names(built_run: Path) -> None:
    run = load(built_run)
    lines = read_lines(built_run)

    assert run.rollouts["line"].to_list() == list(range(1, len(lines) + 1))
    assert run.rollouts["transition_reward"].to_list() == [line["transition_reward"] for line in lines]
    assert run.rollouts["vetoes"].to_list() == [line["vetoes"] for line in lines]


def test_a_key_first_seen_in_the_last_row_has_a_column_in_every_row(run_copy: Path) -> None:
    rows = [row for row in read_lines(run_copy, layout.TRAINER_LOG) for _ in range(60)]
    rows[-1] = {**rows[-1], "late": 7}
    write_lines(run_copy, rows, layout.TRAINER_LOG)
    log = load(run_copy).trainer_log

    assert log["late"].to_list() == [None] * 299 + [7.0]


def test_a_number_that_widens_from_whole_to_broken_keeps_both(run_copy: Path) -> None:
    edit_line(run_copy, 1, layout.TRAINER_LOG, tokens=1)
    edit_line(run_copy, 2, layout.TRAINER_LOG, tokens=1.5)

    assert load(run_copy).trainer_log["tokens"].to_list()[:2] == [1.0, 1.5]


def test_a_trainer_key_named_like_the_line_column_keeps_its_value(run_copy: Path) -> None:
    edit_line(run_copy, 2, layout.TRAINER_LOG, line=99)
    log = load(run_copy).trainer_log

    assert log["line"].to_list() == [1, 2, 3, 4, 5]
    assert log["line_"].to_list()[1] == 99.0


def test_one_bad_record_hides_neither_the_others_nor_their_findings(run_copy: Path) -> None:
    write(run_copy, layout.BEFORE, b"Step 12 finished, loss 0.3")
    edit_json(run_copy, layout.SUMMARY, lambda value: value.pop("num_episodes"))
    edit_line(run_copy, 3, reward="high")
    run = load(run_copy)

    assert (run.before, run.summary) == (None, None)
    assert run.after is not None
    assert len(run.rollouts) == len(read_lines(run_copy)) - 1
    assert {(finding.code, finding.where.file, finding.where.line) for finding in run.findings} == {
        ("JSON_UNREADABLE", layout.BEFORE, None),
        ("SCHEMA_UNMET", layout.SUMMARY, None),
        ("SCHEMA_UNMET", layout.ROLLOUTS, 3),
    }


def test_a_message_names_the_key_and_the_value_and_not_the_schema(run_copy: Path) -> None:
    edit_line(run_copy, 3, done="yes", **{"a key too many": 1})
    lines = read_lines(run_copy)
    del lines[4]["reward"]
    write_lines(run_copy, lines)

    assert [(finding.where.line, finding.what) for finding in load(run_copy).findings] == [
        (3, 'key "a key too many" is not known here'),
        (3, 'value "yes" is no boolean'),
        (5, 'key "reward" is missing'),
    ]


def test_absent_logs_are_empty_tables_with_all_their_columns(run_copy: Path) -> None:
    (run_copy / layout.ROLLOUTS).unlink()
    (run_copy / layout.TRAINER_LOG).unlink()
    run = load(run_copy)

    assert (len(run.rollouts), run.rollouts.columns) == (0, list(ROLLOUT_SCHEMA))
    assert (len(run.trainer_log), run.trainer_log.columns) == (0, list(TRAINER_HEAD))
    assert isinstance(run.rollouts.schema["vetoes"], pl.List)


def test_a_run_in_the_public_layout_is_read_and_never_refused_for_its_age(tmp_path: Path) -> None:
    write(tmp_path, layout.MANIFEST, b'{"run_name": "old", "script": "train.py"}')
    write(tmp_path, layout.ROLLOUTS, b'{"scenario_id": "level_0_easy", "action_type": "defer", "reward": 0.1}\n')
    run = load(tmp_path)

    assert run.format_version == 0
    assert [(finding.code, finding.severity) for finding in run.findings] == [("FORMAT_OLD", "info")]


def test_a_run_that_says_that_it_is_of_version_0_is(tmp_path: Path) -> None:
    write(tmp_path, layout.MANIFEST, b'{"run_name": "old", "format_version": 0}')

    assert load(tmp_path).format_version == 0


@pytest.mark.parametrize("left", [layout.PLAN, layout.AFTER, layout.ROLLOUTS, layout.SUMMARY])
def test_a_run_does_not_become_an_old_one_by_losing_its_manifest(run_copy: Path, left: str) -> None:
    for path in sorted(entry for entry in run_copy.rglob("*") if entry.is_file()):
        if path != run_copy / left:
            path.unlink()

    assert load(run_copy).format_version == 1


@pytest.mark.parametrize("files", [{}, {"notes.txt": b"hello"}])
def test_a_folder_that_holds_nothing_of_a_run_is_an_error(tmp_path: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        write(tmp_path, path, data)

    with pytest.raises(UnreadableError, match="none of the files of a run"):
        load(tmp_path)


def test_a_file_of_very_many_small_values_is_refused_before_it_is_read(run_copy: Path) -> None:
    run = load(run_copy, Limits(json_values=20))
    (run_copy / layout.SUMMARY).write_bytes(b'{"text": "' + b"," * 50 + b'", "more": [1, 2]}')
    texts = load(run_copy, Limits(json_values=20))

    assert run.summary is None
    told = {item.where.file: item.what for item in run.findings if item.code == "FILE_TOO_LARGE"}
    assert told[layout.SUMMARY].endswith("values, the limit is 20")
    assert layout.SUMMARY not in {item.where.file for item in texts.findings if item.code == "FILE_TOO_LARGE"}


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_moment_that_utc_cannot_spell_is_a_misfit_and_stops_no_check(run_copy: Path, moment: str) -> None:
    edit_json(run_copy, layout.MANIFEST, lambda value: value.update(started_at=moment))
    run = load(run_copy)

    assert run.manifest is None
    assert [(item.code, item.where.pointer) for item in run.findings] == [("SCHEMA_UNMET", "/started_at")]
