from __future__ import annotations

from pathlib import Path

import pytest
from evidence_builder import drop_line, edit_json, read_lines

from molforge_eval import layout
from molforge_eval.validate import validate


def end_early(root: Path, status: str, rows: int) -> set[str]:
    """Leave the manifest at its last step, with a status, beside the first rows of the trainer log; give the codes."""
    edit_json(root, layout.MANIFEST, lambda manifest: manifest.update(status=status))
    while len(read_lines(root, layout.TRAINER_LOG)) > rows:
        drop_line(root, rows + 1, layout.TRAINER_LOG)
    return {item.code for item in validate(root).findings}


@pytest.mark.parametrize(
    ("status", "behind", "differs"), [("running", 1, False), ("running", 2, True), ("failed", 1, True)]
)
def test_only_a_killed_run_may_have_counted_a_step_whose_row_is_not_written(
    run_copy: Path, status: str, behind: int, differs: bool
) -> None:
    steps = sum(row["type"] == "train" for row in read_lines(run_copy, layout.TRAINER_LOG))

    assert ("STEPS_DIFFER" in end_early(run_copy, status, steps - behind)) is differs
