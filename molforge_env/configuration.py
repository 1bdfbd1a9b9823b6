"""The settings of a hosted laboratory, as an object.

The environment variables of the public project still work: they are read here, once, when a host asks for it, and
nowhere else in the laboratory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from molforge_env.frozen import FrozenModel
from molforge_env.models import REWARD_MODES, RewardMode
from molforge_env.suites import SuiteName

_YES = ("1", "true", "yes")


class LaboratoryConfiguration(FrozenModel):
    """What a hosted laboratory does when a reset does not say otherwise."""

    reward_mode: RewardMode = "assay_gated"
    suite: SuiteName = "official"
    stream_seed: str = "molforge"
    """Seeds the draws of randomized resets that come without a seed of their own."""
    debug_state: bool = False
    """Adds the true properties to the state; for looking into the rules, never for playing."""


def configuration_from_environment(environment: Mapping[str, str] | None = None) -> LaboratoryConfiguration:
    """Read the settings from `MOLFORGE_*` variables.

    Args:
        environment: Instead of the process's own.

    Returns:
        The settings; an unknown reward mode is the strict one, as the rules want.
    """
    variables = os.environ if environment is None else environment  # noqa: TID251 - the border where settings enter
    mode = variables.get("MOLFORGE_REWARD_MODE", "").lower()
    is_randomized = variables.get("MOLFORGE_TRAINING_RANDOMIZATION", "").lower() in _YES
    return LaboratoryConfiguration(
        reward_mode=mode if mode in REWARD_MODES else "assay_gated",
        suite="randomized" if is_randomized else "official",
        stream_seed=variables.get("MOLFORGE_RANDOM_SEED", "molforge"),
        debug_state=variables.get("MOLFORGE_DEBUG_STATE", "").lower() in _YES,
    )
