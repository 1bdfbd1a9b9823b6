"""One training episode, played again from its rollout lines alone and compared exactly.

The first line that differs is named and the rest of the episode is left alone. What the trainer was paid is computed
again by the formula of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from molforge_env.errors import UsageError
from molforge_env.interface import TOOL_NAMES, ObservationLength, parse_completion, prompt_text, spelling_of
from molforge_env.suites import ResolvedScenario, resolve_scenario
from molforge_env.tools import Moves, ToolOutcome, ToolSession
from molforge_eval import layout
from molforge_eval.calls import CallResult, call_tool, recordable
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.rounding import agrees
from molforge_eval.endings import laboratory_ending
from molforge_eval.findings import Finding
from molforge_eval.limits import Limits
from molforge_eval.log_tables import rows_at
from molforge_eval.records.manifest import Configuration
from molforge_eval.replay_record import UNREAD, squeezed, text_code, unlike_calls, unlike_scenario
from molforge_eval.run_files import RunFiles
from molforge_eval.training_reward import conduct_of, judged_line, phase_at, training_reward

Row = Mapping[str, Any]

_STATE = ("step_index", "remaining_budget", "molecule", "done", "final_score", "submission_score", "progress_score")
"""What a line without a step repeats from the line before it."""


class LinesTask(NamedTuple):
    """Where the lines of one training episode stand, and what it was played under.

    The lines are read again from the log when their turn comes: together they may be larger than memory.
    """

    files: RunFiles
    limits: Limits
    episode_id: str
    numbers: tuple[int, ...]
    """Numbers of its lines, in file order."""
    starts: tuple[int, ...]
    """Byte of the log at which each of them begins."""
    observation_length: ObservationLength
    turn_limit: int
    is_own_wording: bool
    """The run was made with this product version, whose texts must be the same to the letter."""
    settings: Configuration | None
    """How the episode was paid and its readings were drawn; `None` when no manifest states it."""

    def rows(self) -> tuple[Row, ...]:
        """Read the lines, each with its number as `line`.

        Raises:
            OSError: The log cannot be read.
        """
        return tuple(rows_at(self.files, self.limits, self.numbers, self.starts))


def replay_lines(task: LinesTask, moves: Moves) -> Iterator[Finding]:
    """Play a training episode again; no finding means no difference.

    Args:
        task: The episode.
        moves: Moves that were played before.
    """
    rows = task.rows()
    first = rows[0]
    if first["scenario"] is None:
        # Its first lines are gone, which is named by another check; there is nothing to start from.
        return
    try:
        recorded = ResolvedScenario.model_validate(first["scenario"])
        scenario = resolve_scenario(suite=recorded.suite, scenario_id=first["scenario_id"], seed=first["seed"])
    except (UsageError, ValidationError) as error:
        what = error.what if isinstance(error, UsageError) else "the scenario is none of this version"
        yield _wrong("REPLAY_SCENARIO_DIFFERS", what, first, "scenario")
        return
    for key, what in unlike_scenario(recorded, scenario):
        yield _wrong("REPLAY_SCENARIO_DIFFERS", what, first, f"scenario/{key}")
        return
    if first["difficulty"] != scenario.difficulty:
        what = f"difficulty is {seen(first['difficulty'])}, the suite gives {seen(scenario.difficulty)}"
        yield _wrong("REPLAY_SCENARIO_DIFFERS", what, first, "difficulty")
    session = ToolSession(observation_length=task.observation_length, moves=moves)
    noise_seed = first["seed"] if task.settings is not None and task.settings.assay_noise else None
    opening = session.start(scenario, reward_mode=first["reward_mode"], noise_seed=noise_seed)
    told = squeezed(prompt_text(task.observation_length) + opening)
    if told not in squeezed(first["prompt"] or ""):
        code = text_code(is_own_wording=task.is_own_wording)
        yield _wrong(code, "the text of the environment is not in the prompt", first, "prompt")
    yield from _check_spoken(rows)
    yield from _play(task, rows, session, _start_of(scenario))


def _start_of(scenario: ResolvedScenario) -> dict[str, Any]:
    absent = dict.fromkeys(("final_score", "submission_score", "progress_score"))
    return {
        "step_index": 0,
        "remaining_budget": scenario.max_budget,
        "molecule": scenario.start_molecule,
        "done": False,
        **absent,
    }


def _play(task: LinesTask, rows: Sequence[Row], session: ToolSession, state: dict[str, Any]) -> Iterator[Finding]:
    last: ToolOutcome | None = None
    for row in rows:
        if row["status"] == "env_error":
            return
        expected = {**_EMPTY, **_SILENT, **state}
        if row["tool"] is not None:
            result = call_tool(session, row["tool"], row["arguments"])
            last = result.outcome or last
            expected = _expected_row(row["tool"], result, state)
        state = {key: expected[key] for key in _STATE}
        for key, value in expected.items():
            if row[key] != value:
                what = f"{key} is {seen(row[key])}, played again it is {seen(value)}"
                yield _wrong("REPLAY_STEP_DIFFERS", what, row, key)
                return
    yield from _check_end(task, rows, session, last)


_SILENT: Row = {"arguments": {}}
"""What a line without a call says beside `_EMPTY`."""

_EMPTY: Row = {
    "action_type": "none",
    "acting_role": None,
    "slot": None,
    "fragment": None,
    "tool_name": None,
    "rationale": None,
    "reward": None,
    "transition_reward": None,
    "governance_status": None,
    "vetoes": [],
    "error_code": "",
    "observation_sha256": None,
    "summary": "",
    "status": "ok",
}


def _expected_row(tool: str, result: CallResult, state: Row) -> dict[str, Any]:
    outcome = result.outcome
    told = {"status": result.status, "error_code": result.error_code}
    if outcome is None:
        return {**_EMPTY, **state, **told, "action_type": tool if tool in TOOL_NAMES else "none"}
    action = outcome.action
    return {
        **_EMPTY,
        **told,
        "action_type": action.action_type,
        "acting_role": action.acting_role,
        "slot": action.slot,
        "fragment": recordable(action.fragment),
        "tool_name": action.tool_name,
        "rationale": recordable(action.rationale),
        "reward": outcome.tool_reward,
        "transition_reward": outcome.reward,
        "done": outcome.done,
        "governance_status": outcome.governance_status,
        "vetoes": list(outcome.vetoes),
        "observation_sha256": outcome.observation_sha256,
        "summary": recordable(outcome.summary),
        "step_index": outcome.step_index,
        "remaining_budget": outcome.remaining_budget,
        "molecule": outcome.molecule,
        "final_score": outcome.scores.get("final_score"),
        "submission_score": outcome.scores.get("submission_score"),
        "progress_score": outcome.scores.get("progress_score"),
    }


def _check_spoken(lines: Sequence[Row]) -> Iterator[Finding]:
    """Every turn's calls are those in the model's own words, which stand on the first line of the turn."""
    turns: dict[int, list[Row]] = {}
    for row in lines:
        turns.setdefault(row["turn"], []).append(row)
    for rows in turns.values():
        first = rows[0]
        if first["source"] != "model" or any(row["status"] == "env_error" for row in rows):
            continue
        if first["raw_completion"] is None:
            yield _wrong("REPLAY_CALL_DIFFERS", "the turn has no completion", first, "raw_completion")
            continue
        calls = [(str(row["tool"]), row["arguments"]) for row in rows if row["tool"] is not None]
        what = unlike_calls(first["raw_completion"], calls, spelling_of(lines[0]["prompt"] or ""))
        if what is None or (not calls and lines[-1]["ended_by"] in ("turn_limit", "length_limit")):
            continue
        code = "REPLAY_CALL_UNREAD" if what == UNREAD else "REPLAY_CALL_DIFFERS"
        yield _wrong(code, what, first, "raw_completion")


def _check_end(
    task: LinesTask, rows: Sequence[Row], session: ToolSession, last: ToolOutcome | None
) -> Iterator[Finding]:
    row = rows[-1]
    if row["ended_by"] is None:
        # Its last lines are gone or were never written, which another check names.
        return
    expected = _endings(rows, task.turn_limit, session, last)
    if row["ended_by"] not in expected:
        what = f"ended_by is {seen(row['ended_by'])}, played again it is {seen(expected[0])}"
        yield _wrong("REPLAY_ENDING_DIFFERS", what, row, "ended_by")
        return
    scores = session.scores if session.done else {}
    score = scores.get("final_score", 0.0)
    if row["episode_score"] != score:
        what = f"episode_score is {seen(row['episode_score'])}, played again it is {score}"
        yield _wrong("REPLAY_SCORE_DIFFERS", what, row, "episode_score")
    if task.settings is not None:
        calls = [judged_line(entry) for entry in rows]
        conduct = conduct_of(calls, done=session.done, anti_farming=task.settings.anti_farming)
        weights = phase_at(task.settings, rows[0]["trainer_step"]).reward_weights
        paid = training_reward(conduct, scores or None, weights)
        if not agrees(row["training_reward"], paid):
            what = f"training_reward is {seen(row['training_reward'])}, the formula gives {paid}"
            yield _wrong("REPLAY_REWARD_DIFFERS", what, row, "training_reward")


def _endings(rows: Sequence[Row], turn_limit: int, session: ToolSession, last: ToolOutcome | None) -> tuple[str, ...]:
    """List the endings that the last line may have, the likeliest first."""
    row = rows[-1]
    if session.done and last is not None:
        return (laboratory_ending(last),)
    if row["tool"] is not None:
        # The answer to the last call no longer fitted, or the calls of one turn more were not carried out.
        return ("length_limit",)
    parsed = parse_completion(row["raw_completion"] or "", spelling_of(rows[0]["prompt"] or ""))
    if parsed.calls:
        return ("turn_limit", "length_limit") if row["turn"] >= turn_limit else ("length_limit",)
    # Whether a completion without a call was full is a matter of tokens, which the log does not count.
    return ("no_call" if parsed.malformed is None else "malformed_call", "length_limit")


def _wrong(code: str, what: str, row: Row, key: str) -> Finding:
    return finding(
        code,
        what,
        file=layout.ROLLOUTS,
        line=row["line"],
        pointer=f"/{key}",
        episode=row["episode_id"],
        step=row["step_index"],
    )
