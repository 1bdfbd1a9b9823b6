from __future__ import annotations

import pytest

from molforge_env.errors import UsageError
from molforge_env.models import SLOTS
from molforge_env.molecules import (
    DEFAULT_FRAGMENTS,
    FRAGMENT_NAMES,
    MOLECULES,
    molecule_from_code,
    substitute,
    surrogate_smiles,
)


def test_there_are_256_molecules_with_as_many_signatures() -> None:
    assert len(MOLECULES) == 256
    assert len({molecule.signature for molecule in MOLECULES.values()}) == 256


def test_a_code_names_the_fragments_in_slot_order() -> None:
    molecule = molecule_from_code("0103")

    assert molecule.fragments == ("acrylamide", "pyridine", "morpholine", "cyano")
    assert molecule.signature == "warhead=acrylamide | hinge=pyridine | solvent_tail=morpholine | back_pocket=cyano"


@pytest.mark.parametrize("code", ["", "010", "01034", "0104", "x103", "\uff10103"])
def test_a_code_that_names_no_molecule_is_refused_with_its_value(code: str) -> None:
    with pytest.raises(UsageError, match="four digits"):
        molecule_from_code(code)


def test_a_substitution_changes_one_slot_and_finds_back() -> None:
    start = molecule_from_code("0103")
    for slot in SLOTS:
        for fragment in FRAGMENT_NAMES[slot]:
            changed = substitute(start, slot, fragment)

            assert changed.fragment_in(slot) == fragment
            assert substitute(changed, slot, start.fragment_in(slot)) is start


def test_molecules_are_equal_by_their_code() -> None:
    assert molecule_from_code("0000") == molecule_from_code("0000")
    assert molecule_from_code("0000") != molecule_from_code("0001")


def test_every_slot_has_a_default_fragment_from_its_library() -> None:
    assert all(DEFAULT_FRAGMENTS[slot] in FRAGMENT_NAMES[slot] for slot in SLOTS)


def test_the_surrogate_carries_the_four_pieces_on_one_ring() -> None:
    assert surrogate_smiles(molecule_from_code("2003")) == "c%10(C#N)c(c1[nH]c2ccccc2n1)c(N1CCOCC1)c(C#N)cc%10"
