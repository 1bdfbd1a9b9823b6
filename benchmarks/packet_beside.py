"""What a packet costs beside one of an earlier version: the machine may be fast or slow, the ratio stays.

`python -m benchmarks.packet_beside CHECKOUT` takes a folder that holds the earlier version, such as
`git worktree add ../earlier COMMIT` makes. Each version plays a run of 960 training and 102 evaluation episodes by its
own code; then the two build their packets in turns, replayed, HTML and PDF, cold, on one core.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.packet import processor_seconds

_PLAY = """\
import sys
from pathlib import Path
from evidence_builder import build_run
build_run(Path(sys.argv[1]), seeds=16, steps=60, prompts=2, generations=8)
"""
_BUILD = "import os; os.sched_setaffinity(0, {%d}); from molforge_eval.cli.report import main; main()"
_TURNS = 5


def main(arguments: Sequence[str]) -> None:
    """Print what each turn cost, and the ratio."""
    now = Path(__file__).resolve().parent.parent
    if not arguments:
        raise SystemExit("no earlier version is named: python -m benchmarks.packet_beside CHECKOUT")
    earlier = Path(arguments[0]).resolve()
    if earlier == now or not (earlier / "tests/support/evidence_builder.py").is_file():
        raise SystemExit(f"{earlier} holds no earlier version: make one with `git worktree add ../earlier COMMIT`")
    with tempfile.TemporaryDirectory() as scratch:
        runs = {earlier: Path(scratch) / "earlier", now: Path(scratch) / "now"}
        for checkout, run in runs.items():
            _start(checkout, _PLAY, str(run))
        spent: dict[Path, list[float]] = {checkout: [] for checkout in runs}
        for turn in range(_TURNS):
            for checkout, run in runs.items():
                spent[checkout].append(_build(checkout, run))
            print(f"  {turn + 1}: earlier {spent[earlier][-1]:.1f} s, now {spent[now][-1]:.1f} s", flush=True)
    ratios = [later / first for first, later in zip(spent[earlier], spent[now], strict=True)]
    print(
        f"  now takes {statistics.median(ratios):.2f} times the processor time ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def _build(checkout: Path, run: Path) -> float:
    used = processor_seconds()
    _start(checkout, _BUILD % min(os.sched_getaffinity(0)), "build", str(run), "--quiet")
    return processor_seconds() - used


def _start(checkout: Path, program: str, *words: str) -> None:
    places = os.pathsep.join(map(str, (checkout, checkout / "tests/support")))
    # Early versions start a child that looks for modules in the working folder.
    line = [sys.executable, "-P", "-c", program, *words]
    subprocess.run(line, env={**os.environ, "PYTHONPATH": places}, cwd=checkout, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
