"""Whether memory stands still over a long training: `python -m benchmarks.long_run [STEPS]`.

A real run of the CPU preset in a process of its own, without evaluations. Its resident memory without file pages is
read a few times a step; the median over the last fifth of the steps may lie above the median over the second fifth by
no more than the limit. The first fifth is left out: libraries, caches and the allocator settle there. Exit code 1 when
memory grew or the run failed.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from molforge_env.errors import EXIT_USAGE
from molforge_eval import layout

STEPS = 300
GROWTH_LIMIT_MIB = 48.0
PARTS = 5
LEAST_STEPS = 50
"""Fewer end before a part of them has been looked at often enough."""
_LOOK_SECONDS = 0.25
_START = "from molforge_train.cli import main; main()"
_WORDS = ("--preset", "tiny-cpu", "--run-name", "long", "--run-before-eval", "0", "--run-after-eval", "0", "--quiet")


def anonymous_mib(process: int) -> float | None:
    """Read the resident memory of a process without pages of files, in MiB; nothing when it has ended."""
    with contextlib.suppress(OSError):
        found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
        return int(found[1]) / 1024 if found else None
    return None


def steps_of(folder: Path) -> int:
    """Count the optimizer steps that the trainer's log tells."""
    file = folder / layout.TRAINER_LOG
    return file.read_bytes().count(b'"type":"train"') if file.exists() else 0


def watch(steps: int, root: Path) -> dict[int, list[float]]:
    """Train, and return the readings during each step, in MiB."""
    readings: dict[int, list[float]] = {}
    words = [*_WORDS, "--max-steps", str(steps), "--output-root", str(root)]
    with subprocess.Popen([sys.executable, "-P", "-c", _START, "grpo", *words]) as process:
        while process.poll() is None:
            found = anonymous_mib(process.pid)
            if found is not None:
                readings.setdefault(steps_of(root / "long"), []).append(found)
            time.sleep(_LOOK_SECONDS)
    if process.returncode:
        raise SystemExit(f"the run ended with exit code {process.returncode}")
    return readings


def medians(readings: dict[int, list[float]], steps: int) -> list[float]:
    """Return the median of each part of the run, in MiB."""
    parts: list[list[float]] = [[] for _ in range(PARTS)]
    for step, found in readings.items():
        # Before the first step there is no training, and after the last one the directory is sealed.
        if 0 < step < steps:
            parts[step * PARTS // steps] += found
    return [statistics.median(part) for part in parts]


def main(steps: int) -> int:
    """Train, print, and tell the exit code."""
    if steps < LEAST_STEPS or anonymous_mib(os.getpid()) is None:
        print(f"give {LEAST_STEPS} steps or more, on a system that has /proc", file=sys.stderr)
        return EXIT_USAGE
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        found = medians(watch(steps, Path(scratch)), steps)
    growth = found[-1] - found[1]
    print(f"a run of {steps} steps of tiny-cpu in {time.monotonic() - began:.0f} s")
    print(f"resident memory without file pages, median of each fifth: {', '.join(f'{part:.0f}' for part in found)} MiB")
    print(f"growth from the second fifth to the last: {growth:.1f} MiB (limit: {GROWTH_LIMIT_MIB:.0f})")
    return int(growth > GROWTH_LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS))
