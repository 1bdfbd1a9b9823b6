"""Plays a model: one dialogue an episode, all of a batch in lock step.

This module, `model_loading` and `lock_step` are the ones of the package that meet torch, inside their functions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from molforge_env.errors import UsageError
from molforge_env.interface import tool_schemas
from molforge_env.seeding import stream
from molforge_env.suites import resolve_scenario
from molforge_eval.canonical import sha256_hex
from molforge_eval.chat_form import TokenizerForm
from molforge_eval.chat_templates import template_fault
from molforge_eval.dialogue import Dialogue
from molforge_eval.lock_step import LockStep, Turn
from molforge_eval.model_loading import Loaded, is_out_of_memory, load_model
from molforge_eval.plan import PlannedEpisode
from molforge_eval.played import PlayedEpisode
from molforge_eval.policies import Loading, PolicySpec
from molforge_eval.records.evaluation import EvaluationPlan, PolicyIdentity
from molforge_eval.records.fields import ObservationLength


class ModelPlayer:
    """A model that plays the laboratory, many episodes at a time.

    Args:
        loaded: The model, ready.
        identity: Who it is.
        batch_size: Episodes that take their turns together.
    """

    def __init__(self, loaded: Loaded, identity: PolicyIdentity, *, batch_size: int) -> None:
        self._loaded = loaded
        self._identity = identity
        self._batch_size = batch_size

    @property
    def identity(self) -> PolicyIdentity:
        """Who plays."""
        return self._identity

    def form(self, length: ObservationLength) -> TokenizerForm:
        """Return the way that the model's tokenizer spells a conversation with the tools of one length."""
        return chat_form(self._loaded.model, self._loaded.tokenizer, length)

    def play(self, planned: Sequence[PlannedEpisode], plan: EvaluationPlan) -> Iterator[PlayedEpisode]:
        """Play episodes in lock step, a batch after another.

        Raises:
            UsageError: The memory does not hold the batch.
        """
        form = self.form(plan.observation_length)
        for begin in range(0, len(planned), self._batch_size):
            with _memory_guard(self._batch_size):
                yield from self._play_batch(planned[begin : begin + self._batch_size], plan, form)

    def _play_batch(
        self, batch: Sequence[PlannedEpisode], plan: EvaluationPlan, form: TokenizerForm
    ) -> Iterator[PlayedEpisode]:
        tokenizer = self._loaded.tokenizer
        dialogues = [Dialogue(_scenario(planned), plan, planned.decoding, form) for planned in batch]
        together = LockStep(
            self._loaded.model,
            stop_ids=stop_ids(self._loaded.model, tokenizer),
            pad_id=pad_id(tokenizer),
            rows=len(batch),
        )
        spent = [0.0] * len(batch)
        active = list(range(len(batch)))
        while active:
            began = time.perf_counter()
            written = together.advance([_turn(batch[index], dialogues[index]) for index in active])
            for index, ids in zip(active, written, strict=True):
                dialogues[index].take(ids)
            share = (time.perf_counter() - began) / len(active)
            for index in active:
                spent[index] += share
            yield from (
                _finished(batch[index], dialogues[index], spent[index])
                for index in active
                if dialogues[index].ended_by is not None
            )
            kept = [row for row, index in enumerate(active) if dialogues[index].ended_by is None]
            together.keep(kept)
            active = [active[row] for row in kept]


def open_model(spec: PolicySpec, loading: Loading) -> ModelPlayer:
    """Load the model of a policy.

    Raises:
        UsageError: Model or adapter are absent, or do not fit each other.
        UnreadableError: A file is damaged, or a pointer in place of the weights.
    """
    with _memory_guard(loading.batch_size):
        loaded = load_model(spec, loading, check_tokenizer=settle_template)
    form = chat_form(loaded.model, loaded.tokenizer, "full")
    base, adapter = _shown(spec.name), None if spec.adapter is None else _shown(spec.adapter)
    identity = PolicyIdentity(
        kind="hf",
        name=PolicySpec("hf", base, adapter).text(),
        base_model=base,
        base_model_sha256=loaded.base_sha256,
        adapter=adapter,
        adapter_sha256=loaded.adapter_sha256,
        tokenizer_sha256=loaded.tokenizer_sha256,
        chat_template_sha256=sha256_hex(form.template.encode()),
        dtype=loaded.dtype,
        adapter_merged=None if adapter is None else True,
    )
    return ModelPlayer(loaded, identity, batch_size=loading.batch_size)


def chat_form(model: Any, tokenizer: Any, length: ObservationLength) -> TokenizerForm:
    """Return the way that a tokenizer spells a conversation, chosen as the host trainer chooses it.

    Raises:
        UsageError: The trainer does not know the calls of this chat template.
    """
    from trl.chat_template_utils import parse_response, qwen3_template

    tools: list[Any] = tool_schemas(length)
    template = settle_template(tokenizer)
    is_qwen3 = tokenizer.response_template == qwen3_template

    def host_parser(ids: list[int], context: list[int]) -> dict[str, Any]:
        message: dict[str, Any] = parse_response(tokenizer, ids, prefix=context, tools=tools) if ids else {}
        return message

    return TokenizerForm(
        tokenizer,
        template=template,
        tools=tools,
        context_limit=model.config.get_text_config().max_position_embeddings,
        host_parser=None if is_qwen3 else host_parser,
    )


def settle_template(tokenizer: Any) -> str | None:
    """Have a tokenizer's calls readable, as the host trainer does it; no weights are needed for that.

    Returns:
        The template to use in place of the tokenizer's own, `None` when that serves.

    Raises:
        UsageError: The trainer does not know this chat template.
    """
    from trl.chat_template_utils import (
        add_response_schema,
        get_training_chat_template,
        is_chat_template_prefix_preserving,
    )

    own = tokenizer.chat_template
    try:
        if getattr(tokenizer, "response_template", None) is None:
            add_response_schema(tokenizer)
        template: str | None = (
            None if is_chat_template_prefix_preserving(tokenizer) else get_training_chat_template(tokenizer)
        )
    except ValueError as error:
        raise template_fault(own, _shown(str(tokenizer.name_or_path))) from error
    return template


def _shown(name: str) -> str:
    # Records hold no path of one machine.
    path = Path(name).expanduser()
    return path.name if path.is_absolute() else name


def stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """List the tokens that end a turn."""
    declared = model.generation_config.eos_token_id
    several = declared if isinstance(declared, list) else [] if declared is None else [declared]
    return frozenset([*several, tokenizer.eos_token_id])


def pad_id(tokenizer: Any) -> int:
    """Choose a token for places that are masked."""
    return int(tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id)


def _scenario(planned: PlannedEpisode) -> Any:
    return resolve_scenario(suite=planned.suite, scenario_id=planned.scenario_id, seed=planned.seed)


def _turn(planned: PlannedEpisode, dialogue: Dialogue) -> Turn:
    draws = stream(planned.seed, "sampling", planned.suite, planned.scenario_id, len(dialogue.turns))
    return Turn(dialogue.new_ids, dialogue.room, planned.decoding, draws)


def _finished(planned: PlannedEpisode, dialogue: Dialogue, seconds: float) -> PlayedEpisode:
    assert dialogue.ended_by is not None  # noqa: S101 - narrows the type; the caller has asked
    written = [turn.completion_tokens for turn in dialogue.turns]
    return PlayedEpisode(
        planned=planned,
        scenario=dialogue.scenario,
        steps=tuple(dialogue.steps),
        turns=tuple(dialogue.turns),
        ended_by=dialogue.ended_by,
        error=dialogue.error,
        scores=dialogue.scores,
        prompt_tokens=len(dialogue.context) - sum(written),
        completion_tokens=sum(written),
        wall_time_seconds=seconds,
    )


@contextmanager
def _memory_guard(batch_size: int) -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise UsageError(
            f"out of memory with {batch_size} episodes at a time",
            where="model evaluation",
            mend=f"Run it again with --batch-size {max(1, batch_size // 2)}.",
        ) from error
