from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from molforge_train.watch import FREE_BYTES, BatchSigns, GradientWatch, SignalWatch, full_disk

EVEN = ((0.5, 0.5), (0.1, 0.1))


@pytest.mark.parametrize(
    ("signs", "reason"),
    [
        (BatchSigns(EVEN, calls=4, cut=1, episodes=4), "all rewards are equal within groups"),
        (BatchSigns(EVEN, calls=0, cut=4, episodes=4), "no tool call was parsed"),
        (BatchSigns(EVEN, calls=4, cut=4, episodes=4), "all completions were cut"),
        (BatchSigns(((None, 0.5), (None, None)), calls=4, cut=0, episodes=4), "all rewards are equal within groups"),
    ],
)
def test_batches_that_teach_nothing_are_warned_of_once_with_the_reason(signs: BatchSigns, reason: str) -> None:
    told: list[str] = []
    watch = SignalWatch(told.append, patience=3)
    for step in range(5):
        watch.see(signs, step)

    assert len(told) == 1
    assert told[0].startswith(f"no learning signal in 3 batches up to step 2: {reason}")


def test_one_uneven_group_begins_the_count_anew() -> None:
    told: list[str] = []
    watch = SignalWatch(told.append, patience=2)
    for rewards in (EVEN, ((0.5, 0.5), (0.1, 0.2)), EVEN):
        watch.see(BatchSigns(rewards, calls=1, cut=0, episodes=4), 0)

    assert told == []


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_gradient_that_is_not_finite_is_noted_until_it_is_told(number: str) -> None:
    import torch

    model = torch.nn.Linear(2, 1)
    watch = GradientWatch()
    watch.look(model)
    assert not watch.take()
    model(torch.ones(2)).backward()
    watch.look(model)
    assert not watch.take()
    assert model.weight.grad is not None
    model.weight.grad[0, 1] = float(number)
    watch.look(model)

    assert watch.take()
    assert not watch.take()


def test_a_disk_is_nearly_full_below_the_room_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert full_disk(tmp_path) is None
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=FREE_BYTES - 1))

    assert full_disk(tmp_path) == "a disk nearly full (255 MiB free, 256 MiB are kept for the end)"
