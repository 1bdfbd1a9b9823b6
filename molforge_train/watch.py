"""What can go wrong in training without an error: nothing to learn from, gradients that are no numbers, a full disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 10
"""Batches in a row without a learning signal before the run says so."""
FREE_BYTES = 256 * 2**20
"""Room on the disk that a run keeps for its end: pictures, seal and archive."""


class BatchSigns(NamedTuple):
    """What a batch of episodes says about learning."""

    rewards: Sequence[Sequence[float | None]]
    """Of each group; `None` where the environment broke."""
    calls: int
    """Tool calls that were parsed."""
    cut: int
    """Episodes that ended at the length limit."""
    episodes: int


class SignalWatch:
    """Counts the batches in a row that teach nothing, and warns once when they are many."""

    def __init__(self, warn: Callable[[str], object], patience: int = PATIENCE) -> None:
        """Start with nothing seen.

        Args:
            warn: Gets a sentence.
            patience: Batches in a row before it does.
        """
        self._warn = warn
        self._patience = patience
        self._idle = 0

    def see(self, signs: BatchSigns, step: int) -> None:
        """Take the next batch, generated at an optimizer step."""
        if any(len({pay for pay in group if pay is not None}) > 1 for group in signs.rewards):
            self._idle = 0
            return
        self._idle += 1
        if self._idle == self._patience:
            self._warn(f"no learning signal in {self._idle} batches up to step {step}: {_reason(signs)}")


def _reason(signs: BatchSigns) -> str:
    if not signs.calls:
        return "no tool call was parsed; warm the model up with an SFT adapter that speaks the tools' form"
    if signs.cut == signs.episodes:
        return "all completions were cut at their limit; raise MAX_COMPLETION_LENGTH"
    return "all rewards are equal within groups; raise NUM_GENERATIONS or the temperature, or take easier tasks"


class GradientWatch:
    """Notes steps whose gradient is not finite: rows of the log, which come every some steps, may miss them."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._seen = False

    def look(self, model: Any) -> None:
        """Look at the gradients before the optimizer uses them."""
        import torch

        grads = [weight.grad for weight in model.parameters() if weight.grad is not None]
        # One sum for all: a number that is not finite makes the sum not finite, and the device is asked once.
        total = sum((grad.detach().float().abs().sum() for grad in grads), start=torch.zeros(()))
        self._seen |= not bool(torch.isfinite(total))

    def take(self) -> bool:
        """Tell whether there was one since the last row, and start anew."""
        seen, self._seen = self._seen, False
        return seen


def full_disk(folder: Path) -> str | None:
    """Say that the disk of a folder is nearly full; `None` while there is room."""
    left = shutil.disk_usage(folder).free
    if left >= FREE_BYTES:
        return None
    return f"a disk nearly full ({left // 2**20} MiB free, {FREE_BYTES // 2**20} MiB are kept for the end)"
