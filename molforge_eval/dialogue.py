"""The turn loop of one episode between a model and the laboratory, in token ids.

Ids that the model wrote are kept as they are and never rendered again; a tool's answer is appended as the ids that the
chat template gives it. This is what the host trainer feeds in training, and a test compares the two turn by turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from molforge_env.completions import ParsedCompletion
from molforge_env.interface import prompt_text
from molforge_env.suites import ResolvedScenario
from molforge_env.tools import ToolOutcome, ToolSession
from molforge_eval.calls import call_tool, step_record
from molforge_eval.canonical import digest
from molforge_eval.endings import ending_without_call, laboratory_ending
from molforge_eval.records.evaluation import Decoding, EvaluationPlan, StepRecord, TurnRecord
from molforge_eval.records.fields import EndedBy

Message = Mapping[str, Any]


class ChatForm(Protocol):
    """How a model's tokenizer spells a conversation."""

    @property
    def context_limit(self) -> int:
        """Tokens that the model can attend to."""

    def prompt_ids(self, content: str) -> list[int]:
        """Spell the first message with the tools, up to where the model writes."""

    def suffix_ids(self, answers: Sequence[Message]) -> list[int]:
        """Spell the answers of one turn's calls, from the end of the model's turn to where it writes again."""

    def decode(self, ids: Sequence[int]) -> str:
        """Spell ids as text, marks included."""

    def parse(self, ids: Sequence[int], context: Sequence[int]) -> ParsedCompletion:
        """Read the calls of a completion that followed a context."""


class Dialogue:
    """One episode in play.

    Args:
        scenario: The task.
        plan: Reward mode, length of texts and turn limit.
        decoding: Token limits.
        form: The model's way to spell a conversation.
    """

    __slots__ = (
        "_broken", "_decoding", "_ended_by", "_form", "_last", "_new", "_prompt_length", "_session", "_turn_limit",
        "context", "steps", "turns",
    )  # fmt: skip

    def __init__(self, scenario: ResolvedScenario, plan: EvaluationPlan, decoding: Decoding, form: ChatForm) -> None:
        self._session = ToolSession(observation_length=plan.observation_length)
        self._decoding = decoding
        self._turn_limit = plan.turn_limit
        self._form = form
        self._ended_by: EndedBy | None = None
        self._broken: str | None = None
        self._last: ToolOutcome | None = None
        opening = self._session.start(scenario, reward_mode=plan.reward_mode)
        self._new = form.prompt_ids(prompt_text(plan.observation_length) + opening)
        self.context: list[int] = list(self._new)
        """Everything that the model has read and written."""
        self._prompt_length = len(self._new)
        self.steps: list[StepRecord] = []
        self.turns: list[TurnRecord] = []

    @property
    def scenario(self) -> ResolvedScenario:
        """The task."""
        return self._session.scenario

    @property
    def new_ids(self) -> list[int]:
        """Ids that the model has not read yet: the prompt, later the answers of the laboratory."""
        return self._new

    @property
    def room(self) -> int:
        """Tokens that the next completion may have."""
        return min(self._decoding.max_new_tokens, self._decoding.max_completion_length - self._written)

    @property
    def ended_by(self) -> EndedBy | None:
        """How the episode ended; `None` while it is in play."""
        return self._ended_by

    @property
    def error(self) -> str | None:
        """What broke, for `env_error`."""
        return self._broken

    @property
    def scores(self) -> dict[str, float] | None:
        """The grader scores, when the laboratory ended the episode."""
        return self._session.scores if self._session.done else None

    @property
    def _written(self) -> int:
        return len(self.context) - self._prompt_length

    def take(self, completion: Sequence[int]) -> None:
        """Read one completion of the model and play its calls.

        Args:
            completion: At most `room` ids, the stop token included.
        """
        parsed = self._form.parse(completion, self.context)
        turn = len(self.turns)
        self.turns.append(
            TurnRecord(
                turn=turn,
                prompt=self._form.decode(self._new),
                raw_completion=self._form.decode(completion),
                prompt_tokens=len(self.context),
                completion_tokens=len(completion),
                prompt_ids_sha256=digest(self.context),
            )
        )
        self.context.extend(completion)
        if not parsed.calls:
            full = self._written >= self._decoding.max_completion_length
            self._ended_by = ending_without_call(parsed, is_full=full)
        elif turn >= self._turn_limit:
            self._ended_by = "turn_limit"
        else:
            answers = self._play_calls(parsed, turn)
            if self._ended_by is None:
                self._answer(answers)

    def _play_calls(self, parsed: ParsedCompletion, turn: int) -> list[Message]:
        answers: list[Message] = []
        for call in parsed.calls:
            try:
                result = call_tool(self._session, call.name, call.arguments)
            except Exception as error:  # noqa: BLE001 - the episode's boundary: a broken laboratory costs one episode, not all
                self._broken = f"{type(error).__name__}: {error}"
                self._ended_by = "env_error"
                return answers
            self._last = result.outcome or self._last
            self.steps.append(step_record(self._session, call.name, result, turn=turn))
            answers.append({"role": "tool", "name": call.name, "content": result.text})
        if self._session.done and self._last is not None:
            self._ended_by = laboratory_ending(self._last)
        return answers

    def _answer(self, answers: Sequence[Message]) -> None:
        self._new = self._form.suffix_ids(answers)
        grown = len(self.context) + len(self._new)
        limit = self._prompt_length + self._decoding.max_completion_length
        # An answer that does not fit is not shown, although the call was carried out; nor is one after which the
        # model could not write a token.
        if grown >= limit or grown >= self._form.context_limit:
            self._ended_by = "length_limit"
            return
        self.context.extend(self._new)
