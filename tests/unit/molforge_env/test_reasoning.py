from __future__ import annotations

import pytest

from molforge_env.reasoning import is_plausible, score_reasoning


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({}, -0.04),
        ({"rationale": "r"}, -0.03),
        ({"rationale": "  "}, -0.04),
        ({"rationale": "r", "evidence": ["easy"]}, 0.015),
        ({"rationale": "r", "evidence": ["easy"], "expected_effects": {"budget": "neutral"}}, 0.04),
        ({"rationale": "r", "evidence": ["  ", ""]}, -0.03),
        ({"rationale": "r", "evidence": ["unseen"]}, -0.02),
        ({"rationale": "r", "evidence": ["unseen", "x", "q"]}, -0.04),
        ({"rationale": "r", "evidence": ["EASY", "Chloro", "3600", "morpholine"]}, 0.02 + 0.045 - 0.02 - 0.02),
        ({"rationale": "r", "expected_effects": {"solubility": "up"}}, 0.02 - 0.03 - 0.015),
        ({"rationale": "r", "expected_effects": {"potency": "up", "budget": "down", "x": "up"}}, -0.04),
    ],
)
def test_reasons_are_scored_by_rationale_evidence_and_effects(opened, action, fields, score) -> None:
    assert score_reasoning(opened(), action("defer", **fields)) == pytest.approx(score)


def test_a_property_becomes_a_visible_term_with_its_first_reading(opened, action, play) -> None:
    said = {"rationale": "r", "evidence": ["novelty"]}
    before = opened()
    after, _ = play(before, "run_assay", tool_name="dock_target")
    measured, _ = play(before, "run_assay", tool_name="evaluate_properties")

    assert score_reasoning(after, action("defer", **said)) < score_reasoning(measured, action("defer", **said))


@pytest.mark.parametrize(
    ("kind", "fields", "metric", "direction", "plausible"),
    [
        ("defer", {}, "solubility", "unknown", False),
        ("defer", {}, "potency", "unknown", True),
        ("defer", {}, "potency", "not_applicable", True),
        ("defer", {}, "potency", "neutral", True),
        ("defer", {}, "potency", "up", False),
        ("defer", {}, "budget", "neutral", True),
        ("defer", {}, "budget", "down", False),
        ("run_assay", {}, "budget", "down", True),
        ("run_assay", {}, "toxicity", "up", False),
        ("restart", {}, "budget", "down", True),
        ("restart", {}, "toxicity", "down", True),
        ("restart", {}, "toxicity", "neutral", False),
        ("restart", {}, "synth", "up", True),
        ("restart", {}, "potency", "neutral", True),
        ("restart", {}, "novelty", "up", True),
        ("restart", {}, "novelty", "down", False),
        ("submit", {}, "synth", "neutral", True),
        ("submit", {}, "synth", "up", False),
        ("edit", {"slot": "hinge", "fragment": "azaindole"}, "potency", "up", True),
        ("edit", {"slot": "hinge", "fragment": "azaindole"}, "potency", "down", False),
        ("edit", {"slot": "hinge", "fragment": "azaindole"}, "potency", "neutral", True),
        ("edit", {"slot": "hinge", "fragment": "pyridine"}, "potency", "up", False),
        ("edit", {"slot": "hinge", "edit_type": "remove"}, "potency", "up", False),
        ("edit", {"slot": "hinge", "edit_type": "remove"}, "potency", "neutral", True),
        ("edit", {"slot": "hinge", "edit_type": "remove", "fragment": "azaindole"}, "potency", "up", True),
        ("edit", {"slot": "warhead", "fragment": "nitrile"}, "potency", "up", False),
    ],
)
def test_an_expectation_is_plausible_by_kind_of_action(action, kind, fields, metric, direction, plausible) -> None:
    assert is_plausible(action(kind, **fields), metric, direction) is plausible


def test_an_edit_without_a_slot_makes_no_direction_plausible(action) -> None:
    assert not is_plausible(action("edit", fragment="azaindole"), "potency", "up")
