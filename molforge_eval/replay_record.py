"""One episode record of an evaluation, played again in the laboratory and compared exactly.

The first step that differs is named and the rest of the episode is left alone: what follows from a difference is no
second finding. What the model was told and what it wrote are held to the same episode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from molforge_env.errors import UsageError
from molforge_env.interface import Spelling, parse_completion, prompt_text, spelling_of
from molforge_env.suites import ResolvedScenario, resolve_scenario
from molforge_env.tools import Moves, ToolOutcome, ToolSession
from molforge_eval.calls import call_tool, recordable, recordable_arguments, step_record
from molforge_eval.canonical import plain
from molforge_eval.catalogue import finding, seen
from molforge_eval.endings import ending_without_call, laboratory_ending
from molforge_eval.findings import Finding
from molforge_eval.records import EpisodeRecord, EvaluationPlan, StepRecord, TurnRecord


class RecordTask(NamedTuple):
    """An episode record and what it was played under."""

    path: str
    number: int
    """Place in the file's list of episodes."""
    episode: EpisodeRecord
    plan: EvaluationPlan
    is_spoken: bool
    """A model played: its completions are text to be read."""
    is_own_wording: bool
    """The run was made with this product version, whose texts must be the same to the letter."""

    def wrong(self, code: str, what: str, key: str, step: int | None = None) -> Finding:
        """Make a finding at a key of the record."""
        place = f"/episodes/{self.number}{key}"
        return finding(code, what, file=self.path, pointer=place, episode=self.episode.episode_id, step=step)


def replay_record(task: RecordTask, moves: Moves) -> Iterator[Finding]:
    """Play an episode record again; no finding means no difference.

    Args:
        task: The episode.
        moves: Moves that were played before.
    """
    episode = task.episode
    try:
        scenario = resolve_scenario(suite=episode.suite, scenario_id=episode.scenario_id, seed=episode.seed)
    except UsageError as error:
        yield task.wrong("REPLAY_SCENARIO_DIFFERS", error.what, "/scenario_id")
        return
    for key, what in unlike_scenario(episode.scenario, scenario):
        yield task.wrong("REPLAY_SCENARIO_DIFFERS", what, f"/scenario/{key}")
        return
    session = ToolSession(observation_length=task.plan.observation_length, moves=moves)
    opening = session.start(scenario, reward_mode=episode.reward_mode)
    yield from _check_told(task, prompt_text(task.plan.observation_length) + opening)
    if task.is_spoken:
        yield from _check_spoken(task)
    last: ToolOutcome | None = None
    for place, step in enumerate(episode.steps):
        result = call_tool(session, step.tool, step.arguments)
        last = result.outcome or last
        difference = _first_difference(step, step_record(session, step.tool, result, turn=step.turn))
        if difference is None:
            continue
        key, what = difference
        is_text = key == "response"
        code = text_code(is_own_wording=task.is_own_wording) if is_text else "REPLAY_STEP_DIFFERS"
        yield task.wrong(code, what, f"/steps/{place}/{key}", step.step)
        if not is_text:
            return
    if episode.ended_by != "env_error":
        yield from _check_end(task, session, last)
    elif session.done and last is not None:
        what = f'ended_by is "env_error", played again it is {seen(laboratory_ending(last))}'
        yield task.wrong("REPLAY_ENDING_DIFFERS", what, "/ended_by")


def unlike_scenario(recorded: ResolvedScenario, given: ResolvedScenario) -> Iterator[tuple[str, str]]:
    """Name the keys in which a recorded scenario is not the one that the suite gives."""
    left, right = plain(recorded), plain(given)
    for key in right:
        if left[key] != right[key]:
            yield key, f"{key} is {seen(left[key])}, the suite gives {seen(right[key])}"


def text_code(*, is_own_wording: bool) -> str:
    """Choose the code of a text that differs: another product version may word the same state in another way."""
    return "REPLAY_TEXT_DIFFERS" if is_own_wording else "REPLAY_TEXT_UNLIKE"


def squeezed(text: str) -> str:
    """Take the blanks out of a text: a chat template may trim or break them, and nothing else of a message."""
    return "".join(text.split())


def spoken_calls(raw: str, spelling: Spelling) -> list[tuple[str, dict[str, object]]] | None:
    """Read the calls of a completion as they are recorded.

    Returns:
        The calls; `None` for call blocks in a form of another model, which cannot be read here.
    """
    parsed = parse_completion(raw, spelling)
    if parsed.malformed is not None and spelling.form == "json":
        return None
    return [(str(recordable(call.name)), recordable_arguments(call.arguments)) for call in parsed.calls]


def _check_told(task: RecordTask, opening: str) -> Iterator[Finding]:
    """Every turn begins with what the laboratory said before it."""
    told = [[opening], *([step.response for step in steps] for steps in _by_turn(task.episode))]
    for turn, texts in zip(task.episode.turns, told, strict=False):
        prompt = squeezed(turn.prompt)
        if any(squeezed(text) not in prompt for text in texts):
            what = "the text of the environment is not in what the model was given"
            yield task.wrong(text_code(is_own_wording=task.is_own_wording), what, f"/turns/{turn.turn}/prompt")
            return


def _by_turn(episode: EpisodeRecord) -> list[list[StepRecord]]:
    steps: list[list[StepRecord]] = [[] for _ in episode.turns]
    for step in episode.steps:
        if step.turn < len(steps):
            steps[step.turn].append(step)
    return steps


def _check_spoken(task: RecordTask) -> Iterator[Finding]:
    """Every turn's calls are those in the model's own words."""
    episode = task.episode
    for place, step in enumerate(episode.steps):
        if step.turn >= len(episode.turns):
            what = f"the step belongs to turn {step.turn}, the episode has {len(episode.turns)}"
            yield task.wrong("REPLAY_CALL_DIFFERS", what, f"/steps/{place}/turn", step.step)
            return
    for turn, own in zip(episode.turns, _by_turn(episode), strict=True):
        calls = [(step.tool, step.arguments) for step in own]
        unlike = unlike_calls(turn.raw_completion, calls, spelling_of(episode.turns[0].prompt))
        if unlike is None or _is_unplayed(turn, own, task):
            continue
        code = "REPLAY_CALL_UNREAD" if unlike == UNREAD else "REPLAY_CALL_DIFFERS"
        yield task.wrong(code, unlike, f"/turns/{turn.turn}/raw_completion", own[0].step if own else None)


UNREAD = "the completion holds call blocks in a form that is not read here"


def unlike_calls(raw: str, recorded: Sequence[tuple[str, dict[str, object]]], spelling: Spelling) -> str | None:
    """Compare the calls in a completion with the recorded ones; `None` when they are the same."""
    calls = spoken_calls(raw, spelling)
    if calls is None:
        return UNREAD if recorded else None
    if calls == list(recorded):
        return None
    written, kept = [", ".join(name for name, _ in side) or "nothing" for side in (calls, recorded)]
    if written == kept:
        return f"the completion calls {written} with other arguments than the record has"
    return f"the completion calls {written}, the record has {kept}"


def _is_unplayed(turn: TurnRecord, steps: Sequence[StepRecord], task: RecordTask) -> bool:
    """Tell whether the calls of a turn were not carried out: it came after the last turn that may call, or broke."""
    is_last = turn.turn == len(task.episode.turns) - 1
    return is_last and task.episode.ended_by in ("turn_limit", "env_error") and not steps


def _first_difference(recorded: StepRecord, played: StepRecord) -> tuple[str, str] | None:
    """Name the first key in which two steps differ; the text that follows from them comes last."""
    left, right = plain(recorded), plain(played)
    for key in sorted(right, key=lambda name: name == "response"):
        if left[key] != right[key]:
            return key, f"{key} is {seen(left[key])}, played again it is {seen(right[key])}"
    return None


def _check_end(task: RecordTask, session: ToolSession, last: ToolOutcome | None) -> Iterator[Finding]:
    episode = task.episode
    expected = _endings(task, session, last)
    if episode.ended_by not in expected:
        what = f"ended_by is {seen(episode.ended_by)}, played again it is {seen(expected[0])}"
        yield task.wrong("REPLAY_ENDING_DIFFERS", what, "/ended_by")
        return
    scores = session.scores if session.done else {}
    recorded = episode.scores or {}
    for key in dict.fromkeys([*scores, *recorded]):
        if recorded.get(key) != scores.get(key):
            what = f"{key} is {seen(recorded.get(key))}, played again it is {seen(scores.get(key))}"
            yield task.wrong("REPLAY_SCORE_DIFFERS", what, f"/scores/{key}")
    final = scores.get("final_score", 0.0)
    if episode.final_score != final:
        what = f"final_score is {seen(episode.final_score)}, played again it is {final}"
        yield task.wrong("REPLAY_SCORE_DIFFERS", what, "/final_score")


def _endings(task: RecordTask, session: ToolSession, last: ToolOutcome | None) -> tuple[str, ...]:
    """List the endings that the record may have, the likeliest first."""
    if session.done and last is not None:
        return (laboratory_ending(last),)
    turns = task.episode.turns
    if not turns:
        return ("no_call",)
    if not task.is_spoken:
        return ("turn_limit",)
    parsed = parse_completion(turns[-1].raw_completion, spelling_of(turns[0].prompt))
    if any(step.turn == turns[-1].turn for step in task.episode.steps):
        # An answer that no longer fits is not shown; how long it was is not recorded.
        return ("length_limit",)
    if parsed.calls:
        return ("turn_limit",) if len(turns) > task.plan.turn_limit else ("length_limit",)
    decoding = next((part.decoding for part in task.plan.parts if part.name == task.episode.part), None)
    written = turns[-1].prompt_tokens + turns[-1].completion_tokens - turns[0].prompt_tokens
    is_full = decoding is not None and written >= decoding.max_completion_length
    return (ending_without_call(parsed, is_full=is_full),)
