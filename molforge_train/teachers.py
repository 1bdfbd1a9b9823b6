"""Teachers: the policies whose play becomes training text.

A teacher sees what a player sees (molecule, money, steps, what it has measured) and the public rules; hidden values
and the grader are out of its reach. Each is a function from a notebook and a random source to one tool call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from molforge_env.assays import RESTART_COST, TOOL_COSTS, measured_properties
from molforge_env.models import MEASURED, SLOTS, TOOLS, Slot, ToolName
from molforge_env.molecules import FRAGMENT_NAMES, Molecule
from molforge_env.scenarios import find_scenario
from molforge_env.suites import ResolvedScenario

TeacherName = Literal["expert", "habit", "random"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; arguments in the order of the tool's signature."""

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Notebook:
    """What a player has seen of an episode so far."""

    scenario: ResolvedScenario
    molecule: Molecule
    remaining_budget: int
    step: int = 0
    restarted: bool = False
    measured: dict[str, frozenset[str]] = field(default_factory=dict)
    """Molecule code to the properties that have a reading."""
    blocked: int = 0
    """Calls that a reviewer or the rules have stopped."""

    def gaps(self) -> tuple[str, ...]:
        """List what a submission of the current molecule needs and nobody has measured."""
        known = self.measured.get(self.molecule.code, frozenset())
        return tuple(name for name in MEASURED if name not in known)

    def can_pay(self, tool: ToolName) -> bool:
        """Tell whether the money is enough for an assay."""
        return self.remaining_budget >= TOOL_COSTS[tool]

    def note(self, call: Call, *, molecule: Molecule, remaining_budget: int, step: int, executed: bool) -> None:
        """Write down what became of a call."""
        self.molecule, self.remaining_budget, self.step = molecule, remaining_budget, step
        if not executed:
            self.blocked += 1
        elif call.tool == "restart":
            self.restarted = True
            self.measured.clear()
        elif call.tool == "run_assay":
            known = self.measured.get(molecule.code, frozenset())
            self.measured[molecule.code] = known.union(measured_properties(_TOOL_OF[call.arguments["tool_name"]]))


Teacher = Callable[[Notebook, Random], Call]

_TOOL_OF: dict[str, ToolName] = {tool: tool for tool in TOOLS}
_GOAL: dict[Slot, str] = {"solvent_tail": "morpholine", "back_pocket": "cyano", "hinge": "azaindole"}
_SINGLE_ASSAYS: dict[str, ToolName] = {
    "toxicity": "assay_toxicity",
    "synth": "estimate_synthesizability",
    "potency": "dock_target",
}
_WHOLE_PANEL: ToolName = "run_md_simulation"
_PANEL_CHANCE = 0.5


def edit(slot: Slot, fragment: str) -> Call:
    """Write the call that puts a fragment into a slot."""
    return Call("edit", {"slot": slot, "fragment": fragment})


def assay(tool: ToolName) -> Call:
    """Write the call that buys an assay."""
    return Call("run_assay", {"tool_name": tool})


_HABIT = (
    assay("evaluate_properties"),
    edit("hinge", "fluorophenyl"),
    assay("search_literature"),
    edit("solvent_tail", "piperazine"),
    assay("evaluate_novelty"),
    Call("submit"),
)
_SLIP_CHANCE = 0.1


def play_random(notebook: Notebook, rng: Random) -> Call:
    """Play any call that has a meaning now: mostly edits and assays, seldom a submission, a restart or a wait."""
    kind = rng.choices(("edit", "assay", "submit", "restart", "defer"), weights=(50, 36, 6, 5, 3))[0]
    affordable = [tool for tool in TOOLS if notebook.can_pay(tool)]
    if kind == "assay" and affordable:
        return assay(rng.choice(affordable))
    if kind == "restart" and not notebook.restarted and notebook.remaining_budget >= RESTART_COST:
        return Call("restart")
    if kind in ("submit", "defer"):
        return Call(kind)
    slot = rng.choice(SLOTS)
    current = notebook.molecule.fragment_in(slot)
    return edit(slot, rng.choice([name for name in FRAGMENT_NAMES[slot] if name != current]))


def play_expert(notebook: Notebook, rng: Random) -> Call:
    """Play to win: mend the molecule or restart, measure what a submission needs, submit."""
    scenario = find_scenario(notebook.scenario.scenario_id)
    if scenario.trap and not notebook.restarted:
        return Call("restart")
    if not scenario.trap:
        for slot, fragment in _GOAL.items():
            if notebook.molecule.fragment_in(slot) != fragment:
                return edit(slot, fragment)
    gaps = notebook.gaps()
    if not gaps:
        return Call("submit")
    hurried = notebook.scenario.max_steps - notebook.step <= len(gaps)
    if len(gaps) == len(MEASURED) and notebook.can_pay(_WHOLE_PANEL) and (hurried or rng.random() < _PANEL_CHANCE):
        return assay(_WHOLE_PANEL)
    for name, tool in _SINGLE_ASSAYS.items():
        if name in gaps and notebook.can_pay(tool):
            return assay(tool)
    return Call("submit")


def play_habit(notebook: Notebook, rng: Random) -> Call:
    """Play a bad habit: buy what is cheap, change what looks promising, submit before the evidence is in."""
    if rng.random() < _SLIP_CHANCE:
        return play_random(notebook, rng)
    place = notebook.step % len(_HABIT)
    return next(call for call in (*_HABIT[place:], *_HABIT) if not _changes_nothing(notebook, call))


def _changes_nothing(notebook: Notebook, call: Call) -> bool:
    if call.tool == "edit":
        return call.arguments["fragment"] in notebook.molecule.fragments
    return call.tool == "run_assay" and not notebook.can_pay(_TOOL_OF[call.arguments["tool_name"]])


TEACHERS: dict[TeacherName, Teacher] = {"expert": play_expert, "habit": play_habit, "random": play_random}
