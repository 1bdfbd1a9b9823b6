"""Print `docs/cli.md`: the help of every command, as the programs themselves say it.

make docs
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import click

PROGRAMS = {
    "molforge-env": "molforge_env.cli",
    "molforge-eval": "molforge_eval.cli.evaluate",
    "molforge-report": "molforge_eval.cli.report",
    "molforge-train": "molforge_train.cli",
}
OPENING = """# Command line

Every program answers `--help` and `--version`. Exit codes: 0 sound, 1 findings, 2 wrong usage, 3 unreadable evidence;
130 ended by a signal. An error is three lines on standard error: what happened, where, how to mend it.

This page is printed by `make docs`; a test compares it with the programs.
"""


def commands_below(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and those inside it, each with the words that a user types."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        # A group may import a command only when it is asked for: its own dictionary does not know it.
        children = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        for name, child in children:
            if child is not None:
                yield from commands_below(f"{words} {name}", child)


def section_of(words: str, command: click.Command) -> str:
    """Write the section of one command; its depth is the number of words."""
    context = click.Context(command, info_name=words, max_content_width=100, terminal_width=100)
    return f"{'#' * (1 + len(words.split()))} `{words}`\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


def page() -> str:
    """Write the whole page."""
    sections = [
        section_of(words, command)
        for program, module in PROGRAMS.items()
        for words, command in commands_below(program, importlib.import_module(module).cli)
        if not command.hidden
    ]
    return "\n".join([OPENING, *sections])


if __name__ == "__main__":
    sys.stdout.write(page())
