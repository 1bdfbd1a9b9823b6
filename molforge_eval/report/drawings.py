"""Drawings of molecules as SVG paths, the fragment that an edit changed on a tinted ground.

The benzene core lies alike in every drawing, so that of two drawings only the edit differs. The output holds
presentation attributes only: no style attribute, no font, no id.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from molforge_env.descriptors import compute_whole
from molforge_env.models import SLOTS, Slot
from molforge_env.molecules import LIBRARY, Molecule, molecule_from_code, surrogate_smiles
from molforge_eval.report.joined_shapes import join_strokes
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import colour

if TYPE_CHECKING:
    from rdkit.Chem import Mol

WIDTH = 168
HEIGHT = 112
_CORE = "c1ccccc1"
_INK = "currentColor"
_ATOM_ROLES = {7: "nitrogen", 8: "oxygen", 9: "halogen", 16: "sulfur", 17: "halogen"}
_SHAPE = re.compile(r"<(path|ellipse|polygon|rect) ([^>]*?)/>", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w:-]+)='([^']*)'")
_GEOMETRY = {"path": ("d",), "ellipse": ("cx", "cy", "rx", "ry"), "polygon": ("points",), "rect": ("x", "y")}
_STYLE_DEFAULTS = {"stroke-width": "1", "fill-opacity": "1", "stroke-opacity": "1"}


@cache
def draw_molecule(code: str, changed: Slot | None = None) -> Svg:
    """Draw a molecule.

    Args:
        code: Four digits, one for each slot.
        changed: Slot whose fragment stands on a tinted ground.

    Raises:
        UsageError: The code is not four digits from 0 to 3.
    """
    return compute_whole(lambda: _draw(code, changed))


def _draw(code: str, changed: Slot | None) -> Svg:
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = molecule_from_code(code)
    mol = _laid_out(surrogate_smiles(molecule))
    atoms = atoms_of(molecule, changed) if changed else []
    bonds = [bond.GetIdx() for bond in mol.GetBonds() if {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} <= set(atoms)]
    drawer = rdMolDraw2D.MolDraw2DSVG(WIDTH, HEIGHT)
    options: Any = drawer.drawOptions()
    options.clearBackground = False
    options.bondLineWidth = 1.3
    options.padding = 0.04
    options.fixedBondLength = 15
    options.minFontSize = 7
    options.maxFontSize = 9
    options.highlightRadius = 0.36
    options.highlightBondWidthMultiplier = 9
    options.setAtomPalette({-1: (0, 0, 0)} | {number: _rgb(role) for number, role in _ATOM_ROLES.items()})
    options.setHighlightColour(_rgb("changed"))
    rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol, highlightAtoms=atoms, highlightBonds=bonds)
    drawer.FinishDrawing()
    return Svg(WIDTH, HEIGHT, _plain_shapes(drawer.GetDrawingText()))


def atoms_of(molecule: Molecule, slot: Slot) -> list[int]:
    """Find the atoms of a slot's fragment by their place in the written structure.

    >>> atoms_of(molecule_from_code("0103"), "back_pocket")
    [21, 22]
    """
    first = 1  # atom 0 opens the ring
    for here in SLOTS:
        count = _atom_count(molecule, here)
        if here == slot:
            return list(range(first, first + count))
        first += count + 1  # one ring atom stands between two substituents
    raise KeyError(slot)


def _atom_count(molecule: Molecule, slot: Slot) -> int:
    from rdkit import Chem

    name = molecule.fragment_in(slot)
    smiles = next(fragment.smiles for fragment in LIBRARY[slot] if fragment.name == name)
    return int(Chem.MolFromSmiles(smiles).GetNumAtoms())


@cache
def _laid_out(smiles: str) -> Mol:
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    mol = Chem.MolFromSmiles(smiles)
    core = Chem.MolFromSmiles(_CORE)
    rdDepictor.Compute2DCoords(core)
    ring = [atom.GetIdx() for atom in mol.GetAtoms() if not _is_substituent(mol, atom.GetIdx())]
    places = {atom: core.GetConformer().GetAtomPosition(index) for index, atom in enumerate(ring)}
    rdDepictor.Compute2DCoords(mol, coordMap={atom: _flat(place) for atom, place in places.items()})
    return mol


def _is_substituent(mol: Any, index: int) -> bool:
    return index not in mol.GetRingInfo().AtomRings()[_core_ring(mol)]


def _core_ring(mol: Any) -> int:
    return next(number for number, ring in enumerate(mol.GetRingInfo().AtomRings()) if 0 in ring)


def _flat(place: Any) -> Any:
    from rdkit.Geometry import Point2D

    return Point2D(place.x, place.y)


def _rgb(role: str) -> tuple[float, float, float]:
    text = colour(role)
    red, green, blue = (int(text[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue


def _plain_shapes(text: str) -> str:
    shapes = (_plain_shape(kind, dict(_ATTRIBUTE.findall(inner))) for kind, inner in _SHAPE.findall(text))
    return join_strokes("".join(shapes))


def _plain_shape(kind: str, attributes: dict[str, str]) -> str:
    style = dict(part.split(":", 1) for part in attributes.get("style", "").split(";") if ":" in part)
    stroke_width = style.get("stroke-width", "1").removesuffix("px")
    kept = [(name, attributes[name]) for name in _GEOMETRY[kind] if name in attributes]
    for name, fallback in (("fill", "#000000"), ("stroke", "none")):
        value = attributes.get(name) or style.get(name, fallback)
        kept.append((name, _INK if value.upper() == "#000000" else value.lower()))
    if dict(kept)["stroke"] != "none":
        kept.append(("stroke-width", stroke_width))
    return f"<{kind} " + " ".join(f'{name}="{value.strip()}"' for name, value in kept) + "/>"
