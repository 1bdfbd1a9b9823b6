"""The trainer's rows are found wherever a stranger's tools left them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evidence_builder import read_lines, write
from old_layout import put_json

from molforge_eval import layout
from molforge_eval.run_directory import RunDirectory, load

ROWS = [
    {"loss": 0.2, "grad_norm": 0.5, "epoch": 0.1, "step": 1},
    {"loss": 0.1, "grad_norm": float("nan"), "epoch": 0.2, "step": 2},
    {"eval_loss": 0.3, "epoch": 0.2, "step": 2},
    {"train_runtime": 9.5, "train_loss": 0.15, "total_flos": 0.0, "epoch": 0.2, "step": 2},
]


def only(root: Path, path: str, data: bytes) -> RunDirectory:
    """Leave no trainer log but one."""
    (root / layout.TRAINER_LOG).unlink()
    for state in root.rglob(layout.TRAINER_STATE):
        state.unlink()
    write(root, path, data)
    return load(root)


@pytest.mark.parametrize(
    "path",
    [layout.TRAINER_LOG, "logs/trainer_log_history.json", "log_history.json"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_bare_list_of_rows_stands_for_the_log(old_copy: Path, path: str, indent: int | None) -> None:
    run = only(old_copy, path, json.dumps(ROWS, indent=indent).encode())

    assert run.old is not None
    assert run.old.trainer_source == path
    assert run.trainer_log["type"].to_list() == ["train", "train", "eval", "summary"]
    assert run.trainer_log["non_finite"].to_list() == ["{}", '{"grad_norm":"NaN"}', "{}", "{}"]
    assert [item.code for item in run.findings] == ["FORMAT_OLD"]


@pytest.mark.parametrize(
    "path",
    [layout.TRAINER_STATE, "trainer/trainer_state.json", "checkpoint-2/trainer_state.json", layout.TRAINER_LOG],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_the_state_of_the_host_trainer_stands_for_the_log(old_copy: Path, path: str, indent: int | None) -> None:
    state = {"global_step": 2, "max_steps": 4, "log_history": ROWS, "best_metric": None}
    run = only(old_copy, path, json.dumps(state, indent=indent).encode())

    assert run.old is not None
    assert run.old.trainer_state is not None
    assert (run.old.trainer_source, run.old.trainer_state.max_steps) == (path, 4)
    assert run.trainer_log["loss"].to_list() == [0.2, 0.1, None, None]


def test_the_last_checkpoint_has_the_newest_state(old_copy: Path) -> None:
    run = only(old_copy, "trainer/checkpoint-9/trainer_state.json", json.dumps({"log_history": ROWS[:1]}).encode())
    put_json(old_copy, "trainer/checkpoint-10/trainer_state.json", {"log_history": ROWS[:2]})
    later = load(old_copy)

    assert (len(run.trainer_log), len(later.trainer_log)) == (1, 2)


def test_the_log_itself_comes_before_any_state(old_run: Path) -> None:
    run = load(old_run)

    assert run.old is not None
    assert run.old.trainer_source == layout.TRAINER_LOG
    assert len(run.trainer_log) == len(read_lines(old_run, layout.TRAINER_LOG))


def test_a_row_of_a_state_that_does_not_fit_is_named_by_its_pointer(old_copy: Path) -> None:
    rows = [ROWS[0], {"loss": "low", "step": 2}, {"loss": 0.1}]
    run = only(old_copy, layout.TRAINER_STATE, json.dumps({"log_history": rows}).encode())

    assert len(run.trainer_log) == 1
    assert [(item.code, item.where.pointer) for item in run.findings if item.code != "FORMAT_OLD"] == [
        ("SCHEMA_UNMET", "/log_history/1/loss"),
        ("SCHEMA_UNMET", "/log_history/2"),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"log_history": 3}', "SCHEMA_UNMET"),
        (b'{"global_step": "x", "log_history": []}', "SCHEMA_UNMET"),
        (b"[1, 2", "JSON_UNREADABLE"),
        (b"[1]", "SCHEMA_UNMET"),
        (b'"rows"', "SCHEMA_UNMET"),
    ],
)
def test_a_state_that_is_none_is_named_and_stops_nothing(old_copy: Path, text: bytes, code: str) -> None:
    run = only(old_copy, layout.TRAINER_STATE, text)

    assert len(run.trainer_log) == 0
    assert [item.code for item in run.findings if item.code != "FORMAT_OLD"] == [code]


def test_what_is_nested_or_huge_in_a_row_is_kept_as_text_or_named(old_copy: Path) -> None:
    lines = b'{"step": 1, "loss": 0.5, "texts": ["a"], "line": 7, "big": 1e999}\n{"step": 1.0, "flag": true}\n'
    run = only(old_copy, layout.TRAINER_LOG, lines)

    assert run.trainer_log.select("line", "step", "texts", "line_", "big", "flag").rows() == [
        (1, 1, '["a"]', 7.0, None, None),
        (2, 1, None, None, None, 1.0),
    ]
    assert run.trainer_log["non_finite"][0] == '{"big":"Infinity"}'
