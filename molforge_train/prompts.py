"""The rows that training episodes start from: a scenario, a seed and a reward mode each.

A row is one group of episodes: GRPO compares episodes of one prompt, so all of a group share the row's scenario and
seed. Every row has its own seed, drawn from the run's; a run that goes round the rows again meets the seeds again.
"""

from __future__ import annotations

from typing import Any

from molforge_env.interface import prompt_text
from molforge_env.seeding import stream
from molforge_env.suites import SCENARIO_IDS
from molforge_eval.records.manifest import Configuration

SEED_LIMIT = 2**31


def prompt_rows(configuration: Configuration) -> list[dict[str, Any]]:
    """Make the rows, official scenarios and variants interleaved by `canonical_share`, tasks in turn."""
    rng = stream(configuration.seed, "training", "rows")
    content = prompt_text(configuration.observation_length)
    counts = {"official": 0, "randomized": 0}
    rows = []
    for place in range(configuration.dataset_size):
        share = configuration.canonical_share
        suite = "official" if int((place + 1) * share) > int(place * share) else "randomized"
        scenario_id = SCENARIO_IDS[counts[suite] % len(SCENARIO_IDS)]
        counts[suite] += 1
        rows.append(
            {
                "prompt": [{"role": "user", "content": content}],
                "suite": suite,
                "scenario_id": scenario_id,
                "seed": rng.randrange(SEED_LIMIT),
                "reward_mode": configuration.reward_mode,
            }
        )
    return rows
