"""A file of conversations, read and played again: every text in it is one that the laboratory gives.

What a model is fine-tuned on decides what its scores mean. So a conversation is of a training variant, never of a task
that is evaluated, and holds nothing that a player could not have seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from molforge_env import RULES_VERSION
from molforge_env.errors import UnreadableError
from molforge_env.interface import prompt_text, tool_schemas
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import true_properties
from molforge_env.scenarios import SCENARIO_IDS
from molforge_env.suites import ResolvedScenario, resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool
from molforge_eval.canonical import digest, plain, sha256_hex
from molforge_eval.catalogue import finding, seen
from molforge_eval.json_lines import read_lines
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.log_tables import fits
from molforge_eval.record_files import record_of
from molforge_eval.records.conversations import ChatMessage, Conversation

SUFFIX = ".jsonl"
SHAPE = "conversation"
_UNANSWERED = "the conversation ends before a call is answered"
_EXACT = re.compile(r"\d*\.\d{3,}")
"""Numbers so exact that a text holds them by no accident: a true value has four decimals."""


class ConversationFile(NamedTuple):
    """What a file holds and what is wrong with it."""

    conversations: tuple[Conversation, ...]
    """Those that fit the schema."""
    calls: int
    ledger: Ledger
    sha256: str


def is_conversation_file(path: Path) -> bool:
    """Tell whether a path names a file of conversations, by its ending."""
    return path.suffix == SUFFIX and path.is_file()


def is_official(scenario: ResolvedScenario) -> bool:
    """Tell whether a scenario is, number for number, a task of the official suite."""
    return any(_numbers(scenario) == _numbers(resolve_scenario(scenario_id=name)) for name in SCENARIO_IDS)


def _numbers(scenario: ResolvedScenario) -> tuple[str, int, int, str]:
    return scenario.scenario_id, scenario.max_budget, scenario.max_steps, scenario.start_molecule


def read_conversations(path: Path, limits: Limits = DEFAULT_LIMITS) -> ConversationFile:
    """Read a file of conversations and play each of them again.

    Raises:
        UnreadableError: The file cannot be opened, is too large, or holds no conversation.
    """
    try:
        size = path.stat().st_size
        if size > limits.file_bytes:
            what = f"{path.name} has {size} bytes, the limit is {limits.file_bytes}"
            raise UnreadableError(what, where=str(path), mend="Split the file.")
        with path.open("rb") as handle:
            return _read(handle, path, limits)
    except OSError as error:
        what = f"{path.name} cannot be read: {error.strerror or error}"
        raise UnreadableError(what, where=str(path), mend="Make the file readable.") from error


def _read(handle: BinaryIO, path: Path, limits: Limits) -> ConversationFile:
    ledger = Ledger(limits.findings_a_code)
    kept: list[Conversation] = []
    places: dict[str, int] = {}
    calls, chats = 0, 0
    for line in read_lines(handle, limits):
        for fault in line.faults:
            ledger.add(finding(fault.code, fault.what, file=path.name, line=line.number, pointer=fault.pointer))
        chats += line.value is not None and "messages" in line.value
        if line.value is None or not fits(line.value, SHAPE, path.name, line.number, ledger):
            continue
        conversation = record_of(line.value, path.name, Conversation, ledger)
        if conversation is None:
            continue
        kept.append(conversation)
        calls += sum(len(message.tool_calls or ()) for message in conversation.messages)
        for found in _examine(conversation):
            ledger.add(finding(found.code, found.what, file=path.name, line=line.number, pointer=found.pointer))
        first = places.setdefault(digest([plain(conversation.scenario), conversation.chat()]), line.number)
        if first != line.number:
            what = f"the conversation is the one of line {first}"
            ledger.add(finding("CONVERSATION_REPEATED", what, file=path.name, line=line.number))
    if not chats:
        mend = "Give a file that `molforge-train data` wrote, or a run directory, an archive of one, or its packet."
        raise UnreadableError(f"{path.name} holds no conversation", where=str(path), mend=mend)
    handle.seek(0)
    return ConversationFile(tuple(kept), calls, ledger, sha256_hex(handle.read()))


class _Found(NamedTuple):
    code: str
    what: str
    pointer: str


def _examine(conversation: Conversation) -> Iterator[_Found]:
    scenario = conversation.scenario
    if conversation.rules_version != RULES_VERSION:
        what = f"rules_version is {seen(conversation.rules_version)}, this laboratory has {RULES_VERSION}"
        yield _Found("CONVERSATION_DIFFERS", what, "/rules_version")
        return
    if (why := held_out(scenario)) is not None:
        yield _Found("CONVERSATION_HELD_OUT", why, "/scenario")
        # Nobody knows what the laboratory would say of numbers that it never draws.
        if not is_official(scenario):
            return
    if [dict(tool) for tool in conversation.tools] != tool_schemas(conversation.observation_length):
        what = f"the tools are not those of observation length {conversation.observation_length}"
        yield _Found("CONVERSATION_DIFFERS", what, "/tools")
    yield from _Reading(conversation).findings()


def held_out(scenario: ResolvedScenario) -> str | None:
    """Say why a scenario is none that training draws; `None` for one that is."""
    if is_official(scenario):
        return f"the conversation plays {scenario.scenario_id} as it is evaluated"
    if scenario.suite != "randomized" or scenario.seed is None:
        return f"the scenario is of suite {scenario.suite} with seed {seen(scenario.seed)}, no draw of training"
    names = (None, *(name for name in SCENARIO_IDS if name == scenario.scenario_id))
    if not any(
        resolve_scenario(suite="randomized", scenario_id=name, seed=scenario.seed) == scenario for name in names
    ):
        return f"seed {scenario.seed} of the randomized suite draws another scenario"
    return None


class _Reading:
    """One conversation, read message by message beside the laboratory that plays it."""

    def __init__(self, conversation: Conversation) -> None:
        self._messages = conversation.messages
        self._session = ToolSession(observation_length=conversation.observation_length)
        self._opening = prompt_text(conversation.observation_length) + self._session.start(conversation.scenario)
        self._molecules = {conversation.scenario.start_molecule}
        self._read: list[str] = []

    def findings(self) -> Iterator[_Found]:
        """Play until a message is not what the laboratory gives; what follows it would differ for that reason."""
        waiting: list[tuple[str, str]] = [("", self._opening)]
        for place, message in enumerate(self._messages):
            yield from self._exact_words(place, message)
            if waiting:
                tool, text = waiting.pop(0)
                wrong = self._answer_fault(message, tool, text)
            elif message.role != "assistant":
                wrong = f"a message of role {message.role} stands where the assistant speaks", "/role"
            else:
                waiting = list(self._play(message))
                is_last = place == len(self._messages) - 1
                wrong = None
                if not waiting and not is_last:
                    wrong = "messages follow one of the assistant that calls no tool", ""
            self._read.append(message.content)
            if wrong is not None:
                yield _Found("CONVERSATION_DIFFERS", wrong[0], f"/messages/{place}{wrong[1]}")
                return
        if waiting:
            last = len(self._messages) - 1
            yield _Found(
                "CONVERSATION_DIFFERS", "the conversation ends before the call is answered", f"/messages/{last}"
            )

    def _answer_fault(self, message: ChatMessage, tool: str, text: str) -> tuple[str, str] | None:
        role = "tool" if tool else "user"
        if message.role != role:
            return f"a message of role {message.role} stands where role {role} answers", "/role"
        if tool and message.name != tool:
            return f"the answer is of tool {seen(message.name)}, the call was of {seen(tool)}", "/name"
        if message.content != text:
            return f"the text is {seen(message.content)}, the laboratory says {seen(text)}", "/content"
        return None

    def _play(self, message: ChatMessage) -> Iterator[tuple[str, str]]:
        for call in message.tool_calls or ():
            try:
                arguments = orjson.loads(call.function.arguments)
            except orjson.JSONDecodeError:
                arguments = call.function.arguments
            result = call_tool(self._session, call.function.name, arguments)
            if result.outcome is not None:
                self._molecules.add(result.outcome.molecule)
            yield call.function.name, result.text

    def _exact_words(self, place: int, message: ChatMessage) -> Iterator[_Found]:
        if message.role != "assistant":
            return
        words = (message.content, *(call.function.arguments for call in message.tool_calls or ()))
        said = {number for text in words for number in _EXACT.findall(text)}
        for number in sorted(said - {known for text in self._read for known in _EXACT.findall(text)}):
            if float(number) in self._hidden(len(number.partition(".")[2])):
                what = f"the assistant says {number}, a true value that no assay has read"
                yield _Found("CONVERSATION_REVEALS", what, f"/messages/{place}")
                return

    def _hidden(self, decimals: int) -> set[float]:
        """Round the true values of every molecule that was met."""
        return {
            round(value, decimals)
            for code, trap, shift in product(sorted(self._molecules), (False, True), (False, True))
            for value in true_properties(molecule_from_code(code), trap=trap, shift=shift)
        }
