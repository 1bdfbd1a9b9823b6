"""An honest packet is never accused, of whatever run it speaks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from evidence_builder import edit_json, edit_line

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.recount import recount
from molforge_eval.run_directory import load
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


def _more(number: dict[str, object]) -> None:
    number["value"] = float(number["value"]) + 1.0


LIES = {
    "a visit": lambda e: e["exploration"]["cells"][0].update(visits=999),
    "a ceiling": lambda e: e["exploration"]["ceilings"][0].update(code="3333"),
    "a seed": lambda e: e["seed_table"]["lines"][0]["mean"].__setitem__(1, 0.987),
    "a paid episode": lambda e: e["paid"][0].__setitem__(1, 0.987),
    "an action": lambda e: e["shift"].update(grew="defer"),
    "a machine": lambda e: e["surroundings"][0].update(value="another model"),
    "a trend": lambda e: e["curves"][0].update(trend="fell" if e["curves"][0]["trend"] != "fell" else "rose"),
    "a metric": lambda e: e["metrics"][0].update(direction="unknown"),
    "another median": lambda e: e["transcripts"][-1].update(also=["best"]),
    "a number of a seed": lambda e: _more(next(n for n in e["numbers"] if n["id"] == "seed.0.mean.before")),
    "a number of the map": lambda e: _more(next(n for n in e["numbers"] if n["id"] == "explore.trained")),
    "a name of a number": lambda e: e["numbers"][0].update(name="another"),
    "a formula": lambda e: next(n for n in e["numbers"] if n["id"] == "score.mean.p").update(formula="a better test"),
    "the numbers that one is made from": lambda e: next(n for n in e["numbers"] if n["needs"]).update(needs=[]),
    "a place of rows": lambda e: e["numbers"][5]["sources"].append({"file": "x", "part": "/", "sha256": None}),
    "a reason": lambda e: next(n for n in e["numbers"] if n["reason"]).update(reason="nobody knows"),
    "a label of a task": lambda e: e["tasks"][0].update(label="hardest"),
    "a label of a phase": lambda e: e["phases"][0].update(label="Much later"),
    "a suite": lambda e: e["verdict"].update(suite="randomized"),
    "a caveat of the verdict": lambda e: e["verdict"].update(
        trained_on_official=not e["verdict"]["trained_on_official"]
    ),
    "a number of the reviews": lambda e: _more(next(n for n in e["numbers"] if n["id"] == "conduct.before.objected")),
}


@pytest.fixture(scope="module")
def packed_run(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(shutil.copytree(built_run, tmp_path_factory.mktemp("packed") / "run"))
    build_packet(root, options=OPTIONS)
    return root


@pytest.mark.parametrize("lie", LIES)
def test_whatever_a_section_shows_is_held_to_the_records(lie: str, packed_run: Path) -> None:
    packet = json.loads((packed_run / layout.EVIDENCE).read_text())
    honest = Evidence.model_validate_json(json.dumps(packet))
    LIES[lie](packet)
    run = load(packed_run)

    assert list(recount(honest, run)) == []
    assert len(list(recount(Evidence.model_validate_json(json.dumps(packet)), run))) == 1
