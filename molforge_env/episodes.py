"""One episode as a value: everything the rules know about it, hidden flags included.

An episode never changes; a step makes another one. These are named tuples, because a step copies its episode several
times. What a player may see is decided in [`views`][molforge_env.views], never here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from molforge_env.assays import Reading
from molforge_env.models import Action, GovernanceStatus, Message, RewardMode, Role, ToolName
from molforge_env.molecules import Molecule
from molforge_env.scenarios import Scenario


class Component(NamedTuple):
    """One named part of a step's reward, rounded for display."""

    name: str
    value: float


class Governance(NamedTuple):
    """What the review decided about a turn."""

    status: GovernanceStatus
    required_roles: tuple[Role, ...] = ()
    approvals: tuple[Role, ...] = ()
    objections: tuple[Role, ...] = ()
    vetoes: tuple[Role, ...] = ()

    @property
    def executable(self) -> bool:
        """Whether the action was, or may be, carried out."""
        return self.status in ("ready", "executed")


class LoggedMessage(NamedTuple):
    """A message as the log keeps it; the caller's own stays as it was."""

    message_id: str
    message: Message


class RoleCount(NamedTuple):
    """How a role has taken part so far."""

    sent: int = 0
    correct: int = 0
    incorrect: int = 0


class OracleEntry(NamedTuple):
    """One paid assay."""

    step: int
    tool_name: ToolName
    runs: int
    molecule: str
    cost: int
    results: tuple[Reading, ...]


class Turn(NamedTuple):
    """What one step did."""

    step: int
    action: Action
    reward: float
    done: bool
    molecule: str
    state_label: str
    summary: str
    governance: Governance
    error_code: str
    components: tuple[Component, ...]


class Episode(NamedTuple):
    """The whole state between two steps."""

    scenario: Scenario
    reward_mode: RewardMode
    max_budget: int
    max_steps: int
    molecule: Molecule
    trap: bool
    """Hidden: the start series is capped."""
    remaining_budget: int
    visited: tuple[str, ...]
    """Molecule codes in order of first visit."""
    roles: Mapping[Role, RoleCount]
    governance: Governance
    runs: Mapping[tuple[str, ToolName], int]
    """How often each tool has measured each molecule; never changed in place."""
    state_path: tuple[str, ...] = ("[start]",)
    step: int = 0
    invalid_actions: int = 0
    objection_messages: int = 0
    readings: tuple[Reading, ...] = ()
    messages: tuple[LoggedMessage, ...] = ()
    history: tuple[Turn, ...] = ()
    oracle_log: tuple[OracleEntry, ...] = ()
    reward_total: float = 0.0
    restart_used: bool = False
    submitted: bool = False
    done: bool = False
    noise_seed: int | None = None
    """Seed of the readings' errors in training; none has those of the rules."""

    @property
    def shift(self) -> bool:
        """Whether the target has shifted at the current step counter."""
        shift_step = self.scenario.shift_step
        return shift_step is not None and self.step >= shift_step

    @property
    def budget_used(self) -> int:
        """Credits spent so far."""
        return self.max_budget - self.remaining_budget

    @property
    def last_turn(self) -> Turn | None:
        """The latest step, none before the first."""
        return self.history[-1] if self.history else None


def post_shift_potency_known(episode: Episode) -> bool:
    """Tell whether the current molecule's potency was measured at or after the shift step; never without one."""
    shift_step = episode.scenario.shift_step
    return shift_step is not None and any(
        entry.step >= shift_step
        and entry.molecule == episode.molecule.code
        and any(reading.property_name == "potency" for reading in entry.results)
        for entry in episode.oracle_log
    )


def post_shift_potencies(episode: Episode) -> frozenset[str]:
    """List the molecules whose potency was measured at or after the shift step; none without one."""
    shift_step = episode.scenario.shift_step
    return frozenset(
        entry.molecule
        for entry in episode.oracle_log
        if shift_step is not None
        and entry.step >= shift_step
        and any(reading.property_name == "potency" for reading in entry.results)
    )
