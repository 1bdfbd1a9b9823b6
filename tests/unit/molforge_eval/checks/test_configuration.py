"""The learning rates of every schedule that training offers, held to those of the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_builder import edit_json, read_lines, write_lines

from molforge_eval import layout
from molforge_eval.checks import configuration
from molforge_eval.run_directory import load
from molforge_train.settings import SCHEDULERS

PEAK, STEPS = 2e-3, 16


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("is_late", [False, True])
def test_the_rates_of_the_host_are_those_of_the_formula(name: str, *, is_late: bool, sample_run: Path) -> None:
    import torch
    from transformers import get_scheduler

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    host = get_scheduler(name, optimizer, num_warmup_steps=0, num_training_steps=STEPS)
    rows = read_lines(sample_run, layout.TRAINER_LOG)
    for row in rows[:STEPS]:
        rates = host.get_last_lr()
        optimizer.step()
        host.step()
        row["learning_rate"] = host.get_last_lr()[0] if is_late else rates[0]
    write_lines(sample_run, rows, layout.TRAINER_LOG)
    settings = {"lr_scheduler": name, "learning_rate": PEAK, "max_steps": STEPS}
    edit_json(sample_run, layout.MANIFEST, lambda value: value["configuration"].update(settings))

    assert len(rows) == STEPS + 1
    assert list(configuration.check(load(sample_run))) == []
