"""Transcripts: conversations that teachers leave behind, as chat messages with tool calls.

Only training variants are played. A draw that resolves to an official task is dropped, and an observation holds what a
player may see: a transcript can therefore give away neither an answer of the evaluation nor a hidden value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random
from typing import Any, Literal

from molforge_env.frozen import FrozenModel
from molforge_env.interface import ObservationLength, prompt_text, tool_schemas
from molforge_env.molecules import molecule_from_code
from molforge_env.seeding import stream, stream_seed
from molforge_env.suites import SCENARIO_IDS, ResolvedScenario, resolve_scenario
from molforge_env.tools import ToolSession
from molforge_train.teachers import TEACHERS, Call, Notebook, TeacherName

CLOSING_WORDS = "Done."
_SEED_BITS = 31


class FunctionCall(FrozenModel):
    """The tool and its arguments; these are JSON in a string, so that rows of a data set have one shape."""

    name: str
    arguments: str


class MessageCall(FrozenModel):
    """One tool call of an assistant's message."""

    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(FrozenModel):
    """One message in the form that a chat template takes."""

    role: Literal["user", "assistant", "tool"]
    content: str
    name: str | None = None
    """Tool that answers; only for the role `tool`."""
    tool_calls: tuple[MessageCall, ...] | None = None


class Conversation(FrozenModel):
    """One played episode."""

    teacher: TeacherName
    scenario: ResolvedScenario
    observation_length: ObservationLength
    messages: tuple[ChatMessage, ...]

    def chat(self) -> list[dict[str, Any]]:
        """Write the messages as plain dictionaries, absent fields left out."""
        return [message.model_dump(mode="json", exclude_none=True) for message in self.messages]


class TranscriptRecipe(FrozenModel):
    """How many conversations, and who plays them."""

    conversations: int
    mixture: Mapping[TeacherName, float]
    """Share of each teacher; a teacher is drawn for each conversation."""
    observation_length: ObservationLength


def is_official(scenario: ResolvedScenario) -> bool:
    """Tell whether a scenario is, number for number, a task of the official suite."""
    return any(_numbers(scenario) == _numbers(resolve_scenario(scenario_id=name)) for name in SCENARIO_IDS)


def _numbers(scenario: ResolvedScenario) -> tuple[str, int, int, str]:
    return scenario.scenario_id, scenario.max_budget, scenario.max_steps, scenario.start_molecule


def draw_variants(seed: int) -> Iterator[ResolvedScenario]:
    """Draw endless training variants, official tasks left out.

    Args:
        seed: Two streams with different seeds share variants by chance only.
    """
    for place in count():
        scenario = resolve_scenario(suite="randomized", seed=stream_seed(seed, "variant", place) >> (64 - _SEED_BITS))
        if not is_official(scenario):
            yield scenario


def generate_transcripts(recipe: TranscriptRecipe, *, seed: int) -> Iterator[Conversation]:
    """Let the teachers play.

    Args:
        recipe: How many conversations, and who plays them.
        seed: Source of the variants and of every choice; equal seeds give equal conversations.
    """
    names = sorted(recipe.mixture)
    weights = [recipe.mixture[name] for name in names]
    variants = draw_variants(seed)
    for place in range(recipe.conversations):
        rng = stream(seed, "transcript", place)
        teacher = rng.choices(names, weights=weights)[0]
        yield play_conversation(teacher, next(variants), recipe.observation_length, rng)


def play_conversation(
    teacher: TeacherName, scenario: ResolvedScenario, length: ObservationLength, rng: Random
) -> Conversation:
    """Let one teacher play one episode to its end.

    Args:
        teacher: Who plays.
        scenario: What is played.
        length: Length of the observation texts.
        rng: Source of the teacher's choices.
    """
    session = ToolSession(observation_length=length)
    opening = session.start(scenario)
    notebook = Notebook(scenario, molecule_from_code(scenario.start_molecule), scenario.max_budget)
    messages = [ChatMessage(role="user", content=prompt_text(length) + opening)]
    while not session.done:
        call = TEACHERS[teacher](notebook, rng)
        outcome = session.call(call.tool, call.arguments)
        notebook.note(
            call,
            molecule=molecule_from_code(outcome.molecule),
            remaining_budget=outcome.remaining_budget,
            step=outcome.step_index,
            executed=outcome.governance_status == "executed",
        )
        messages.append(ChatMessage(role="assistant", content="", tool_calls=(_message_call(call),)))
        messages.append(ChatMessage(role="tool", name=call.tool, content=outcome.text))
    messages.append(ChatMessage(role="assistant", content=CLOSING_WORDS))
    return Conversation(teacher=teacher, scenario=scenario, observation_length=length, messages=tuple(messages))


def _message_call(call: Call) -> MessageCall:
    return MessageCall(function=FunctionCall(name=call.tool, arguments=json.dumps(dict(call.arguments))))


def tools_of(conversation: Conversation) -> list[dict[str, Any]]:
    """List the tool schemas that stood in the conversation's prompt."""
    return tool_schemas(conversation.observation_length)
