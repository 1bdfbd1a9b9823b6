from __future__ import annotations

import pytest
from pydantic import ValidationError

from molforge_env.configuration import LaboratoryConfiguration, configuration_from_environment


def test_without_variables_the_defaults_hold() -> None:
    assert configuration_from_environment({}) == LaboratoryConfiguration()


@pytest.mark.parametrize(
    ("mode", "taken"),
    [("dense", "dense"), ("CURRICULUM", "curriculum"), (" dense", "assay_gated"), ("generous", "assay_gated")],
)
def test_the_reward_mode_is_lower_cased_and_an_unknown_one_is_the_strict_one(mode, taken) -> None:
    assert configuration_from_environment({"MOLFORGE_REWARD_MODE": mode}).reward_mode == taken


@pytest.mark.parametrize(
    ("word", "suite"), [("1", "randomized"), ("TRUE", "randomized"), ("yes", "randomized"), ("on", "official")]
)
def test_randomization_is_switched_by_three_words(word, suite) -> None:
    assert configuration_from_environment({"MOLFORGE_TRAINING_RANDOMIZATION": word}).suite == suite


def test_seed_and_debug_are_read() -> None:
    found = configuration_from_environment({"MOLFORGE_RANDOM_SEED": "42", "MOLFORGE_DEBUG_STATE": "yes"})

    assert (found.stream_seed, found.debug_state) == ("42", True)


def test_the_process_environment_is_the_default(monkeypatch) -> None:
    monkeypatch.setenv("MOLFORGE_REWARD_MODE", "dense")

    assert configuration_from_environment().reward_mode == "dense"


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(ValidationError):
        LaboratoryConfiguration.model_validate({"reward": "dense"})
