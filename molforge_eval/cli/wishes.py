"""The options that ask for level E4, as `molforge-eval verify` and `molforge-report build` have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from molforge_env.errors import UsageError

if TYPE_CHECKING:
    from molforge_eval.regeneration_models import Wish

_OPTIONS = (
    click.option(
        "--regenerate",
        is_flag=True,
        help="Load base model and adapter, and have them play the greedy episodes again, for level E4. Needs the "
        "packages of the train extra.",
    ),
    click.option(
        "--base-model",
        metavar="MODEL",
        help="With --regenerate: folder or hub name of the base model, where the one that the run names is neither "
        "shipped nor in the hub's cache. Nothing is fetched because a run names it.",
    ),
    click.option(
        "--input-adapter",
        metavar="ADAPTER",
        help="With --regenerate: folder or hub name of the adapter that the run began with, for the evaluation before "
        "training.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        help="With --regenerate: where the model runs: auto, cpu, cuda or mps.",
    ),
)


def with_wish(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take_wish(given: dict[str, Any]) -> Wish | None:
    """Take the options out of what a command was given.

    Returns:
        What regeneration may use; `None` when it is not asked for.

    Raises:
        UsageError: An option is given without --regenerate, or a folder is absent.
        MissingDependencyError: The packages that run a model are not installed.
    """
    asked = given.pop("regenerate")
    values = {name: given.pop(name) for name in ("base_model", "input_adapter", "device")}
    if asked:
        from molforge_eval.regeneration import open_wish

        return open_wish(**values)
    for name, value in values.items():
        if value not in (None, "auto"):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is given without --regenerate", where=option, mend="Add --regenerate.")
    return None
