from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from molforge_env.errors import UsageError
from molforge_env.models import SLOTS
from molforge_env.molecules import molecule_from_code
from molforge_eval.report.drawings import atoms_of, draw_molecule
from molforge_eval.report.theme import colour


def test_a_drawing_holds_shapes_only_and_takes_the_ink_of_its_page() -> None:
    body = draw_molecule("0121").body

    assert "style=" not in body
    assert "#000000" not in body
    assert "currentColor" in body
    assert not re.search(r"<(text|script|image|use|style|a)\b|href|class=|id=", body)


def test_a_drawing_is_well_formed() -> None:
    ET.fromstring(f"<svg>{draw_molecule('3312', 'hinge').body}</svg>")


@pytest.mark.parametrize("slot", SLOTS)
def test_the_changed_fragment_stands_on_a_tinted_ground(slot) -> None:
    plain, tinted = draw_molecule("1203"), draw_molecule("1203", slot)

    assert colour("changed") not in plain.body
    assert tinted.body.count(colour("changed")) >= len(atoms_of(molecule_from_code("1203"), slot))


def test_the_atoms_of_the_slots_do_not_overlap_and_leave_the_core() -> None:
    molecule = molecule_from_code("0000")
    found = [atom for slot in SLOTS for atom in atoms_of(molecule, slot)]

    assert len(found) == len(set(found))
    assert 0 not in found


def test_the_same_molecule_is_drawn_with_the_same_bytes() -> None:
    draw_molecule.cache_clear()
    first = draw_molecule("2130", "warhead")
    draw_molecule.cache_clear()

    assert draw_molecule("2130", "warhead") == first


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(UsageError, match="four digits"):
        draw_molecule("9999")
