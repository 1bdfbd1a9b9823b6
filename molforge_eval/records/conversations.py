"""A line of a file of conversations: what a model is fine-tuned on before it meets the laboratory itself.

The keys `messages` and `tools` are those that chat trainers read; the others say where the conversation is from, so
that it can be played again.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_env.suites import ResolvedScenario
from molforge_eval.records.fields import Count, FormatVersion, ObservationLength

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,120}$")]


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

    format_version: FormatVersion = 1
    rules_version: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./:-]{1,120}$")]
    """Rules by which the laboratory answered."""
    interface: Literal["tools"]
    seed: Annotated[int, Field(ge=0, le=2**64 - 1)]
    """Seed of the file."""
    place: Count
    """Number of the conversation in the draws of that seed, from 0."""
    teacher: Name
    """Policy that played."""
    scenario: ResolvedScenario
    observation_length: ObservationLength
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=2)]
    tools: tuple[dict[str, Any], ...]
    """Schemas of the tools, as they stand in the prompt."""

    def chat(self) -> list[dict[str, Any]]:
        """Write the messages as plain dictionaries, absent fields left out."""
        return [message.model_dump(mode="json", exclude_none=True) for message in self.messages]

    def line(self) -> dict[str, Any]:
        """Write the conversation as it stands in a file."""
        head = self.model_dump(mode="json", exclude={"messages", "tools"})
        return {**head, "messages": self.chat(), "tools": list(self.tools)}
