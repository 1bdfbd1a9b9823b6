"""What a packet costs on this machine: time, memory, sizes, and whether two builds are equal to the byte.

`python -m benchmarks.packet [RUN]` takes a run directory, or plays one of the size of the demo (1,440 training and 102
evaluation episodes). With `--large` it then makes runs of 1,000 evaluation episodes and 100,000 log rows, and of
1,000,000 log rows. Every build is a process of its own, cold; its processor time and its memory count the processes
that it starts; memory is the proportional set size (PSS), in which a page that several processes share counts once.
Replay of a long log takes longer than everything else together, so it is measured beside the rest:
without it a packet shows level E2.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_builder import build_run

from benchmarks.large_run import make_run
from molforge_eval import layout

_BUILD = "from molforge_eval.cli.report import main; main()"
_SEEDS = 166
"""Sampled seeds a task: with the greedy episodes about 1,000 episodes on both sides."""
_MIDDLE_LINES = 100_000
_MOST_LINES = 1_000_000
_LOOK_SECONDS = 0.05
_FILES_ONLY = ("--verify-level", "E2")


class Cost(NamedTuple):
    """What a build cost."""

    wall: float
    """Seconds by the clock."""
    processor: float
    """Seconds of all its processes."""
    memory: float
    """GB of all its processes together, at the most; a page that they share counts once."""


class Goal(NamedTuple):
    """What a build may cost."""

    seconds: float
    is_processor: bool
    memory: float | None = None


def build_once(run: Path, *words: str, core: int | None = None) -> Cost:
    """Build the packet of a run in a process of its own, on one core when one is given."""
    began, used = time.perf_counter(), processor_seconds()
    program = _BUILD if core is None else f"import os; os.sched_setaffinity(0, {{{core}}}); {_BUILD}"
    line = [sys.executable, "-P", "-c", program, "build", str(run), "--quiet", "--no-pack", *words]
    with subprocess.Popen(line) as child:
        most = 0.0
        while child.poll() is None:
            most = max(most, _memory_of(child.pid))
            time.sleep(_LOOK_SECONDS)
    if child.returncode:
        raise SystemExit(f"the build ended with code {child.returncode}")
    return Cost(time.perf_counter() - began, processor_seconds() - used, most)


def digests(run: Path) -> dict[str, str]:
    """Hash the files of the packet."""
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in layout.PACKET_FILES}


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    given = [word for word in arguments if not word.startswith("--")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run = folder / "run"
        if given:
            shutil.copytree(given[0], run)
        else:
            build_run(run, seeds=16, steps=60, prompts=3, generations=8)
        _measure_small(run)
        if "--large" in arguments:
            _measure_large(folder)


def _measure_small(run: Path) -> None:
    core = min(os.sched_getaffinity(0))
    print(f"packet of {_lines_of(run):,} rollout lines, replayed, on one core")
    cost = build_once(run, core=core)
    _print("HTML and PDF, cold", cost, Goal(10.0, is_processor=True))
    made = digests(run)
    _print("the same without the PDF", build_once(run, "--no-pdf", core=core))
    _print("once more, both", build_once(run, core=core))
    for name in layout.PACKET_FILES:
        print(f"  {name:<36}{(run / name).stat().st_size / 1e6:>8.2f} MB")
    print(f"  {'same bytes twice, HTML and PDF':<36}{'yes' if digests(run) == made else 'NO':>8}")


def _measure_large(folder: Path) -> None:
    middle = make_run(folder / "middle", _MIDDLE_LINES, seeds=_SEEDS)
    print(f"packet of {middle.lines:,} rollout lines and {2 * 3 * (_SEEDS + 1):,} evaluation episodes")
    _print(
        "files checked, level E2", build_once(middle.folder, *_FILES_ONLY), Goal(20.0, is_processor=False, memory=1.0)
    )
    made = digests(middle.folder)
    build_once(middle.folder, *_FILES_ONLY)
    print(f"  {'same bytes twice, HTML and PDF':<36}{'yes' if digests(middle.folder) == made else 'NO':>8}")
    _print("every episode played again, E3", build_once(middle.folder))
    shutil.rmtree(middle.folder)
    large = make_run(folder / "large", _MOST_LINES)
    print(f"packet of {large.lines:,} rollout lines, {large.log_bytes / 1e9:.2f} GB")
    _print(
        "files checked, level E2", build_once(large.folder, *_FILES_ONLY), Goal(60.0, is_processor=False, memory=1.5)
    )


def _print(name: str, cost: Cost, goal: Goal | None = None) -> None:
    text = f"  {name:<36}{cost.wall:>8.1f} s by the clock{cost.processor:>8.1f} s of processor{cost.memory:>7.2f} GB"
    if goal is not None:
        spent = cost.processor if goal.is_processor else cost.wall
        room = goal.memory is None or cost.memory <= goal.memory
        asked = f"{goal.seconds:g} s" + ("" if goal.memory is None else f", {goal.memory:g} GB")
        text += f"   goal {asked}: {'met' if spent <= goal.seconds and room else 'MISSED'}"
    print(text, flush=True)


def _lines_of(run: Path) -> int:
    with (run / layout.ROLLOUTS).open("rb") as log:
        return sum(1 for _ in log)


def processor_seconds() -> float:
    """Read the processor time of all child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory_of(root: int) -> float:
    """Add up what a process and all beneath it hold, in GB; a page that they share counts once."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(words[1])
    tree = {root}
    while more := {process for process, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(map(_share_of, tree)) / 1e9


def _share_of(process: int) -> float:
    """Read the proportional set size of a process in bytes; 0 for one that has ended."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


if __name__ == "__main__":
    main(sys.argv[1:])
