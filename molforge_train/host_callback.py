"""What we hang on the host trainer: a row for each log, word of each step, and a stop that ends a step first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from molforge_train.trainer_log import TrainerLog

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class StopRequest:
    """Whether a signal has asked the run to end, and which one."""

    def __init__(self) -> None:
        """Nothing asked yet."""
        self.signal_name: str | None = None
        self.in_training = False
        """Steps are under way, and the one that is shall end first; outside a signal takes effect at once."""

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Note a signal; a second one, or one outside training, interrupts at once.

        Raises:
            KeyboardInterrupt: There is no step to wait for, or waiting was not wanted.
        """
        again = self.signal_name is not None
        self.signal_name = signal.Signals(number).name
        if again or not self.in_training:
            raise KeyboardInterrupt


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Turn interrupt, terminate and hang-up into a stop request while the block runs."""
    request = StopRequest()
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


def host_callback(log: TrainerLog, stop: StopRequest, on_step: Callable[[int], object]) -> TrainerCallback:
    """Make the callback; its class is made here because the host's base class is costly to import.

    Args:
        log: Gets a row for each log.
        stop: Asked after each step.
        on_step: Called with the number of steps when one has ended.
    """
    from transformers import TrainerCallback

    class RunCallback(TrainerCallback):
        def on_train_begin(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
        ) -> None:
            stop.in_training = True

        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            on_step(state.global_step)
            if stop.signal_name is not None:
                control.should_training_stop = True

        def on_log(
            self,
            args: TrainingArguments,
            state: TrainerState,
            control: TrainerControl,
            logs: dict[str, Any] | None = None,
            **_: Any,
        ) -> None:
            log.write(state.global_step, logs or {})

    return RunCallback()
