"""The training episodes as they are written down: a line a call, sealed into a chain, on disk before the next step.

Lines of an episode are written when its whole batch is played, because only then the model's own words are known. This
module is the one of the package that reads the clock.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from molforge_env.interface import TOOL_NAMES
from molforge_eval import layout
from molforge_eval.calls import recordable
from molforge_eval.canonical import line_bytes, plain
from molforge_eval.metrics_table import COLUMNS, row_of
from molforge_eval.records.fields import FORMAT_VERSION
from molforge_eval.records.training import RolloutLine
from molforge_eval.sealing import RolloutChains
from molforge_train.log_file import append_lines
from molforge_train.rollout import Made, Rollout

_NO_CHAIN = "0" * 64


def read_clock() -> datetime:
    """Read the time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - records say when they were made


class Paid(NamedTuple):
    """What an episode came to."""

    score: float | None
    """Strict score: 0.0 when unfinished, `None` when the environment broke."""
    reward: float | None
    """What the trainer is paid; `None` when the environment broke."""


class RolloutLog:
    """The rollout log of a run and its table."""

    def __init__(self, folder: Path, run_id: str, *, resumes: int = 0) -> None:
        """Begin both files in a run directory, or go on with those that are there.

        Args:
            folder: The run directory.
            run_id: Stands on every line.
            resumes: How often the run went on after a stop; names of episodes tell them apart by it.
        """
        self._lines = folder / layout.ROLLOUTS
        self._table = folder / layout.METRICS_TABLE
        self._run_id = run_id
        self._chains = RolloutChains()
        self._part = f"-r{resumes}" if resumes else ""
        append_lines(self._lines, [])
        if not resumes:
            append_lines(self._table, [_csv_row(COLUMNS)])

    def write(self, batch: Iterable[tuple[Rollout, Paid]]) -> None:
        """Append the lines of a batch of episodes to both files and force them to disk."""
        lines = [line for rollout, paid in batch for line in episode_lines(rollout, paid, self._run_id, self._part)]
        sealed = [plain(self._chains.seal(line)) for line in lines]
        append_lines(self._lines, [line_bytes(line) for line in sealed])
        append_lines(self._table, [_csv_row(row_of(line)) for line in sealed])


def episode_lines(rollout: Rollout, paid: Paid, run_id: str, part: str = "") -> list[RolloutLine]:
    """Write an episode as lines, not yet chained.

    Args:
        rollout: The episode.
        paid: Score and reward; they stand on its last line.
        run_id: Stands on every line.
        part: Ends the names of episodes that were played after a stop.
    """
    played = rollout.played
    facts: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "episode_id": rollout.episode_id + part,
        "trainer_step": rollout.identity.trainer_step,
        "generation": rollout.identity.generation,
        "seed": played.seed,
        "scenario_id": played.scenario.scenario_id,
        "difficulty": played.scenario.difficulty,
        "reward_mode": played.reward_mode,
        "source": "model",
        "chain": _NO_CHAIN,
        **_empty_facts(),
    }
    state: dict[str, Any] = {
        "step_index": 0,
        "remaining_budget": played.scenario.max_budget,
        "molecule": played.scenario.start_molecule,
        "done": False,
        "final_score": None,
        "submission_score": None,
        "progress_score": None,
    }
    rows = []
    told = -1
    for entry in rollout.made:
        state |= _state_after(entry)
        words = rollout.texts[entry.turn] if entry.turn > told else None
        told = entry.turn
        rows.append({**facts, **state, **_call_facts(entry), "raw_completion": words})
    turn = rollout.ending.closing_turn
    if turn is not None:
        moment = rows[-1]["timestamp"] if rows else played.started_at
        words = rollout.texts[turn]
        rows.append({**facts, **state, "turn": turn, "timestamp": moment, "raw_completion": words})
    rows[0] |= {"prompt": rollout.identity.prompt, "scenario": played.scenario}
    rows[-1] |= {
        "ended_by": rollout.ending.ended_by,
        "episode_score": paid.score,
        "training_reward": paid.reward,
    }
    return [RolloutLine.model_validate(row) for row in rows]


def _empty_facts() -> dict[str, Any]:
    absent = (
        "scenario tool acting_role slot fragment tool_name rationale reward transition_reward governance_status "
        "observation_sha256 prompt raw_completion ended_by episode_score training_reward"
    )
    rest = {"action_type": "none", "arguments": {}, "vetoes": (), "error_code": "", "summary": "", "status": "ok"}
    return {**dict.fromkeys(absent.split()), **rest}


def _state_after(entry: Made) -> dict[str, Any]:
    outcome = entry.call.outcome
    if outcome is None:
        return {}
    scores = ("final_score", "submission_score", "progress_score")
    return {
        "step_index": outcome.step_index,
        "remaining_budget": outcome.remaining_budget,
        "molecule": outcome.molecule,
        "done": outcome.done,
        **{name: outcome.scores.get(name) for name in scores},
    }


def _call_facts(entry: Made) -> dict[str, Any]:
    call, outcome = entry.call, entry.call.outcome
    facts: dict[str, Any] = {
        "turn": entry.turn,
        "tool": recordable(call.tool),
        "timestamp": call.moment,
        "arguments": call.arguments,
        "error_code": call.error_code,
        "status": call.status,
    }
    if outcome is None:
        return {**facts, "action_type": call.tool if call.tool in TOOL_NAMES else "none"}
    action = outcome.action
    return {
        **facts,
        "action_type": action.action_type,
        "acting_role": action.acting_role,
        "slot": action.slot,
        "fragment": action.fragment,
        "tool_name": action.tool_name,
        "rationale": action.rationale,
        "reward": outcome.tool_reward,
        "transition_reward": outcome.reward,
        "governance_status": outcome.governance_status,
        "vetoes": outcome.vetoes,
        "observation_sha256": outcome.observation_sha256,
        "summary": outcome.summary,
    }


def _csv_row(cells: Sequence[str]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(cells)
    return written.getvalue().encode()
