"""The spreadsheet of the rollout lines."""

from __future__ import annotations

import csv
import io

import pytest
from evidence_builder import Clock, train_episode

from molforge_eval.metrics_table import COLUMNS, cell_of, table_bytes
from molforge_eval.shape import shape_of

PUBLIC_COLUMNS = {
    "timestamp", "scenario_id", "difficulty", "step_index", "action_type", "acting_role", "slot", "fragment",
    "tool_name", "reward", "transition_reward", "done", "governance_status", "final_score", "submission_score",
    "progress_score", "summary",
}  # fmt: skip


def test_the_table_has_the_columns_of_the_public_script_and_more() -> None:
    assert set(COLUMNS) > PUBLIC_COLUMNS


def test_every_row_fits_its_schema_and_has_all_columns() -> None:
    lines = train_episode(0, 0, 1, Clock())
    rows = list(csv.DictReader(io.StringIO(table_bytes(lines).decode())))
    shape = shape_of("metrics_row")

    assert len(rows) == len(lines)
    assert [row for row in rows if not shape.fits(row)] == []


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@cmd", "\tx", "\rx"])
def test_a_cell_that_a_spreadsheet_would_run_is_made_a_text(text: str) -> None:
    assert cell_of(text) == f"'{text}"


def test_a_value_has_one_spelling() -> None:
    assert [cell_of(value) for value in (None, True, False, 0, -0.06, 1e-7, "", "a,b")] == [
        "", "true", "false", "0", "-0.06", "1e-7", "", "a,b",
    ]  # fmt: skip
