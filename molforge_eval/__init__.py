"""Play, record, validate, replay, compare and report.

The names here are for a notebook or a program of one's own. They are loaded when they are asked for: importing the
package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from molforge_eval.report.build import PacketOptions, build_packet
    from molforge_eval.report.comparison_build import Comparison, ComparisonOptions, compare_runs
    from molforge_eval.report.packet import Packet

__all__ = ["Comparison", "ComparisonOptions", "Packet", "PacketOptions", "build_packet", "compare_runs"]

_HOMES = {
    "Comparison": "molforge_eval.report.comparison_build",
    "ComparisonOptions": "molforge_eval.report.comparison_build",
    "Packet": "molforge_eval.report.packet",
    "PacketOptions": "molforge_eval.report.build",
    "build_packet": "molforge_eval.report.build",
    "compare_runs": "molforge_eval.report.comparison_build",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
