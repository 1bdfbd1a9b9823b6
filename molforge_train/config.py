"""From flags, environment, preset and defaults to one resolved configuration.

Precedence is flag, environment, preset, default, and each value keeps the name of the layer that it comes from. This
is the one module of the package that may look at the environment.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from molforge_env.errors import UnreadableError, UsageError
from molforge_eval.records.fields import utc_text
from molforge_eval.records.manifest import Configuration
from molforge_train.machine import Machine
from molforge_train.settings import BY_NAME, SETTINGS, Setting, Value, checked, value_from_text

Source = Literal["flag", "environment", "preset", "default"]
NO_PRESET = "default"
ON_GPU, ON_PROCESSOR = "colab-demo", "tiny-cpu"
"""What is trained by when nobody names a preset."""
_ABOUT = "about"
_PREFIXES = ("RL_", "MOLFORGE_")
_OURS = ("MOLFORGE_DEBUG_STATE", "MOLFORGE_SOURCE", "MOLFORGE_TRACEBACK")
_LABORATORY = {
    "MOLFORGE_REWARD_MODE": "set --reward-mode",
    "MOLFORGE_TRAINING_RANDOMIZATION": "set --canonical-share",
    "MOLFORGE_RANDOM_SEED": "set RL_SEED",
}
"""Variables of the environment server that somebody may expect to steer training."""
_LIKE, _A_LETTER_AWAY = 0.6, 0.88


class Resolved(NamedTuple):
    """A configuration, and the layer that gave each of its values."""

    configuration: Configuration
    sources: dict[str, Source]
    preset_reason: str = ""
    """Why this preset."""


class Choice(NamedTuple):
    """A preset, and why this one."""

    preset: str | None
    reason: str


def process_environment() -> Mapping[str, str]:
    """Copy the variables of this process; everything below takes them as an argument."""
    return dict(os.environ)  # noqa: TID251 - the one place that may


def preset_names() -> list[str]:
    """List the presets that ship with the package; the warm start's recipes and the defaults are none."""
    names = (entry.name for entry in files("molforge_train").joinpath("presets").iterdir())
    others = (f"{NO_PRESET}.toml", "warmstart-", "sft-")
    return sorted(
        name.removesuffix(".toml") for name in names if name.endswith(".toml") and not name.startswith(others)
    )


def preset_text(name: str) -> str:
    """Read a preset: a shipped one by name, any other by the path of its TOML file.

    Raises:
        UsageError: There is no such preset.
        UnreadableError: The file is no UTF-8 text.
    """
    if name in (*preset_names(), NO_PRESET):
        return files("molforge_train").joinpath("presets", f"{name}.toml").read_text("utf-8")
    try:
        return Path(name).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"preset {name!r} is no text", where=name, mend="Give a TOML file in UTF-8.") from error
    except OSError as error:
        raise UsageError(
            f"there is no preset {name!r}",
            where=f"preset {name}",
            mend=f"Choose one of {', '.join(preset_names())}, or give the path of a TOML file.",
        ) from error


def preset_about(name: str) -> dict[str, str]:
    """Read what a preset says of itself: `machine`, and the `time` that it takes.

    Raises:
        UsageError: There is no such preset, or it is no TOML.
    """
    about = _table(name).get(_ABOUT)
    return {key: str(value) for key, value in about.items()} if isinstance(about, dict) else {}


def choose_preset(
    given: str | None, flags: Mapping[str, str | None], environment: Mapping[str, str], machine: Machine
) -> Choice:
    """Choose the preset of a run; where nobody names one, the machine decides.

    Args:
        given: As named by the user.
        flags: Setting name to the text given.
        environment: Variables of the process.
        machine: What there is to train on.
    """
    gpu = machine.gpu
    if given is not None:
        is_idle = gpu is not None and Path(given).stem == ON_PROCESSOR
        return Choice(given, f"as asked; it leaves {gpu.name} idle" if gpu and is_idle else "as asked")
    if gpu is not None:
        return Choice(ON_GPU, f"this machine has {gpu.name}; --preset names another")
    why = "no GPU that torch can use" if machine.gpus else "this machine has no GPU"
    base = flags.get("base_model") or environment.get("BASE_MODEL_NAME", "").strip()
    if base and base != _table(ON_PROCESSOR).get("base_model"):
        return Choice(None, f"{why}, and {ON_PROCESSOR} is for the built-in model alone; --preset names another")
    return Choice(ON_PROCESSOR, f"{why}; --preset names another")


def resolve(
    preset: str | None, flags: Mapping[str, str | None], environment: Mapping[str, str], *, now: datetime
) -> Resolved:
    """Lay the four layers over each other.

    Args:
        preset: Name or path; `None` uses the defaults alone.
        flags: Setting name to the text given, `None` where the flag is absent.
        environment: Variables of the process; an empty one counts as unset.
        now: Names the run when nothing else does.

    Raises:
        UsageError: A value, key or preset is unknown or out of range, or no base model is named.
    """
    values: dict[str, Value] = {"run_name": "", "output_root": default_root(environment), "base_model": ""}
    sources: dict[str, Source] = dict.fromkeys(BY_NAME, "default")
    layers: list[tuple[Source, Mapping[str, Value]]] = [("default", _table_values(NO_PRESET))]
    if preset is not None:
        layers.append(("preset", _table_values(preset)))
    layers.append(("environment", dict(_environment_values(environment))))
    layers.append(("flag", dict(_flag_values(flags))))
    for source, layer in layers:
        for name, value in layer.items():
            values[name] = value
            sources[name] = source
    label = Path(preset).stem if preset else NO_PRESET
    values["run_name"] = values["run_name"] or f"{label}-{utc_text(now).translate(str.maketrans('', '', '-:'))}"
    if not values["base_model"]:
        raise UsageError(
            "no base model is named",
            where="configuration key base_model",
            mend="Give --preset tiny-cpu for the built-in model, or --base-model (BASE_MODEL_NAME) for yours.",
        )
    fields: dict[str, Any] = {**values, "preset": label}
    sources["preset"] = "default" if preset is None else "flag"
    for optional in ("sft_adapter_path", "drive_output_dir", "hf_output_repo"):
        fields[optional] = fields[optional] or None
    return Resolved(Configuration.model_validate(fields), sources)


def default_root(environment: Mapping[str, str]) -> str:
    """Name the folder that holds run directories on this kind of machine."""
    if "COLAB_RELEASE_TAG" in environment or "COLAB_GPU" in environment:
        return "/content/molforge_rl_runs"
    if "KAGGLE_KERNEL_RUN_TYPE" in environment:
        return "/kaggle/working/molforge_rl_runs"
    return "runs"


def shipped_path(name: str) -> str:
    """Resolve a path that begins with the package's own name to where the package is installed, and `~` to the home."""
    head, _, rest = name.partition("/")
    if head == "molforge_train" and rest:
        return str(files("molforge_train").joinpath(rest))
    return str(Path(name).expanduser()) if name.startswith("~") else name


def stray_variables(environment: Mapping[str, str]) -> list[str]:
    """List variables that look like settings and are none, each with the nearest one that is."""
    known = [setting.variable for setting in SETTINGS if setting.variable]
    told = []
    for name in sorted(environment):
        if name in known or name in _OURS:
            continue
        # A name of another program is no fault; one that begins like ours, or is a letter away from one, is.
        is_ours = name.startswith(_PREFIXES)
        near = difflib.get_close_matches(name, known, 1, _LIKE if is_ours else _A_LETTER_AWAY)
        if name in _LABORATORY:
            told.append(f"{name} is read by a laboratory of its own and not by training; {_LABORATORY[name]}")
        elif near:
            told.append(f"{name} is no setting; {near[0]} is the nearest")
        elif is_ours:
            told.append(f"{name} is no setting; `molforge-train grpo --help` names them all")
    return told


def _table(preset: str) -> dict[str, Any]:
    try:
        return tomllib.loads(preset_text(preset))
    except tomllib.TOMLDecodeError as error:
        what = f"the preset is no TOML: {error}"
        raise UsageError(what, where=f"preset {preset}", mend="Mend the file.") from error


def _table_values(preset: str) -> Mapping[str, Value]:
    where = f"preset {preset}"
    table = _table(preset)
    table.pop(_ABOUT, None)
    return {name: checked(_known(name, where), value, f"{where}, key {name}") for name, value in table.items()}


def _known(name: str, where: str) -> Setting:
    if name in BY_NAME:
        return BY_NAME[name]
    near = difflib.get_close_matches(name, BY_NAME, 1, 0.0)[0]
    raise UsageError(f"{name!r} is no setting", where=where, mend=f"Remove it, or write {near}.")


def _environment_values(environment: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    for setting in SETTINGS:
        text = environment.get(setting.variable, "") if setting.variable else ""
        if text.strip():
            yield setting.name, value_from_text(setting, text, f"environment variable {setting.variable}")


def _flag_values(flags: Mapping[str, str | None]) -> Iterator[tuple[str, Value]]:
    for name, text in flags.items():
        if text is not None:
            yield name, value_from_text(BY_NAME[name], text, f"flag {BY_NAME[name].flag}")
