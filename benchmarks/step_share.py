"""The share of a training step outside the model: ours (environment, reward, records, logging) and the host trainer's.

A real run of the tiny model. Every entry point of ours that the host calls is timed, and every call of the model:
making tokens, forward, backward, the step of the optimizer. What is left of a step is the host's own.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from molforge_env.interface import TOOL_NAMES
from molforge_eval import layout
from molforge_train.config import resolve
from molforge_train.host_callback import Hooks, StopRequest, host_callback
from molforge_train.host_libraries import quieten_libraries
from molforge_train.host_trainer import build_trainer
from molforge_train.policy import choose_place, load_policy
from molforge_train.recording import RolloutLog, read_clock
from molforge_train.rewards import EpisodeReward
from molforge_train.run_record import RunRecord, first_manifest, run_id_of
from molforge_train.tool_environment import tool_environment
from molforge_train.trainer_log import TrainerLog

TARGET = 0.10
STEPS = 8
_LOGGING = "rollout log"
_MODEL = "model"


class Measured(NamedTuple):
    """Where the time of a training went."""

    seconds: float
    parts: dict[str, float]
    """Seconds of each of our parts."""
    lines: int
    """Lines of the rollout log."""
    model: float
    """Seconds in the model and the optimizer."""
    logging: float
    """Seconds in which they were written and forced to disk, a share of the part that records."""


def measure(steps: int) -> Measured:
    """Train some steps, and time each of our parts."""
    spent: dict[str, float] = defaultdict(float)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - began

        return wrapper

    resolved = resolve("tiny-cpu", {"max_steps": str(steps)}, {}, now=read_clock())
    settings, place = resolved.configuration, choose_place(resolved.configuration.device, resolved.configuration.dtype)
    policy = load_policy(settings, place)
    began_at = read_clock()
    manifest = first_manifest(
        resolved, place, run_id=run_id_of(settings, began_at), started_at=began_at, plan_sha256="0" * 64
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "logs").mkdir()
        environment: Any = tool_environment(settings.observation_length, read_clock)
        for name in (*TOOL_NAMES, "reset"):
            setattr(environment, name, timed("environment", getattr(environment, name)))
        rollouts: Any = RolloutLog(folder, "run-000000000000")
        rollouts.write = timed(_LOGGING, rollouts.write)
        reward = EpisodeReward(settings, policy.form, rollouts)
        log = TrainerLog(folder / "log.jsonl", "run-000000000000", read_clock)
        record = RunRecord(folder, manifest)
        hooks = Hooks(lambda _: None, lambda step: record.update(steps_completed=step), lambda _: None)
        callback = host_callback(log, StopRequest(), hooks, steps_a_batch=settings.num_iterations)
        for name in ("on_train_begin", "on_pre_optimizer_step", "on_step_end", "on_log"):
            setattr(callback, name, timed("logging", getattr(callback, name)))
        trainer = build_trainer(
            settings,
            policy,
            environment=environment,
            reward=timed("reward and recording", reward),
            callback=callback,
            checkpoints=folder / "host",
        )
        _time_model(trainer, timed)
        began = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - began
        lines = (folder / layout.ROLLOUTS).read_bytes().count(b"\n")
    logging, model = spent.pop(_LOGGING), spent.pop(_MODEL)
    return Measured(seconds, dict(spent), lines, model, logging)


def _time_model(trainer: Any, timed: Callable[[str, Callable[..., Any]], Any]) -> None:
    """Time what the host calls of the model; making tokens calls the model itself, and counts once."""
    model, accelerator = trainer.model, trainer.accelerator
    depth = 0

    def outermost(function: Callable[..., Any]) -> Callable[..., Any]:
        clocked = timed(_MODEL, function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            depth += 1
            try:
                return (clocked if depth == 1 else function)(*args, **kwargs)
            finally:
                depth -= 1

        return wrapper

    model.generate, model.forward = outermost(model.generate), outermost(model.forward)
    accelerator.backward = outermost(accelerator.backward)
    made = trainer.create_optimizer

    def create(*args: Any, **kwargs: Any) -> Any:
        optimizer = made(*args, **kwargs)
        optimizer.step = outermost(optimizer.step)
        return optimizer

    trainer.create_optimizer = create


def main() -> int:
    """Print the share and each part; exit code 1 when the share is over the target."""
    quieten_libraries()
    whole, parts, lines, model, logging = measure(STEPS)
    share = sum(parts.values()) / whole
    print(f"training step of the tiny model, {STEPS} steps: {whole / STEPS:.2f} s a step")
    for part, seconds in parts.items():
        print(f"  {part}: {seconds / STEPS * 1000:.1f} ms a step, {seconds / whole:.1%}")
    print(f"  rollout log: {lines:,} lines, {logging / lines * 1e6:.0f} µs a line on disk")
    print(f"  host trainer: {(1 - share) - model / whole:.1%}; model and optimizer: {model / whole:.1%}")
    print(f"  our share: {share:.1%} (target: at most {TARGET:.0%})")
    return int(share > TARGET)


if __name__ == "__main__":
    sys.exit(main())
