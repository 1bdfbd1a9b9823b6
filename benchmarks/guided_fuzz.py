"""The readers under a fuzzer that looks at which lines an input reached, where atheris is installed.

`python -m benchmarks.guided_fuzz [INPUTS]` gives each reader of `benchmarks.fuzz` so many inputs in a process of its
own, and prints, last, `inputs=N tracebacks=N`. Atheris is no dependency: it has builds for Linux and some versions of
Python only (`pip install atheris`). Without it this program says so and leaves the work to `benchmarks.fuzz`.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

INPUTS = 2_000
"""Inputs a reader; the table of `benchmarks.fuzz` tells what one costs."""
SEED = 7
_LONGEST = 65_536
_MOST_SHOWN = 4_000
_CHILD = "--reader"
_RARE = 5
"""A reader with a smaller share in `benchmarks.fuzz` judges a whole run at each input: it is asked far less often."""


def fuzz_reader(name: str, inputs: int) -> None:
    """Fuzz one reader; atheris ends the process, with an exit code other than 0 at the first traceback."""
    import atheris

    with atheris.instrument_imports(include=["molforge_eval"]):
        from benchmarks.fuzz import READERS, set_stage
    from molforge_env.errors import MolForgeError

    (reader,) = (entry for entry in READERS if entry.name == name)
    seed_name = reader.seeds[0]
    with set_stage() as stage, tempfile.TemporaryDirectory(prefix="molforge-corpus-") as corpus:
        sound = stage.seeds.get(f"short:{seed_name}") or stage.seeds[seed_name]
        (Path(corpus) / "sound").write_bytes(sound)

        def read(data: bytes) -> None:
            try:
                reader.read(stage, seed_name, data)
            except MolForgeError:
                return

        options = [f"-runs={inputs}", f"-seed={SEED}", f"-max_len={_LONGEST}", "-verbosity=0", "-print_final_stats=1"]
        # What libFuzzer saves of a crash goes beside the corpus, which is removed.
        atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus}/", corpus], read)
        atheris.Fuzz()


def main() -> int:
    """Fuzz every reader, print a line for each, and return the exit code."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed; `python -m benchmarks.fuzz` spoils inputs without it")
        return 0
    from benchmarks.fuzz import READERS

    inputs = int(sys.argv[1]) if len(sys.argv) > 1 else INPUTS
    read = tracebacks = 0
    for reader in READERS:
        wanted = max(1, inputs // 100) if reader.share < _RARE else inputs
        line = [sys.executable, "-m", "benchmarks.guided_fuzz", _CHILD, reader.name, str(wanted)]
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False)
        counted = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        ran = int(counted[1]) if counted else 0
        read += ran
        if done.returncode:
            tracebacks += 1
            print(done.stdout[-_MOST_SHOWN:], done.stderr[-_MOST_SHOWN:], sep="\n")
        print(f"{reader.name:<18}{ran:>11}  {'stopped' if done.returncode else 'no traceback'}")
    print(f"inputs={read} tracebacks={tracebacks}")
    return 1 if tracebacks else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [_CHILD]:
        fuzz_reader(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
