"""Make the sample run that tests read: `python tools/sample_run.py`, after a record has changed its shape.

A short run of the tiny model, sealed, before any packet was built from it; about a minute on two idle cores.
"""

from __future__ import annotations

import gzip
import tarfile
import tempfile
from contextlib import chdir
from pathlib import Path

from molforge_train.config import resolve
from molforge_train.preflight import check
from molforge_train.recording import read_clock
from molforge_train.training_run import train

TARGET = Path(__file__).resolve().parent.parent / "tests" / "data" / "sample_run.tar.gz"
FLAGS = {"run_name": "sample", "max_steps": "16", "dataset_size": "24", "eval_seeds": "8"}


def make_sample(target: Path) -> None:
    """Train, and pack the run directory without dates and owners."""
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        resolved = resolve("tiny-cpu", FLAGS, {}, now=read_clock())
        check(resolved.configuration, {})
        folder = train(resolved, quiet=False, say=lambda _: None).folder
        target.parent.mkdir(parents=True, exist_ok=True)
        with gzip.GzipFile(target, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.add(path, f"{folder.name}/{path.relative_to(folder).as_posix()}", filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


if __name__ == "__main__":
    make_sample(TARGET)
