"""The processes of one run: all play and learn, the first alone evaluates and writes.

A launcher (`torchrun`, `accelerate launch`) starts and numbers them. What the others have to tell goes to the first
over a channel of its own, so every file has one writer. The channel waits for days, because the first evaluates alone,
and breaks at once when a process ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from molforge_env.errors import UsageError

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

Told = TypeVar("Told")
_LONGEST_STEP = timedelta(minutes=30)
_LONGEST_EVALUATION = timedelta(days=30)
_NAMES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)
"""Variables of the launchers that the host libraries know, in their order: place, number, place on its machine."""
_LOST = ("connection closed", "connection reset", "broken pipe", "connection was closed", "remote process exited")


class Ranks(NamedTuple):
    """This process among those of its run."""

    rank: int = 0
    """Its number; 0 writes."""
    size: int = 1
    local: int = 0
    """Its number on its machine, which is that of its device."""
    channel: ProcessGroup | None = None
    """`None` before `join`, and where there is one process."""

    @property
    def is_first(self) -> bool:
        """Tell whether this process evaluates and writes."""
        return self.rank == 0

    def join(self, device: str) -> Ranks:
        """Meet the others.

        Args:
            device: As settled; of several of its kind each process takes its own.
        """
        if self.size == 1:
            return self
        import torch
        from torch import distributed

        if device == "cuda":
            torch.cuda.set_device(self.local)
        # Objects travel between processors, whatever the gradients travel on.
        backend = "cuda:nccl,cpu:gloo" if device == "cuda" else "gloo"
        distributed.init_process_group(backend, rank=self.rank, world_size=self.size, timeout=_LONGEST_STEP)
        return self._replace(channel=distributed.new_group(backend="gloo", timeout=_LONGEST_EVALUATION))

    def gather(self, value: Told) -> list[Told]:
        """Tell all processes what each has to tell, in their order."""
        if self.channel is None:
            return [value]
        from torch import distributed

        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value, group=self.channel)
        return found

    def hear_first(self, value: Told | None = None) -> Told:
        """Tell all processes what the first one says; the others wait for it."""
        return self.gather(value)[0]  # type: ignore[return-value] # the first one has a value


ALONE = Ranks()


def ranks_of(environment: Mapping[str, str]) -> Ranks:
    """Read what the launcher says.

    Args:
        environment: Variables of the process.

    Raises:
        UsageError: It says something that is no number.
    """
    for names in _NAMES:
        if (environment.get(names[1]) or "1") != "1":
            told = [environment.get(name) or "0" for name in names]
            # The host libraries read this one first, whoever started the processes.
            told[-1] = environment.get("LOCAL_RANK") or told[-1]
            if not all(text.isdecimal() for text in told):
                what = f"{names[0]} is {told[0]!r} and {names[1]} is {told[1]!r}"
                mend = f"Start it by torchrun, or unset {names[1]}."
                raise UsageError(what, where=f"environment variable {names[1]}", mend=mend)
            rank, processes, local = (int(text) for text in told)
            return Ranks(rank, processes, local)
    return ALONE


def is_alone_unasked(environment: Mapping[str, str]) -> bool:
    """Tell whether accelerate was asked for several processes and started one.

    Its launcher for processors names a meeting place when several are wanted, and starts them only through MPI.

    Args:
        environment: Variables of the process.
    """
    wanted = "ACCELERATE_MIXED_PRECISION" in environment and "MASTER_ADDR" in environment
    return wanted and not any(names[1] in environment for names in _NAMES)


def is_lost(error: BaseException) -> bool:
    """Tell whether an error says that another process has ended."""
    return any(words in str(error).lower() for words in _LOST)


def leave_at_once(code: int) -> None:
    """End a process that has met others; one that was alone is left as it is.

    Taking a channel down was seen to wait for a peer that is gone, so nothing is taken down.

    Args:
        code: Exit code.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
