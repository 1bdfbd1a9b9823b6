"""The rows that training episodes start from: a scenario, a seed and a reward mode each.

A row is one group of episodes: GRPO compares episodes of one prompt, so all of a group share the row's scenario and
seed. Every row has its own seed, drawn from the run's; a run that goes round the rows again meets the seeds again.
"""

from __future__ import annotations

from random import Random
from typing import Any

from molforge_env.interface import prompt_text
from molforge_env.seeding import stream
from molforge_env.suites import SCENARIO_IDS
from molforge_eval.records.manifest import Configuration

SEED_LIMIT = 2**31


def prompt_rows(configuration: Configuration) -> list[dict[str, Any]]:
    """Make the rows in the order in which they are played.

    Tasks take turns, so that a batch of three prompts holds each once. Of each task the `canonical_share` is the
    official scenario and the rest are variants, in random order.
    """
    rng = stream(configuration.seed, "training", "rows")
    content = prompt_text(configuration.observation_length)
    tasks = [SCENARIO_IDS[place % len(SCENARIO_IDS)] for place in range(configuration.dataset_size)]
    suites = {task: _suites(tasks.count(task), configuration.canonical_share, rng) for task in SCENARIO_IDS}
    return [
        {
            "prompt": [{"role": "user", "content": content}],
            "suite": suites[task].pop(),
            "scenario_id": task,
            "seed": rng.randrange(SEED_LIMIT),
            "reward_mode": configuration.reward_mode,
        }
        for task in tasks
    ]


def _suites(count: int, share: float, rng: Random) -> list[str]:
    official = round(count * share)
    names = ["official"] * official + ["randomized"] * (count - official)
    rng.shuffle(names)
    return names
