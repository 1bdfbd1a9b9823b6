"""The backend fingerprint: which chemistry gave the scores.

Two runs with equal fingerprints judge molecules alike. The hash covers what matters, the properties of every molecule,
so that a new RDKit with the same numbers is seen to be the same laboratory.
"""

from __future__ import annotations

import platform
from functools import cache
from hashlib import sha256

from molforge_env import RULES_VERSION
from molforge_env.descriptors import load_rdkit
from molforge_env.frozen import FrozenModel
from molforge_env.molecules import MOLECULES
from molforge_env.oracles import objective, true_properties
from molforge_env.scenarios import SCENARIOS


class BackendFingerprint(FrozenModel):
    """Versions and the hash of the property table."""

    rules_version: str
    rdkit_version: str
    python_version: str
    property_table_sha256: str
    """Over every molecule, trap, shift and scenario; lower-case hex."""


@cache
def backend_fingerprint() -> BackendFingerprint:
    """Take the fingerprint of this process.

    Raises:
        MissingDependencyError: RDKit cannot be imported.
    """
    return BackendFingerprint(
        rules_version=RULES_VERSION,
        rdkit_version=load_rdkit().version,
        python_version=platform.python_version(),
        property_table_sha256=_hash_properties(),
    )


def _hash_properties() -> str:
    digest = sha256()
    for molecule in MOLECULES.values():
        for trap in (False, True):
            for shift in (False, True):
                properties = true_properties(molecule, trap=trap, shift=shift)
                values = ",".join(f"{value:.4f}" for value in properties)
                digest.update(f"{molecule.code},{trap:d},{shift:d},{values}\n".encode())
                for scenario in SCENARIOS.values():
                    digest.update(f"{scenario.scenario_id},{objective(scenario, properties):.4f}\n".encode())
    return digest.hexdigest()
