"""Whether a run survives being killed: `python -m benchmarks.kills [KILLS]`.

A small run of the built-in model is killed at random moments and goes on each time. After every kill the directory has
to validate as incomplete and to hold every line that it held before; at its end it has to be complete, and what stands
has to be, up to the moments of time, what a run that nobody disturbed gives.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from molforge_eval import layout
from molforge_eval.replay import verify
from molforge_eval.run_directory import load
from molforge_eval.validate import validate

KILLS = 20
STEPS_A_KILL = 12
"""More than a process gets done before it is killed, so that the run does not end before the kills do."""
FLAGS = (
    *("--preset", "tiny-cpu", "--num-generations", "2", "--batch-size", "4", "--gradient-accumulation", "1"),
    *("--dataset-size", "8", "--eval-seeds", "1", "--max-completion-length", "240", "--learning-rate", "0.02"),
    *("--save-steps", "2", "--run-name", "killed"),
)
SMALL = frozenset(
    {
        *("STEPS_RESUMED", "EPISODES_UNFINISHED", "REWARD_CONSTANT", "COMPLETIONS_CUT", "SIGNAL_ABSENT"),
        *("EVALUATION_MISSING", "EVALUATIONS_EQUAL", "ARTIFACT_MISSING"),
    }
)
"""What may be found in a run that went on to its end: what so short a training does, and evaluations left out."""
INCOMPLETE = SMALL | {
    *("RUN_INCOMPLETE", "CHECKSUMS_MISSING", "LINE_CUT", "FILE_STRAY"),
    *("PLOT_MISSING", "PLOT_UNLISTED", "ADAPTER_UNNAMED"),
}
"""What may be found in a run that was killed: what it lacks, besides."""
_START = "from molforge_train.cli import main; main()"
_LONGEST = 240.0


def command(words: Sequence[str]) -> list[str]:
    """Spell a call of the command line."""
    return [sys.executable, "-P", "-c", _START, *words, "--quiet"]


def start(words: Sequence[str], root: Path) -> subprocess.Popen[bytes]:
    """Start a process of the trainer that is killed sooner or later."""
    with (root / "killed.out").open("ab") as out:
        return subprocess.Popen(command(words), stdout=out, stderr=out, cwd=root)


def wait_until_written(process: subprocess.Popen[bytes], folder: Path, beyond: int) -> None:
    """Wait until the rollout log has more lines than it had, or the process has ended."""
    end = time.monotonic() + _LONGEST
    while process.poll() is None and len(lines_of(folder)) <= beyond and time.monotonic() < end:
        time.sleep(0.02)


def kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill a process; `False` when it had ended before."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    return process.wait() < 0


def lines_of(folder: Path, path: str = layout.ROLLOUTS) -> list[bytes]:
    """Read the whole lines of a log."""
    file = folder / path
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []


def faults_of_killed(folder: Path, before: Sequence[bytes]) -> Iterator[str]:
    """Say what is wrong with a directory after a kill.

    Args:
        folder: The run directory.
        before: Lines of the rollout log that were there at some moment before.
    """
    if not (folder / layout.MANIFEST).exists():
        return
    found = {item.code: item.what for item in validate(folder).findings}
    if not found.keys() & {"RUN_INCOMPLETE", "CHECKSUMS_MISSING"}:
        yield f"nothing says that the run is incomplete: {sorted(found)}"
    yield from (f"{code}: {what}" for code, what in sorted(found.items()) if code not in INCOMPLETE)
    if lines_of(folder)[: len(before)] != list(before):
        yield "lines that were written are gone"


def faults_of_finished(folder: Path, undisturbed: Path | None) -> Iterator[str]:
    """Say what is wrong with a directory that was killed and went on to its end."""
    yield from (f"{item.code}: {item.what}" for item in verify(folder).findings if item.code not in SMALL)
    if undisturbed is not None and told(folder) != told(undisturbed):
        yield "what stands is not what a run gives that nobody disturbed"


def told(folder: Path) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]], bytes]:
    """Return what stands of a run, without moments of time and names that tell parts apart."""
    run = load(folder)
    standing = set(run.rollouts["line"].to_list())
    lines = [orjson.loads(line) for number, line in enumerate(lines_of(folder), 1) if number in standing]
    for line in lines:
        for key in ("timestamp", "chain", "run_id", "episode_id"):
            line.pop(key)
    rows = run.trainer_log.select("type", "step", "reward", "loss", "grad_norm", "learning_rate").rows()
    weights = (folder / layout.ADAPTER_WEIGHTS).read_bytes()
    return lines, [row for row in rows if row[0] == "train"], weights


def main(kills: int) -> int:
    """Kill, go on, compare; return the exit code."""
    rng = random.Random(7)
    began = time.monotonic()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        steps = ("--max-steps", str(STEPS_A_KILL * kills))
        words = ["grpo", *FLAGS, *steps, "--output-root", str(root)]
        whole = ["grpo", *FLAGS, *steps, "--output-root", str(root / "whole")]
        subprocess.run(command(whole), check=True, stdout=subprocess.DEVNULL)
        folder = root / "killed"
        done = 0
        while done < kills:
            before = lines_of(folder)
            process = start(words if not (folder / layout.MANIFEST).exists() else ["resume", str(folder)], root)
            wait_until_written(process, folder, len(before))
            before = lines_of(folder)
            time.sleep(rng.uniform(0.0, 4.0))
            if not kill(process):
                break
            done += 1
            faults += [f"kill {done}: {fault}" for fault in faults_of_killed(folder, before)]
        code = subprocess.run(command(["resume", str(folder)]), check=False, stdout=subprocess.DEVNULL).returncode
        faults += [] if code == 0 or done < kills else [f"the last resume ended with exit code {code}"]
        faults += faults_of_finished(folder, root / "whole" / "killed")
    print(f"killed {done} times and gone on with in {time.monotonic() - began:.0f} s; faults: {len(faults)}")
    print("\n".join(faults))
    return 0 if not faults and done == kills else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else KILLS))
