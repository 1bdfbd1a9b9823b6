"""Whether training works: the shipped preset over several seeds, before and after, by the verdict's own rule.

`python -m benchmarks.learning --seeds 1 2 3` trains once a seed and prints one row each. Runs are kept with `--root`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from molforge_eval.run_directory import load
from molforge_eval.verdict import decide
from molforge_train.config import process_environment, resolve
from molforge_train.preflight import check
from molforge_train.recording import read_clock
from molforge_train.training_run import train

HEAD = ("seed", "train s", "greedy before", "after", "sampled before", "after", "difference [95 %]", "verdict")


def run_seed(preset: str, seed: int, root: Path) -> tuple[str, ...]:
    """Train one seed and read its row from the run directory."""
    flags = {"seed": str(seed), "output_root": str(root), "run_name": f"{preset}-seed-{seed}"}
    resolved = resolve(preset, flags, process_environment(), now=read_clock())
    check(resolved.configuration, {})
    run = load(train(resolved, quiet=False, say=lambda line: print(line, file=sys.stderr)).folder)
    if run.plan is None or run.before is None or run.after is None or run.manifest is None:
        raise SystemExit("a record of the run is missing")
    verdict = decide(run.before, run.after, run.plan)
    greedy, sampled = verdict.greedy, verdict.sampled
    interval = "unknown" if sampled.interval is None else f"{sampled.interval.low:.3f}, {sampled.interval.high:.3f}"
    return (
        str(seed),
        f"{run.manifest.training_seconds or 0:.0f}",
        spelled(greedy.before_mean),
        spelled(greedy.after_mean),
        spelled(sampled.before_mean),
        spelled(sampled.after_mean),
        f"{spelled(sampled.difference)} [{interval}]",
        verdict.outcome,
    )


def spelled(value: float | None) -> str:
    """Spell a score with three decimals."""
    return "unknown" if value is None else f"{value:.3f}"


def main() -> None:
    """Train every seed and print the table as each row is done."""
    parser = argparse.ArgumentParser(description="Train the shipped preset over several seeds.")
    parser.add_argument("--preset", default="tiny-cpu")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--root", type=Path, help="keep the run directories here")
    given = parser.parse_args()
    with ExitStack() as stack:
        root = given.root or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(" | ".join(HEAD), flush=True)
        for seed in given.seeds:
            print(" | ".join(run_seed(given.preset, seed, root)), flush=True)


if __name__ == "__main__":
    main()
