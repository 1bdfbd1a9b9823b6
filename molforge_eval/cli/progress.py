"""What is being done, on standard error: the stage, and a bar while episodes are played.

Nothing is shown when standard error is no terminal, or when the caller wants it quiet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

STAGES = {
    "read": "reading",
    "check": "checking the files",
    "play": "checking, playing again",
    "judge": "judging before and after",
    "compare": "holding the runs against each other",
    "draw": "drawing the charts",
    "page": "making the page",
    "paper": "printing the paper",
    "write": "writing the files",
    "pack": "packing the archive",
}


class Progress(NamedTuple):
    """Where a piece of work tells how far it is; `None` where nobody looks."""

    stage: Callable[[str], None] | None
    episodes: Callable[[int, int], None] | None
    run: Callable[[int, int, str], None] | None
    """Number of the run, number of runs, its name."""


@contextmanager
def show_progress(*, quiet: bool) -> Iterator[Progress]:
    """Show the progress of what is done inside."""
    if quiet or not sys.stderr.isatty():
        yield Progress(None, None, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from molforge_eval.catalogue import printable

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        before = ""

        def tell_stage(stage: str) -> None:
            nonlocal task
            # A total that is known cannot be taken back, and the next stage does not know how much it has to do.
            bar.remove_task(task)
            task = bar.add_task(f"{before}{STAGES[stage]}", total=None)

        def tell_run(number: int, runs: int, name: str) -> None:
            nonlocal before
            # The name of a file is its maker's, and a terminal obeys what it is told.
            before = f"run {number} of {runs}, {printable(name)}: " if name else ""

        def tell_episodes(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield Progress(tell_stage, tell_episodes, tell_run)
