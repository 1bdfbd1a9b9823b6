"""What the outside may rely on: names, commands, help."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("molforge_env", "molforge_eval", "molforge_train", "molforge_tiny")
PROGRAMS = {
    "molforge-env": "molforge_env.cli",
    "molforge-eval": "molforge_eval.cli.evaluate",
    "molforge-report": "molforge_eval.cli.report",
    "molforge-train": "molforge_train.cli",
}


def _group_of(program: str) -> click.Group:
    group = importlib.import_module(PROGRAMS[program]).cli
    assert isinstance(group, click.Group)
    return group


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that a user types for it."""

    def below(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield words, command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from below(f"{words} {name}", child)

    for program in PROGRAMS:
        yield from below(program, _group_of(program))


def _modules_with_a_door() -> list[str]:
    """Modules that name what they offer in `__all__`."""
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "\n__all__ = " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", _modules_with_a_door())
def test_a_door_lists_sorted_names_that_are_there(name: str) -> None:
    module = importlib.import_module(name)

    assert list(module.__all__) == sorted(module.__all__)
    assert [word for word in module.__all__ if not hasattr(module, word)] == []


def test_every_command_and_option_says_what_it_does() -> None:
    silent = []
    for words, command in _commands():
        if not command.help:
            silent.append(words)
        silent += [
            f"{words} {option.opts[0]}"
            for option in command.params
            if isinstance(option, click.Option) and not option.help and not option.hidden
        ]

    assert silent == []


def test_the_four_programs_have_the_commands_that_the_pages_name() -> None:
    words = {words for words, _ in _commands()}

    assert {
        "molforge-env baselines",
        "molforge-env ceiling",
        "molforge-eval run",
        "molforge-eval validate",
        "molforge-eval verify",
        "molforge-report build",
        "molforge-train grpo",
        "molforge-train data",
        "molforge-train sft",
        "molforge-train warmstart",
    } <= words


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_tells_its_version(program: str) -> None:
    options = {name for option in _group_of(program).params for name in option.opts}

    assert "--version" in options
