"""Sound runs that are not one another: each with a run id, an adapter and settings of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import evidence_builder


def rival_id(number: int) -> str:
    """The run id of a number."""
    return f"run-{number:012x}"


def build_rival(root: Path, number: int, *, after: str, **how: Any) -> Path:
    """Make a sound run whose evaluation after training was played by a policy.

    Args:
        root: The folder to make.
        number: Tells it from others: its run id and its adapter go by it.
        after: As for `build_run`.
        how: As for `build_run`; pictures are left out.
    """
    settings = {"run_name": root.name, **how.pop("settings", {})}
    own = {"RUN_ID": rival_id(number), "_ADAPTER_SEED": number}
    with mock.patch.multiple(evidence_builder, **own):
        return evidence_builder.build_run(root, after=after, plots=False, settings=settings, **how)
