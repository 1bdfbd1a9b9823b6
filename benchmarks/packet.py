"""What a packet costs on this machine: processor time of `molforge-report build`, sizes, and whether two are equal.

`python -m benchmarks.packet [RUN]` takes a run directory, or plays one of the size of the demo (1,440 training and 102
evaluation episodes). Times are of the processes, cold, the PDF's child among them.
"""

from __future__ import annotations

import hashlib
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_builder import build_run

from molforge_eval import layout

_BUILD = "from molforge_eval.cli.report import main; main()"


def processor_seconds() -> float:
    """Return the processor time of all child processes so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build_once(run: Path) -> float:
    """Build the packet of a run in a process of its own; return its processor seconds."""
    began = processor_seconds()
    subprocess.run([sys.executable, "-c", _BUILD, "build", str(run), "--quiet"], check=True)
    return processor_seconds() - began


def digests(run: Path) -> dict[str, str]:
    """Hash the files of the packet."""
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in layout.PACKET_FILES}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        if len(sys.argv) > 1:
            shutil.copytree(sys.argv[1], run)
        else:
            build_run(run, seeds=16, steps=60, prompts=3, generations=8)
        first = build_once(run)
        made = digests(run)
        second = build_once(run)
        with (run / layout.ROLLOUTS).open("rb") as log:
            print(f"{'rollout lines':<24}{sum(1 for _ in log):>10,}")
        print(f"{'first build':<24}{first:>10.1f}  s of processor time")
        print(f"{'second build':<24}{second:>10.1f}  s of processor time")
        for name in layout.PACKET_FILES:
            print(f"{name:<24}{(run / name).stat().st_size / 1e6:>10.2f}  MB")
        print(f"{'same bytes twice':<24}{'yes' if digests(run) == made else 'NO':>10}")


if __name__ == "__main__":
    main()
