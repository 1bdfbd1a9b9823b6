"""What the host trainer feeds a model in a rollout, laid beside what the evaluator would feed it, id for id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from molforge_env.interface import prompt_text
from molforge_env.suites import resolve_scenario
from molforge_eval.dialogue import Dialogue
from molforge_eval.model_policy import chat_form
from molforge_eval.plan import Limits, standard_plan
from molforge_train.tool_environment import tool_environment

if TYPE_CHECKING:
    from trl import GRPOTrainer

Write = Callable[[list[list[int]]], list[list[int]]]
"""Contexts to what is written after each."""
_LIMITS = Limits(200, 600, 11)


class Recording:
    """What the host fed and got back, one list of turns an episode."""

    def __init__(self) -> None:
        self.episodes: list[list[tuple[list[int], list[int]]]] = []

    def add(self, contexts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]]) -> None:
        """Join each context to the episode that it goes on from; equal contexts may be joined either way."""
        open_episodes = list(self.episodes)
        for context, completion in zip(contexts, completions, strict=True):
            turn = (list(context), list(completion))
            for episode in open_episodes:
                before = [*episode[-1][0], *episode[-1][1]]
                if list(context[: len(before)]) == before:
                    episode.append(turn)
                    open_episodes.remove(episode)
                    break
            else:
                self.episodes.append([turn])


def host_trainer(model: Any, tokenizer: Any, folder: Path) -> GRPOTrainer:
    """Build the host trainer around a model, with the laboratory as its tools."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    row = {"prompt": [{"role": "user", "content": prompt_text("compact")}]}
    return GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        environment_factory=tool_environment("compact", lambda: datetime(2026, 1, 1, tzinfo=UTC)),
        train_dataset=Dataset.from_list([row] * 2),
        args=GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=_LIMITS.max_completion_length,
            max_tool_calling_iterations=_LIMITS.turn_limit,
            generation_kwargs={"max_new_tokens": _LIMITS.max_new_tokens},
            temperature=1.0,
            bf16=False,
            gradient_checkpointing=False,
            use_cpu=True,
            report_to="none",
        ),
    )


def roll_out(trainer: GRPOTrainer, scenario_id: str, write: Write | None = None) -> Recording:
    """Let the host play one group on a task.

    Args:
        trainer: From `host_trainer`.
        scenario_id: Official task.
        write: In place of the model; `None` samples from it.
    """
    recording = Recording()
    own = trainer._generate_single_turn

    def single_turn(prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        if write is None:
            written = [list(ids) for ids in own(prompt_ids, None, {}, num_generations=1)[0]]
        else:
            written = write(prompt_ids)
        recording.add(prompt_ids, written)
        return written, None

    trainer._generate_single_turn = single_turn
    try:
        trainer._generate_and_score_completions(_rows(scenario_id))
    finally:
        trainer._generate_single_turn = own
    return recording


def _rows(scenario_id: str, copies: int = 2) -> list[dict[str, Any]]:
    row = {
        "prompt": [{"role": "user", "content": prompt_text("compact")}],
        "suite": "official",
        "scenario_id": scenario_id,
        "seed": 1,
        "reward_mode": "assay_gated",
    }
    return [dict(row) for _ in range(copies)]


def endings_compared(recording: Recording, scenario_id: str, tokenizer: Any, trainer: GRPOTrainer) -> Iterator[str]:
    """Play the host's words through the evaluator's dialogue, where every context has to be the host's.

    Yields:
        How each episode ended.
    """
    plan = standard_plan(observation_length="compact", limits=_LIMITS, seeds=1)
    form = chat_form(trainer.model, tokenizer, "compact")
    for episode in recording.episodes:
        scenario = resolve_scenario(scenario_id=scenario_id, seed=1)
        dialogue = Dialogue(scenario, plan, plan.parts[1].decoding, form)
        fed = 0
        for context, completion in episode:
            if dialogue.ended_by is not None:
                break
            assert dialogue.context == context
            dialogue.take(completion[: dialogue.room])
            fed += 1
        assert dialogue.ended_by is not None
        if dialogue.ended_by not in ("submit", "step_limit", "budget"):
            # The host goes on after the laboratory's end; everything else ends where the host ends.
            assert fed == len(episode)
        yield dialogue.ended_by
