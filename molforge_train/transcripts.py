"""Transcripts: conversations that teachers leave behind, as chat messages with tool calls.

Only training variants are played. A draw that resolves to an official task is dropped, and an observation holds what a
player may see: a transcript can therefore give away neither an answer of the evaluation nor a hidden value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random

from molforge_env import RULES_VERSION
from molforge_env.frozen import FrozenModel
from molforge_env.interface import ObservationLength, prompt_text, tool_schemas
from molforge_env.molecules import molecule_from_code
from molforge_env.seeding import stream, stream_seed
from molforge_env.suites import ResolvedScenario, resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.conversations import is_official
from molforge_eval.records.conversations import ChatMessage, Conversation, FunctionCall, MessageCall
from molforge_train.teachers import TEACHERS, Call, Notebook, TeacherName

CLOSING_WORDS = "Done."
_SEED_BITS = 31


class TranscriptRecipe(FrozenModel):
    """How many conversations, and who plays them."""

    conversations: int
    mixture: Mapping[TeacherName, float]
    """Share of each teacher; a teacher is drawn for each conversation."""
    observation_length: ObservationLength


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
        yield Conversation(
            rules_version=RULES_VERSION,
            interface="tools",
            seed=seed,
            place=place,
            teacher=teacher,
            scenario=(scenario := next(variants)),
            observation_length=recipe.observation_length,
            messages=tuple(play_messages(teacher, scenario, recipe.observation_length, rng)),
            tools=tuple(tool_schemas(recipe.observation_length)),
        )


def play_messages(
    teacher: TeacherName, scenario: ResolvedScenario, length: ObservationLength, rng: Random
) -> Iterator[ChatMessage]:
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
    yield ChatMessage(role="user", content=prompt_text(length) + opening)
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
        yield ChatMessage(role="assistant", content="", tool_calls=(_message_call(call),))
        yield ChatMessage(role="tool", name=call.tool, content=outcome.text)
    yield ChatMessage(role="assistant", content=CLOSING_WORDS)


def _message_call(call: Call) -> MessageCall:
    return MessageCall(function=FunctionCall(name=call.tool, arguments=json.dumps(dict(call.arguments))))
