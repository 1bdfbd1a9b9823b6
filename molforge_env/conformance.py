"""Plays recorded episodes again and tells where this laboratory differs.

`python -m molforge_env.conformance FILE...` reads the golden formats, prints the first ten differences and then one
line of totals, and exits 0 only when nothing differs. What a recorded quirk did after the fault is left out and said.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from molforge_env.descriptors import canonical_smiles, describe
from molforge_env.episodes import Episode, Turn
from molforge_env.errors import (
    EXIT_FINDINGS,
    EXIT_SOUND,
    EpisodeOverError,
    MolForgeError,
    ToolArgumentError,
    UsageError,
)
from molforge_env.golden_rows import DescriptorRow, DrawRow, EpisodeRow, PropertyRow, Row, StepRow, bad_line, read_rows
from molforge_env.grading import grade
from molforge_env.models import Action
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import objective, true_properties
from molforge_env.scenarios import find_scenario
from molforge_env.suites import ResolvedScenario, open_episode, resolve_scenario, sequential_draws
from molforge_env.tools import ToolOutcome, ToolSession
from molforge_env.transitions import step

_SHOWN_DIFFERENCES = 10
DRAW_SEED = "42"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is recorded otherwise than this laboratory gives it."""

    file: str
    line: int
    """Line of the row, from 1; the episode's number in its file."""
    step: int | None
    """Step of the episode, from 1; none for the end of an episode and for other rows."""
    field: str
    recorded: object
    ours: object

    def __str__(self) -> str:
        step = "" if self.step is None else f" step {self.step}"
        return f"{self.file} episode {self.line}{step} {self.field}: recorded {self.recorded!r}, ours {self.ours!r}"


@dataclass(slots=True)
class Conformance:
    """Totals over all files."""

    episodes: int = 0
    steps: int = 0
    other_rows: int = 0
    """Property, descriptor and draw rows."""
    quirk_episodes: int = 0
    quirk_steps: int = 0
    """Steps left out, from the fault of a quirk to its end."""
    differences: list[Difference] = field(default_factory=list)


def compare_files(paths: Iterable[Path]) -> Conformance:
    """Compare recorded files with this laboratory.

    Raises:
        UnreadableError: A file or a line cannot be read.
        MissingDependencyError: RDKit cannot be imported.
    """
    total = Conformance()
    for path in paths:
        for number, row in read_rows(path):
            try:
                for name, step_number, recorded, ours in _compare_row(row, total):
                    total.differences.append(Difference(path.name, number, step_number, name, recorded, ours))
            except UsageError as error:
                raise bad_line(path, number, f"cannot be played: {error.what}") from error
    return total


_Found = tuple[str, int | None, object, object]


def _compare_row(row: Row, total: Conformance) -> Iterator[_Found]:
    if isinstance(row, EpisodeRow):
        total.episodes += 1
        yield from _compare_episode(row, total)
        return
    total.other_rows += 1
    if isinstance(row, PropertyRow):
        yield from _compare_properties(row)
    elif isinstance(row, DescriptorRow):
        yield from _compare_descriptors(row)
    else:
        yield from _compare_draw(row)


def _differ(step_number: int | None, recorded: dict[str, Any], ours: dict[str, Any]) -> Iterator[_Found]:
    for name, value in recorded.items():
        if ours.get(name) != value:
            yield name, step_number, value, ours.get(name)


def _compare_properties(row: PropertyRow) -> Iterator[_Found]:
    scenario = find_scenario(row.scenario)
    properties = true_properties(molecule_from_code(row.mol), trap=row.trap, shift=row.shift)
    ours = {**properties._asdict(), "objective": objective(scenario, properties)}
    yield from _differ(None, row.model_dump(include=set(ours)), ours)


def _compare_descriptors(row: DescriptorRow) -> Iterator[_Found]:
    molecule = molecule_from_code(row.mol)
    found = describe(molecule)
    ours = {
        "qed": found.qed,
        "logp": found.logp,
        "tpsa": found.tpsa,
        "mw": found.weight,
        "rotatable": found.rotatable_bonds,
        "aromatic_rings": found.aromatic_rings,
        "rings": found.rings,
        "stereocenters": found.stereocentres,
        "similarity": found.similarity,
        "canonical_smiles": canonical_smiles(molecule),
    }
    recorded = row.model_dump(include=set(ours)) | {"similarity": row.max_tanimoto_num / row.max_tanimoto_den}
    yield from _differ(None, recorded, ours)


def _compare_draw(row: DrawRow) -> Iterator[_Found]:
    drawn = next(islice(sequential_draws(DRAW_SEED), row.reset, None))
    ours = {
        "scenario": drawn.scenario_id,
        "budget": drawn.max_budget,
        "max_steps": drawn.max_steps,
        "start": drawn.start_molecule,
    }
    yield from _differ(None, row.model_dump(include=set(ours)), ours)


def _compare_episode(row: EpisodeRow, total: Conformance) -> Iterator[_Found]:
    resolved = resolve_scenario(scenario_id=row.scenario)
    if row.start is not None:
        resolved = resolved.model_copy(update={"start_molecule": molecule_from_code(row.start).code})
    player = _CallPlayer(resolved, row) if row.calls is not None else _ActionPlayer(resolved, row)
    readings: list[object] = []
    total.quirk_episodes += row.quirk is not None
    if player.planned != len(row.steps):
        yield "steps", None, len(row.steps), player.planned
    for index, recorded in enumerate(row.steps[: player.planned]):
        if row.quirk is not None and (player.episode.done or recorded.exception is not None):
            total.quirk_steps += len(row.steps) - index
            return
        total.steps += 1
        readings = readings if recorded.assays is None else list(recorded.assays)
        yield from _differ(index + 1, *player.play(index, recorded, readings))
    if row.quirk is None:
        yield from _compare_end(row, player.episode)


def _compare_end(row: EpisodeRow, episode: Episode) -> Iterator[_Found]:
    if row.scores is not None:
        yield from _differ(None, row.scores, grade(episode) if episode.done else {})
    if row.counters is not None:
        yield from _differ(None, row.counters, _count(episode))
    if row.role_metrics is not None:
        roles: dict[str, Any] = {
            role: [count.sent, count.correct, count.incorrect] for role, count in episode.roles.items()
        }
        yield from _differ(None, dict(row.role_metrics), roles)
    if row.state_path is not None:
        yield from _differ(None, {"state_path": row.state_path}, {"state_path": list(episode.state_path)})


def _count(episode: Episode) -> dict[str, object]:
    return {
        "steps": episode.step,
        "invalid": episode.invalid_actions,
        "objection_messages": episode.objection_messages,
        "oracle_calls": len(episode.oracle_log),
        "messages": len(episode.messages),
        "visited": len(episode.visited),
        "known_assays": len(episode.readings),
        "submitted": episode.submitted,
        "reward_total": episode.reward_total,
        "budget_used": episode.budget_used,
    }


_STEP_FIELDS = ("reward", "done", "error", "gov", "budget", "mol", "comp", "vetoes", "approvals", "objections")


def _recorded_step(recorded: StepRow, readings: list[object]) -> dict[str, Any]:
    if recorded.exception is not None:
        return {"exception": recorded.exception}
    values = {name: getattr(recorded, name) for name in _STEP_FIELDS} | {"exception": None, "assays": readings}
    if recorded.tool_reward is not None:
        values["tool_reward"] = recorded.tool_reward
    if recorded.act is not None:
        values |= recorded.act.model_dump()
    return values


def _played_step(episode: Episode, turn: Turn) -> dict[str, Any]:
    verdict = turn.governance
    return {
        "exception": None,
        "reward": turn.reward,
        "done": turn.done,
        "error": turn.error_code,
        "gov": verdict.status,
        "budget": episode.remaining_budget,
        "mol": turn.molecule,
        "comp": [(part.name, part.value) for part in turn.components],
        "vetoes": list(verdict.vetoes),
        "approvals": list(verdict.approvals),
        "objections": list(verdict.objections),
        "assays": [
            (
                reading.tool_name,
                reading.property_name,
                reading.estimate,
                reading.confidence_low,
                reading.confidence_high,
                reading.runs,
                reading.molecule,
            )
            for reading in episode.readings
        ],
    }


class _ActionPlayer:
    """Plays recorded actions through the rules."""

    def __init__(self, resolved: ResolvedScenario, row: EpisodeRow) -> None:
        self._actions = row.actions or []
        self.episode = open_episode(resolved, reward_mode=row.mode)
        self.planned = len(self._actions)

    def play(self, index: int, recorded: StepRow, readings: list[object]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give what is recorded of a step and what it is here."""
        try:
            self.episode = step(self.episode, Action.model_validate(self._actions[index]))
        except (ValidationError, EpisodeOverError) as error:
            return {"exception": recorded.exception}, {"exception": _exception_name(error)}
        return _recorded_step(recorded, readings), _played_step(self.episode, self.episode.history[-1])


class _CallPlayer:
    """Plays recorded tool calls through a tool session."""

    def __init__(self, resolved: ResolvedScenario, row: EpisodeRow) -> None:
        self._calls = row.calls or []
        self._session = ToolSession()
        self._session.start(resolved, reward_mode=row.mode)
        self.planned = len(self._calls)

    @property
    def episode(self) -> Episode:
        """The episode so far."""
        return self._session.episode

    def play(self, index: int, recorded: StepRow, readings: list[object]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give what is recorded of a step and what it is here."""
        tool, arguments = self._calls[index]
        try:
            outcome = self._session.call(tool, {"rationale": "r", **arguments})
        except (ToolArgumentError, EpisodeOverError) as error:
            return {"exception": recorded.exception}, {"exception": _exception_name(error)}
        ours = _played_step(self.episode, self.episode.history[-1]) | _attached(outcome)
        return _recorded_step(recorded, readings), ours


def _attached(outcome: ToolOutcome) -> dict[str, Any]:
    action = outcome.action
    return {
        "tool_reward": outcome.tool_reward,
        "messages": [[message.sender, message.message_type, message.severity] for message in action.messages],
        "evidence": list(action.evidence),
        "expected_effects": dict(action.expected_effects),
    }


def _exception_name(error: Exception) -> str:
    """Name the exception as the public environment does."""
    return "ValueError" if isinstance(error, EpisodeOverError) else "ValidationError"


def write_report(total: Conformance) -> str:
    """Write the first ten differences, what was left out, and the line of totals."""
    lines = [str(difference) for difference in total.differences[:_SHOWN_DIFFERENCES]]
    more = len(total.differences) - len(lines)
    if more > 0:
        lines.append(f"{more} more like this")
    if total.other_rows:
        lines.append(f"rows outside episodes: {total.other_rows}")
    if total.quirk_episodes:
        lines.append(f"quirks: {total.quirk_episodes} episodes, {total.quirk_steps} steps after their fault left out")
    lines.append(f"episodes={total.episodes} steps={total.steps} differences={len(total.differences)}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Compare the files and print the report.

    Returns:
        0 without differences, 1 with some, 2 without files, 3 when a file cannot be read.
    """
    from molforge_env.command_line import report_error

    try:
        if not arguments:
            raise UsageError(
                "no file was given",
                where="molforge_env.conformance",
                mend="Call `python -m molforge_env.conformance FILE...`.",
            )
        total = compare_files(Path(argument) for argument in arguments)
    except MolForgeError as error:
        return report_error(error)
    sys.stdout.write(write_report(total) + "\n")
    return EXIT_FINDINGS if total.differences else EXIT_SOUND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
