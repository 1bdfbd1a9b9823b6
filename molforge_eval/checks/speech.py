"""What the model was given to read, and whether the calls are its own (rules R4 and R5), as far as texts tell.

No episode is played here: an opening text follows from its scenario alone, and a call that the model made stands in its
own words. Playing again looks at every turn; this looks at openings and at what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl
from pydantic import ValidationError

from molforge_env import __version__
from molforge_env.errors import UsageError
from molforge_env.interface import ObservationLength, Spelling, parse_completion, prompt_text, spelling_of
from molforge_env.suites import ResolvedScenario
from molforge_env.tools import ToolSession
from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.log_tables import rows_at
from molforge_eval.records import EpisodeRecord, Evaluation
from molforge_eval.run_directory import RunDirectory

MOST_FALLBACK = 0.05
"""Share of calls that may come from a fallback."""
_OPENINGS = 1_000
"""Distinct training prompts that are held to their scenario; playing again looks at all."""
_READ_AGAIN = 20_000
"""Lines that are read again for their texts, which the table of lines does not hold."""
_COPIES_FROM = 5
"""Sampled episodes a task from which none that differs, in any task, is worth saying. Why more than in
version 0 stands in `old_evaluations`."""


class _Share(NamedTuple):
    """How many calls of an arm are not the model's."""

    foreign: int
    calls: int
    first: tuple[int, int] | None
    """Place of the first one: episode and step."""

    def words(self) -> str:
        return f"{self.foreign} of {self.calls} calls"


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the texts of both evaluations and of the rollout log."""
    # Another version of the product may word the same state in another way.
    is_own_wording = run.manifest is None or run.manifest.product_version == __version__
    for path, evaluation in run.evaluations():
        if evaluation.policy.kind != "hf":
            continue
        if is_own_wording:
            yield from _check_openings(path, evaluation)
        yield from _check_unread(path, evaluation)
        yield from _check_copies(path, evaluation)
    yield from _check_arms(run)
    yield from _check_unread_lines(run)
    settings = None if run.manifest is None else run.manifest.configuration
    if is_own_wording and settings is not None and not _is_other_length(run, settings.observation_length):
        yield from _check_prompts(run, settings.observation_length)


def _is_other_length(run: RunDirectory, length: ObservationLength) -> bool:
    """Tell whether the plan reads texts of another length, which is named as that."""
    return run.plan is not None and run.plan.observation_length != length


def _check_openings(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    """The first text of an episode holds the task and what `reset` returned."""
    for index, episode in enumerate(evaluation.episodes):
        told = _opening(episode.scenario, episode.reward_mode, evaluation.plan.observation_length)
        if episode.turns and told is not None and told not in squeezed(episode.turns[0].prompt):
            place: dict[str, Any] = {"pointer": f"/episodes/{index}/turns/0/prompt", "episode": episode.episode_id}
            yield finding("PROMPT_BARE", _BARE, file=path, **place)


_BARE = "the text that the environment returned at reset is not in the prompt"


def _check_prompts(run: RunDirectory, length: ObservationLength) -> Iterator[Finding]:
    lines = run.rollouts.select("line", "start", "prompt_mark", "suite", "scenario_id", "seed")
    first = lines.filter(pl.col("prompt_mark").is_not_null() & pl.col("suite").is_not_null())
    kinds = first.unique(["prompt_mark", "suite", "scenario_id", "seed"], keep="first", maintain_order=True)
    # Spread over the run, so that a fault that begins late is seen.
    kinds = kinds.gather_every(max(1, -(-len(kinds) // _OPENINGS)))
    for row in _rows(run, kinds):
        try:
            told = _opening(ResolvedScenario.model_validate(row["scenario"]), row["reward_mode"], length)
        except ValidationError:
            continue
        if told is not None and told not in squeezed(row["prompt"]):
            yield _in_line("PROMPT_BARE", _BARE, row, "prompt")


def _rows(run: RunDirectory, lines: pl.DataFrame) -> Iterator[Mapping[str, Any]]:
    """Read lines of the table again, whole; a log that went away in between gives none."""
    try:
        yield from rows_at(run.files, run.limits, lines["line"].to_list(), lines["start"].to_list())
    except OSError:
        # Named where the seal is compared.
        return


def _in_line(code: str, what: str, row: Mapping[str, Any], key: str) -> Finding:
    place: dict[str, Any] = {"line": row["line"], "episode": row["episode_id"], "step": row["step_index"]}
    return finding(code, what, file=layout.ROLLOUTS, pointer=f"/{key}", **place)


def _opening(scenario: ResolvedScenario, reward_mode: Any, length: ObservationLength) -> str | None:
    try:
        opening = ToolSession(observation_length=length).start(scenario, reward_mode=reward_mode)
    except UsageError:
        # A scenario that the laboratory does not have is named where it is compared with its suite.
        return None
    return squeezed(prompt_text(length) + opening)


def squeezed(text: str) -> str:
    """Take the blanks out of a text: a chat template may trim or break them, and nothing else of a message."""
    return "".join(text.split())


def _check_unread(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    """An episode that ended without a call has no call in its last words."""
    for index, episode in enumerate(evaluation.episodes):
        if not episode.turns or any(step.turn == episode.turns[-1].turn for step in episode.steps):
            continue
        spelling = spelling_of(episode.turns[0].prompt)
        what = unread_calls(episode.turns[-1].raw_completion, episode.ended_by, spelling)
        if what is not None:
            pointer = f"/episodes/{index}/turns/{len(episode.turns) - 1}/raw_completion"
            yield finding("CALL_UNREAD", what, file=path, pointer=pointer, episode=episode.episode_id)


def _check_unread_lines(run: RunDirectory) -> Iterator[Finding]:
    is_end = pl.col("ended_by").is_in(["no_call", "malformed_call"]) & pl.col("tool").is_null() & pl.col("opens_call")
    ends = run.rollouts.filter(is_end).head(_READ_AGAIN)
    # One model with one template wrote them all, so one prompt tells how they are spelled.
    first = run.rollouts.filter(pl.col("prompt_mark").is_not_null()).head(min(1, len(ends)))
    spelling = next((spelling_of(row["prompt"]) for row in _rows(run, first)), Spelling())
    for row in _rows(run, ends):
        what = unread_calls(row["raw_completion"] or "", row["ended_by"], spelling)
        if what is not None:
            yield _in_line("CALL_UNREAD", what, row, "raw_completion")


def unread_calls(raw: str, ended_by: str | None, spelling: Spelling) -> str | None:
    """Say what is wrong with an ending without a call; `None` when the completion holds none.

    A block that cannot be read ends an episode as `malformed_call`, which is the model's own doing and no fault.
    """
    parsed = parse_completion(raw, spelling)
    if ended_by == "no_call" and parsed.blocks:
        return f"the completion opens {parsed.blocks} call blocks and no call was read from it"
    if ended_by == "malformed_call" and parsed.calls:
        return f"the completion holds {len(parsed.calls)} calls that can be read, and none was read from it"
    return None


def _check_copies(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    """Sampled episodes that are all alike are one episode, written several times."""
    for part in evaluation.plan.parts:
        played: dict[str, set[str]] = {}
        for episode in evaluation.episodes:
            if episode.part == part.name:
                calls = [(step.tool, sorted(step.arguments.items())) for step in episode.steps]
                played.setdefault(episode.scenario_id, set()).add(repr(calls))
        if len(part.seeds) >= _COPIES_FROM and played and all(len(kinds) == 1 for kinds in played.values()):
            what = f"n={len(part.seeds)}, distinct=1: the {part.name} episodes of each task are call for call alike"
            yield finding("EPISODES_COPIED", what, file=path, pointer="/episodes")


def _check_arms(run: RunDirectory) -> Iterator[Finding]:
    """Calls that do not stand in the model's words came from elsewhere; the share must be small, and alike."""
    spoken = [(path, found, _share(found)) for path, found in run.evaluations() if found.policy.kind == "hf"]
    for path, evaluation, share in spoken:
        if share.first is None:
            continue
        others = [other for name, _, other in spoken if name != path]
        is_unlike = any(share.foreign * other.calls != other.foreign * share.calls for other in others)
        is_much = share.foreign > MOST_FALLBACK * share.calls
        beside = f", {others[0].words()} in the other evaluation" if others else ""
        what = f"{share.words()} came from a fallback: they do not stand in the model's words{beside}"
        number, step = share.first
        place: dict[str, Any] = {"pointer": f"/episodes/{number}/steps/{step}"}
        code = "FALLBACK_RULES" if is_much or is_unlike else "FALLBACK_PRESENT"
        yield finding(code, what, file=path, episode=evaluation.episodes[number].episode_id, **place)


def _share(evaluation: Evaluation) -> _Share:
    foreign = calls = 0
    first: tuple[int, int] | None = None
    for number, episode in enumerate(evaluation.episodes):
        calls += len(episode.steps)
        for place in _foreign_steps(episode):
            foreign += 1
            first = first or (number, place)
    return _Share(foreign, calls, first)


def _foreign_steps(episode: EpisodeRecord) -> Iterator[int]:
    for place, step in enumerate(episode.steps):
        # By its place: how turns are numbered is another question, and so is a step without a turn.
        if step.turn < len(episode.turns) and is_foreign(step.tool, episode.turns[step.turn].raw_completion):
            yield place


def is_foreign(tool: str, raw: str) -> bool:
    """Tell whether a call cannot be the model's: its tool is named nowhere in the completion.

    >>> is_foreign("submit", "I think."), is_foreign("submit", '<tool_call>{"name": "submit"}</tool_call>')
    (True, False)
    """
    # A name may be spelled with escapes; only then the completion is read.
    return tool not in raw and tool not in {call.name for call in parse_completion(raw).calls}


def foreign_lines(run: RunDirectory) -> pl.DataFrame:
    """Return the rollout lines whose call is not in the model's words, though they say that it is the model's.

    Calls after the first of a completion are not looked at: its words stand on another line.
    """
    odd = run.rollouts.filter((pl.col("source") == "model") & ~pl.col("names_tool"))
    own = [
        row["line"] for row in _rows(run, odd.head(_READ_AGAIN)) if not is_foreign(row["tool"], row["raw_completion"])
    ]
    return odd.filter(~pl.col("line").is_in(own))
