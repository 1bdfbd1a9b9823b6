from __future__ import annotations

import os
import signal

import pytest

from molforge_train.host_callback import listening


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_in_training_waits_for_the_step_and_the_old_handler_comes_back(name: str) -> None:
    number = signal.Signals[name]
    # The tests themselves may run where a signal is ignored, as under `nohup`.
    outside = signal.signal(number, signal.SIG_DFL)
    try:
        with listening() as stop:
            stop.in_training = True
            os.kill(os.getpid(), number)
            assert stop.signal_name == name
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)

        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, outside)


def test_a_hang_up_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.signal_name is None
    finally:
        signal.signal(signal.SIGHUP, before)
