"""What every test stands on: quiet threads, no network, one hypothesis profile."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

# Two test processes share two cores; a library that starts a thread per core makes both slower. Set before numpy loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# No test may reach for a model hub, however a library is configured.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"

import pytest
from hypothesis import HealthCheck, settings

# No deadline: two processes on two cores make times meaningless. Derandomised: a red run is red again.
settings.register_profile(
    "house", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the working tree."""
    return ROOT


@pytest.fixture(scope="session")
def sample_run_archive() -> Path:
    """A committed run of the tiny model, sealed, before any packet was built from it."""
    return ROOT / "tests" / "data" / "sample_run.tar.gz"


@pytest.fixture
def sample_run(sample_run_archive: Path, tmp_path: Path) -> Path:
    """A fresh copy of the committed run; the test may change it."""
    with tarfile.open(sample_run_archive) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    return folder


@pytest.fixture(scope="session")
def built_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sound run of scripted policies, plots and all; not to be changed."""
    from evidence_builder import build_run

    return build_run(tmp_path_factory.mktemp("built") / "run")


@pytest.fixture
def run_copy(built_run: Path, tmp_path: Path) -> Path:
    """A fresh copy of the built run; the test may change it."""
    return Path(shutil.copytree(built_run, tmp_path / "run"))


@pytest.fixture(scope="session")
def old_run(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built run in the layout of the public training script, format version 0; not to be changed."""
    from old_layout import make_old_run

    return make_old_run(built_run, tmp_path_factory.mktemp("old") / "run")


@pytest.fixture
def old_copy(old_run: Path, tmp_path: Path) -> Path:
    """A fresh copy of the old run; the test may change it."""
    return Path(shutil.copytree(old_run, tmp_path / "old"))
