"""An honest packet is never accused, of whatever run it speaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_builder import edit_json, edit_line

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.sealing import seal_run
from molforge_eval.validate import validate

OPTIONS = PacketOptions(html=False, pdf=False, replay=False, pack=False)


@pytest.mark.parametrize("flaw", ["chain", "score"])
def test_the_packet_of_a_flawed_run_is_what_its_records_give(flaw: str, run_copy: Path) -> None:
    if flaw == "chain":
        edit_line(run_copy, 3, chain="0" * 64)
    else:
        edit_json(run_copy, layout.AFTER, lambda value: value["episodes"][0].update(final_score=0.999))
    seal_run(run_copy)
    packet = build_packet(run_copy, options=OPTIONS)
    codes = {item.code for item in validate(run_copy).findings}

    assert packet.evidence.verdict.outcome == "withheld"
    assert not {code for code in codes if code.startswith("PACKET_")}


def test_a_packet_that_claims_in_spite_of_its_errors_is_found(run_copy: Path) -> None:
    edit_line(run_copy, 3, chain="0" * 64)
    seal_run(run_copy)
    build_packet(run_copy, options=OPTIONS)
    edit_json(run_copy, layout.EVIDENCE, lambda value: value["verdict"].update(outcome="improved"))

    assert "PACKET_NUMBER_DIFFERS" in {item.code for item in validate(run_copy).findings}
