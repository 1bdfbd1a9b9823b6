"""The 256 molecules: four slots, four fragments each, named by a code of four digits.

A molecule is its code; equal codes are one molecule. Digits are the library order of the fragments, slots stand in
canonical order: `0103` is acrylamide, pyridine, morpholine, cyano.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from molforge_env.errors import UsageError
from molforge_env.models import SLOTS, Slot
from molforge_env.tables import read_table


@dataclass(frozen=True, slots=True)
class Fragment:
    """One building block and what it adds to the four surrogate properties."""

    name: str
    potency: float
    safety: float
    synth: float
    novelty: float
    smiles: str
    hint: str


@dataclass(frozen=True, slots=True)
class Molecule:
    """Four fragments; compared and hashed by the code alone."""

    code: str
    fragments: tuple[str, str, str, str] = field(compare=False)
    signature: str = field(compare=False)

    def fragment_in(self, slot: Slot) -> str:
        """Name the fragment that sits in a slot."""
        return self.fragments[SLOTS.index(slot)]


def _read_library() -> tuple[dict[Slot, tuple[Fragment, ...]], dict[Slot, str]]:
    rows = {row["slot"]: row for row in read_table("fragments")["slots"]}
    library = {slot: tuple(Fragment(**entry) for entry in rows[slot]["fragments"]) for slot in SLOTS}
    defaults = {slot: str(rows[slot]["default_fragment"]) for slot in SLOTS}
    return library, defaults


LIBRARY, DEFAULT_FRAGMENTS = _read_library()
FRAGMENT_NAMES: dict[Slot, tuple[str, ...]] = {
    slot: tuple(fragment.name for fragment in LIBRARY[slot]) for slot in SLOTS
}


def _build_molecules() -> dict[str, Molecule]:
    built = {}
    for digits in product(range(4), repeat=4):
        code = "".join(map(str, digits))
        names = [FRAGMENT_NAMES[slot][digit] for slot, digit in zip(SLOTS, digits, strict=True)]
        signature = " | ".join(f"{slot}={name}" for slot, name in zip(SLOTS, names, strict=True))
        built[code] = Molecule(code, (names[0], names[1], names[2], names[3]), signature)
    return built


MOLECULES: dict[str, Molecule] = _build_molecules()
_DIGIT_OF: dict[tuple[Slot, str], str] = {
    (slot, name): str(index) for slot in SLOTS for index, name in enumerate(FRAGMENT_NAMES[slot])
}


def molecule_from_code(code: str) -> Molecule:
    """Find a molecule by its four digits.

    Raises:
        UsageError: The code is not four digits from 0 to 3.

    >>> molecule_from_code("0103").signature
    'warhead=acrylamide | hinge=pyridine | solvent_tail=morpholine | back_pocket=cyano'
    """
    try:
        return MOLECULES[code]
    except KeyError:
        raise UsageError(
            f"molecule code {code!r} is not four digits from 0 to 3",
            where="molecule code",
            mend="Give one digit for each slot: warhead, hinge, solvent_tail, back_pocket.",
        ) from None


def substitute(molecule: Molecule, slot: Slot, fragment: str) -> Molecule:
    """Put another fragment of the slot's library into a slot.

    >>> substitute(molecule_from_code("0103"), "hinge", "azaindole").code
    '0003'
    """
    place = SLOTS.index(slot)
    return MOLECULES[molecule.code[:place] + _DIGIT_OF[slot, fragment] + molecule.code[place + 1 :]]


def surrogate_smiles(molecule: Molecule) -> str:
    """Write the benzene ring that carries the four substituents on consecutive atoms."""
    warhead, hinge, tail, pocket = (
        next(fragment.smiles for fragment in LIBRARY[slot] if fragment.name == molecule.fragment_in(slot))
        for slot in SLOTS
    )
    return f"c%10({warhead})c({hinge})c({tail})c({pocket})cc%10"
