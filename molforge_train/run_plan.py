"""A run before it is one, in lines: the presets, and the resolved plan with each value's origin; nothing is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from molforge_eval.records.manifest import Configuration
from molforge_train.config import Resolved, preset_about, preset_names, preset_text, resolve
from molforge_train.machine import Machine
from molforge_train.memory_estimate import (
    disk_bytes,
    episodes_evaluated,
    episodes_played,
    estimate_memory,
    levers,
    prompt_tokens,
    size_text,
    uses_gpu,
)
from molforge_train.preflight import nearest_existing, run_folder

_NAME = 13
_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def preset_table() -> Iterator[str]:
    """List the presets that ship: for which machine, the main values, the time."""
    for name in preset_names():
        about = preset_about(name)
        settings = _resolved(name).configuration
        yield f"{name:<{_NAME}}{about.get('machine', 'any machine')}"
        yield f"{'':<{_NAME}}{settings.base_model}, adapter {settings.sft_adapter_path or 'a new one'}"
        yield f"{'':<{_NAME}}{course_of(settings)}"
        yield f"{'':<{_NAME}}time: {about.get('time', 'not run')}"
    yield "`molforge-train presets NAME` prints one with its reasons."


def preset_page(name: str) -> Iterator[str]:
    """Print a preset as it is written, and after it every value with the layer that it comes from."""
    yield preset_text(name).rstrip("\n")
    yield ""
    yield "# As it resolves, without flags and variables:"
    yield from (f"# {line}" for line in setting_lines(_resolved(name)))


def setting_lines(resolved: Resolved) -> Iterator[str]:
    """Write every setting with its value and its origin."""
    width = max(len(name) for name in resolved.sources)
    for name, source in resolved.sources.items():
        yield f"{name:<{width}}  {_spelled(getattr(resolved.configuration, name))}  ({source})"


def course_of(settings: Configuration) -> str:
    """Say in one line how large a run is."""
    episodes = settings.batch_size * settings.gradient_accumulation
    return (
        f"{settings.max_steps} steps of {episodes} episodes ({settings.batch_size} x "
        f"{settings.gradient_accumulation}) in groups of {settings.num_generations}, {settings.dataset_size} prompts, "
        f"learning rate {settings.learning_rate:g}, {settings.observation_length} texts, "
        f"{settings.max_completion_length} tokens an episode"
    )


def _resolved(name: str) -> Resolved:
    return resolve(name, {}, {}, now=_NO_TIME)


def plan_lines(resolved: Resolved, machine: Machine) -> Iterator[str]:
    """Write what would run: settings, course, memory and disk.

    Raises:
        MolForgeError: Files of the adapter or the base model cannot be used.
    """
    settings = resolved.configuration
    yield f"model          {settings.base_model}"
    yield f"adapter        {settings.sft_adapter_path or 'a new one'}"
    yield f"preset         {settings.preset}, seed {settings.seed} ({resolved.preset_reason})"
    yield f"device         {settings.device}; {_machine_text(machine)}"
    yield "\nsettings"
    yield from (f"  {line}" for line in setting_lines(resolved))
    yield "\ncourse"
    yield from (f"  {line}" for line in _course_lines(settings))
    yield "\nmemory, estimated"
    yield from (f"  {line}" for line in _memory_lines(settings, machine))
    folder = run_folder(settings)
    free = shutil.disk_usage(nearest_existing(folder)).free
    yield "\ndisk, estimated"
    yield f"  at most {size_text(disk_bytes(settings))} in {folder} and beside it; {size_text(free)} are free there"


def _course_lines(settings: Configuration) -> Iterator[str]:
    played, together = episodes_played(settings), settings.batch_size * settings.gradient_accumulation
    groups, left = divmod(together, settings.num_generations)
    grouping = "which makes no whole groups" if left else f"in {groups} groups"
    turns = f"{settings.turn_limit} turns with a call and {settings.max_completion_length:,} tokens"
    yield f"{settings.max_steps} optimizer steps, {settings.num_iterations} for each batch of episodes"
    yield f"{played:,} training episodes: {together} a batch, {grouping} of {settings.num_generations}"
    yield f"{played // settings.num_generations:,} prompts are played, from {settings.dataset_size} rows"
    yield f"an episode has some {prompt_tokens(settings):,} tokens of prompt, then at most {turns}"
    yield f"at most {played * settings.max_completion_length:,} tokens are written and learned from"
    evaluations = settings.run_before_eval + settings.run_after_eval
    yield f"{evaluations} evaluations of {episodes_evaluated(settings)} episodes"


def _memory_lines(settings: Configuration, machine: Machine) -> Iterator[str]:
    estimate = estimate_memory(settings, machine)
    for term in estimate.terms:
        when = f" while {term.phase}" if term.phase else ""
        yield f"{term.name + when:<34}{size_text(term.size):>9}  {term.formula}"
    free = f"{size_text(estimate.free)} free: {estimate.free_where}"
    if estimate.free is None:
        free = f"what is free is unknown: {estimate.free_where}"
    while_what = f" while {estimate.peak_phase}" if estimate.peak_phase else ""
    yield f"{'peak' + while_what:<34}{size_text(estimate.peak):>9}  {free}"
    if estimate.peak is not None and estimate.free is not None and estimate.peak > estimate.free:
        yield f"it would not fit: {levers(settings, is_gpu=uses_gpu(settings, machine))}"


def _machine_text(machine: Machine) -> str:
    gpu = "no GPU" if not machine.gpus else ", ".join(gpu.name for gpu in machine.gpus)
    return f"this machine has {gpu}, torch {machine.torch_version or 'is not installed'}"


def _spelled(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    if isinstance(value, tuple):
        told = (f"from step {phase.from_step} {phase.reward_mode}, {_spelled(phase.reward_weights)}" for phase in value)
        return "; ".join(told) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)
