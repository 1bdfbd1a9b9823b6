"""On what a run was made: packages, machine, commit; and the scrubber that keeps private text out of records.

A machine is described without its name, a path without the home folder.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from molforge_eval.private_traces import TRACES
from molforge_eval.records.manifest import Hardware

RECORDED_PACKAGES = (
    "molforge-evidence",
    "accelerate",
    "bitsandbytes",
    "datasets",
    "numpy",
    "peft",
    "pydantic",
    "rdkit",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
    "trl",
    "unsloth",
    "vllm",
)
_TOKENS = re.compile("|".join(trace.pattern.decode() for trace in TRACES if trace.code == "SECRET_PRESENT"))
_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")
"""Name and password in an address."""
_HOMES = re.compile(r"(?:/home|/Users)/[^/\s\"']+|[A-Za-z]:\\+Users\\+[^\\\s\"']+")
_SHORTEST_HOST = 4


class Commit(NamedTuple):
    """A git commit, or the reason why it is unknown."""

    id: str | None
    reason: str | None


def packages() -> dict[str, str]:
    """List the versions of the packages that a result depends on, and of Python."""
    found = {"python": platform.python_version()}
    for name in RECORDED_PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def hardware(accelerator: str | None) -> Hardware:
    """Describe the machine.

    Args:
        accelerator: Model of the device that trains, `None` for the processor.
    """
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        memory = None
    return Hardware(
        platform=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        cpu_count=os.cpu_count() or 0,
        memory_bytes=memory,
        accelerator=accelerator,
    )


def git_commit() -> Commit:
    """Ask git for the commit of this package's source, with `-dirty` when files differ from it."""
    folder = Path(__file__).resolve().parent
    git = shutil.which("git")
    if git is None:
        return Commit(None, "git is not installed")
    # An installed package may stand inside somebody else's checkout, which does not track it.
    asked = ("ls-files", "--error-unmatch", Path(__file__).name), ("describe", "--always", "--dirty", "--abbrev=40")
    answer = ""
    for words in asked:
        try:
            command = [git, "-C", str(folder), *words]
            told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - fixed words
        except (OSError, subprocess.TimeoutExpired):
            return Commit(None, "git did not answer")
        if told.returncode:
            return Commit(None, "the package stands in no git checkout")
        answer = told.stdout.strip()
    return Commit(answer, None)


def scrubbed(text: str) -> str:
    """Take home folder, working folder, host name and access tokens out of a text.

    >>> scrubbed(str(Path.home() / "models" / "x"))
    '~/models/x'
    """
    for private, public in ((str(Path.cwd()), "."), (str(Path.home()), "~")):
        if private not in ("/", ""):
            text = re.sub(re.escape(private) + r"(?=/|$|[^\w.-])", public, text)
    text = _HOMES.sub("~", text)
    host = platform.node()
    # A shorter name may be a part of ordinary words.
    if len(host) >= _SHORTEST_HOST:
        text = re.sub(rf"\b{re.escape(host)}\b", "[host]", text)
    return _TOKENS.sub("[token]", _LOGIN.sub("[login]@", text))
