"""The RDKit descriptors of a molecule, computed live and kept for the process.

RDKit is required: without it the scores would mean something else, so its absence is an error and never a fallback.
While it searches a structure, RDKit takes Ctrl-C for itself, stops the search and hands on what it has; such a value
is never kept, and the key is passed on.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import TypeVar

from molforge_env.arithmetic import fold
from molforge_env.errors import MissingDependencyError
from molforge_env.molecules import Molecule, molecule_from_code, surrogate_smiles
from molforge_env.tables import read_table

_CUT_SHORT = "search was interrupted"
"""What RDKit's log says of a search that Ctrl-C has ended."""
_searches = threading.local()
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What RDKit says about one molecule."""

    qed: float
    logp: float
    tpsa: float
    """Polar surface in square angstrom."""
    weight: float
    """Average molecular weight in dalton."""
    rotatable_bonds: int
    aromatic_rings: int
    rings: int
    stereocentres: int
    similarity: float
    """Largest Tanimoto to the three reference molecules."""


@cache
def load_rdkit() -> SimpleNamespace:
    """Import the parts of RDKit that the rules use.

    Raises:
        MissingDependencyError: RDKit cannot be imported.
    """
    try:
        from rdkit import Chem, DataStructs, rdBase
        from rdkit.Chem import QED, Crippen, Lipinski, rdFingerprintGenerator, rdMolDescriptors
        from rdkit.Chem import Descriptors as RdkitDescriptors
    except ImportError as error:
        raise MissingDependencyError(
            f"RDKit cannot be imported ({error})",
            where="molforge_env.descriptors",
            mend="Install it with `pip install rdkit`; scores without it would not be comparable.",
        ) from error
    rdBase.LogToPythonLogger()
    logging.getLogger("rdkit").addFilter(_note_cut)
    return SimpleNamespace(
        Chem=Chem,
        DataStructs=DataStructs,
        QED=QED,
        Crippen=Crippen,
        Lipinski=Lipinski,
        RdkitDescriptors=RdkitDescriptors,
        rdMolDescriptors=rdMolDescriptors,
        version=rdBase.rdkitVersion,
        fingerprints=rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024),
    )


def compute_whole(compute: Callable[[], Value]) -> Value:
    """Compute something by RDKit, again where Ctrl-C has cut a search short; the key then does what it was to do.

    Args:
        compute: Gives equal values each time.
    """
    load_rdkit()
    while True:
        _searches.cut = False
        value = compute()
        if not _searches.cut:
            return value
        signal.raise_signal(signal.SIGINT)


def _note_cut(record: logging.LogRecord) -> bool:
    """Note a search that was cut short, in place of printing it."""
    is_cut = _CUT_SHORT in record.getMessage()
    if is_cut:
        _searches.cut = True
    return not is_cut


@cache
def _structure(molecule: Molecule) -> object:
    return load_rdkit().Chem.MolFromSmiles(surrogate_smiles(molecule))


@cache
def _fingerprint(molecule: Molecule) -> object:
    return load_rdkit().fingerprints.GetFingerprint(_structure(molecule))


@cache
def canonical_smiles(molecule: Molecule) -> str:
    """Write the molecule as RDKit's canonical SMILES."""
    return str(load_rdkit().Chem.MolToSmiles(_structure(molecule)))


def _drug_likeness(structure: object) -> float:
    """Compute QED: the geometric mean of RDKit's eight desirabilities by its own weights, in [0, 1].

    RDKit's function adds with the built-in `sum`, whose last digit depends on the version of Python.
    """
    qed = load_rdkit().QED
    values = qed.properties(structure)._asdict()
    logs = (math.log(qed.ads(value, qed.adsParameters[name])) for name, value in values.items())
    weighted = fold(weight * log for weight, log in zip(qed.WEIGHT_MEAN, logs, strict=True))
    return math.exp(weighted / fold(qed.WEIGHT_MEAN))


@cache
def describe(molecule: Molecule) -> Descriptors:
    """Compute the descriptors of a molecule, once per process.

    Raises:
        MissingDependencyError: RDKit cannot be imported.
    """
    return compute_whole(lambda: _describe(molecule))


def _describe(molecule: Molecule) -> Descriptors:
    rdkit = load_rdkit()
    structure = _structure(molecule)
    references = [_fingerprint(molecule_from_code(code)) for code in read_table("chemistry")["references"]]
    return Descriptors(
        qed=_drug_likeness(structure),
        logp=rdkit.Crippen.MolLogP(structure),
        tpsa=rdkit.rdMolDescriptors.CalcTPSA(structure),
        weight=rdkit.RdkitDescriptors.MolWt(structure),
        rotatable_bonds=rdkit.Lipinski.NumRotatableBonds(structure),
        aromatic_rings=rdkit.rdMolDescriptors.CalcNumAromaticRings(structure),
        rings=rdkit.rdMolDescriptors.CalcNumRings(structure),
        stereocentres=rdkit.rdMolDescriptors.CalcNumAtomStereoCenters(structure),
        similarity=max(rdkit.DataStructs.BulkTanimotoSimilarity(_fingerprint(molecule), references)),
    )
