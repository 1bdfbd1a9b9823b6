"""How fast evidence is read, checked and played again on this machine.

`python -m benchmarks.validation [LINES]` plays a small run, repeats its rollout lines to 100,000 or to LINES, seals it
and prints the time of each stage. Times are of the process, so that other work on the machine counts less.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_builder import build_run, edit_json, read_lines, reseal, write_lines

from molforge_eval import layout
from molforge_eval.canonical import JsonValue
from molforge_eval.replay import line_tasks, replay_batch
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.validate import CHECKS, Check, validate

_LINES = 100_000
_REPLAYED = 1_000


def make_run(folder: Path, lines_wanted: int) -> int:
    """Make a sealed run with at least so many rollout lines; returns how many there are."""
    run = build_run(folder, plots=False)
    lines = read_lines(run)
    steps = 1 + max(line["trainer_step"] for line in lines)
    times = -(-lines_wanted // len(lines))
    repeated = [_moved(line, round_number * steps) for round_number in range(times) for line in lines]
    write_lines(run, repeated)

    def lengthen(manifest: JsonValue) -> None:
        manifest["configuration"]["max_steps"] = manifest["steps_completed"] = times * steps

    edit_json(run, layout.MANIFEST, lengthen)
    reseal(run)
    return len(repeated)


def _moved(line: dict[str, JsonValue], by: int) -> dict[str, JsonValue]:
    step = line["trainer_step"] + by
    return {**line, "trainer_step": step, "episode_id": f"step{step:05d}-{line['episode_id'].partition('-')[2]}"}


def _exhaust(check: Check, run: RunDirectory) -> int:
    return sum(1 for _ in check(run))


def timed(work: Callable[[], object]) -> float:
    """Measure the seconds of this process that some work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Print the table."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else _LINES
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        lines = make_run(folder, wanted)
        size = (folder / layout.ROLLOUTS).stat().st_size
        reading = timed(lambda: load(folder))
        run = load(folder)
        print(f"{'rollout lines':<34}{lines:>10,}  of {size / lines:,.0f} bytes")
        print(f"{'read, gate, schema, chain':<34}{lines / reading:>10,.0f}  lines a second")
        for name, check in CHECKS.items():
            seconds = timed(partial(_exhaust, check, run))
            print(f"{'check ' + name:<34}{seconds:>10.2f}  s")
        print(f"{'validate, all':<34}{timed(lambda: validate(folder)):>10.2f}  s")
        tasks = list(line_tasks(run))[:_REPLAYED]
        seconds = timed(lambda: replay_batch(tasks))
        print(f"{'replay, one process':<34}{len(tasks) / seconds:>10,.0f}  episodes a second")
        print(f"{'most memory':<34}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:>10.2f}  GiB")


if __name__ == "__main__":
    main()
