"""The edits that a case may name: a function each, its arguments are the keys of the edit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

Edit = TypeVar("Edit", bound=Callable[..., None])

EDITS: dict[str, Callable[..., None]] = {}


class CaseError(Exception):
    """A case that cannot be made; the text names the edit."""


def edit(function: Edit) -> Edit:
    """Let cases name a function; its first argument is the folder of the run."""
    EDITS[function.__name__] = function
    return function


def make_edit(root: Path, spec: Mapping[str, Any]) -> None:
    """Make one edit of a case in a run.

    Raises:
        CaseError: No such edit, wrong keys, or the run has not what the edit changes.
    """
    given = dict(spec)
    name = given.pop("op", None)
    function = EDITS.get(name)
    if function is None:
        raise CaseError(f"edit {name!r} is none of {', '.join(sorted(EDITS))}")
    try:
        inspect.signature(function).bind(root, **given)
    except TypeError as error:
        raise CaseError(
            f"edit {name}: {error}; it takes {', '.join(inspect.signature(function).parameters)}"
        ) from error
    try:
        function(root, **given)
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise CaseError(f"edit {dict(spec)} cannot be made: {type(error).__name__}: {error}") from error
