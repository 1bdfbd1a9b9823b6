"""The second half of a long rollout log, read by a process of its own while this one reads the first.

Its table is taken only when nothing at all is wrong with that half and the process came to its end. In every other case
this process reads on by itself: it alone names what is wrong, and speed is only for lines that nothing is wrong with.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.json_lines import Batch, read_batches
from molforge_eval.limits import Limits
from molforge_eval.rollout_chains import chains_hold
from molforge_eval.rollout_table import GrowingTable
from molforge_eval.run_files import RunFiles
from molforge_eval.shape import shape_of
from molforge_eval.strict_json import read_value

SPLIT_BYTES = 2**26
"""Size from which a log is worth a second process."""
_ODD = 3
"""Exit code: a line of the half is not plainly sound."""
_LONGEST_WAIT = 120
"""Seconds that the second half may take longer than the first."""
_MOST_OPEN = 10_000
"""Episodes that have lines in both halves."""


class SecondHalf(NamedTuple):
    """A half that is being read."""

    begin: int
    """Byte of the log at which it begins; a line begins there."""
    process: subprocess.Popen[bytes]

    def place_in(self, batch: Batch) -> int | None:
        """Find the line of a batch that this half begins with; `None` when it is not there or something is wrong."""
        # A fault may be the one after which no more is read.
        if batch.faults or not batch.starts or not batch.starts[0] <= self.begin <= batch.starts[-1]:
            return None
        starts = list(batch.starts)
        return starts.index(self.begin) if self.begin in starts else None

    def wait(self) -> pl.DataFrame | None:
        """Wait for the table of this half, its lines counted from 1; `None` when it cannot be had."""
        try:
            data, _ = self.process.communicate(timeout=_LONGEST_WAIT)
            return pl.read_ipc_stream(io.BytesIO(data)) if self.process.returncode == 0 else None
        except (OSError, MemoryError, subprocess.TimeoutExpired, pl.exceptions.PolarsError):
            return None


@contextmanager
def reading_second_half(files: RunFiles, limits: Limits, *, split_bytes: int) -> Iterator[SecondHalf | None]:
    """Have the second half of the rollout log read for as long as the context lasts.

    Args:
        files: The run.
        limits: Bounds on one line.
        split_bytes: Size from which a log is worth a second process.

    Yields:
        The half; `None` when the log is short or absent, there is one core, or no process can be started.
    """
    half = _start(files, limits) if files.sizes.get(layout.ROLLOUTS, 0) >= split_bytes and _cores() > 1 else None
    if half is None:
        yield None
        return
    with half.process:
        try:
            yield half
        finally:
            half.process.kill()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(files: RunFiles, limits: Limits) -> SecondHalf | None:
    try:
        with files.open(layout.ROLLOUTS) as log:
            log.seek(files.sizes[layout.ROLLOUTS] // 2)
            if not log.readline(limits.line_bytes + 1).endswith(b"\n"):
                return None
            begin = log.tell()
            # -P: the working folder may be a stranger's, and a module that lies in it must not be imported.
            command = [sys.executable or "", "-P", "-m", __name__, str(begin), limits.model_dump_json()]
            process = subprocess.Popen(  # noqa: S603 # our own module, no shell
                command, stdin=log, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
    except OSError:
        return None
    return SecondHalf(begin, process)


def join(
    half: pl.DataFrame, files: RunFiles, limits: Limits, *, lines: int, last: Mapping[str, str]
) -> pl.DataFrame | None:
    """Number the lines of a second half on, and chain its episodes to what stands before it.

    Args:
        half: Its table.
        files: The run.
        limits: Bounds on one line.
        lines: Lines of the log before it.
        last: Chain value of the latest row before it of each episode.

    Returns:
        The table; `None` when very many episodes have lines in both halves, or the log is no longer what it was.
    """
    firsts = half.select("episode_id", "start").with_row_index("place")
    firsts = firsts.unique("episode_id", keep="first", maintain_order=True)
    seams = [(place, start) for place, episode_id, start in firsts.iter_rows() if episode_id in last]
    if len(seams) > _MOST_OPEN:
        return None
    try:
        with files.open(layout.ROLLOUTS) as log:
            rows = [_row_at(start, log, limits) for _, start in seams]
    except OSError:
        return None
    if not all(map(shape_of("rollout_line").fits, rows)):
        return None
    holds = half["chain_holds"].scatter([place for place, _ in seams], chains_hold(rows, dict(last)))
    return half.with_columns(pl.col("line") + lines, holds)


def _row_at(start: int, log: BinaryIO, limits: Limits) -> dict[str, object]:
    log.seek(start)
    row: dict[str, object] = read_value(log.readline(limits.line_bytes + 1).rstrip(b"\r\n"), limits).value
    return row


def read_half(log: BinaryIO, limits: Limits) -> pl.DataFrame | None:
    """Read a rollout log from where it stands to its end, episodes as if none had a line before.

    Returns:
        Its table, lines counted from 1; `None` as soon as anything is wrong with a line, its chain apart.
    """
    fits = shape_of("rollout_line").fits
    growing = GrowingTable()
    last: dict[str, str] = {}
    for batch in read_batches(log, limits):
        if batch.faults or not all(map(fits, batch.values)):
            return None
        growing.add(batch.numbers, batch.starts, batch.values, chains_hold(batch.values, last))
    return growing.table()


def main(begin: int, limits: Limits) -> int:
    """Read standard input from a byte on and write its table to standard output; return the exit code."""
    sys.stdin.buffer.seek(begin)
    table = read_half(sys.stdin.buffer, limits)
    if table is None:
        return _ODD
    # Packed: the same words stand in many lines, and the table passes through the memory of both processes.
    table.write_ipc_stream(sys.stdout.buffer, compression="lz4")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Limits.model_validate_json(sys.argv[2])))
