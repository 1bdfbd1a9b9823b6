"""A run before it is one, in lines: the presets, and the resolved plan with each value's origin; nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from molforge_eval.records.manifest import Configuration
from molforge_train.config import Resolved, preset_about, preset_names, preset_text, resolve

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
        yield f"{name:<{width}}  {getattr(resolved.configuration, name)}  ({source})"


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
