"""How a tokenizer spells a conversation, id for id as the host trainer spells it in a rollout.

The answers of the laboratory are appended as the ids between the end of the model's turn and the next place where it
writes; the model's own ids are never rendered again. Nothing here imports a model library: the tokenizer is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from molforge_env.completions import ParsedCompletion, ToolCall, parse_completion
from molforge_env.errors import UsageError
from molforge_eval.dialogue import Message

HostParser = Callable[[list[int], list[int]], dict[str, Any]]
"""Ids and context to a message with `tool_calls`, in the way of the host trainer."""


class TokenizerForm:
    """A tokenizer with one chat template and the five tools.

    Args:
        tokenizer: A transformers tokenizer.
        template: Chat template to use in place of the tokenizer's own, or `None`.
        tools: JSON schemas of the tools.
        context_limit: Tokens that the model can attend to.
        host_parser: For a template whose calls are not of the Qwen3 form; `None` for those that are.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        template: str | None,
        tools: Sequence[dict[str, Any]],
        context_limit: int,
        host_parser: HostParser | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._tools = list(tools)
        self._context_limit = context_limit
        self._host_parser = host_parser
        self._before_answer: dict[str, list[int]] = {}

    @property
    def context_limit(self) -> int:
        """Tokens that the model can attend to."""
        return self._context_limit

    @property
    def template(self) -> str:
        """The chat template in effect."""
        return str(self._template or self._tokenizer.chat_template)

    def prompt_ids(self, content: str) -> list[int]:
        """Spell the first message with the tools, up to where the model writes."""
        rendered = self._tokenizer.apply_chat_template(
            conversation=[[{"role": "user", "content": content}]],
            tools=self._tools,
            chat_template=self._template,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
        )
        return list(rendered["input_ids"][0])

    def suffix_ids(self, answers: Sequence[Message]) -> list[int]:
        """Spell the answers of one turn's calls.

        Raises:
            UsageError: The template does not keep what stands before an answer, so no suffix exists.
        """
        # Some templates name the tool in the answer's header, so the stand-in call has the real name.
        name = str(answers[0]["name"])
        opening = _stand_in(name)
        before = self._before_answer.get(name)
        if before is None:
            before = self._before_answer[name] = self._cut_after_end(self._render(opening, writes_next=False))
        whole = self._render([*opening, *answers], writes_next=True)
        if whole[: len(before)] != before:
            raise UsageError(
                "the chat template changes earlier turns when an answer follows",
                where="chat template",
                mend="Use a model whose template the trainer knows, such as Qwen2.5 or Qwen3.",
            )
        return whole[len(before) :]

    def decode(self, ids: Sequence[int]) -> str:
        """Spell ids as text, marks included."""
        return str(self._tokenizer.decode(list(ids)))

    def parse(self, ids: Sequence[int], context: Sequence[int]) -> ParsedCompletion:
        """Read the calls of a completion that followed a context."""
        if self._host_parser is None:
            return parse_completion(self.decode(ids))
        message = self._host_parser(list(ids), list(context))
        entries = [entry.get("function", entry) for entry in message.get("tool_calls") or ()]
        calls = tuple(ToolCall(entry["name"], entry["arguments"]) for entry in entries)
        blocks = len(calls) or self.decode(ids).count("<tool_call>")
        unread = "a call block could not be read" if blocks and not calls else None
        return ParsedCompletion(calls, str(message.get("content") or ""), blocks, unread)

    def _render(self, messages: Sequence[Message], *, writes_next: bool) -> list[int]:
        return list(
            self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                chat_template=self._template,
                add_generation_prompt=writes_next,
                tokenize=True,
                return_dict=False,
            )
        )

    def _cut_after_end(self, ids: list[int]) -> list[int]:
        # Qwen's templates write a line break after the end mark; the model has written the mark and not the break.
        end = self._tokenizer.eos_token_id
        places = [place for place, token in enumerate(ids) if token == end]
        return ids[: places[-1] + 1] if places else ids


def _stand_in(name: str) -> list[Message]:
    call = {"type": "function", "function": {"name": name, "arguments": {}}}
    return [
        {"role": "user", "content": "dummy"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
