"""The rows that training episodes start from: a scenario, a seed and a reward mode each.

A row is one group of episodes. Which rows there are and in which order is `molforge_eval.training_prompts`, so that
validation can hold the rollout log to it; the host must not shuffle them.
"""

from __future__ import annotations

from typing import Any

from molforge_env.interface import prompt_text
from molforge_eval.records.manifest import Configuration
from molforge_eval.training_prompts import planned_prompts


def prompt_rows(configuration: Configuration) -> list[dict[str, Any]]:
    """Make the rows in the order in which they are played."""
    content = prompt_text(configuration.observation_length)
    return [
        {
            "prompt": [{"role": "user", "content": content}],
            "suite": prompt.suite,
            "scenario_id": prompt.scenario_id,
            "seed": prompt.seed,
            "reward_mode": configuration.reward_mode,
        }
        for prompt in planned_prompts(configuration)
    ]
