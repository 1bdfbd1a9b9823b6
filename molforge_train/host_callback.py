"""What we hang on the host trainer: a row for each log, word of each step, and a stop that ends a step first.

Checkpoints are made only where a batch of episodes is used up: the host keeps no episodes in a checkpoint.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from molforge_train.ranks import ALONE, Ranks
from molforge_train.trainer_log import TrainerLog
from molforge_train.watch import GradientWatch

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


_WAITING = "the run ends when the steps of this batch are done and saved; the same signal again ends it at once"


class StopRequest:
    """Whether a signal or a lack of room has asked the run to end."""

    def __init__(self, pause: float = 0.0, *, tells: bool = False) -> None:
        """Nothing asked yet.

        Args:
            pause: Seconds in which signals are one: a terminal sends it to all processes, and a launcher once more.
            tells: Say on standard error that a signal was heard and what it waits for.
        """
        self.signal_name: str | None = None
        self.reason: str | None = None
        """Why it has to end when no signal asked it."""
        self.is_patient = False
        """A step or the sealing is under way and shall end first; else a signal takes effect at once."""
        self._pause = pause
        self._heard = -pause
        self._tells = tells

    @property
    def is_wanted(self) -> bool:
        """Whether the run is to end."""
        return self.signal_name is not None or self.reason is not None

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Note a signal; a second one, or one that nothing has to wait for, interrupts at once.

        Raises:
            KeyboardInterrupt: There is no step to wait for, or waiting was not wanted.
        """
        now = time.monotonic()
        if self.signal_name is not None and now - self._heard < self._pause:
            return
        again = self.signal_name is not None
        self.signal_name = signal.Signals(number).name
        self._heard = now
        if again or not self.is_patient:
            raise KeyboardInterrupt
        if self._tells:
            # The stream of Python may be in the middle of a line here, and refuses a second writer.
            with suppress(OSError):
                os.write(2, f"{self.signal_name}: {_WAITING}\n".encode())

    def agreed(self, ranks: Ranks) -> tuple[str | None, str | None]:
        """Settle with all processes whether to end: the signal's name and the reason that any of them has.

        What comes to one of them later waits for the next time, or they would part ways.
        """
        told = ranks.gather((self.signal_name, self.reason))
        name = next((name for name, _ in told if name is not None), None)
        reason = next((reason for _, reason in told if reason is not None), None)
        self.signal_name, self.reason = self.signal_name or name, self.reason or reason
        return name, reason


@contextmanager
def listening(pause: float = 0.0, *, tells: bool = True) -> Iterator[StopRequest]:
    """Turn interrupt, terminate and hang-up into a stop request while the block runs.

    Args:
        pause: Seconds in which signals are one.
        tells: Say that a signal was heard; one process of several does.
    """
    request = StopRequest(pause, tells=tells)
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers; a run in another one cannot be stopped by a signal.
        yield request
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    # Under `nohup` a hang-up is ignored, and stays so; Windows has none.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, request.receive) for number in numbers]
    try:
        yield request
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Hooks(NamedTuple):
    """What a run does when the host tells it something."""

    on_begin: Callable[[Any], object]
    """Gets the model before the first step."""
    on_step: Callable[[int], object]
    """Gets the number of steps when one has ended."""
    on_saved: Callable[[int], object]
    """Gets the step of a checkpoint that was written."""


def host_callback(
    log: TrainerLog | None, stop: StopRequest, hooks: Hooks, *, steps_a_batch: int, ranks: Ranks = ALONE
) -> TrainerCallback:
    """Make the callback; its class is made here because the host's base class is costly to import.

    Args:
        log: Gets a row for each log; `None` in a process that does not write.
        stop: Asked after each step.
        hooks: Called as the training goes on.
        steps_a_batch: Optimizer steps that use one batch of episodes.
        ranks: The processes that train together.
    """
    from transformers import TrainerCallback

    gradients = GradientWatch()

    class RunCallback(TrainerCallback):
        is_save_due = False

        def on_train_begin(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **told: Any
        ) -> None:
            stop.is_patient = True
            hooks.on_begin(told["model"])

        def on_pre_optimizer_step(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **told: Any
        ) -> None:
            gradients.look(told["model"])

        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            step = state.global_step
            hooks.on_step(step)
            is_between = step % steps_a_batch == 0 or step >= state.max_steps
            signal_name, reason = stop.agreed(ranks)
            self.is_save_due |= control.should_save or signal_name is not None
            # A disk that is nearly full has no room for a checkpoint, and no step is worth waiting for.
            control.should_save = self.is_save_due and is_between and reason is None
            if reason is not None or (signal_name is not None and is_between):
                control.should_training_stop = True

        def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            self.is_save_due = False
            # Each process has its own part of a checkpoint.
            ranks.gather(None)
            hooks.on_saved(state.global_step)

        def on_log(
            self,
            args: TrainingArguments,
            state: TrainerState,
            control: TrainerControl,
            logs: dict[str, Any] | None = None,
            **_: Any,
        ) -> None:
            if log is None:
                return
            values = dict(logs or {})
            # The host logs the norm of the last step only; a row answers for every step since the one before it.
            if gradients.take() and "grad_norm" in values:
                values["grad_norm"] = float("nan")
            log.write(state.global_step, values)

    return RunCallback()
