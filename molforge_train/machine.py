"""What this machine offers a training run, asked without loading torch: graphics processors, memory, torch's build.

A dry run and the choice of a preset have to answer at once, and must not take memory on a device to do so.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_MIB = 1024 * 1024
_ASKED = ("--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits")
_DRIVERS = ((Path("/dev/nvidia0"), "an NVIDIA GPU"), (Path("/dev/kfd"), "an AMD GPU"))
_MEMORY = Path("/proc/meminfo")
_AVAILABLE = re.compile(r"^MemAvailable: +(\d+) kB", re.MULTILINE)
_BUILD = re.compile(r"^(__version__|cuda|hip)\b[^=]*= *'([^']*)'", re.MULTILINE)


class Gpu(NamedTuple):
    """A graphics processor that programs of this process may use."""

    name: str
    memory_bytes: int | None
    free_bytes: int | None


class Machine(NamedTuple):
    """What there is to train on."""

    gpus: tuple[Gpu, ...]
    torch_version: str | None
    """`None` when torch is not installed."""
    torch_uses_gpus: bool
    """Whether the installed build can."""
    free_memory_bytes: int | None
    """Main memory that a program can still take; `None` when the system does not say."""

    @property
    def gpu(self) -> Gpu | None:
        """The one that training would use."""
        return self.gpus[0] if self.gpus and self.torch_uses_gpus else None

    @property
    def idle_reason(self) -> str | None:
        """Say why a graphics processor that is there cannot be used."""
        if not self.gpus or self.torch_uses_gpus or self.torch_version is None:
            return None
        return (
            f"this machine has {self.gpus[0].name}, and torch {self.torch_version} was built without it; install the "
            "torch build for it (Colab, Kaggle: start a new machine and install nothing over its torch)"
        )


def look_at_machine(environment: Mapping[str, str]) -> Machine:
    """Ask the driver, the system and the files of torch.

    Args:
        environment: Variables of the process; `CUDA_VISIBLE_DEVICES` hides devices.
    """
    version, can = _torch_build()
    return Machine(tuple(_visible(_gpus(), environment)), version, can, _free_memory())


def _gpus() -> list[Gpu]:
    command = shutil.which("nvidia-smi")
    if command is not None:
        try:
            told = subprocess.run([command, *_ASKED], capture_output=True, text=True, timeout=20, check=True).stdout  # noqa: S603 - fixed words
        except (OSError, subprocess.SubprocessError):
            told = ""
        if told.strip():
            return gpus_from_table(told)
    return [Gpu(name, None, None) for device, name in _DRIVERS if device.exists()]


def gpus_from_table(told: str) -> list[Gpu]:
    r"""Read the driver's table: name, memory and free memory in MiB a line; a cell that is no number is unknown.

    >>> gpus_from_table("NVIDIA L4, 23034, 22563\nNVIDIA GB10, [N/A], [N/A]")[1]
    Gpu(name='NVIDIA GB10', memory_bytes=None, free_bytes=None)
    """
    found = []
    for line in told.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split(","))
        sizes = [int(cell) * _MIB if cell.isdecimal() else None for cell in (*cells, "", "")]
        found.append(Gpu(name, sizes[0], sizes[1]))
    return found


def _visible(gpus: list[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    shown = environment.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return gpus
    named = [word.strip() for word in shown.split(",")]
    # A device may be named by its identifier, which says nothing of its place; then the first stands for it.
    numbers = [int(word) if word.isdecimal() else 0 for word in named if word and word != "-1"]
    return [gpus[number] for number in numbers if number < len(gpus)]


def _torch_build() -> tuple[str | None, bool]:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None, False
    try:
        build = dict(_BUILD.findall(Path(spec.origin).with_name("version.py").read_text("utf-8")))
    except OSError:
        return None, False
    return build.get("__version__"), "cuda" in build or "hip" in build


def _free_memory() -> int | None:
    # What is cached can be given up; the system's count of free pages leaves it out.
    try:
        found = _AVAILABLE.search(_MEMORY.read_text("utf-8"))
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024
