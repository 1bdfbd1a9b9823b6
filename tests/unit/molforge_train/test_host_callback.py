from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from molforge_train.host_callback import Hooks, StopRequest, host_callback, listening
from molforge_train.trainer_log import TrainerLog


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_in_training_waits_for_the_step_and_the_old_handler_comes_back(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    number = signal.Signals[name]
    # The tests themselves may run where a signal is ignored, as under `nohup`.
    outside = signal.signal(number, signal.SIG_DFL)
    try:
        with listening() as stop:
            stop.is_patient = True
            os.kill(os.getpid(), number)
            assert stop.signal_name == name
            assert capfd.readouterr().err.startswith(f"{name}: the run ends when the steps of this batch are done")
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


class Told:
    """The callback of a small training, as the host tells it of things."""

    def __init__(self, path: Path, *, max_steps: int = 8) -> None:
        from transformers import TrainerControl, TrainerState, TrainingArguments

        self.saved: list[int] = []
        self.stop = StopRequest()
        self.log = TrainerLog(path / "log.jsonl", "run-0123456789ab", lambda: datetime(2026, 1, 1, tzinfo=UTC))
        hooks = Hooks(lambda _: None, lambda _: None, self.saved.append)
        self.callback: Any = host_callback(self.log, self.stop, hooks, steps_a_batch=2)
        self.arguments = TrainingArguments(output_dir=str(path), use_cpu=True, report_to="none")
        self.state = TrainerState(max_steps=max_steps)
        self.control = TrainerControl()

    def tell(self, event: str, **more: Any) -> None:
        getattr(self.callback, event)(self.arguments, self.state, self.control, **more)

    def end_step(self, step: int, *, save: bool = False) -> tuple[bool, bool]:
        """End a step; return whether a checkpoint is made and whether training stops."""
        self.state.global_step = step
        self.control.should_save = save
        self.tell("on_step_end")
        if self.control.should_save:
            self.tell("on_save")
        return self.control.should_save, self.control.should_training_stop


def test_a_gradient_that_is_not_finite_between_two_rows_is_named_in_the_next_row(tmp_path: Path) -> None:
    import torch

    told = Told(tmp_path)
    model = torch.nn.Linear(1, 1)
    for number in (float("nan"), 1.0):
        model.weight.grad = torch.full((1, 1), number)
        told.tell("on_pre_optimizer_step", model=model)
    told.tell("on_log", logs={"loss": 0.5, "grad_norm": 1.0})
    told.tell("on_log", logs={"loss": 0.5, "grad_norm": 1.0})

    assert told.log.non_finite_steps == 1
    assert (tmp_path / "log.jsonl").read_bytes().splitlines()[0].count(b'"grad_norm":"NaN"') == 1


def test_a_checkpoint_waits_until_the_batch_of_episodes_is_used_up(tmp_path: Path) -> None:
    told = Told(tmp_path)

    assert told.end_step(3, save=True) == (False, False)
    assert told.end_step(4) == (True, False)
    assert told.end_step(5) == (False, False)
    assert told.saved == [4]


def test_a_signal_makes_a_checkpoint_where_a_batch_ends_and_stops_there(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.stop.signal_name = "SIGTERM"

    assert told.end_step(3) == (False, False)
    assert told.end_step(4) == (True, True)


def test_a_disk_without_room_stops_at_once_and_makes_no_checkpoint(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.stop.reason = "a disk nearly full"

    assert told.end_step(3, save=True) == (False, True)


def test_the_last_step_is_saved_wherever_its_batch_stands(tmp_path: Path) -> None:
    assert Told(tmp_path, max_steps=5).end_step(5, save=True) == (True, False)
