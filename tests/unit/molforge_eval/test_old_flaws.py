"""What a run of the public script can have wrong is named with its place, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from old_flaws import BASE, OLD_FLAWS, OldFlaw, episodes, lines, prepare

from molforge_eval import layout
from molforge_eval.validate import validate


@pytest.mark.parametrize("flaw", OLD_FLAWS, ids=lambda flaw: flaw.title)
def test_a_flaw_of_an_old_run_gives_its_code_and_no_other(flaw: OldFlaw, old_copy: Path) -> None:
    prepare(old_copy)
    flaw.edit(old_copy)
    result = validate(old_copy)
    found = [item for item in result.findings if item.code == flaw.code]

    assert {item.code for item in result.findings} == {flaw.code, *flaw.also, *BASE} - flaw.lost
    assert result.run_format == 0
    places = {(item.where.file, item.where.pointer) for item in found}
    assert flaw.file is None or flaw.file in {file for file, _ in places}
    assert flaw.pointer is None or (flaw.file, flaw.pointer) in places
    assert flaw.line is None or flaw.line in {item.where.line for item in found}
    assert flaw.severity in (None, *{item.severity for item in found})


def test_what_a_strangers_script_may_fill_in_another_way_is_no_finding(old_copy: Path) -> None:
    prepare(old_copy)

    def fill(own: list[dict[str, Any]]) -> None:
        for number, entry in enumerate(own):
            calls = {key: entry[key] or "" for key in ("slot", "fragment", "tool_name")}
            entry.update(calls, acting_role="lead_chemist", step_index=entry["step_index"] - 1, reward=0.1 * number)
            entry.update(progress_score=0.3, submission_score=0.0 if not entry["done"] else entry["submission_score"])

    lines(fill)(old_copy)

    assert {item.code for item in validate(old_copy).findings} <= {*BASE, "SCORE_DIFFERS"}
    assert not validate(old_copy).has_errors()


def test_an_old_episode_with_a_score_is_counted_although_an_error_stands_in_its_trace(old_copy: Path) -> None:
    prepare(old_copy)
    episodes(lambda own: own[0]["trace"].insert(1, {"step": 1, "error": "tool timed out"}), layout.AFTER)(old_copy)

    assert [(item.severity, item.code) for item in validate(old_copy).findings if item.severity != "info"] == [
        ("warning", "STEP_MISCOUNTED")
    ]
