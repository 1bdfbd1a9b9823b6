"""Which plans are the standard one, and what a run over holdout variants says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_builder import build_run

from molforge_env.suites import SuiteName
from molforge_eval.checks.plans import check
from molforge_eval.replay import verify
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.evidence import Evidence
from molforge_eval.run_directory import load


@pytest.fixture(scope="module")
def holdout_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("runs") / "run", suite="holdout", plots=False)


def test_a_run_over_holdout_variants_is_sound_and_every_episode_is_played_again(holdout_run: Path) -> None:
    result = verify(holdout_run)

    assert [finding.code for finding in result.findings if finding.code != "ARTIFACT_MISSING"] == []
    assert (result.level, result.counts["episodes_differing"]) == ("E3", 0)


@pytest.mark.parametrize(("suite", "unusual"), [("official", 0), ("holdout", 0), ("randomized", 2)])
def test_a_plan_of_variants_that_training_draws_is_unusual(tmp_path: Path, suite: SuiteName, unusual: int) -> None:
    run = load(build_run(tmp_path / "run", suite=suite, steps=1, plots=False))

    assert [finding.code for finding in check(run)] == ["PLAN_UNUSUAL"] * unusual


def test_the_packet_names_the_holdout_variants_and_their_own_ceiling(holdout_run: Path) -> None:
    build_packet(holdout_run, options=PacketOptions(pdf=False, pack=False, replay=False))
    evidence = Evidence.model_validate_json((holdout_run / "evidence.json").read_bytes())
    page = (holdout_run / "judge_packet.html").read_text("utf-8")
    claims = {claim.key: claim.standing for claim in evidence.claims}

    assert evidence.verdict.suite == "holdout"
    assert evidence.by_id["score.mean.ceiling"].value == pytest.approx(0.8897, abs=1e-4)
    assert claims["unseen_tasks"] == claims["score_rose"]
    assert "holdout variants were evaluated, which training never plays" in page
    assert "Holdout, greedy: one deterministic episode a task" in page
    assert "no holdout evaluation" not in page
