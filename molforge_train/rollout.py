"""One finished training episode, read from what the host trainer played: its turns, its calls, how it ended.

The host hands over one list of ids for a whole episode. The laboratory's answers are known, so each is spelled as the
host spelled it and found again; what stands between is what the model wrote. At the length limit the host carries out
a call and drops the answer: the call is recorded, because the laboratory stands one step further than the transcript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from molforge_env.errors import UsageError
from molforge_env.interface import TOOL_NAMES, ParsedCompletion
from molforge_eval.calls import BROKEN_CODE, recordable_arguments
from molforge_eval.endings import ending_without_call, laboratory_ending
from molforge_eval.records.fields import EndedBy
from molforge_eval.training_reward import REFUSED_CODE
from molforge_train.tool_environment import Call, Played

Message = Mapping[str, Any]


class ChatForm(Protocol):
    """How the model's tokenizer spells a conversation."""

    def prompt_ids(self, content: str) -> list[int]:
        """Spell the first message with the tools, up to where the model writes."""

    def suffix_ids(self, answers: Sequence[Message]) -> list[int]:
        """Spell the answers of one turn's calls."""

    def decode(self, ids: Sequence[int]) -> str:
        """Spell ids as text, marks included."""

    def parse(self, ids: Sequence[int], context: Sequence[int]) -> ParsedCompletion:
        """Read the calls of a completion that followed a context."""


class HostLimits(NamedTuple):
    """Where the host trainer cuts an episode."""

    turn_limit: int
    """Turns whose calls are carried out."""
    max_completion_length: int
    """Tokens of all turns with the answers between them."""


class Identity(NamedTuple):
    """Which episode of the run it is, and what the model read first."""

    trainer_step: int
    prompt_index: int
    """Place of its prompt in the batch."""
    generation: int
    """Place within the group of its prompt."""
    prompt_ids: Sequence[int]
    prompt: str


class Made(NamedTuple):
    """A call, and the turn in which the model made it."""

    turn: int
    call: Call


class Ending(NamedTuple):
    """How an episode ended."""

    ended_by: EndedBy
    closing_turn: int | None
    """The turn whose completion ended it without a call that was carried out."""


class Rollout(NamedTuple):
    """A finished episode with the model's own words."""

    identity: Identity
    texts: tuple[str, ...]
    """The model's turns, marks included."""
    played: Played
    made: tuple[Made, ...]
    ending: Ending

    @property
    def episode_id(self) -> str:
        """Name of the episode within its part of the run."""
        step, prompt, generation = self.identity[:3]
        return f"step{step:05d}-prompt{prompt:02d}-{generation:02d}"

    @property
    def scores(self) -> Mapping[str, float]:
        """The grader scores where the laboratory ended the episode, else empty."""
        outcomes = [entry.call.outcome for entry in self.made if entry.call.outcome is not None]
        return outcomes[-1].scores if outcomes else {}


def read_rollout(
    identity: Identity,
    messages: Sequence[Message],
    ids: Sequence[int],
    played: Played,
    *,
    form: ChatForm,
    limits: HostLimits,
) -> Rollout:
    """Read a finished episode.

    Args:
        identity: Which one it is.
        messages: The completion as the host parsed it, assistant and tool messages in turn.
        ids: Its token ids.
        played: What reached the laboratory.
        form: The model's way to spell a conversation.
        limits: Of the host trainer.

    Raises:
        UsageError: An answer of the laboratory does not stand in the ids, so the chat template cannot be recorded.
    """
    turns = cut_turns(messages, ids, form)
    made = calls_made(messages, played, turn_limit=limits.turn_limit)
    ending = _finished_ending(made)
    if ending is None:
        is_full = len(ids) >= limits.max_completion_length
        ending = _unfinished_ending(identity, messages, turns, form, is_full=is_full, turn_limit=limits.turn_limit)
    return Rollout(identity, tuple(form.decode(turn) for turn in turns), played, tuple(made), ending)


def cut_turns(messages: Sequence[Message], ids: Sequence[int], form: ChatForm) -> list[list[int]]:
    """Cut the ids of a completion into those of the model's turns, one for each assistant message.

    Raises:
        UsageError: An answer of the laboratory does not stand in the ids.
    """
    turns = []
    place = 0
    for answers in _answer_blocks(messages):
        suffix = form.suffix_ids(answers)
        start = _find(ids, suffix, place)
        turns.append(list(ids[place:start]))
        place = start + len(suffix)
    if messages[-1]["role"] == "assistant":
        turns.append(list(ids[place:]))
    return turns


def calls_made(messages: Sequence[Message], played: Played, *, turn_limit: int) -> list[Made]:
    """List every call that was carried out or refused, in order.

    A call of an unknown tool, or with something else than an object of arguments, never reaches the laboratory; it is
    refused all the same.
    """
    reached = iter(played.calls)
    made: list[Made] = []
    for turn, message in enumerate(_assistant_messages(messages)[:turn_limit]):
        for entry in message.get("tool_calls") or ():
            function = entry.get("function", entry)
            name, arguments = function["name"], function.get("arguments", {})
            if name in TOOL_NAMES and isinstance(arguments, Mapping):
                made.append(Made(turn, next(reached)))
            else:
                moment = made[-1].call.moment if made else played.started_at
                made.append(Made(turn, Call(name, recordable_arguments(arguments), None, REFUSED_CODE, moment)))
    return made


def _finished_ending(made: Sequence[Made]) -> Ending | None:
    if any(entry.call.error_code == BROKEN_CODE for entry in made):
        return Ending("env_error", None)
    ends = [entry.call.outcome for entry in made if entry.call.outcome is not None and entry.call.outcome.done]
    return Ending(laboratory_ending(ends[0]), None) if ends else None


def _unfinished_ending(
    identity: Identity,
    messages: Sequence[Message],
    turns: Sequence[Sequence[int]],
    form: ChatForm,
    *,
    is_full: bool,
    turn_limit: int,
) -> Ending:
    last = len(turns) - 1
    if messages[-1]["role"] == "tool":
        return Ending("length_limit", None)
    if messages[-1].get("tool_calls"):
        return Ending("turn_limit", last) if last >= turn_limit else Ending("length_limit", None)
    parsed = form.parse(turns[-1], identity.prompt_ids)
    return Ending(ending_without_call(parsed, is_full=is_full), last)


def _assistant_messages(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message["role"] == "assistant"]


def _answer_blocks(messages: Sequence[Message]) -> list[list[Message]]:
    blocks: list[list[Message]] = []
    previous = "assistant"
    for message in messages:
        if message["role"] == "tool":
            if previous != "tool":
                blocks.append([])
            blocks[-1].append(message)
        previous = message["role"]
    return blocks


def _find(ids: Sequence[int], part: Sequence[int], start: int) -> int:
    size = len(part)
    for place in range(start, len(ids) - size + 1):
        if ids[place] == part[0] and list(ids[place : place + size]) == list(part):
            return place
    raise UsageError(
        "an answer of the laboratory does not stand in the completion as the chat template spells it",
        where="training rollout",
        mend="Use a model whose chat template TRL knows, unedited.",
    )
