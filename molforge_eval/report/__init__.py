"""The judge packet: one evidence model, its charts and drawings, one HTML page and one PDF; and several runs on one.

`build_packet` and `compare_runs` stand here too; they are loaded when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from molforge_eval.report.build import build_packet
    from molforge_eval.report.comparison_build import compare_runs

__all__ = ["build_packet", "compare_runs"]

_HOMES = {"build_packet": "build", "compare_runs": "comparison_build"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
