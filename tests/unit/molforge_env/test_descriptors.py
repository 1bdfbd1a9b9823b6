from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import QED

from molforge_env.descriptors import canonical_smiles, compute_whole, describe
from molforge_env.molecules import molecule_from_code

WITHOUT_RDKIT = """
import sys
sys.modules["rdkit"] = None  # an import of it fails, as if it were not installed
from molforge_env.cli import cli
from molforge_env.command_line import run
run(cli, ["fingerprint"])
"""


def test_a_molecule_is_described_once_and_then_remembered() -> None:
    assert describe(molecule_from_code("0000")) is describe(molecule_from_code("0000"))


def test_a_reference_molecule_is_like_itself() -> None:
    assert describe(molecule_from_code("2103")).similarity == 1.0


def test_the_canonical_smiles_is_the_one_that_was_recorded() -> None:
    assert canonical_smiles(molecule_from_code("0001")) == "C=CNC(=O)c1ccc(Cl)c(N2CCOCC2)c1-c1nc2ccccc2[nH]1"


def test_without_rdkit_the_laboratory_refuses_in_three_lines() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_RDKIT], capture_output=True, text=True, check=False)

    what, where, mend = done.stderr.splitlines()
    assert done.returncode == 2
    assert done.stdout == ""
    assert what.startswith("RDKit cannot be imported")
    assert where == "  where: molforge_env.descriptors"
    assert "pip install rdkit" in mend


def test_drug_likeness_is_that_of_rdkit_up_to_the_order_of_adding() -> None:
    structure = Chem.MolFromSmiles(canonical_smiles(molecule_from_code("0103")))

    assert describe(molecule_from_code("0103")).qed == pytest.approx(QED.qed(structure), rel=1e-14)


def test_a_value_that_ctrl_c_cut_short_is_computed_again_and_the_key_does_what_it_was_to_do(caplog) -> None:
    values = iter(["cut short", "whole"])
    keys: list[int] = []

    def compute() -> str:
        value = next(values)
        if value == "cut short":
            # As RDKit's own search does it, whose handler has taken the key.
            rdBase.LogMessage("rdApp.error", "Substructure search was interrupted, result may not be whole\n")
        return value

    before = signal.signal(signal.SIGINT, lambda number, _frame: keys.append(number))
    try:
        assert compute_whole(compute) == "whole"
    finally:
        signal.signal(signal.SIGINT, before)
    assert keys == [signal.SIGINT]
    assert "interrupted" not in caplog.text


def test_other_words_of_rdkit_are_still_heard(caplog) -> None:
    Chem.MolFromSmiles("no structure")

    assert "non-ring atom 0 marked aromatic" in caplog.text
