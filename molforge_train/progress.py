"""Progress on standard error: a live line on a terminal, ten plain lines elsewhere, none when asked to be quiet."""

from __future__ import annotations

import sys
import time


class Progress:
    """The course of one run of `total` steps."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        """Show nothing yet."""
        self._total = total
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._began = time.perf_counter()

    def show(self, step: int, figures: str) -> None:
        """Show the step with its figures and the time that is left."""
        if self._quiet or not (self._live or step == self._total or step % max(1, self._total // 10) == 0):
            return
        spent = time.perf_counter() - self._began
        left = spent / step * (self._total - step)
        text = f"step {step}/{self._total}  {figures}  {spent:.0f} s, {left:.0f} s left"
        # On a terminal the line is written over; erasing to its end needs no width.
        line = f"\r{text}\x1b[K" if self._live else f"{text}\n"
        try:
            sys.stderr.write(f"{line}\n" if self._live and step == self._total else line)
            sys.stderr.flush()
        except OSError:
            # A terminal that was closed, or a full disk behind it, fails no training.
            self._quiet = True
