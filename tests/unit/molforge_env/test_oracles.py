from __future__ import annotations

from dataclasses import replace

import pytest

from molforge_env.descriptors import describe
from molforge_env.molecules import MOLECULES, molecule_from_code
from molforge_env.oracles import _fit, constraint_margin, objective, passed_constraints, true_properties
from molforge_env.scenarios import SCENARIOS

EASY, MEDIUM, HARD = SCENARIOS.values()


@pytest.mark.parametrize(
    ("code", "trap", "potency", "toxicity", "synth", "novelty"),
    [
        ("0121", False, 0.8115, 0.5146, 0.7662, 0.2950),
        ("1100", False, 0.7530, 0.0433, 0.7350, 0.4350),
        ("0231", False, 0.8375, 0.8397, 0.7527, 0.1500),
        ("1003", False, 0.8180, 0.1485, 0.5952, 0.4980),
        ("0332", True, 0.8115, 0.8400, 0.6297, 0.4755),
        ("2003", False, 0.8115, 0.1460, 0.7036, 0.4300),
    ],
)
def test_start_and_restart_molecules_have_the_stated_properties(
    code: str, trap: bool, potency: float, toxicity: float, synth: float, novelty: float
) -> None:
    found = true_properties(molecule_from_code(code), trap=trap, shift=False)

    assert (found.potency, found.toxicity, found.synth, found.novelty) == (potency, toxicity, synth, novelty)


def test_the_trap_never_helps() -> None:
    for molecule in MOLECULES.values():
        free = true_properties(molecule, trap=False, shift=False)
        trapped = true_properties(molecule, trap=True, shift=False)

        assert trapped.potency <= free.potency
        assert trapped.toxicity >= free.toxicity
        assert (trapped.synth, trapped.novelty) == (free.synth, free.novelty)


def test_the_shift_moves_potency_alone_and_by_warhead_and_pocket() -> None:
    for molecule in MOLECULES.values():
        before = true_properties(molecule, trap=False, shift=False)
        after = true_properties(molecule, trap=False, shift=True)
        warhead, pocket = molecule.fragments[0], molecule.fragments[3]

        assert before[1:] == after[1:]
        if warhead == "acrylamide":
            assert after.potency < before.potency
        elif warhead == "nitrile" or pocket == "cyano":
            assert after.potency > before.potency
        else:
            assert after.potency == before.potency


def test_safety_and_toxicity_add_up_to_one_but_for_rounding() -> None:
    for molecule in MOLECULES.values():
        found = true_properties(molecule, trap=False, shift=False)

        assert found.safety + found.toxicity == pytest.approx(1, abs=1e-4)


def test_the_objective_weighs_safety_and_not_toxicity() -> None:
    good = true_properties(molecule_from_code("2003"), trap=False, shift=False)
    poisoned = good._replace(toxicity=good.toxicity + 0.1)

    assert objective(HARD, good) - objective(HARD, poisoned) == pytest.approx(0.032, abs=1e-4)


def test_a_limit_that_is_met_exactly_is_kept() -> None:
    found = true_properties(molecule_from_code("0000"), trap=False, shift=False)
    exact = found._replace(potency=EASY.potency_min, toxicity=EASY.toxicity_max, synth=EASY.synth_min)

    assert passed_constraints(EASY, exact) == (True, True, True)
    assert constraint_margin(EASY, exact) == 1.0


def test_the_margin_falls_with_each_limit_that_is_broken() -> None:
    found = true_properties(molecule_from_code("0000"), trap=False, shift=False)
    kept = found._replace(potency=EASY.potency_min, toxicity=EASY.toxicity_max, synth=EASY.synth_min)

    assert constraint_margin(EASY, kept._replace(potency=EASY.potency_min / 2)) == pytest.approx(2.5 / 3)
    assert constraint_margin(EASY, kept._replace(synth=0.0)) == pytest.approx(2 / 3)
    assert constraint_margin(EASY, kept._replace(toxicity=0.64)) == pytest.approx(2.5 / 3)
    assert constraint_margin(EASY, kept._replace(toxicity=1.0)) == pytest.approx(2 / 3)


def test_a_molecule_with_one_aromatic_ring_would_fit_less_well() -> None:
    """None of the 256 has fewer than two; the rule is there for the number that it states."""
    molecule = molecule_from_code("3332")
    described = replace(describe(molecule), logp=9.0, tpsa=300.0)  # far off, so that the fit is not saturated

    assert described.aromatic_rings == 3
    assert _fit(molecule, described) - _fit(molecule, replace(described, aromatic_rings=1)) == pytest.approx(0.08)
