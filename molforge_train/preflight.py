"""What a run would fail on, found before anything heavy is loaded and before anything is written.

The trainer's own arithmetic is repeated here, with the numbers in the message; adapters are read by their headers.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from molforge_env.errors import MissingDependencyError, UsageError
from molforge_eval.chat_templates import check_template_files
from molforge_eval.records.manifest import Configuration
from molforge_eval.training_reward import REWARD_PARTS
from molforge_eval.weights import read_adapter, weight_files
from molforge_train.adapter_search import is_hub_name, not_found, search_adapter
from molforge_train.config import shipped_path
from molforge_train.drive_copy import check_mounted
from molforge_train.ranks import ranks_of

TRAIN_PACKAGES = ("torch", "transformers", "accelerate", "datasets", "peft", "trl")
_POLYNOMIAL_END = 1e-7
"""Where the host's polynomial schedule ends; it refuses to begin there or below."""
_SHOWN_SIZES = 6
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def check_packages(names: Sequence[str] = TRAIN_PACKAGES) -> None:
    """Look for the packages of the `train` extra without importing them.

    Args:
        names: Packages that are needed.

    Raises:
        MissingDependencyError: One of them is absent.
    """
    missing = missing_packages(names)
    if missing:
        raise MissingDependencyError(
            f"training needs {', '.join(missing)}, which this environment has not",
            where="python packages",
            mend='Install them, in a clone: pip install -c constraints.txt ".[train]"',
        )


def missing_packages(names: Sequence[str] = TRAIN_PACKAGES) -> list[str]:
    """List those packages that are absent; none is imported."""
    return [name for name in names if importlib.util.find_spec(name) is None]


def check(configuration: Configuration, environment: Mapping[str, str]) -> None:
    """Refuse a configuration that cannot be run.

    Raises:
        UsageError: Numbers that do not fit each other, a missing adapter, a run directory that is in use.
        UnreadableError: The files of the adapter or of the base model are damaged.
    """
    _check_batch(configuration, ranks_of(environment).size)
    _check_lengths(configuration)
    _check_optimizer(configuration)
    check_engines(configuration)
    _check_pay(configuration)
    check_base(configuration.base_model)
    if configuration.sft_adapter_path is not None:
        _check_adapter(configuration.sft_adapter_path)
    _check_folders(configuration)


def check_engines(configuration: Configuration) -> None:
    """Refuse an engine that is asked for and is not here; none is imported.

    Raises:
        MissingDependencyError: Its package is absent.
        UsageError: The device is none that it runs on.
    """
    asked = {
        "load_in_4bit": "bitsandbytes" if configuration.load_in_4bit else None,
        "use_unsloth": "unsloth" if configuration.use_unsloth else None,
        "vllm_mode": "vllm" if configuration.vllm_mode != "off" else None,
        "report_to": configuration.report_to if configuration.report_to != "none" else None,
    }
    for key, package in asked.items():
        if package is None:
            continue
        if key != "report_to" and configuration.device not in ("auto", "cuda"):
            what = f"{package} runs on CUDA, and the device is {configuration.device}"
            _refuse(what, f"{key}, device", f"Set --device cuda on a machine that has one, or leave {key} out.")
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(
                f"{key} asks for {package}, which this environment has not",
                where=f"configuration key {key}",
                mend=f"Install it (pip install {package}), or leave {key} out.",
            )


def _check_pay(configuration: Configuration) -> None:
    phases = configuration.reward_phases
    for key, weights in [
        ("reward_weights", configuration.reward_weights),
        *(("reward_phases", phase.reward_weights) for phase in phases),
    ]:
        unknown = sorted(set(weights) - set(REWARD_PARTS))
        if unknown:
            _refuse(f"reward weight {unknown[0]!r} names no part", key, f"Use {', '.join(REWARD_PARTS)}.")
    starts = [phase.from_step for phase in phases]
    if starts != sorted(set(starts)):
        _refuse(f"the phases begin at steps {starts}", "reward_phases", "Let each begin after the one before.")
    if starts and starts[-1] >= configuration.max_steps:
        mend = f"Let every phase begin before step {configuration.max_steps}, or raise RL_MAX_STEPS."
        _refuse(f"a phase begins at step {starts[-1]} of {configuration.max_steps}", "reward_phases", mend)


def check_base(name: str) -> None:
    """Refuse a base model by its files, none of which is loaded; one that is only on the hub is left to the loader.

    Raises:
        UsageError: There is no such folder, it holds no model, or its chat template is none that can be used.
        UnreadableError: A weight file is damaged.
    """
    folder = Path(shipped_path(name))
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            _refuse(
                f"the model folder {folder.name} has no config.json", "base_model", "Give the folder of a saved model."
            )
        weight_files(folder)
        check_template_files(folder, name)
    elif name.startswith((".", "/", "~", "molforge_train/")):
        _refuse(f"there is no folder {name}", "base_model", "Give a folder or a hub name.")


def run_folder(configuration: Configuration) -> Path:
    """Name the run directory."""
    return Path(configuration.output_root).expanduser() / configuration.run_name


def _check_batch(configuration: Configuration, processes: int) -> None:
    batch, accumulation = configuration.batch_size, configuration.gradient_accumulation
    group, episodes = configuration.num_generations, batch * accumulation
    if episodes % group:
        groups = [size for size in range(2, episodes + 1) if episodes % size == 0]
        _refuse(
            f"a generation batch of {batch} x {accumulation} = {episodes} episodes cannot hold whole groups of {group}",
            "batch_size, gradient_accumulation, num_generations",
            f"Set RL_BATCH_SIZE={_either(_sizes_that_fit(batch, accumulation, group))}"
            + (f", or NUM_GENERATIONS={_either(groups)}." if groups else "."),
        )
    prompts = episodes * processes // group
    if configuration.dataset_size < prompts:
        _refuse(
            f"{configuration.dataset_size} rows cannot fill a batch of {prompts} prompts",
            "dataset_size",
            f"Set RL_DATASET_SIZE to at least {prompts}.",
        )


def _sizes_that_fit(batch: int, accumulation: int, group: int) -> list[int]:
    """List the batch sizes on both sides of the one asked for that hold whole groups."""
    unit = group // math.gcd(group, accumulation)
    below = batch // unit * unit
    return [size for size in (below, below + unit) if size]


def _either(sizes: Sequence[int]) -> str:
    *others, last = [str(size) for size in sizes[:_SHOWN_SIZES]]
    return f"{', '.join(others)} or {last}" if others else last


def _check_lengths(configuration: Configuration) -> None:
    turn, whole = configuration.max_new_tokens, configuration.max_completion_length
    if turn > whole:
        _refuse(
            f"a turn of {turn} tokens is longer than an episode of {whole}",
            "max_new_tokens, max_completion_length",
            f"Set max_new_tokens to at most {whole}.",
        )


def _check_optimizer(configuration: Configuration) -> None:
    # The optimizer and its schedule are made when the first evaluation is long over.
    if configuration.adam_beta2 >= 1:
        _refuse(f"adam_beta2 is {configuration.adam_beta2:g}", "adam_beta2", "Set a number below 1, such as 0.999.")
    rate = configuration.learning_rate
    if configuration.lr_scheduler == "polynomial" and rate <= _POLYNOMIAL_END:
        _refuse(
            f"a polynomial course ends at {_POLYNOMIAL_END:g}, and the learning rate begins at {rate:g}",
            "learning_rate, lr_scheduler",
            f"Set a learning rate above {_POLYNOMIAL_END:g}, or another lr_scheduler.",
        )


def _check_adapter(name: str) -> None:
    found = search_adapter(name)
    if found.folder is not None:
        read_adapter(found.folder)
    elif not is_hub_name(name):
        raise not_found(name, found.looked)


def _check_folders(configuration: Configuration) -> None:
    if not _RUN_NAME.fullmatch(configuration.run_name):
        _refuse(
            f"{configuration.run_name!r} is no name for a run",
            "run_name",
            "Use up to 80 letters, digits, dots, dashes and underscores, a letter or digit first.",
        )
    folder = run_folder(configuration)
    if folder.is_dir() and any(folder.iterdir()):
        _refuse(
            f"the run directory {folder.name} holds another run already",
            "run_name",
            "Choose another --run-name (RUN_NAME), or move the old run away.",
        )
    archive = folder.with_name(f"{folder.name}.zip")
    if archive.exists():
        _refuse(
            f"the archive {archive.name} of another run stands beside the run directory",
            "run_name",
            "Choose another --run-name (RUN_NAME), or move the old archive away.",
        )
    for path, key in ((folder, "output_root"), (_drive(configuration), "drive_output_dir")):
        standing = None if path is None else nearest_existing(path)
        if standing is not None and not (standing.is_dir() and os.access(standing, os.W_OK)):
            _refuse(f"nothing can be written below {standing.name}", key, "Choose a folder that is open to writing.")
    repository = configuration.hf_output_repo
    if repository is not None and not _REPOSITORY.fullmatch(repository):
        _refuse(f"{repository!r} is no repository of the hub", "hf_output_repo", "Write OWNER/NAME.")
    drive = _drive(configuration)
    if drive is not None:
        _check_mounted(drive)
    if drive is not None and (drive / configuration.run_name).exists():
        _refuse(f"the copy's place {configuration.run_name} is taken", "drive_output_dir", "Choose another --run-name.")
    if drive is not None and drive.resolve().is_relative_to(folder.resolve()):
        _refuse("the copy would stand inside the run itself", "drive_output_dir", "Choose a folder outside the run.")
    if drive is not None and (drive / configuration.run_name).resolve() == folder.resolve():
        _refuse("the copy would stand where the run does", "drive_output_dir", "Choose a folder beside output_root.")


def _check_mounted(drive: Path) -> None:
    try:
        check_mounted(drive)
    except FileNotFoundError as error:
        mend = "Mount the drive first, or leave DRIVE_OUTPUT_DIR empty."
        raise UsageError(str(error.strerror), where="configuration key drive_output_dir", mend=mend) from error


def _drive(configuration: Configuration) -> Path | None:
    return Path(configuration.drive_output_dir).expanduser() if configuration.drive_output_dir else None


def nearest_existing(path: Path) -> Path:
    """Name the folder that a path would be made in."""
    return next(folder for folder in (path, *path.resolve().parents) if folder.exists())


def _refuse(what: str, key: str, mend: str) -> NoReturn:
    raise UsageError(what, where=f"configuration key {key}", mend=mend)
