"""Where the shipped folders stand: templates, fonts and schemas.

In the repository they are top-level folders; in an installed wheel they stand inside this package under `_shipped`.
Nothing else may guess a path to them.
"""

from __future__ import annotations

from pathlib import Path

from molforge_env.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent


def template_folder() -> Path:
    """Find the Jinja2 templates, the style sheet and the browser script.

    Raises:
        UsageError: The installation lacks them.
    """
    return _shipped_folder("report_templates")


def font_folder() -> Path:
    """Find the typefaces: TTF for charts and the PDF, WOFF2 for the HTML page.

    Raises:
        UsageError: The installation lacks them.
    """
    return template_folder() / "fonts"


def schema_folder() -> Path:
    """Find the JSON Schemas, one file per artifact.

    Raises:
        UsageError: The installation lacks them.
    """
    return _shipped_folder("schemas")


def _shipped_folder(name: str) -> Path:
    shipped = _PACKAGE / "_shipped"
    # Only a wheel has `_shipped`; beside an installed package a folder of the same name would be somebody else's.
    folder = (shipped if shipped.is_dir() else _PACKAGE.parent) / name
    if folder.is_dir():
        return folder
    raise UsageError(
        f"the shipped folder {name} is missing",
        where=str(folder),
        mend="Install the package again: pip install --force-reinstall molforge-evidence",
    )
