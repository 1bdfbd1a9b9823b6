"""Readings that the laboratory returns: the truth with noise, never the truth itself.

Equal molecule, tool, property and run number give an equal error in every episode, scenario and seed; only the true
value under it moves. Training may ask for errors that differ by a seed; an evaluation has
those of the rules. The price of a tool and what it measures are data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from molforge_env.arithmetic import clamp01, round4
from molforge_env.models import TOOLS, ToolName
from molforge_env.molecules import Molecule
from molforge_env.oracles import Properties
from molforge_env.tables import read_table

_TABLE = read_table("assays")
_ROWS = {row["name"]: row for row in _TABLE["tools"]}
TOOL_COSTS: dict[ToolName, int] = {tool: int(_ROWS[tool]["cost"]) for tool in TOOLS}
RESTART_COST: int = _TABLE["restart_cost"]
LITERATURE: ToolName = "search_literature"


class Reading(NamedTuple):
    """One measured value with its bounds."""

    tool_name: ToolName
    property_name: str
    estimate: float
    confidence_low: float
    confidence_high: float
    runs: int
    molecule: str
    """Code of the molecule that was measured."""


def measured_properties(tool: ToolName) -> tuple[str, ...]:
    """List what a tool reads, in reading order."""
    return tuple(_ROWS[tool]["properties"])


_MEASURED = {tool: measured_properties(tool) for tool in TOOLS}


def read_assay(
    molecule: Molecule, tool: ToolName, *, run: int, properties: Properties, noise_seed: int | None = None
) -> tuple[Reading, ...]:
    """Measure a molecule.

    Args:
        molecule: What is measured; its signature seeds the noise.
        tool: Which assay.
        run: How often this tool has measured this molecule, this time included; from 1.
        properties: The true values now.
        noise_seed: Draws other errors than those of the rules; none keeps to the rules.

    Returns:
        One reading for each property of the tool, in its order.
    """
    if tool == LITERATURE:
        return (_read_literature(molecule, run),)
    drawn = str(run) if noise_seed is None else f"{run}|{noise_seed}"
    return tuple(
        _read_property(molecule, tool, name, run, getattr(properties, name), drawn) for name in _MEASURED[tool]
    )


def _read_literature(molecule: Molecule, run: int) -> Reading:
    table = _TABLE["literature"]
    value = min(table["cap"], table["start"] + table["per_run"] * run)
    return Reading(
        LITERATURE,
        "literature_signal",
        round4(value),
        max(0.0, round4(value - table["half_width"])),
        min(1.0, round4(value + table["half_width"])),
        run,
        molecule.code,
    )


def _read_property(molecule: Molecule, tool: ToolName, name: str, run: int, true: float, drawn: str) -> Reading:
    noise = _TABLE["noise"]
    digest = sha256(f"{molecule.signature}|{tool}|{name}|{drawn}".encode()).hexdigest()
    offset = int(digest[:8], 16) / 4294967295 - 0.5
    estimate = round4(clamp01(true + offset * (noise["width"] / run)))
    half_width = max(noise["half_width_floor"], noise["half_width"] / run)
    return Reading(
        tool,
        name,
        estimate,
        max(0.0, round4(estimate - half_width)),
        min(1.0, round4(estimate + half_width)),
        run,
        molecule.code,
    )


def merge_readings(known: tuple[Reading, ...], new: Iterable[Reading]) -> tuple[Reading, ...]:
    """Add readings to those known; a repeated one keeps its place and takes the new value."""
    merged = {(entry.tool_name, entry.property_name, entry.molecule): entry for entry in known}
    for entry in new:
        merged[entry.tool_name, entry.property_name, entry.molecule] = entry
    return tuple(merged.values())


def known_estimates(readings: Iterable[Reading], molecule: Molecule) -> dict[str, float]:
    """Look up the estimates of one molecule, by property; the last in list order counts."""
    code = molecule.code
    return {entry.property_name: entry.estimate for entry in readings if entry.molecule == code}


@cache
def information_value(tool: ToolName, *, runs: int, is_easy: bool) -> float:
    """Rate what one more run would tell; shown to the planner, never paid."""
    row = _ROWS[tool]
    base: float = row["information_value_easy"] if is_easy else row["information_value"]
    return round4(base * _TABLE["information_decay"] ** runs)


def runs_of(runs: Mapping[tuple[str, ToolName], int], molecule: Molecule, tool: ToolName) -> int:
    """Count the runs of a tool on a molecule since the start or the restart."""
    return runs.get((molecule.code, tool), 0)
