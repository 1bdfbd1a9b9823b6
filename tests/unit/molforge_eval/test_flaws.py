"""Every finding code is given by the smallest run that has its flaw, and by no sound one."""

from __future__ import annotations

from pathlib import Path

import pytest
from flaws import FLAWS, REPLAY_FLAWS, Flaw, apply

from molforge_eval.catalogue import codes
from molforge_eval.replay import verify
from molforge_eval.validate import validate

# Tested where they are made: neither can be put into a folder by an edit.
MADE_ELSEWHERE = {"CHECK_STOPPED", "FILE_UNREADABLE"}


@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.title)
def test_a_flaw_gives_its_code_and_no_other(flaw: Flaw, run_copy: Path) -> None:
    result = validate(apply(flaw, run_copy), limits=flaw.limits)

    assert {finding.code for finding in result.findings} == {flaw.code, *flaw.also}


@pytest.mark.parametrize("flaw", REPLAY_FLAWS, ids=lambda flaw: flaw.title)
def test_a_flaw_that_only_replay_sees_gives_its_code_and_no_other(flaw: Flaw, run_copy: Path) -> None:
    result = verify(apply(flaw, run_copy), workers=1, limits=flaw.limits)

    assert {finding.code for finding in result.findings} == {flaw.code, *flaw.also}


def test_every_code_of_the_table_has_a_flaw() -> None:
    shown = {flaw.code for flaw in (*FLAWS, *REPLAY_FLAWS)}

    assert shown | MADE_ELSEWHERE == set(codes())
    assert not shown & MADE_ELSEWHERE


def test_a_sound_run_gives_no_finding_and_reaches_the_level_of_replay(built_run: Path) -> None:
    result = verify(built_run, workers=1)

    assert result.findings == ()
    assert result.level == "E3"
    assert result.counts["episodes_replayed"] == 24 + 18
    assert result.counts["episodes_differing"] == 0
