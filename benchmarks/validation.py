"""How fast evidence is read, checked and played again on this machine, beside plain `jsonschema`.

`python -m benchmarks.validation [LINES]` makes a sound run of 100,000 rollout lines, or of LINES, and prints the time
of each stage. Times are of the process, so that other work on the machine counts less; those of a whole command are of
a new process, by the clock and by the processor. `python -m benchmarks.validation --replay` plays 5,000 episodes again.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import jsonschema

from benchmarks.large_run import LargeRun, make_run
from molforge_eval import layout, schema_files
from molforge_eval.json_lines import read_batches
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS
from molforge_eval.log_tables import read_rollouts
from molforge_eval.replay import line_tasks, replay_tasks
from molforge_eval.rollout_chains import chains_hold
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.run_files import list_run
from molforge_eval.shape import shape_of
from molforge_eval.validate import CHECKS, Check

_LINES = 100_000
_DEMO_LINES = 5_000
_SAMPLE = 20_000
"""Lines that the stages of reading are measured on, without those that carry a prompt: about a kilobyte each."""
_REFERENCE = 400
"""Lines that plain `jsonschema` is measured on."""
_EPISODES = 5_000
_STEPS = 7
_WORKERS = 2
_TIMES = 12
"""A short piece of work is done so often, and its best time counts."""


class Cost(NamedTuple):
    """What a command cost."""

    wall: float
    """Seconds by the clock."""
    processor: float
    """Seconds of all its threads."""
    memory: float
    """GiB at the most."""


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if "--replay" in arguments:
            _print_replay(make_run(folder / "run", _EPISODES * _STEPS * 2))
            return
        wanted = int(arguments[0]) if arguments else _LINES
        run = make_run(folder / "run", wanted)
        _print_reading(run)
        _print_checks(run)
        _print_command(f"validate, {run.lines:,} lines", run.folder)
        _print_command(f"validate, {_DEMO_LINES:,} lines", make_run(folder / "small", _DEMO_LINES).folder)
        help_time = min(_cost_of("--help").wall for _ in range(_TIMES))
        _print("molforge-eval --help", f"{help_time:>12.2f}", "s by the clock")


def _print_reading(run: LargeRun) -> None:
    """Measure reading on lines in memory, stage upon stage, and beside it the reference."""
    sample = _sample_of(run)
    count, size = sample.count(b"\n"), len(sample)
    _print("rollout lines", f"{run.lines:>12,}", f"of {run.log_bytes / run.lines:,.0f} bytes")
    _print("lines of the sample", f"{count:>12,}", f"of {size / count:,.0f} bytes")
    reference = _REFERENCE / timed(partial(_read_plainly, sample))
    _print("json and jsonschema", f"{reference:>12,.0f}", "lines a second")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / layout.ROLLOUTS
        path.parent.mkdir()
        path.write_bytes(sample)
        files = list_run(Path(scratch))
        stages: dict[str, Callable[[], object]] = {
            "read, gate, schema": partial(_read_gated, path, with_chain=False),
            "read, gate, schema, chain": partial(_read_gated, path, with_chain=True),
            "read, gate, schema, chain, table": lambda: read_rollouts(files, Ledger(), DEFAULT_LIMITS),
        }
        for name, work in stages.items():
            speed = count / timed(work)
            _print(name, f"{speed:>12,.0f}", f"lines a second, {speed / reference:,.0f} times as many")


def _sample_of(run: LargeRun) -> bytes:
    with (run.folder / layout.ROLLOUTS).open("rb") as log:
        return b"".join(islice((line for line in log if b'"prompt":null' in line), _SAMPLE))


def _read_plainly(sample: bytes) -> None:
    validator = jsonschema.Draft202012Validator(
        schema_files.load("rollout_line"), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    for line in sample.splitlines()[:_REFERENCE]:
        validator.validate(json.loads(line))


def _read_gated(path: Path, *, with_chain: bool) -> None:
    fits = shape_of("rollout_line").fits
    last: dict[str, str] = {}
    with path.open("rb") as log:
        for batch in read_batches(log, DEFAULT_LIMITS):
            if batch.faults or not all(map(fits, batch.values)):
                raise ValueError("the sample holds a line that is not sound")
            if with_chain:
                chains_hold(batch.values, last)


def _print_checks(made: LargeRun) -> None:
    run = load(made.folder)
    for name, check in CHECKS.items():
        seconds = timed(partial(_exhaust, check, run), times=1)
        _print(f"check {name}", f"{seconds:>12.2f}", "s")


def _exhaust(check: Check, run: RunDirectory) -> int:
    return sum(1 for _ in check(run))


def _print_command(name: str, folder: Path) -> None:
    cost = _cost_of("validate", str(folder))
    words = f"s by the clock, {cost.processor:.1f} s of processor time, {cost.memory:.2f} GiB at the most"
    _print(name, f"{cost.wall:>12.1f}", words)


def _print_replay(made: LargeRun) -> None:
    whole = [task for task in line_tasks(load(made.folder)) if len(task.numbers) == _STEPS]
    tasks = list(islice(cycle(whole), _EPISODES))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    played = list(replay_tasks(tasks, workers=_WORKERS))
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    differing = sum(batch.differing for batch in played)
    name = f"replay, {len(tasks):,} of {_STEPS} lines"
    words = f"s by the clock, {busy:.1f} s of processor time in {_WORKERS} workers, {differing} episodes differ"
    _print(name, f"{seconds:>12.1f}", words)


def _cost_of(*arguments: str) -> Cost:
    """Run `molforge-eval` in a new process, its output thrown away."""
    code = "import sys; from molforge_eval.cli.evaluate import main; sys.exit(main())"
    command = [sys.executable, "-P", "-c", code, *arguments]
    began = time.perf_counter()
    with Path(os.devnull).open("w") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        child = os.posix_spawn(
            sys.executable, command, {**os.environ, "PYTHONPATH": str(Path.cwd())}, file_actions=actions
        )
        _, _, used = os.wait4(child, 0)
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20)


def timed(work: Callable[[], object], *, times: int = _TIMES) -> float:
    """Measure the seconds of this process that some work takes, the best of several times."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def _print(name: str, number: str, words: str) -> None:
    print(f"{name:<34}{number}  {words}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
