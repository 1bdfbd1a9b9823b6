"""Shipped recipes: TOML files beside the presets of a run, read into the model of what they make."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel

Recipe = TypeVar("Recipe", bound=FrozenModel)


def recipe_names(kind: str) -> list[str]:
    """List the recipes of a kind, such as `warmstart`."""
    found = (entry.name for entry in files("molforge_train").joinpath("presets").iterdir())
    return sorted(name.removeprefix(f"{kind}-").removesuffix(".toml") for name in found if name.startswith(f"{kind}-"))


def read_recipe(kind: str, name: str, model: type[Recipe], changes: Mapping[str, Any]) -> Recipe:
    """Read a shipped recipe by its name, or any other by the path of its TOML file.

    Args:
        kind: First word of the file's name.
        name: The rest of it, such as `tiny-cpu`.
        model: What the recipe is read into.
        changes: Values in place of the recipe's own; `None` changes nothing.

    Raises:
        UsageError: No recipe has this name, or a value is wrong.
    """
    if name in recipe_names(kind):
        text = files("molforge_train").joinpath("presets", f"{kind}-{name}.toml").read_text("utf-8")
    elif name.endswith(".toml") and Path(name).is_file():
        text = Path(name).read_text("utf-8", errors="replace")
    else:
        mend = f"Choose one of {', '.join(recipe_names(kind))}, or give the path of a TOML file."
        raise UsageError(f"recipe {name!r} is not known", where="--preset", mend=mend)
    try:
        table = tomllib.loads(text) | {key: value for key, value in changes.items() if value is not None}
        return model.model_validate(table)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the recipe is no TOML: {error}", where=name, mend="Mend the file.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        what = f"the recipe has {error.error_count()} wrong values, first {place} = {first['input']!r}: {first['msg']}"
        mend = f"Compare it with a shipped one: {', '.join(recipe_names(kind))}."
        raise UsageError(what, where=f"recipe {name}", mend=mend) from error
