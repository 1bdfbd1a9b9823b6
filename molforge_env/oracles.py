"""The true properties of a molecule, which no observation may show before the episode ends.

They depend on the molecule, the trap and the target shift and on nothing else: not on the scenario, the seed or the
step. A surrogate of fragment contributions is blended with RDKit descriptors; sums run in the order of the data files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from molforge_env.arithmetic import clamp01, fold, round4
from molforge_env.descriptors import Descriptors, describe
from molforge_env.models import SLOTS
from molforge_env.molecules import LIBRARY, Molecule
from molforge_env.scenarios import Scenario
from molforge_env.tables import read_table

_CHEMISTRY = read_table("chemistry")
_MEMO: dict[tuple[str, bool, bool], Properties] = {}


class Properties(NamedTuple):
    """True values in [0, 1], four decimals."""

    potency: float
    safety: float
    toxicity: float
    synth: float
    novelty: float


def true_properties(molecule: Molecule, *, trap: bool, shift: bool) -> Properties:
    """Compute the hidden properties, memoised over the 256 molecules.

    Args:
        molecule: Any of the 256.
        trap: Whether the start series is still capped.
        shift: Whether the target has shifted.

    Raises:
        MissingDependencyError: RDKit cannot be imported.
    """
    key = (molecule.code, trap, shift)
    found = _MEMO.get(key)
    if found is None:
        found = _MEMO[key] = _blend_properties(molecule, _surrogate(molecule, trap=trap, shift=shift))
    return found


def _surrogate(molecule: Molecule, *, trap: bool, shift: bool) -> Properties:
    table = _CHEMISTRY["surrogate"]
    values: dict[str, float] = dict(table["start"])
    for slot in SLOTS:
        fragment = next(entry for entry in LIBRARY[slot] if entry.name == molecule.fragment_in(slot))
        for name in values:
            values[name] += getattr(fragment, name)
    for rule in table["interactions"]:
        if _holds_all(molecule, rule["fragments"]):
            _add(values, rule)
    if shift:
        for rule in table["shift"]:
            if rule["fragment"] in molecule.fragments:
                _add(values, rule)
    if trap:
        values["potency"] = min(values["potency"], table["trap"]["potency_cap"])
        values["safety"] = min(values["safety"], table["trap"]["safety_cap"])
    potency, safety, synth, novelty = (clamp01(values[name]) for name in ("potency", "safety", "synth", "novelty"))
    toxicity = clamp01(1 - safety)
    return Properties(round4(potency), round4(safety), round4(toxicity), round4(synth), round4(novelty))


def _holds_all(molecule: Molecule, names: Sequence[str]) -> bool:
    return all(name in molecule.fragments for name in names)


def _add(values: dict[str, float], rule: Mapping[str, Any]) -> None:
    for name in values:
        if name in rule:
            values[name] += rule[name]


def _blend_properties(molecule: Molecule, surrogate: Properties) -> Properties:
    weights = _CHEMISTRY["blend"]
    chemical = describe(molecule)
    toxicity = _blend(surrogate.toxicity, _chemical_toxicity(molecule, chemical), weights["toxicity"])
    return Properties(
        potency=round4(_blend(surrogate.potency, _fit(molecule, chemical), weights["potency"])),
        safety=round4(clamp01(1 - toxicity)),
        toxicity=round4(toxicity),
        synth=round4(_blend(surrogate.synth, _chemical_synth(chemical), weights["synth"])),
        novelty=round4(_blend(surrogate.novelty, clamp01(1 - chemical.similarity), weights["novelty"])),
    )


def _blend(surrogate: float, chemical: float, weight: float) -> float:
    return clamp01((1 - weight) * surrogate + weight * chemical)


def _chemical_synth(chemical: Descriptors) -> float:
    table = _CHEMISTRY["complexity"]
    complexity = (
        max(0, chemical.weight - table["weight_start"]) / table["weight_scale"]
        + chemical.rotatable_bonds / table["rotatable_scale"]
        + chemical.stereocentres / table["stereo_scale"]
        + max(0, chemical.rings - table["free_rings"]) / table["ring_scale"]
        + chemical.aromatic_rings / table["aromatic_scale"]
    )
    return clamp01(1 - table["penalty"] * complexity)


def _chemical_toxicity(molecule: Molecule, chemical: Descriptors) -> float:
    shares = _CHEMISTRY["toxicity_shares"]
    property_risk = clamp01(
        fold(
            term["share"] * _sigmoid((getattr(chemical, term["descriptor"]) - term["middle"]) / term["scale"])
            for term in _CHEMISTRY["property_risk"]
        )
    )
    alerts = _CHEMISTRY["alert_risk"]
    alert_risk = clamp01(_add_terms(alerts["start"], molecule, alerts["terms"]))
    return clamp01(shares["property_risk"] * property_risk + shares["alert_risk"] * alert_risk)


def _add_terms(start: float, molecule: Molecule, terms: Sequence[Mapping[str, Any]]) -> float:
    total = start
    for term in terms:
        any_of = term.get("any_of")
        if _holds_all(molecule, term.get("all_of", ())) and (
            any_of is None or any(name in molecule.fragments for name in any_of)
        ):
            total += term["add"]
    return total


def _fit(molecule: Molecule, chemical: Descriptors) -> float:
    table = _CHEMISTRY["fit"]
    lipophilicity = 1 - min(abs(chemical.logp - table["lipophilicity"]["middle"]) / table["lipophilicity"]["scale"], 1)
    polarity = 1 - min(abs(chemical.tpsa - table["polarity"]["middle"]) / table["polarity"]["scale"], 1)
    pocket = _add_terms(0.0, molecule, table["pocket"])
    if chemical.aromatic_rings >= table["aromatic"]["rings"]:
        pocket += table["aromatic"]["add"]
    return clamp01(
        table["start"]
        + table["lipophilicity"]["share"] * lipophilicity
        + table["polarity"]["share"] * polarity
        + table["qed_share"] * clamp01(chemical.qed)
        + pocket
    )


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def objective(scenario: Scenario, properties: Properties) -> float:
    """Weigh the true properties into one number, four decimals."""
    weights = scenario.weights
    return round4(
        clamp01(
            weights.potency * properties.potency
            + weights.safety * (1 - properties.toxicity)
            + weights.synth * properties.synth
            + weights.novelty * properties.novelty
        )
    )


def passed_constraints(scenario: Scenario, properties: Properties) -> tuple[bool, bool, bool]:
    """Tell which of potency, toxicity and synth keep within their limits."""
    return (
        properties.potency >= scenario.potency_min,
        properties.toxicity <= scenario.toxicity_max,
        properties.synth >= scenario.synth_min,
    )


def constraint_margin(scenario: Scenario, properties: Properties) -> float:
    """Average how far the three limits are kept, 1.0 when all are."""
    limit = scenario.toxicity_max
    excess = properties.toxicity - limit
    toxicity = 1.0 if excess <= 0 else max(0.0, 1 - excess / (1 - limit))
    total = 0.0
    total += clamp01(properties.potency / scenario.potency_min)
    total += toxicity
    total += clamp01(properties.synth / scenario.synth_min)
    return total / 3
