"""Progress on standard error: a live line on a terminal, ten plain lines elsewhere, none when asked to be quiet.

Training has a table of its own: a row a step, so that what was seen can be read again.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

_ROWS_A_HEAD = 25
_MINUTE = 60


class Progress:
    """The course of work on `total` things of one kind."""

    def __init__(self, total: int, *, quiet: bool, unit: str = "step") -> None:
        """Show nothing yet."""
        self._total = total
        self._unit = unit
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._began = time.perf_counter()
        self._done: int | None = None

    def show(self, step: int, figures: str) -> None:
        """Show the step with its figures and the time that is left; the first one may go on from earlier ones."""
        if self._done is None:
            self._done = step - 1
        if self._quiet or not (self._live or step == self._total or step % max(1, self._total // 10) == 0):
            return
        spent = time.perf_counter() - self._began
        left = spent / (step - self._done) * (self._total - step)
        text = f"{self._unit} {step}/{self._total}  {figures}  {spent:.0f} s, {left:.0f} s left"
        # On a terminal the line is written over; erasing to its end needs no width.
        line = f"\r{text}\x1b[K" if self._live else f"{text}\n"
        self._quiet = not tell(f"{line}\n" if self._live and step == self._total else line)


class BatchFigures(NamedTuple):
    """What the last batch of training episodes came to."""

    reward: float
    strict_score: float
    """Of the same episodes."""
    submit_rate: float
    veto_rate: float
    """Share of calls."""
    no_call_rate: float
    """Share of episodes that ended without a call."""


class TrainingTable:
    """The table of a training of `total` steps: a row a step, with a head above it."""

    def __init__(self, total: int, *, quiet: bool, done: int = 0) -> None:
        """Show nothing yet.

        Args:
            total: Steps of the whole run.
            quiet: Show no rows; warnings are told all the same.
            done: Steps that were done before.
        """
        self._total = total
        self._quiet = quiet
        self._done = done
        self._rows = 0
        self._began = self._last = time.perf_counter()

    def show(self, step: int, figures: BatchFigures | None) -> None:
        """Show a step that has ended."""
        now = time.perf_counter()
        spent, self._last = now - self._last, now
        if self._quiet or figures is None:
            return
        left = (now - self._began) / max(1, step - self._done) * (self._total - step)
        lines = []
        if self._rows % _ROWS_A_HEAD == 0:
            lines.append("     step   reward   strict  submit    veto  no call     time      left")
        self._rows += 1
        name = f"{step}/{self._total}"
        lines.append(
            f"{name:>9}  {figures.reward:>7.3f}  {figures.strict_score:>7.3f}  {figures.submit_rate:>6.0%}"
            f"  {figures.veto_rate:>6.0%}  {figures.no_call_rate:>7.0%}  {spent:>5.1f} s  {_clock(left):>8}"
        )
        self._quiet = not tell("\n".join([*lines, ""]))


def warn(text: str) -> None:
    """Tell a warning on standard error."""
    tell(f"warning: {text}\n")


def tell(text: str) -> bool:
    """Write to standard error; `False` when nobody can read it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # A terminal that was closed, or a full disk behind it, fails no training.
        return False
    return True


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
