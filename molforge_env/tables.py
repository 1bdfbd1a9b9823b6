"""The number tables of the rules, read once from the data files.

Every number that the rules state lives in `molforge_env/data/*.json`; modules ask for a table here and never repeat
a number. A table is plain parsed JSON, because each owner checks the part that it uses when it builds its own types.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_table(name: str) -> dict[str, Any]:
    """Read one data file of the laboratory.

    Args:
        name: File name without folder and ending, such as `"fragments"`.

    Returns:
        The parsed object. Callers share it and must not change it.
    """
    parsed: dict[str, Any] = json.loads((files("molforge_env") / "data" / f"{name}.json").read_text(encoding="utf-8"))
    return parsed
