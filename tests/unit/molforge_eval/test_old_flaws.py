"""What a run of the public script can have wrong is named with its place, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from old_flaws import BASE, OLD_FLAWS, OldFlaw, prepare

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
