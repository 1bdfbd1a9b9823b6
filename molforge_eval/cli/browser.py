"""`--open`: show a page that was written in the reader's browser, or say why there is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from molforge_env.command_line import report_note
from molforge_eval.cli.paths import line_of

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def open_page(page: Path, environment: Mapping[str, str] | None = None) -> None:
    """Show a page in the browser; where there is none, one line says so, and nothing has failed.

    Args:
        page: The HTML file.
        environment: Variables of the process, unless others are given.
    """
    variables = os.environ if environment is None else environment  # noqa: TID251 - a screen is named nowhere else
    if sys.platform == "linux" and not any(variables.get(name) for name in _SCREENS):
        report_note(f"there is no screen here to open the page on: {line_of(page)}")
    elif click.launch(page.resolve().as_uri()):
        report_note(f"no browser opened the page: {line_of(page)}")
