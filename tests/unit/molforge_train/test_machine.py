from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from molforge_train.machine import Gpu, Machine, gpus_from_table, look_at_machine

TABLE = "NVIDIA A100-SXM4-40GB, 40960, 40339\nNVIDIA L4, 23034, [N/A]\n"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver's own program, as it would answer on a machine with two devices."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{TABLE}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return program


def test_the_driver_names_devices_and_their_memory(driver: Path) -> None:
    found = look_at_machine({}).gpus

    assert found == (Gpu("NVIDIA A100-SXM4-40GB", 40960 << 20, 40339 << 20), Gpu("NVIDIA L4", 23034 << 20, None))
    assert found == tuple(gpus_from_table(TABLE))


@pytest.mark.parametrize(("shown", "names"), [("1", ["NVIDIA L4"]), ("", []), ("-1", []), ("7", []), ("1,0", 2)])
def test_devices_that_are_hidden_are_not_counted(driver: Path, shown: str, names: list[str] | int) -> None:
    found = [gpu.name for gpu in look_at_machine({"CUDA_VISIBLE_DEVICES": shown}).gpus]

    assert found == names or len(found) == names


def test_a_driver_that_fails_leaves_a_machine_without_devices(driver: Path) -> None:
    driver.write_text("#!/bin/sh\necho 'no devices were found' >&2\nexit 6\n")

    assert look_at_machine({}).gpus == ()


def test_torch_is_asked_by_its_files_alone() -> None:
    program = (
        "import sys\nfrom molforge_train.machine import look_at_machine\n"
        "machine = look_at_machine({})\nprint('torch' in sys.modules, machine.torch_version)\n"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    assert told[0] == "False"
    assert told[1].partition("+")[0] == importlib.metadata.version("torch").partition("+")[0]


def test_a_torch_that_cannot_use_the_device_is_named_with_the_mend() -> None:
    machine = Machine((Gpu("NVIDIA L4", None, None),), "2.13.0+cpu", torch_uses_gpus=False, free_memory_bytes=None)

    assert machine.gpu is None
    assert "NVIDIA L4, and torch 2.13.0+cpu was built without it; install" in (machine.idle_reason or "")
    assert machine._replace(torch_uses_gpus=True).idle_reason is None
    assert machine._replace(gpus=()).idle_reason is None


def test_the_memory_that_is_free_is_less_than_there_is() -> None:
    free = look_at_machine({}).free_memory_bytes

    assert free is not None
    assert 0 < free < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
