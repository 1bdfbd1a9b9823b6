"""The prompts of a training run in the order in which they are played: a pure function of its settings.

A prompt is one group of episodes: GRPO compares episodes of one prompt, so all of a group share its scenario and seed.
The trainer plays by this list, and validation holds the rollout log to it.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from molforge_env.seeding import stream
from molforge_env.suites import SCENARIO_IDS, TrainingSuite
from molforge_eval.records.manifest import Configuration

SEED_LIMIT = 2**31


class PlannedPrompt(NamedTuple):
    """What the episodes of one group start from."""

    suite: TrainingSuite
    scenario_id: str
    seed: int


def planned_prompts(configuration: Configuration) -> tuple[PlannedPrompt, ...]:
    """List the prompts of a run; one that goes round them again meets the seeds again.

    Tasks take turns, so that a batch of three prompts holds each once. Of each task the `canonical_share` is the
    official scenario and the rest are variants, in random order. Every prompt has its own seed.
    """
    rng = stream(configuration.seed, "training", "rows")
    tasks = [SCENARIO_IDS[place % len(SCENARIO_IDS)] for place in range(configuration.dataset_size)]
    suites = {task: _suites(tasks.count(task), configuration.canonical_share, rng) for task in SCENARIO_IDS}
    return tuple(PlannedPrompt(suites[task].pop(), task, rng.randrange(SEED_LIMIT)) for task in tasks)


def prompts_of_batch(prompts: tuple[PlannedPrompt, ...], batch: int, size: int) -> tuple[PlannedPrompt, ...]:
    """Take the prompts of one batch: batches follow each other, and what fills none at the end is left out.

    Args:
        prompts: From `planned_prompts`.
        batch: Number of the batch, from 0.
        size: Prompts of a batch.
    """
    whole = len(prompts) // size if size else 0
    start = batch % whole * size if whole else 0
    return prompts[start : start + size] if whole else ()


def _suites(count: int, share: float, rng: Random) -> list[TrainingSuite]:
    official = round(count * share)
    names: list[TrainingSuite] = ["official"] * official
    names += ["randomized"] * (count - official)
    rng.shuffle(names)
    return names
