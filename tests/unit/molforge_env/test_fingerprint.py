from __future__ import annotations

import platform

import rdkit

from molforge_env import RULES_VERSION
from molforge_env.fingerprint import BackendFingerprint, backend_fingerprint

TABLE = "0456fc700295c65d1308afe5588c510ea9e1b72fc00c620206fd961b15f4c5c2"


def test_the_fingerprint_names_the_versions_and_the_known_table() -> None:
    found = backend_fingerprint()

    assert found.rules_version == RULES_VERSION == "molforge-rules/1"
    assert found.rdkit_version == rdkit.__version__
    assert found.python_version == platform.python_version()
    assert found.property_table_sha256 == TABLE


def test_the_fingerprint_survives_the_way_through_json() -> None:
    assert BackendFingerprint.model_validate_json(backend_fingerprint().model_dump_json()) == backend_fingerprint()
